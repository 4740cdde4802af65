// The public names. Everything is done in the WebAssembly module that a loader has set up: these classes give names to its
// numbers, which are the places in the lists below, and pass on what they are given once options.js has checked it.
import { GatewayUnreachableError, waiting } from "./errors.js";
import * as options from "./options.js";
import { start } from "./start.js";
import { connect as openModule, Thing } from "./wasm/edgelatch.js";

/** In the order of `kind` in src/js/numbers.rs. */
const KINDS = [
  "owner", "lock", "nonReentrantLock", "spinLock", "fairLock", "nonReentrantFairLock", "fencedLock", "read", "write", "groupLock",
  "semaphore", "permitExpirableSemaphore", "countDownLatch", "guard", "list", "multiLock", "redLock", "events",
];
/** In the order of `ask` in src/js/numbers.rs. */
const QUESTIONS = [
  "acquire", "tryAcquire", "run", "forceRelease", "inspect", "release", "addPermits", "releaseIfExists", "drainPermits",
  "trySetPermits", "availablePermits", "updateLeaseTime", "setPermits", "trySetCount", "countDown", "count", "wait", "delete",
  "set", "claim", "newest", "isHeld", "renew", "eval", "end", "next",
];
/** In the order of `tell` in src/js/numbers.rs. */
const FACTS = ["name", "token", "signal", "holdCount", "remaining", "permitIds", "tokenOf"];

let make;
let ask;
let tell;

/** An object of the package, and the thing in the module that it stands for. */
class Base {
  #thing;

  constructor(thing) {
    this.#thing = thing;
  }

  static {
    const inside = (value) => (value instanceof Base ? value.#thing : undefined);
    make = (of, kind, name = "", numbers = [], bytes = [], other) =>
      of.#thing.make(KINDS.indexOf(kind), inside(other) ?? of.#thing, name, numbers, bytes);
    ask = async (of, question, read, values = []) => {
      const { numbers = [], texts = [], signal, lease } = read?.(...values) ?? {};
      const what = QUESTIONS.indexOf(question);
      let refuse;
      const answer = await new Promise((resolve, reject) => {
        waiting.add((refuse = reject));
        of.#thing.ask(what, inside(lease) ?? of.#thing, numbers, texts, signal, { resolve, reject });
      }).finally(() => waiting.delete(refuse));
      return answer instanceof Thing ? new Lease(answer) : answer;
    };
    tell = (of, fact, about = "") => of.#thing.tell(FACTS.indexOf(fact), about);
  }
}

/** Gives the class a method for each of these questions, by how what it is given is read, and a property for each of these facts. */
function define({ prototype }, questions, facts) {
  for (const [question, read] of Object.entries(questions)) {
    // Classes have those of their own that do more.
    if (Object.hasOwn(prototype, question)) continue;
    const value = { [question](...values) { return ask(this, question, read, values); } }[question];
    Object.defineProperty(prototype, question, { value, configurable: true, writable: true });
  }
  for (const fact of facts) {
    Object.defineProperty(prototype, fact, { get() { return tell(this, fact); }, configurable: true });
  }
}

/** Acquires, calls the work, and releases; what the work throws says more than how its lease ended. */
async function run(of, { run }, values, given, work) {
  if (typeof given === "function") [given, work] = [undefined, given];
  const lease = await ask(of, "run", run, [...values, given, work]);
  let result;
  try {
    result = await work(lease);
  } catch (thrown) {
    await ask(lease, "end").catch(() => {});
    throw thrown;
  }
  await ask(lease, "end");
  return result;
}

/** Several locks as one. */
function together(of, kind, locks, numbers) {
  let list = new Base(make(of, "list"));
  for (const lock of members(locks)) list = new Base(make(list, "list", "", [], [], lock));
  return new Lock(make(list, kind, "", numbers()));
}

function members(locks) {
  const all = Array.isArray(locks) ? Array.from(locks) : [null];
  if (all.every((lock) => lock instanceof Lock)) return all;
  throw options.no("locks", "an array of locks");
}

/** What is made of a name, and of options. */
function named(of, kind, name, given, read = options.made[kind]) {
  const title = options.text(name, kind === "guard" ? "key" : "name");
  const all = options.given(given);
  return make(of, kind, title, read?.(all));
}

class Locks extends Base {
  owner() {
    return new Locks(make(this, "owner"));
  }

  readWriteLock(name, given) {
    const side = (kind) => new Lock(named(this, kind, name, given, options.made.readWriteLock));
    return Object.freeze({ read: side("read"), write: side("write") });
  }

  groupLock(group, values, given) {
    const [name, all] = [options.text(group, "name"), options.bytes(values)];
    const numbers = options.made.groupLock(options.given(given));
    return new Lock(make(this, "groupLock", name, [...numbers, ...all.map(({ length }) => length)], joined(all)));
  }

  multiLock(locks) {
    return together(this, "multiLock", locks, () => []);
  }

  redLock(locks, given) {
    return together(this, "redLock", locks, () => options.made.redLock(options.given(given)));
  }

  events() {
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

/** What becomes of a lease, or how waits go on. */
async function* events(of) {
  const events = new Base(make(of, "events"));
  for (let event; (event = await ask(events, "next")); ) yield event;
}

class Lease extends Base {
  #signal;

  /** Kept here: it can be read when nothing else is answered any more. */
  get signal() {
    return (this.#signal ??= tell(this, "signal"));
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
      // Our script tells a result in JSON or none at all.
      throw new GatewayUnreachableError("the gateway's answer is not understood (HTTP 200)");
    }
  }
  events() {
    return events(this);
  }
  [Symbol.asyncDispose]() {
    return ask(this, "end");
  }
}

const NAMED = {
  lock: Lock, nonReentrantLock: Lock, spinLock: Lock, fairLock: Lock, nonReentrantFairLock: Lock, fencedLock: Lock,
  semaphore: Semaphore, permitExpirableSemaphore: PermitExpirableSemaphore, countDownLatch: CountDownLatch, guard: Guard,
};
for (const [kind, Class] of Object.entries(NAMED)) {
  const value = { [kind](name, given) { return new Class(named(this, kind, name, given)); } }[kind];
  Object.defineProperty(Locks.prototype, kind, { value, configurable: true, writable: true });
}
function held(lease) {
  if (lease instanceof Lease) return lease;
  throw options.no("lease", "a lease");
}

define(Lock, options.lock, ["name"]);
define(Semaphore, options.semaphore, ["name"]);
define(PermitExpirableSemaphore, options.permitExpirableSemaphore, ["name"]);
define(CountDownLatch, options.countDownLatch, ["name"]);
define(Guard, options.guard(held), []);
define(Lease, options.lease, ["name", "token", "holdCount"]);

/** Makes the `connect` of an entry, which starts the module that `load` returns at its first call. */
export function clients(load) {
  const open = (...settings) => {
    start(load);
    return new Locks(openModule(...settings));
  };
  const connect = (given) => {
    if (!options.isObject(given)) throw options.no("options", "an object with url and token");
    const [url, token] = [options.text(given.url, "url"), options.maybeText(given.token, "token")];
    return open(...options.gateway(given, url, token));
  };
  connect.fromEnv = (env, given) => {
    const all = options.given(given);
    const [url, token] = options.environment(env, options.maybeText(all.prefix, "prefix") ?? "");
    return open(...options.gateway(all, url, token));
  };
  return connect;
}
