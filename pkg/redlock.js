// `edgelatch/redlock`: the interface of the package `redlock` 5 over edgelatch clients. It imports
// no other entry, since the clients bring the WebAssembly module. docs/migrating-from-redlock.md
// has the differences.

import { Emitter } from "./emitter.js";
import { OBJECT } from "./mark.js";
import { randomValue } from "./random.js";

/** Unlimited retries keep the statistics of this many attempts. */
const MAX_ATTEMPTS_KEPT = 1_000;
const EXPIRED = "Cannot extend an already-expired lock.";
const NO_QUORUM = "The operation was unable to achieve a quorum during its retry window.";

const defaultSettings = Object.freeze({
  driftFactor: 0.01,
  retryCount: 10,
  retryDelay: 200,
  retryJitter: 100,
  automaticExtensionThreshold: 500,
});

export class ResourceLockedError extends Error {
  constructor(message) {
    super(message);
    this.name = "ResourceLockedError";
  }
}

export class ExecutionError extends Error {
  constructor(message, attempts) {
    super(message);
    this.attempts = attempts;
    this.name = "ExecutionError";
  }
}

/**
 * The hold of each lock: `leases`, promises by their clients; `token`, a function of a resource;
 * and the latest `expiration`. A lock and its replacement after an extension share a hold.
 */
const holds = new WeakMap();

export class Lock {
  constructor(redlock, resources, value, attempts, expiration) {
    Object.assign(this, { redlock, resources, value, attempts, expiration });
  }

  get token() {
    return this.resources.length === 1 ? this.tokenOf(this.resources[0]) : null;
  }

  tokenOf(resource) {
    return holds.get(this)?.token(resource) ?? null;
  }

  async release() {
    return this.redlock.release(this);
  }

  async extend(duration) {
    return this.redlock.extend(this, duration);
  }
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function checkDuration(duration) {
  if (Math.floor(duration) !== duration) throw new Error("Duration must be an integer value in milliseconds.");
  if (duration < 100 || duration > 86_400_000) throw new Error("Duration must be from 100 to 86400000 milliseconds.");
}

/** Returns the lock of these resources, all or none. */
function lockOf(client, names) {
  const locks = names.map((name) => client.nonReentrantLock(name));
  return locks.length === 1 ? locks[0] : client.multiLock(locks);
}

const resourceLocked = ({ length }) =>
  new ResourceLockedError(`The operation was applied to: 0 of the ${length} requested resources.`);

/** Whether so many clients report that the hold is gone that no retry can reach a quorum. */
const isLost = ({ membershipSize, quorumSize, votesAgainst }) =>
  [...votesAgainst.values()].filter((error) => error instanceof ResourceLockedError).length > membershipSize - quorumSize;

function holdOf(lock) {
  const hold = holds.get(lock);
  if (hold) return hold;
  throw new ExecutionError("This lock was not acquired by edgelatch/redlock in this process.", []);
}

/** Returns the lease of a client; rejects if it has none. */
async function leaseOf(lock, client) {
  const lease = await holdOf(lock).leases.get(client)?.catch(() => {});
  if (lease) return lease;
  throw resourceLocked(lock.resources);
}

export default class Redlock extends Emitter {
  constructor(clients, settings = {}, scripts) {
    super();
    this.clients = new Set(clients);
    if (this.clients.size === 0) throw new Error("Redlock must be instantiated with at least one redis client.");
    for (const client of this.clients) {
      if (client?.[OBJECT] && typeof client.multiLock === "function") continue;
      throw new TypeError("Redlock of edgelatch/redlock takes edgelatch clients, as connect() returns them");
    }
    if (scripts && Object.keys(scripts).length > 0) throw new TypeError("edgelatch/redlock has its own scripts: it takes none");
    const valid = Object.entries(defaultSettings).map(([name, value]) => [name, typeof settings[name] === "number" ? settings[name] : value]);
    this.settings = Object.fromEntries(valid);
  }

  /** Resolves at once: edgelatch clients have no connections to close. */
  async quit() {}

