// The public classes. The WebAssembly module, which a loader has started, does the work: these
// classes map names to its numbers, which are the indices in the lists below, and pass on arguments
// that options.js has checked. src/js/numbers.rs reads the numbers from these lists.
import { OBJECT, errorOf, invalidResponse, lossSignal, rejections } from "./errors.js";
import * as options from "./options.js";
import { start } from "./start.js";
import { isProgram, networkErrors, unrefTimers } from "./wasm/web.js";
import { connect as openModule, Handle } from "./wasm/edgelatch.js";

/** The kinds of objects. */
const KINDS = [
  "owner", "lock", "nonReentrantLock", "spinLock", "fairLock", "nonReentrantFairLock", "fencedLock", "read", "write", "groupLock",
  "semaphore", "permitExpirableSemaphore", "countDownLatch", "guard", "list", "multiLock", "redLock", "events",
];
/** The methods. */
const METHODS = [
  "acquire", "tryAcquire", "run", "forceRelease", "inspect", "release", "addPermits", "releaseIfExists", "drainPermits",
  "trySetPermits", "availablePermits", "updateLeaseTime", "setPermits", "trySetCount", "countDown", "count", "wait", "delete",
  "set", "claim", "newest", "isHeld", "renew", "eval", "end", "next",
];
/** The properties. */
const PROPERTIES = ["name", "token", "signal", "holdCount", "remaining", "permitIds", "tokenOf"];

/**
 * Whether the stack of an error that is created after an `await` still names the callers. In Bun it
 * does not.
 */
const hasAsyncStacks = !globalThis.Bun;

let subjectOf;
let create;
let call;
let get;

/** An object of the package, and its handle in the module. */
class Base {
  #handle;
  /** The kind and name of the object and the host of the gateway, for messages and inspection. */
  #subject;

  constructor(handle, subject) {
    this.#handle = handle;
    this.#subject = subject;
  }

