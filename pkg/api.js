// The public classes. The WebAssembly module, which a loader has started, does the work: these
// classes map names to its numbers, which are the indices in the lists below, and pass on arguments
// that options.js has checked.
import { OBJECT, errorOf, fail, lossOf, waiting } from "./errors.js";
import * as options from "./options.js";
import { start } from "./start.js";
import { isProgram, networkErrors, unrefTimers } from "./wasm/web.js";
import { connect as openModule, Thing } from "./wasm/edgelatch.js";

/** The kinds of objects, in the order of `kind` in src/js/numbers.rs. */
const KINDS = [
  "owner", "lock", "nonReentrantLock", "spinLock", "fairLock", "nonReentrantFairLock", "fencedLock", "read", "write", "groupLock",
  "semaphore", "permitExpirableSemaphore", "countDownLatch", "guard", "list", "multiLock", "redLock", "events",
];
/** The methods, in the order of `ask` in src/js/numbers.rs. */
const QUESTIONS = [
  "acquire", "tryAcquire", "run", "forceRelease", "inspect", "release", "addPermits", "releaseIfExists", "drainPermits",
  "trySetPermits", "availablePermits", "updateLeaseTime", "setPermits", "trySetCount", "countDown", "count", "wait", "delete",
  "set", "claim", "newest", "isHeld", "renew", "eval", "end", "next",
];
/** The index of GatewayUnreachableError in errors.js. */
const UNREACHABLE = 6;
/** The properties, in the order of `tell` in src/js/numbers.rs. */
const FACTS = ["name", "token", "signal", "holdCount", "remaining", "permitIds", "tokenOf"];

/**
 * Whether the stack of an error that is created after an `await` still names the callers. In Bun it
 * does not.
 */
const hasAsyncStacks = !globalThis.Bun;

let aboutOf;
let make;
let ask;
let tell;

/** An object of the package, and the object in the module that it represents. */
class Base {
  #thing;
  /** The object's kind and name and the gateway's host, for messages and inspection. */
  #about;

  constructor(thing, about) {
    this.#thing = thing;
    this.#about = about;
  }

  get [OBJECT]() {
    return true;
  }

  [Symbol.for("nodejs.util.inspect.custom")](_depth, options, inspect) {
    const { kind, redactNames, ...rest } = this.#about;
    if (!(this instanceof Lease)) return `${kind} ${inspect(rest, options)}`;
    return `lease of ${kind} ${inspect({ ...rest, token: this.token, remainingMs: this.remaining() }, options)}`;
  }

  [Symbol.for("Deno.customInspect")](inspect, options) {
    return this[Symbol.for("nodejs.util.inspect.custom")](0, options, inspect);
  }