  async acquire(resources, duration, settings) {
    checkDuration(duration);
    const names = [...new Set(resources)];
    if (names.length === 0) throw new Error("At least one resource is required.");
    const all = this.#merged(settings);
    const locks = new Map(Array.from(this.clients, (client) => [client, lockOf(client, names)]));
    let leases;
    let start;
    const begin = () => {
      [leases, start] = [new Map(), Date.now()];
      return (client) => {
        const lease = locks.get(client).tryAcquire({ leaseMs: duration }).then((lease) => lease ?? Promise.reject(resourceLocked(names)));
        leases.set(client, lease);
        return lease;
      };
    };
    // Grants that arrive later are undone too, but not waited for.
    const undo = ({ votesFor }) => {
      const undone = [...leases].map(([client, lease]) => [client, lease.then((lease) => lease.release()).catch(() => {})]);
      return Promise.all(undone.filter(([client]) => votesFor.has(client)).map(([, done]) => done));
    };
    const { attempts, stats } = await this.#execute(all, { begin, undo });
    const granted = await Promise.all(Array.from(stats.votesFor, (client) => leases.get(client)));
    const token = (name) => (this.clients.size > 1 ? null : names.length > 1 ? granted[0].tokenOf(name) : name === names[0] ? granted[0].token : null);
    const expiration = this.#expiration(start, duration, all, granted);
    return this.#lock(resources, randomValue(), attempts, expiration, { leases, token });
  }

  async release(lock, settings) {
    lock.expiration = 0;
    const hold = holdOf(lock);
    const { leases } = hold;
    const released = new Set();
    const act = async (client) => {
      if (released.has(client)) return;
      const lease = await leaseOf(lock, client);
      const result = await lease.release();
      leases.delete(client);
      if (result !== "released") throw resourceLocked(lock.resources);
      released.add(client);
    };
    const isFinal = (stats) => isLost(stats) || Date.now() > hold.expiration;
    const { attempts } = await this.#execute(this.#merged(settings), { begin: () => act, isFinal });
    return { attempts };
  }

  async extend(existing, duration, settings) {
    return this.#extend(existing, duration, this.#merged(settings), isLost);
  }

  async #extend(existing, duration, settings, isFinal) {
    checkDuration(duration);
    if (existing.expiration < Date.now()) throw new ExecutionError(EXPIRED, []);
    const hold = holdOf(existing);
    let start;
    const act = async (client) => {
      const lease = await leaseOf(existing, client);
      await lease.renew({ leaseMs: duration }).catch((error) => {
        throw error.code === "lease-lost" ? resourceLocked(existing.resources) : error;
      });
    };
    const begin = () => {
      start = Date.now();
      return act;
    };
    const { attempts, stats } = await this.#execute(settings, { begin, isFinal });
    existing.expiration = 0;
    const extended = await Promise.all(Array.from(stats.votesFor, (client) => leaseOf(existing, client)));
    const expiration = this.#expiration(start, duration, settings, extended);
    return this.#lock(existing.resources, existing.value, attempts, expiration, hold);
  }

  async using(resources, duration, settingsOrRoutine, optionalRoutine) {
    checkDuration(duration);
    const settings = this.#merged(typeof settingsOrRoutine === "function" ? undefined : settingsOrRoutine);
    const routine = optionalRoutine ?? settingsOrRoutine;
    if (typeof routine !== "function") throw new Error("INVARIANT: routine is not a function.");
    const threshold = settings.automaticExtensionThreshold;
    if (threshold > duration - 100) {
      throw new Error("A lock `duration` must be at least 100ms greater than the `automaticExtensionThreshold` setting.");
    }
    const lock = await this.acquire(resources, duration, settings);
    const extend = (lock, isFinal) => this.#extend(lock, duration, settings, isFinal);
    const extender = new Extender(lock, settings, extend);
    let result;
    try {
      result = await routine(extender.signal);
    } catch (error) {
      // The error of the routine takes precedence over one of the release.
      await extender.end().then((lock) => lock.release()).catch(() => {});
      throw error;
    }
    const last = await extender.end();
    await last.release();
    return result;
  }

