// The public classes, which map names to the numbers of the WebAssembly module: the indices in the
// lists below. They pass on arguments that options.js has checked. src/js/numbers.rs reads the
// numbers from these lists.
import { Share, call as callEngine } from "./driver.js";
import { errorOf, invalidResponse } from "./errors.js";
import { OBJECT } from "./mark.js";
import * as methods from "./methods.js";
import * as options from "./options.js";
import { start } from "./start.js";
import { networkErrors } from "./wasm/web.js";

/** The kinds of objects. */
const KINDS = [
  "owner", "lock", "nonReentrantLock", "spinLock", "fairLock", "nonReentrantFairLock", "fencedLock", "read", "write", "fairReadWriteLock",
  "groupLock", "semaphore", "permitExpirableSemaphore", "countDownLatch", "guard", "list", "multiLock", "redLock", "fairRead", "fairWrite",
];
/** The methods. */
const METHODS = [
  "acquire", "tryAcquire", "run", "forceRelease", "inspect", "release", "addPermits", "releaseIfExists", "drainPermits",
  "trySetPermits", "availablePermits", "updateLeaseTime", "setPermits", "trySetCount", "countDown", "count", "wait", "delete",
  "set", "claim", "newest", "isHeld", "renew", "eval", "end", "steal", "query",
];
/**
 * Whether the stack of an error that is created after an `await` still names the callers. In Bun it
 * does not.
 */
const hasAsyncStacks = !globalThis.Bun;

let handleOf;
let subjectOf;

/** An object of the package, and its handle in the module. */
class Base {
  #handle;
  /** The kind and name of the object and the host of the gateway, for messages and inspection. */
  #subject;

  constructor(handle, subject) {
    this.#handle = handle;
    this.#subject = subject;
  }

  /** The description of the object, which the entries that observe read. */
  get [OBJECT]() {
    return this.#subject;
  }

  [Symbol.for("nodejs.util.inspect.custom")](_depth, options, inspect) {
    const { kind, redactNames, ...rest } = this.#subject;
    if (!(this instanceof Lease)) return `${kind} ${inspect(rest, options)}`;
    return `lease of ${kind} ${inspect({ ...rest, token: this.token, remainingMs: this.remaining() }, options)}`;
  }

  [Symbol.for("Deno.customInspect")](inspect, options) {
    return this[Symbol.for("nodejs.util.inspect.custom")](0, options, inspect);
  }

