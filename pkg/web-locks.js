// `edgelatch/web-locks`: the platform's `LockManager` over the fair read-write locks of a client.
// It imports no other entry, since the client brings the WebAssembly module.
// docs/web-locks.md has the differences.

import { OBJECT } from "./mark.js";
import { randomValue } from "./random.js";

/**
 * The largest number of requests that count as sent together. It is less than the number of calls
 * that a client puts into one HTTP request, in which they keep their order.
 */
const TURN_MAX = 32;
const OPTIONS = ["namespace", "clientId", "leaseMs"];

/**
 * The locks that callbacks hold, of all managers. A lease that was collected is not renewed, but a
 * callback whose promise never settles holds its lock until the program ends.
 */
const held = new Set();

/** The name of a lock is a `DOMString`: these parts of it have no place in a lock of Redis. */
const encode = (text) =>
  text.replace(/[%{}\p{Cc}\p{Surrogate}]/gu, (unit) => `%${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
const decode = (text) => text.replace(/%([\da-f]{4})/g, (_, unit) => String.fromCharCode(Number.parseInt(unit, 16)));

const notSupported = (message) => new DOMException(message, "NotSupportedError");

function lost(name, cause) {
  const error = new DOMException(`the lock ${JSON.stringify(name)} was stolen or lost before its callback ended`, "AbortError");
  return Object.defineProperty(error, "cause", { value: cause, writable: true, configurable: true });
}

/** The argument of a callback. */
class Lock {
  #name;
  #mode;
  #lease;

  constructor(name, mode, lease) {
    this.#name = name;
    this.#mode = mode;
    this.#lease = lease;
  }

  get name() {
    return this.#name;
  }
  get mode() {
    return this.#mode;
  }
  get lease() {
    return this.#lease;
  }
  get [Symbol.toStringTag]() {
    return "Lock";
  }
}

/** The tag also matches a signal of another realm. */
const isSignal = (value) => value instanceof AbortSignal || Object.prototype.toString.call(value) === "[object AbortSignal]";

/** Reads the options as Web IDL does: members in the order of their names. */
function readOptions(input) {
  if (input === undefined || input === null) input = {};
  if (typeof input !== "object" && typeof input !== "function") throw new TypeError("the options of request are not an object");
  const ifAvailable = Boolean(input.ifAvailable);
  const { mode: given, signal } = input;
  const mode = given === undefined ? "exclusive" : `${given}`;
  if (mode !== "exclusive" && mode !== "shared") throw new TypeError(`the mode ${JSON.stringify(mode)} is neither "exclusive" nor "shared"`);
  if (signal !== undefined && !isSignal(signal)) throw new TypeError("the signal is not an AbortSignal");
  return { ifAvailable, mode, signal, steal: Boolean(input.steal) };
}

/** Returns a request, after the checks of the specification in its order. */
function readRequest(given) {
  if (given.length < 2) throw new TypeError("request takes a name and a callback");
  const name = `${given[0]}`;
  const options = readOptions(given.length > 2 ? given[1] : undefined);
  const callback = given[given.length > 2 ? 2 : 1];
  if (typeof callback !== "function") throw new TypeError("the callback of request is not a function");
  const { ifAvailable, mode, signal, steal } = options;
  if (name.startsWith("-")) throw notSupported('the name of a lock cannot start with "-"');
  if (steal && ifAvailable) throw notSupported("the options steal and ifAvailable exclude each other");
  if (steal && mode !== "exclusive") throw notSupported("the option steal needs the mode exclusive");
  if (signal && (steal || ifAvailable)) throw notSupported("the option signal excludes steal and ifAvailable");
  if (signal?.aborted) throw signal.reason;
  return { name, callback, ...options };
}

/**
 * Moves the requests that can be granted to those that are held: no other request passes them, and
 * on the platform they are granted at this moment.
 */
function granted({ held, pending }) {
  const isHeld = (entry) => held.length === 0 || (entry.mode === "shared" && held[0].mode === "shared");
  while (pending.length > 0 && isHeld(pending[0])) held.push(pending.shift());
  return { held, pending };
}

/**
 * The requests for one lock that Redis has not received yet. A request of a later turn of the
 * event loop waits for them: otherwise it could overtake them on the way.
 */
class Line {
  #entries = new Set();

  /** Returns a promise that resolves when Redis has the requests before `turn`, or null. */
  before(turn) {
    const earlier = [...this.#entries].filter((entry) => entry.turn !== turn);
    return earlier.length > 0 ? Promise.all(earlier.map(({ received }) => received)) : null;
  }

  /** Adds a request of this turn; returns the function to call when Redis has received it. */
  enter(turn) {
    const entry = { turn };
    this.#entries.add(entry);
    let received;
    entry.received = new Promise((resolve) => (received = resolve));
    return () => {
      this.#entries.delete(entry);
      received();
    };
  }

  get isEmpty() {
    return this.#entries.size === 0;
  }
}

class LockManager {
  #client;
  #prefix;
  #clientId;
  /** The length of the leases; if it is undefined, the client renews them itself. */
  #leaseMs;
  /** The lock without a name, which lists all others. */
  #all;
  /** The lines of the locks, by their names. */
  #lines = new Map();
  /** The present turn of the event loop, whose requests the client sends together. */
  #turn;

  constructor(client, { namespace, clientId, leaseMs }) {
    this.#client = client;
    this.#prefix = `{${encode(namespace)}}:`;
    this.#clientId = clientId;
    this.#leaseMs = leaseMs;
    this.#all = client.fairReadWriteLock(this.#prefix, { clientId });
  }

  get [Symbol.toStringTag]() {
    return "LockManager";
  }

  // Its `length` is 2, as on the platform.
  async request(_name, _callback) {
    const request = readRequest(arguments);
    // Drawn at first use: a Worker has no random numbers before its first request.
    this.#clientId ??= randomValue();
    const lock = this.#client.fairReadWriteLock(this.#prefix + encode(request.name), { clientId: this.#clientId });
    return new Promise((resolve, reject) => {
      this.#run(lock, request, resolve, reject).catch(reject);
    });
  }

  async query() {
    await Promise.all([...this.#lines.values()].map((line) => line.before()));
    const listed = await this.#all.query();
    const byName = new Map();
    for (const list of ["held", "pending"]) {
      for (const { name, mode, clientId } of listed[list]) {
        // Another program can use the tag of the namespace for locks of its own.
        if (!name.startsWith(this.#prefix)) continue;
        if (!byName.has(name)) byName.set(name, { held: [], pending: [] });
        byName.get(name)[list].push({ name: decode(name.slice(this.#prefix.length)), mode, clientId });
      }
    }
    const all = [...byName.values()].map(granted);
    return { held: all.flatMap(({ held }) => held), pending: all.flatMap(({ pending }) => pending) };
  }

  async #run(lock, request, resolve, reject) {
    const { name, mode, steal, signal, callback } = request;
    let undone;
    const abort = () => {
      // A caller can dispatch an `abort` event to a signal that is not aborted.
      if (!signal.aborted || undone) return;
      reject(signal.reason);
      // Later requests wait until this one has left the queue.
      undone = this.#enter(lock.name, {});
    };
    signal?.addEventListener("abort", abort);
    let lease;
    try {
      lease = await this.#acquire(lock, request);
      // The grant was under way.
      if (signal?.aborted) return void (await lease.release());
    } finally {
      signal?.removeEventListener("abort", abort);
      undone?.();
    }
    if (lease === null) return resolve(await callback(null));
    const lose = (cause) => reject(lost(name, cause));
    const hold = { manager: this, name, lease, lose };
    held.add(hold);
    if (steal) this.#loseHolds(hold);
    lease.signal.addEventListener("abort", () => lose(lease.signal.reason));
    if (lease.signal.aborted) lose(lease.signal.reason);
    const stop = renewed(lease, this.#leaseMs);
    const settle = await settled(callback, new Lock(name, mode, lease));
    stop();
    // The earlier requests of this client come before the release, as they do on the platform.
    await this.#lines.get(lock.name)?.before();
    // The work is done: a release without a reply costs the next holder the rest of the lease.
    const end = await lease.release().catch(() => "unknown");
    held.delete(hold);
    if (end === "lost") lose();
    else settle(resolve, reject);
  }

  /** Rejects the requests whose holds a steal has ended, before their leases learn of it. */
  #loseHolds({ name, lease }) {
    for (const other of held) {
      if (other.manager === this && other.name === name && other.lease.token < lease.token) other.lose();
    }
  }

  /** Acquires the lock; null if it is not available. */
  async #acquire(lock, { mode, ifAvailable, steal, signal = new AbortController().signal }) {
    const turn = this.#currentTurn();
    const earlier = this.#lines.get(lock.name)?.before(turn);
    const onWait = this.#enter(lock.name, turn);
    try {
      // Without an `await` if there are none: the requests of a turn keep their order.
      if (earlier) await earlier;
      const options = { leaseMs: this.#leaseMs };
      if (steal) return await lock.steal(options);
      const side = mode === "shared" ? lock.read : lock.write;
      return await (ifAvailable ? side.tryAcquire(options) : side.acquire({ ...options, waitMs: "until-aborted", signal, onWait }));
    } finally {
      onWait();
    }
  }

  /** Adds a request to the line of a lock; the function that it returns is that of `Line.enter`. */
  #enter(name, turn) {
    const line = this.#lines.get(name) ?? new Line();
    this.#lines.set(name, line);
    const received = line.enter(turn);
    return () => {
      received();
      if (line.isEmpty && this.#lines.get(name) === line) this.#lines.delete(name);
    };
  }

  #currentTurn() {
    if (this.#turn === undefined || this.#turn.count === TURN_MAX) {
      const turn = { count: 0 };
      this.#turn = turn;
      queueMicrotask(() => {
        if (this.#turn === turn) this.#turn = undefined;
      });
    }
    this.#turn.count += 1;
    return this.#turn;
  }
}

/** Calls the callback, and returns a function that settles a promise as the callback's. */
async function settled(callback, lock) {
  try {
    const value = await callback(lock);
    return (resolve) => resolve(value);
  } catch (error) {
    return (_resolve, reject) => reject(error);
  }
}

/** Renews a lease of this length until the returned function is called; others renew themselves. */
function renewed(lease, leaseMs) {
  if (leaseMs === undefined) return () => {};
  // If it fails, the next one follows, or the lease is lost and its signal aborts.
  const timer = setInterval(() => lease.renew().catch(() => {}), leaseMs / 3);
  // A held lock keeps no program running.
  timer.unref?.();
  globalThis.Deno?.unrefTimer?.(timer);
  return () => clearInterval(timer);
}

/** Returns the lock manager of a namespace. */
export function webLocks(client, options) {
  if (!client?.[OBJECT] || typeof client.fairReadWriteLock !== "function") {
    throw new TypeError("webLocks of edgelatch/web-locks takes an edgelatch client, as connect() returns it");
  }
  const unknown = Object.keys(options ?? {}).find((name) => !OPTIONS.includes(name));
  if (unknown !== undefined) throw new TypeError(`\`${unknown}\` is not an option of webLocks: it takes ${OPTIONS.join(", ")}`);
  const { namespace, leaseMs = 30_000 } = options ?? {};
  if (typeof namespace !== "string" || namespace === "") throw new TypeError("the namespace of webLocks is not a string with something in it");
  if (!(Number.isInteger(leaseMs) && leaseMs >= 1_000 && leaseMs <= 86_400_000)) throw new TypeError("leaseMs is not from 1000 to 86400000");
  return new LockManager(client, options);
}