  #merged(settings) {
    const given = Object.entries(settings ?? {}).filter(([, value]) => value !== undefined);
    return { ...this.settings, ...Object.fromEntries(given) };
  }

  #lock(resources, value, attempts, expiration, hold) {
    const lock = new Lock(this, resources, value, attempts, expiration);
    hold.expiration = Math.max(hold.expiration ?? 0, expiration);
    holds.set(lock, hold);
    return lock;
  }

  /** Returns the time until which a quorum of these leases is certain. */
  #expiration(start, duration, { driftFactor }, leases) {
    // 2 ms for the precision of Redis' clock, as in `redlock`.
    const drift = Math.round(driftFactor * duration) + 2;
    const remaining = leases.map((lease) => lease.remaining()).sort((a, b) => b - a);
    return Math.min(start + duration - drift, Date.now() + remaining[Math.floor(this.clients.size / 2)]);
  }

  /**
   * Repeats an operation until a quorum of the clients votes for it. `begin` returns the function
   * that carries out one attempt for one client, `undo` undoes an attempt without a quorum, and
   * `isFinal` returns whether an attempt without a quorum is the last one.
   */
  async #execute({ retryCount, retryDelay, retryJitter }, { begin, undo, isFinal }) {
    const maxAttempts = retryCount === -1 ? Infinity : retryCount + 1;
    const attempts = [];
    for (let number = 1; ; number++) {
      const { stats, whenComplete, hasQuorum } = await this.#attempt(begin());
      attempts.push(whenComplete);
      if (hasQuorum) return { attempts, stats };
      if (attempts.length > MAX_ATTEMPTS_KEPT) attempts.shift();
      await undo?.(stats);
      if (!(number < maxAttempts) || isFinal?.(stats)) throw new ExecutionError(NO_QUORUM, attempts);
      await pause(Math.max(0, retryDelay + Math.floor((Math.random() * 2 - 1) * retryJitter)));
    }
  }

  /** Lets every client vote; resolves as soon as the outcome is certain. */
  #attempt(act) {
    const membershipSize = this.clients.size;
    const quorumSize = Math.floor(membershipSize / 2) + 1;
    const stats = { membershipSize, quorumSize, votesFor: new Set(), votesAgainst: new Map() };
    return new Promise((resolve) => {
      const decide = () => {
        const hasQuorum = stats.votesFor.size >= quorumSize;
        if (hasQuorum || stats.votesAgainst.size > membershipSize - quorumSize) resolve({ stats, whenComplete, hasQuorum });
      };
      const vote = async (client) => {
        try {
          await act(client);
          stats.votesFor.add(client);
        } catch (error) {
          stats.votesAgainst.set(client, error);
          this.#report(error);
        }
        decide();
      };
      // Each vote begins with an `await`, so this is set before the first decision.
      const whenComplete = Promise.all(Array.from(this.clients, vote)).then(() => stats);
    });
  }

  /** An exception of a listener does not change the outcome of the operation. */
  #report(error) {
    try {
      this.emit("error", error);
    } catch (thrown) {
      queueMicrotask(() => {
        throw thrown;
      });
    }
  }
}

/** Extends a lock while a routine runs, and aborts a signal once the lock is not certain. */
class Extender {
  #controller = new AbortController();
  #lock;
  #settings;
  #extend;
  #extension;
  #extendTimer;
  #expiryTimer;
  #error;
  #hasEnded = false;

  constructor(lock, settings, extend) {
    this.#settings = settings;
    this.#extend = extend;
    this.#use(lock);
  }

  get signal() {
    return this.#controller.signal;
  }

  /** Ends the extensions; returns the lock, to be released. */
  async end() {
    this.#hasEnded = true;
    clearTimeout(this.#extendTimer);
    clearTimeout(this.#expiryTimer);
    await this.#extension;
    return this.#lock;
  }

  #use(lock) {
    this.#lock = lock;
    if (this.#isOver()) return;
    const { expiration } = lock;
    const extendAt = expiration - this.#settings.automaticExtensionThreshold;
    this.#extendTimer = setTimeout(() => (this.#extension = this.#run()), Math.max(0, extendAt - Date.now()));
    clearTimeout(this.#expiryTimer);
    const expire = () => this.#abort(this.#error ?? new ExecutionError(EXPIRED, []));
    this.#expiryTimer = setTimeout(expire, Math.max(0, expiration - Date.now()));
  }

  async #run() {
    const isFinal = (stats) => isLost(stats) || this.#isOver();
    while (!this.#isOver()) {
      try {
        return this.#use(await this.#extend(this.#lock, isFinal));
      } catch (error) {
        this.#error = error;
        const last = await error.attempts?.at(-1);
        if (!last || isLost(last)) return this.#abort(error);
      }
      if (!this.#isOver()) await pause(this.#settings.retryDelay);
    }
  }

  #isOver() {
    return this.#hasEnded || this.signal.aborted;
  }

  #abort(error) {
    if (this.#isOver()) return;
    this.signal.error = error;
    this.#controller.abort(error);
  }
}