  static {
    handleOf = (value) => (value instanceof Base ? value.#handle : undefined);
    subjectOf = (object) => object.#subject;
  }
}

/** Creates the handle of an object of this kind from another object. */
function create(object, kind, name = "", numbers = [], bytes = [], other = object) {
  try {
    return methods.create(handleOf(object), KINDS.indexOf(kind), handleOf(other), name, numbers, bytes);
  } catch (failure) {
    throw errorOf(failure, {}, create);
  }
}

/** The leases whose calls are pending. */
const used = new Set();

/** Calls a method, whose arguments `read` checks. */
async function call(object, method, read, values = []) {
  const caller = hasAsyncStacks ? undefined : new Error();
  // An argument after those of the method is an options object that would be ignored.
  options.checkOptions(values[read?.length]);
  const args = read?.(...values) ?? {};
  // A lease is not collected during its calls.
  const use = { lease: args.lease ?? object };
  used.add(use);
  methods.trackPending(1);
  try {
    const result = await perform(object, method, args);
    return result instanceof Share ? new Lease(result, subjectOf(object)) : result;
  } catch (failure) {
    throw errorOf(failure, subjectOf(object), call, networkErrors.get(subjectOf(object).host), caller);
  } finally {
    used.delete(use);
    methods.trackPending(-1);
  }
}

function perform(object, method, args) {
  const [handle, number] = [handleOf(object), METHODS.indexOf(method)];
  if (object instanceof Lease) return callEngine(handle, number, leaseArguments(object, method, args));
  if (method === "query") return methods.query(handle, number);
  if (!args.lease) return callEngine(handle, number, args);
  return methods.write(handle, number, METHODS.indexOf("newest"), { ...args, hold: shareOf(args.lease).hold });
}

/** The methods whose promise has a lease. */
const LEASE_METHODS = ["acquire", "tryAcquire", "steal"];

/**
 * Handles `using` without `await`, which would not wait for the release: throws, and releases the
 * lease that was acquired.
 */
function refuseSyncDispose(acquired) {
  acquired.then((lease) => lease?.release()).catch(() => {});
  throw new TypeError("a lease is released asynchronously: write `await using lease = await lock.acquire()`");
}

/** The property of a promise of a lease, so that `using` on the promise throws. */
const SYNC_DISPOSE = { get() { return refuseSyncDispose(this); }, configurable: true };

/** Wraps a method that returns a promise of a lease, so that `using` on the promise throws. */
function withSyncDisposeRefused(method) {
  if (!Symbol.dispose) return method;
  const name = method.name;
  return { [name](...values) { return Object.defineProperty(method.apply(this, values), Symbol.dispose, SYNC_DISPOSE); } }[name];
}

/**
 * Adds a method for each entry of `readers`, which read the arguments, and the name of the
 * object as the property `title`, if it has one.
 */
function defineMembers({ prototype }, readers, title) {
  for (const [name, read] of Object.entries(readers)) {
    // The class defines its own version.
    if (Object.hasOwn(prototype, name)) continue;
    const method = { [name](...values) { return call(this, name, read, values); } }[name];
    const value = LEASE_METHODS.includes(name) ? withSyncDisposeRefused(method) : method;
    Object.defineProperty(prototype, name, { value, configurable: true, writable: true });
  }
  if (title !== undefined) {
    Object.defineProperty(prototype, title, { get() { return methods.nameOf(handleOf(this)); }, configurable: true });
  }
}

/**
 * Acquires, calls the work, and releases. An error of the work takes precedence over the end of its
 * lease.
 */
async function run(object, { run }, values, input, work) {
  if (typeof input === "function" && work === undefined) [input, work] = [undefined, input];
  const lease = await call(object, "run", run, [...values, input, work]);
  methods.trackPending(1);
  try {
    let result;
    try {
      result = await work(lease);
    } catch (thrown) {
      await call(lease, "end").catch(() => {});
      throw thrown;
    }
    await call(lease, "end");
    return result;
  } finally {
    methods.trackPending(-1);
  }
}

/** Returns a lock that consists of several locks. */
function combine(object, kind, locks, numbers) {
  const all = members(locks);
  let list = new Base(create(object, "list"), {});
  for (const lock of all) list = new Base(create(list, "list", "", [], [], lock), {});
  const name = all.map((lock) => subjectOf(lock).name).join(", ");
  return new Lock(create(list, kind, "", numbers()), { ...subjectOf(object), kind, name });
}

function members(locks) {
  const all = Array.isArray(locks) ? Array.from(locks) : [null];
  const invalid = all.findIndex((lock) => !(lock instanceof Lock));
  if (invalid < 0) return all;
  throw options.invalid("locks", expected("an array of locks", all[invalid]));
}

/**
 * Returns the accepted values for an error, with advice if the value is of another copy of the
 * package.
 */
function expected(what, value) {
  const isOfAnotherCopy = options.isObject(value) && OBJECT in value && !(value instanceof Base);
  return isOfAnotherCopy
    ? `${what} of this copy of edgelatch, not of another one (\`import\` and \`require\` load one each; use one of them)`
    : what;
}

/** Returns an object of this class with a name and options. */
function createNamed(Class, object, kind, name, input, read = options.creation[kind]) {
  const title = options.requiredText(name, "name");
  return new Class(create(object, kind, title, read(input)), { ...subjectOf(object), kind, name: title });
}

class Locks extends Base {
  owner(input) {
    options.noOptions(input);
    return new Locks(create(this, "owner"), subjectOf(this));
  }

  readWriteLock(name, input) {
    const side = (kind) => createNamed(Lock, this, kind, name, input, options.creation.readWriteLock);
    return Object.freeze({ read: side("read"), write: side("write") });
  }

  fairReadWriteLock(name, input) {
    const { limits, clientId } = options.creation.fairReadWriteLock(input);
    const subject = { ...subjectOf(this), kind: "fairReadWriteLock", name: options.requiredText(name, "name") };
    const part = (Class, kind) => new Class(create(this, kind, subject.name, limits, clientId), subject);
    return Object.freeze(Object.assign(part(FairReadWriteLock, subject.kind), { read: part(Lock, "fairRead"), write: part(Lock, "fairWrite") }));
  }

  groupLock(group, values, input) {
    const [name, all] = [options.requiredText(group, "name"), options.groupValues(values)];
    const numbers = options.creation.groupLock(input);
    const lengths = all.map(({ length }) => length);
    return new Lock(create(this, "groupLock", name, [...numbers, ...lengths], joined(all)), { ...subjectOf(this), kind: "groupLock", name });
  }

  multiLock(locks, input) {
    options.noOptions(input);
    return combine(this, "multiLock", locks, () => []);
  }

  redLock(locks, input) {
    return combine(this, "redLock", locks, () => options.creation.redLock(input));
  }

  guard(key, input) {
    const title = options.requiredText(key, "key");
    const { memory, lock } = options.creation.guard(input);
    const handle = create(this, "guard", title, [memory], new TextEncoder().encode(lock));
    return new Guard(handle, { ...subjectOf(this), kind: "guard", name: title });
  }