  get [OBJECT]() {
    return true;
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
    const handleOf = (value) => (value instanceof Base ? value.#handle : undefined);
    subjectOf = (object) => object.#subject;
    create = (object, kind, name = "", numbers = [], bytes = [], other) => {
      try {
        return object.#handle.create(KINDS.indexOf(kind), handleOf(other) ?? object.#handle, name, numbers, bytes);
      } catch (failure) {
        throw errorOf(failure, {}, create);
      }
    };
    call = async (object, method, read, values = []) => {
      const caller = hasAsyncStacks ? undefined : new Error();
      // An argument after those of the method is an options object that would be ignored.
      options.checkOptions(values[read?.length]);
      const { numbers = [], texts = [], signal, lease } = read?.(...values) ?? {};
      const number = METHODS.indexOf(method);
      let rejectCall;
      // A pending `next` of events keeps no program running.
      const keepsRunning = method === "next" ? 0 : 1;
      trackPending(keepsRunning);
      try {
        const result = await new Promise((resolve, reject) => {
          rejections.add((rejectCall = reject));
          object.#handle.call(number, handleOf(lease) ?? object.#handle, numbers, texts, signal, { resolve, reject });
        });
        return result instanceof Handle ? new Lease(result, object.#subject) : result;
      } catch (failure) {
        throw errorOf(failure, object.#subject, call, networkErrors.get(object.#subject.host), caller);
      } finally {
        rejections.delete(rejectCall);
        trackPending(-keepsRunning);
      }
    };
    get = (object, property, name = "") => object.#handle.get(PROPERTIES.indexOf(property), name);
  }
}

/**
 * The runtime's own timers: a test's fake timers would never fire and would keep no program
 * running.
 */
const { clearInterval, setInterval } = globalThis;
/**
 * The number of pending calls and callbacks. While it is not 0, a program of Node, Deno or Bun
 * keeps running.
 */
let pending = 0;
let timer;

function trackPending(change) {
  pending += change;
  if (pending === 0) timer = clearInterval(timer);
  else if (isProgram) timer ??= setInterval(() => {}, 2 ** 30);
}

/** The methods whose promise has a lease. */
const LEASE_METHODS = ["acquire", "tryAcquire"];

/**
 * Handles `using` without `await`, which would not wait for the release: throws, and releases the
 * lease that was acquired.
 */
function refuseSyncDispose(acquired) {
  acquired.then((lease) => lease?.release()).catch(() => {});
  throw new TypeError("a lease is released asynchronously: write `await using lease = await lock.acquire()`");
}

/** Wraps a method that returns a promise of a lease, so that `using` on the promise throws. */
function withSyncDisposeRefused(method) {
  if (!Symbol.dispose) return method;
  const name = method.name;
  return {
    [name](...values) {
      const acquired = method.apply(this, values);
      return Object.defineProperty(acquired, Symbol.dispose, { get: () => refuseSyncDispose(acquired), configurable: true });
    },
  }[name];
}

/**
 * Adds a method for each entry of `methods`, with the reader of its arguments, and a property for
 * each of `properties`.
 */
function defineMembers({ prototype }, methods, properties) {
  for (const [name, read] of Object.entries(methods)) {
    // The class defines its own version.
    if (Object.hasOwn(prototype, name)) continue;
    const method = { [name](...values) { return call(this, name, read, values); } }[name];
    const value = LEASE_METHODS.includes(name) ? withSyncDisposeRefused(method) : method;
    Object.defineProperty(prototype, name, { value, configurable: true, writable: true });
  }
  for (const property of properties) {
    Object.defineProperty(prototype, property, { get() { return get(this, property); }, configurable: true });
  }
}

/**
 * Acquires, calls the work, and releases. An error of the work takes precedence over the end of its
 * lease.
 */
async function run(object, { run }, values, input, work) {
  if (typeof input === "function" && work === undefined) [input, work] = [undefined, input];
  const lease = await call(object, "run", run, [...values, input, work]);
  trackPending(1);
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
    trackPending(-1);
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
    return events(this);
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

class CountDownLatch extends Base {}

class Guard extends Base {
  get key() {
    return get(this, "name");
  }
}

/** Yields the events of a lease or of a client. */
async function* events(object) {
  const events = new Base(create(object, "events"), {});
  for (let event; (event = await call(events, "next")); ) yield event;
}

class Lease extends Base {
  #signal;

  /** Cached here, so that it can be read after the module has failed. */
  get signal() {
    return (this.#signal ??= lossSignal(subjectOf(this), () => get(this, "signal")));
  }

  tokenOf(name) {
    return typeof name === "string" ? get(this, "tokenOf", name) : null;
  }
  remaining() {
    return get(this, "remaining");
  }
  get permitIds() {
    return get(this, "permitIds").split(",").filter(Boolean);
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
    return events(this);
  }
  [Symbol.asyncDispose]() {
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

defineMembers(Lock, options.lock, ["name"]);
defineMembers(Semaphore, options.semaphore, ["name"]);
defineMembers(PermitExpirableSemaphore, options.permitExpirableSemaphore, ["name"]);
defineMembers(CountDownLatch, options.countDownLatch, ["name"]);
defineMembers(Guard, options.guard(requireLease), []);
defineMembers(Lease, options.lease, ["name", "token", "holdCount"]);

/** Returns the `connect` of an entry. Its first call starts the module that `load` returns. */
export function clients(load) {
  const open = ({ module, redactNames }) => {
    start(load);
    try {
      const handle = openModule(...module);
      // The renewal of a lease keeps no program running; `trackPending` keeps it running while
      // calls are pending.
      unrefTimers();
      return new Locks(handle, { kind: "edgelatch", host: new URL(module[0].trim()).host, redactNames });
    } catch (failure) {
      throw errorOf(failure, {}, open);
    }
  };
  const connect = (input) => open(options.client(input));
  connect.fromEnv = (env, input) => options.clientFromEnv(env, input, open);
  return connect;
}
