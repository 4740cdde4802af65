/** What a contender of each kind does, by its role. */

import { castOf, PERMITS } from "../kinds.js";
import { countDown, goThrough } from "./gate.js";
import { hold } from "./hold.js";
import { CROWD, inLine } from "./queue.js";
import { KEY_LIFE_SECONDS } from "./redis.js";
import { guardedWrite } from "./store.js";

/**
 * How long the fair lock believes in a waiter of which it hears nothing. It shows itself three
 * times as often.
 */
const FAIR_LIFE_MS = 3_000;

export const ROLES = {
  lock: { alone: (one) => hold(one, [{ ...step(one.locks.lock(one.key), "alone"), begin: (lease) => writes(one, lease) }]) },
  readers: {
    read: (one) => hold(one, [step(readWriteLock(one).read, "shared")]),
    write: (one) => hold(one, [step(readWriteLock(one).write, "alone")]),
    downgrade: (one) => {
      // One owner for both: whoever writes may read.
      const { read, write } = readWriteLock({ ...one, locks: one.locks.owner() });
      return hold(one, [step(write, "alone"), step(read, "shared")]);
    },
  },
  fair: { first: queue, stay: queue, leave: queue },
  permits: { one: takesPermit },
  latch: { count: countDown, wait: goThrough },
  pairs: Object.fromEntries(castOf("pairs").map(({ role }) => [role, (one) => takesPair(one, role.split("-"))])),
};

function step(lock, mode) {
  return { acquire: (options) => lock.acquire(options), mode };
}

/** A writer who waits goes first: with readers who come and go it would never have its turn. */
function readWriteLock({ locks, key }) {
  return locks.readWriteLock(key, { preferWriters: true });
}

/** The lock's holder writes at once, under its token. */
async function writes({ env, run, id, story }, lease) {
  story.tell("wrote", await guardedWrite(env, run, lease.token, `worker-${id}`, { signal: lease.signal }));
}

function queue(one) {
  const lock = one.locks.fairLock(one.key, { lifeMs: FAIR_LIFE_MS });
  // The first one stays until all have come: a queue is what is to be seen.
  const begin = () => (one.role === "first" ? one.witness.sees("joined", CROWD, one.story.left) : null);
  return hold(one, [{ acquire: (options) => inLine(one, lock, options), mode: "alone", isOrdered: true, begin }]);
}

async function takesPermit(one) {
  const semaphore = one.locks.semaphore(one.key);
  await semaphore.trySetPermits(PERMITS, { lifeMs: KEY_LIFE_SECONDS * 1000 });
  await hold(one, [{ acquire: (options) => semaphore.acquire(1, options), mode: "shared", limit: PERMITS }]);
}

function takesPair(one, places) {
  // In one slot, so that both are asked for in one request.
  const pair = one.locks.multiLock(places.map((place) => one.locks.lock(`demo:page:{${one.run}}:${place}`)));
  return hold(one, [{ ...step(pair, "alone"), places }]);
}
