// `edgelatch/upstash-lock`: the interface of the package `@upstash/lock` 0.2 over an edgelatch
// client. It imports no other entry, since the client brings the WebAssembly module.
// docs/migrating-from-upstash-lock.md has the differences.

import { OBJECT } from "./mark.js";

const LEASE_MIN_MS = 100;
const LEASE_MAX_MS = 86_400_000;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function checkMs(value, name, min) {
  if (Number.isInteger(value) && value >= min && value <= LEASE_MAX_MS) return value;
  throw new RangeError(`\`${name}\` is not acceptable: expected a whole number of milliseconds from ${min} to ${LEASE_MAX_MS}`);
}

export class Lock {
  /** The lease of the last acquisition, until its release. */
  #lease;
  #lock;

  constructor({ redis, id, lease, retry }) {
    if (!redis?.[OBJECT] || typeof redis.nonReentrantLock !== "function") {
      throw new TypeError("`redis` of edgelatch/upstash-lock is an edgelatch client, as connect() returns it");
    }
    this.#lock = redis.nonReentrantLock(id);
    this.config = {
      redis,
      id,
      lease: checkMs(lease ?? 10_000, "lease", LEASE_MIN_MS),
      UUID: null,
      retry: { attempts: retry?.attempts ?? 3, delay: retry?.delay ?? 100 },
    };
  }

  async acquire({ lease, retry, uuid } = {}) {
    const { config } = this;
    const leaseMs = checkMs(lease ?? config.lease, "lease", LEASE_MIN_MS);
    config.lease = leaseMs;
    const attempts = retry?.attempts ?? config.retry.attempts;
    const delay = retry?.delay ?? config.retry.delay;
    const UUID = uuid || newUuid();
    for (let number = 1; number <= attempts; number++) {
      const acquired = await this.#lock.tryAcquire({ leaseMs });
      if (acquired) {
        this.#lease = acquired;
        config.UUID = UUID;
        return true;
      }
      if (number < attempts) await pause(delay);
    }
    // The caller of a failed acquisition must not be able to release an earlier hold.
    this.#lease = undefined;
    config.UUID = null;
    return false;
  }

  async release() {
    const lease = this.#lease;
    if (!lease) return false;
    const result = await lease.release();
    if (this.#lease === lease) this.#lease = undefined;
    return result === "released";
  }

  async extend(amt) {
    checkMs(amt, "amt", 1);
    const lease = this.#lease;
    const remaining = lease?.remaining() ?? 0;
    if (remaining === 0) return false;
    const leaseMs = checkMs(Math.ceil(remaining) + amt, "remaining lease + amt", 1);
    try {
      await lease.renew({ leaseMs: Math.max(leaseMs, LEASE_MIN_MS) });
    } catch (error) {
      if (error.code === "lease-lost") return false;
      throw error;
    }
    this.config.lease += amt;
    return true;
  }

  async getStatus() {
    return (await this.#lease?.isHeld()) ? "ACQUIRED" : "FREE";
  }

  get id() {
    return this.config.id;
  }

  get token() {
    return this.#lease?.token ?? null;
  }

  get signal() {
    return this.#lease?.signal ?? null;
  }
}

function newUuid() {
  try {
    return crypto.randomUUID();
  } catch {
    throw new Error("No UUID provided and crypto module is not available in this environment.");
  }
}
