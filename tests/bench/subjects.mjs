// The subjects of the comparison. Each returns clients of its own kind, whose locks have the same
// methods:
//
//   tryAcquire()     returns a hold, or null if another client holds the lock
//   acquire(ms)      waits without an end, by notifications or with `ms` between polls
//   renew(held)      returns the renewed hold
//   release(held)    returns whether the lock was still held
//
// No client renews by itself: a lease is long enough for a measurement.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { overHttp, overTcp } from "./wire.mjs";

const LEASE_MS = 60_000;
const NEVER = Number.MAX_SAFE_INTEGER;

export const subjects = {
  edgelatch: (env) => edgelatch(env, "lock", { wakeups: "auto" }),
  "edgelatch-polling": (env) => edgelatch(env, "lock", { wakeups: "off" }),
  "edgelatch-fair": (env) => edgelatch(env, "fairLock", { wakeups: "auto" }),
  upstash,
  redlock,
  "redis-semaphore": redisSemaphore,
};

async function edgelatch(env, kind, options) {
  const wire = overHttp(env);
  const { connect } = await from(process.env.EDGELATCH_CONSUMER, "edgelatch");
  const over = new AbortController();
  const forAsLong = { leaseMs: LEASE_MS, waitMs: "until-aborted", signal: over.signal };
  const client = () => {
    const locks = connect({ url: env.url, token: env.token, ...options });
    return {
      lock(name) {
        const lock = locks[kind](name);
        return {
          tryAcquire: () => lock.tryAcquire({ leaseMs: LEASE_MS }),
          acquire: () => lock.acquire(forAsLong),
          renew: async (lease) => {
            await lease.renew();
            return lease;
          },
          release: async (lease) => (await lease.release()) === "released",
        };
      },
    };
  };
  return { wire, client };
}

async function upstash(env) {
  const wire = overHttp(env);
  const [{ Redis }, { Lock }] = await Promise.all([tool("@upstash/redis"), tool("@upstash/lock")]);
  const client = () => {
    const redis = new Redis({ url: env.url, token: env.token });
    return {
      lock(name) {
        const lock = new Lock({ id: name, lease: LEASE_MS, redis });
        const take = async (retry) => ((await lock.acquire({ retry })) ? lock : null);
        return {
          tryAcquire: () => take({ attempts: 1 }),
          acquire: (delay) => take({ attempts: NEVER, delay }),
          // Whole seconds, since its script passes them to EXPIRE.
          renew: async () => ((await lock.extend(1_000)) ? lock : null),
          release: () => lock.release(),
        };
      },
    };
  };
  return { wire, client };
}

async function redlock(env) {
  const [{ default: Redlock, ExecutionError }, { Redis }] = await Promise.all([tool("redlock"), tool("ioredis")]);
  const wire = overTcp(env, Redis);
  const client = () => {
    const maker = new Redlock([wire.connect()]);
    return {
      lock(name) {
        const take = (settings) => maker.acquire([name], LEASE_MS, settings);
        const orNull = (error) => {
          if (error instanceof ExecutionError) return null;
          throw error;
        };
        return {
          tryAcquire: () => take({ retryCount: 0 }).catch(orNull),
          // An undefined `retryDelay` must be left out: the library would take it for 0.
          acquire: (retryDelay) => take({ retryCount: -1, ...(retryDelay && { retryDelay }) }),
          renew: (lock) => lock.extend(LEASE_MS),
          release: async (lock) => (await lock.release()).attempts.length > 0,
        };
      },
    };
  };
  return { wire, client };
}

async function redisSemaphore(env) {
  const [{ Mutex }, { Redis }] = await Promise.all([tool("redis-semaphore"), tool("ioredis")]);
  const wire = overTcp(env, Redis);
  const client = () => {
    const redis = wire.connect();
    return {
      lock(name) {
        const make = (options) => new Mutex(redis, name, { lockTimeout: LEASE_MS, refreshInterval: 0, ...options });
        const take = async (mutex) => ((await mutex.tryAcquire()) ? mutex : null);
        const once = make({ acquireAttemptsLimit: 1 });
        const patient = (retryInterval) => make({ acquireTimeout: NEVER, retryInterval });
        return {
          tryAcquire: () => take(once),
          acquire: (ms) => take(patient(ms)),
          // The documented way to renew explicitly.
          renew: ({ identifier }) => take(make({ identifier, acquiredExternally: true })),
          release: async (mutex) => {
            const held = mutex.isAcquired;
            await mutex.release();
            return held;
          },
        };
      },
    };
  };
  return { wire, client };
}

/** One acquire and one release; fails if the lock was not free or was lost. */
export async function pair(lock) {
  const held = await lock.tryAcquire();
  if (!held) throw new Error("the lock was not free");
  if (!(await lock.release(held))) throw new Error("the lock was lost");
}

const tool = (name) => from(process.env.EDGELATCH_TOOLS, name);

/**
 * Imports a package as a module in that folder would. Needs `--experimental-import-meta-resolve`.
 */
function from(folder, name) {
  return import(import.meta.resolve(name, pathToFileURL(join(folder, "index.mjs"))));
}