  static {
    const inside = (value) => (value instanceof Base ? value.#thing : undefined);
    aboutOf = (of) => of.#about;
    make = (of, kind, name = "", numbers = [], bytes = [], other) => {
      try {
        return of.#thing.make(KINDS.indexOf(kind), inside(other) ?? of.#thing, name, numbers, bytes);
      } catch (failure) {
        throw errorOf(failure, {}, make);
      }
    };
    ask = async (of, question, read, values = []) => {
      const caller = hasAsyncStacks ? undefined : new Error();
      // An argument behind the method's own ones is an options object that would be ignored.
      options.given(values[read?.length]);
      const { numbers = [], texts = [], signal, lease } = read?.(...values) ?? {};
      const what = QUESTIONS.indexOf(question);
      let refuse;
      // A pending `next` of events keeps no program running.
      const keepsRunning = question === "next" ? 0 : 1;
      attend(keepsRunning);
      try {
        const answer = await new Promise((resolve, reject) => {
          waiting.add((refuse = reject));
          of.#thing.ask(what, inside(lease) ?? of.#thing, numbers, texts, signal, { resolve, reject });
        });
        return answer instanceof Thing ? new Lease(answer, of.#about) : answer;
      } catch (failure) {
        throw errorOf(failure, of.#about, ask, networkErrors.get(of.#about.host), caller);
      } finally {
        waiting.delete(refuse);
        attend(-keepsRunning);
      }
    };
    tell = (of, fact, about = "") => of.#thing.tell(FACTS.indexOf(fact), about);
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

function attend(change) {
  pending += change;
  if (pending === 0) timer = clearInterval(timer);
  else if (isProgram) timer ??= setInterval(() => {}, 2 ** 30);
}

/** The methods that return a lease. */
const LEASED = ["acquire", "tryAcquire"];

/**
 * Handles `using` without `await`, which would not wait for the release: throws, and releases the
 * lease that was acquired.
 */
function misused(acquired) {
  acquired.then((lease) => lease?.release()).catch(() => {});
  throw new TypeError("a lease is released asynchronously: write `await using lease = await lock.acquire()`");
}

/** Wraps a method that returns a promise of a lease, so that `using` on the promise throws. */
function disposable(method) {
  if (!Symbol.dispose) return method;
  const name = method.name;
  return {
    [name](...values) {
      const acquired = method.apply(this, values);
      return Object.defineProperty(acquired, Symbol.dispose, { get: () => misused(acquired), configurable: true });
    },
  }[name];
}

/**
 * Adds a method for each entry of `questions`, with the reader of its arguments, and a property for
 * each of `facts`.
 */
function define({ prototype }, questions, facts) {
  for (const [question, read] of Object.entries(questions)) {
    // The class defines its own version.
    if (Object.hasOwn(prototype, question)) continue;
    const method = { [question](...values) { return ask(this, question, read, values); } }[question];
    const value = LEASED.includes(question) ? disposable(method) : method;
    Object.defineProperty(prototype, question, { value, configurable: true, writable: true });
  }
  for (const fact of facts) {
    Object.defineProperty(prototype, fact, { get() { return tell(this, fact); }, configurable: true });
  }
}

/**
 * Acquires, calls the work, and releases. An error of the work takes precedence over the end of its
 * lease.
 */
async function run(of, { run }, values, given, work) {
  if (typeof given === "function" && work === undefined) [given, work] = [undefined, given];
  const lease = await ask(of, "run", run, [...values, given, work]);
  attend(1);
  try {
    let result;
    try {
      result = await work(lease);
    } catch (thrown) {
      await ask(lease, "end").catch(() => {});
      throw thrown;
    }
    await ask(lease, "end");
    return result;
  } finally {
    attend(-1);
  }
}

/** Returns a lock that consists of several locks. */
function together(of, kind, locks, numbers) {
  const all = members(locks);
  let list = new Base(make(of, "list"), {});
  for (const lock of all) list = new Base(make(list, "list", "", [], [], lock), {});
  const name = all.map((lock) => aboutOf(lock).name).join(", ");
  return new Lock(make(list, kind, "", numbers()), { ...aboutOf(of), kind, name });
}

function members(locks) {
  const all = Array.isArray(locks) ? Array.from(locks) : [null];
  const stray = all.findIndex((lock) => !(lock instanceof Lock));
  if (stray < 0) return all;
  throw options.no("locks", expected("an array of locks", all[stray]));
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
function named(Class, of, kind, name, given, read = options.made[kind]) {
  const title = options.text(name, "name");
  return new Class(make(of, kind, title, read(given)), { ...aboutOf(of), kind, name: title });
}

class Locks extends Base {
  owner(given) {
    options.none(given);
    return new Locks(make(this, "owner"), aboutOf(this));
  }

  readWriteLock(name, given) {
    const side = (kind) => named(Lock, this, kind, name, given, options.made.readWriteLock);
    return Object.freeze({ read: side("read"), write: side("write") });
  }

  groupLock(group, values, given) {
    const [name, all] = [options.text(group, "name"), options.bytes(values)];
    const numbers = options.made.groupLock(given);
    const lengths = all.map(({ length }) => length);
    return new Lock(make(this, "groupLock", name, [...numbers, ...lengths], joined(all)), { ...aboutOf(this), kind: "groupLock", name });
  }

  multiLock(locks, given) {
    options.none(given);
    return together(this, "multiLock", locks, () => []);
  }

  redLock(locks, given) {
    return together(this, "redLock", locks, () => options.made.redLock(given));
  }

  guard(key, given) {
    const title = options.text(key, "key");
    const { memory, lock } = options.made.guard(given);
    const thing = make(this, "guard", title, [memory], new TextEncoder().encode(lock));
    return new Guard(thing, { ...aboutOf(this), kind: "guard", name: title });
  }

  events(given) {
    options.none(given);
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
  run(given, work) {
    return run(this, options.lock, [], given, work);
  }
}

class Semaphore extends Base {
  run(permits, given, work) {
    return run(this, options.semaphore, [permits], given, work);
  }
}

class PermitExpirableSemaphore extends Base {
  run(permits, given, work) {
    return run(this, options.permitExpirableSemaphore, [permits], given, work);
  }
}

class CountDownLatch extends Base {}

class Guard extends Base {
  get key() {
    return tell(this, "name");
  }
}

/** Yields the events of a lease or of a client. */
async function* events(of) {
  const events = new Base(make(of, "events"), {});
  for (let event; (event = await ask(events, "next")); ) yield event;
}

class Lease extends Base {
  #signal;

  /** Cached here, so that it can be read after the module has failed. */
  get signal() {
    return (this.#signal ??= lossOf(aboutOf(this), () => tell(this, "signal")));
  }

  tokenOf(name) {
    return typeof name === "string" ? tell(this, "tokenOf", name) : null;
  }
  remaining() {
    return tell(this, "remaining");
  }
  get permitIds() {
    return tell(this, "permitIds").split(",").filter(Boolean);
  }
  async eval(...values) {
    const result = await ask(this, "eval", options.lease.eval, values);
    try {
      return JSON.parse(result);
    } catch {
      // The package's script returns the result as JSON, so anything else is not its reply.
      throw errorOf(fail(UNREACHABLE, "the gateway's answer is not understood (HTTP 200)", 200), aboutOf(this));
    }
  }
  events(given) {
    options.none(given);
    return events(this);
  }
  [Symbol.asyncDispose]() {
    return ask(this, "end");
  }
}
if (Symbol.dispose) {
  Object.defineProperty(Lease.prototype, Symbol.dispose, { get() { return misused(Promise.resolve(this)); }, configurable: true });
}

const NAMED = {
  lock: Lock, nonReentrantLock: Lock, spinLock: Lock, fairLock: Lock, nonReentrantFairLock: Lock, fencedLock: Lock,
  semaphore: Semaphore, permitExpirableSemaphore: PermitExpirableSemaphore, countDownLatch: CountDownLatch,
};
for (const [kind, Class] of Object.entries(NAMED)) {
  const value = { [kind](name, given) { return named(Class, this, kind, name, given); } }[kind];
  Object.defineProperty(Locks.prototype, kind, { value, configurable: true, writable: true });
}
function held(lease) {
  if (lease instanceof Lease) return lease;
  throw options.no("lease", expected("a lease", lease));
}

define(Lock, options.lock, ["name"]);
define(Semaphore, options.semaphore, ["name"]);
define(PermitExpirableSemaphore, options.permitExpirableSemaphore, ["name"]);
define(CountDownLatch, options.countDownLatch, ["name"]);
define(Guard, options.guard(held), []);
define(Lease, options.lease, ["name", "token", "holdCount"]);

/** Returns the `connect` of an entry. Its first call starts the module that `load` returns. */
export function clients(load) {
  const open = ({ module, redactNames }) => {
    start(load);
    try {
      const thing = openModule(...module);
      // The renewal of a lease keeps no program running; `attend` keeps it running while calls are
      // pending.
      unrefTimers();
      return new Locks(thing, { kind: "edgelatch", host: new URL(module[0].trim()).host, redactNames });
    } catch (failure) {
      throw errorOf(failure, {}, open);
    }
  };
  const connect = (given) => open(options.client(given));
  connect.fromEnv = (env, given) => open(options.clientFromEnv(env, given));
  return connect;
}