  events(input) {
    options.noOptions(input);
    return events(methods.events(handleOf(this)), ([type, byMs]) => (byMs === undefined ? { type } : { type, byMs }));
  }
}

function joined(all) {
  const bytes = new Uint8Array(all.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of all) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

class Lock extends Base {
  run(input, work) {
    return run(this, options.lock, [], input, work);
  }
}

class Semaphore extends Base {
  run(permits, input, work) {
    return run(this, options.semaphore, [permits], input, work);
  }
}

class PermitExpirableSemaphore extends Base {
  run(permits, input, work) {
    return run(this, options.permitExpirableSemaphore, [permits], input, work);
  }
}

class FairReadWriteLock extends Base {}
class CountDownLatch extends Base {}
class Guard extends Base {}

/** Yields the events of a lease or of a client. */
async function* events(next, objectOf) {
  for (let event; (event = await next()); ) yield Object.freeze(objectOf(event));
}

let shareOf;

/** Returns the arguments of a method of a lease, with its hold. */
function leaseArguments(lease, method, args) {
  const share = shareOf(lease);
  if (method !== "release" && method !== "end") return { ...args, hold: share.hold };
  // A repeated release is told apart: the hold may have other leases.
  const wasReleased = share.isReleased;
  share.isReleased = true;
  return { hold: share.hold, numbers: [wasReleased ? 1 : undefined] };
}

class Lease extends Base {
  #share;
  #signal;

  constructor(share, subject) {
    super(share.hold.of, subject);
    this.#share = share;
    share.dropWith(this);
  }

  get [OBJECT]() {
    return this.#share;
  }

  static {
    shareOf = (lease) => lease.#share;
  }

  get name() {
    return this.#share.name;
  }
  get token() {
    return this.#share.hold.get("token");
  }
  get holdCount() {
    return this.#share.hold.get("holdCount");
  }
  /** Created at first access, since most callers do not use it and it is expensive. */
  get signal() {
    return (this.#signal ??= this.#share.hold.signal(subjectOf(this)));
  }

  tokenOf(name) {
    const token = typeof name === "string" ? this.#share.hold.get("tokenOf", name) : NaN;
    return Number.isNaN(token) ? null : token;
  }
  remaining() {
    return this.#share.hold.get("remaining");
  }
  get permitIds() {
    return this.#share.hold.permitIds();
  }
  async eval(...values) {
    const result = await call(this, "eval", options.lease.eval, values);
    try {
      return JSON.parse(result);
    } catch {
      // The package's script returns the result as JSON, so anything else is not its reply.
      throw errorOf(invalidResponse(), subjectOf(this));
    }
  }
  events(input) {
    options.noOptions(input);
    const next = methods.events(handleOf(this), () => this.#share.hold);
    return events(next, ([type, reason, remainingMs]) => ({ type, reason: reason ?? undefined, remainingMs }));
  }
  // Without this symbol a runtime has no `await using`: esbuild compiles it to the other symbol.
  [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    return call(this, "end");
  }
}
if (Symbol.dispose) {
  Object.defineProperty(Lease.prototype, Symbol.dispose, { get() { return refuseSyncDispose(Promise.resolve(this)); }, configurable: true });
}

const CLASSES = {
  lock: Lock, nonReentrantLock: Lock, spinLock: Lock, fairLock: Lock, nonReentrantFairLock: Lock, fencedLock: Lock,
  semaphore: Semaphore, permitExpirableSemaphore: PermitExpirableSemaphore, countDownLatch: CountDownLatch,
};
for (const [kind, Class] of Object.entries(CLASSES)) {
  const value = { [kind](name, input) { return createNamed(Class, this, kind, name, input); } }[kind];
  Object.defineProperty(Locks.prototype, kind, { value, configurable: true, writable: true });
}
function requireLease(lease) {
  if (lease instanceof Lease) return lease;
  throw options.invalid("lease", expected("a lease", lease));
}

defineMembers(Lock, options.lock, "name");
defineMembers(FairReadWriteLock, options.fairReadWriteLock, "name");
defineMembers(Semaphore, options.semaphore, "name");
defineMembers(PermitExpirableSemaphore, options.permitExpirableSemaphore, "name");
defineMembers(CountDownLatch, options.countDownLatch, "name");
defineMembers(Guard, options.guard(requireLease), "key");
defineMembers(Lease, options.lease);

/** Returns the `connect` of an entry. Its first call starts the module that `load` returns. */
export function clients(load) {
  const open = ({ module, redactNames, log }) => {
    start(load);
    try {
      // A log adds its own function for requests to the settings, and returns the client.
      const observe = log?.(module) ?? ((client) => client);
      const handle = methods.connect(...module);
      return observe(new Locks(handle, { kind: "edgelatch", host: new URL(module[0].trim()).host, redactNames }));
    } catch (failure) {
      throw errorOf(failure, {}, open);
    }
  };
  const connect = (input) => open(options.client(input));
  connect.fromEnv = (env, input) => options.clientFromEnv(env, input, open);
  return connect;
}
