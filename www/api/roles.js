/** The behaviour of each role of each kind. */

import { castOf, PERMITS } from "../kinds.js";
import { countDown, goThrough } from "./gate.js";
import { hold } from "./hold.js";
import { CROWD, inLine } from "./queue.js";
import { KEY_LIFE_SECONDS } from "./redis.js";
import { guardedWrite } from "./store.js";

/**
 * How long the fair lock regards a silent waiter as alive, in milliseconds. A waiter polls three
 * times in it.
 */
const FAIR_LIFE_MS = 3_000;

export const ROLES = {
  lock: { alone: (one) => hold(one, [{ ...step(one.locks.lock(one.key), "alone"), begin: (lease) => writes(one, lease) }]) },
  readers: {
    read: (one) => hold(one, [step(readWriteLock(one).read, "shared")]),
    write: (one) => hold(one, [step(readWriteLock(one).write, "alone")]),
    downgrade: (one) => {
      // One owner for both locks: a writer may also read.
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

/** Waiting writers go first: with readers who come and go a writer would starve. */
function readWriteLock({ locks, key }) {
  return locks.readWriteLock(key, { preferWriters: true });
}

/** The lock's holder writes at once, with its token. */
async function writes({ env, run, id, story }, lease) {
  story.tell("wrote", await guardedWrite(env, run, lease.token, `worker-${id}`, { signal: lease.signal }));
}

function queue(one) {
  const lock = one.locks.fairLock(one.key, { lifeMs: FAIR_LIFE_MS });
  // The first holder stays until all contenders have joined, so that the page shows a queue.
  const begin = () => (one.role === "first" ? one.witness.sees("joined", CROWD, one.story.left) : null);
  return hold(one, [{ acquire: (options) => inLine(one, lock, options), mode: "alone", isOrdered: true, begin }]);
}

async function takesPermit(one) {
  const semaphore = one.locks.semaphore(one.key);
  await semaphore.trySetPermits(PERMITS, { lifeMs: KEY_LIFE_SECONDS * 1000 });
  await hold(one, [{ acquire: (options) => semaphore.acquire(1, options), mode: "shared", limit: PERMITS }]);
}

function takesPair(one, places) {
  // The names share a hash slot, so one request acquires both.
  const pair = one.locks.multiLock(places.map((place) => one.locks.lock(`demo:page:{${one.run}}:${place}`)));
  return hold(one, [{ ...step(pair, "alone"), places }]);
}
