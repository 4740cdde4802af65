/** The behaviour of each role of each kind. */

import { contendersOf, PERMITS } from "../kinds.js";
import { countDown, passLatch } from "./latch.js";
import { hold } from "./hold.js";
import { CONTENDERS, acquireInOrder } from "./queue.js";
import { KEY_LIFE_SECONDS } from "./redis.js";
import { guardedWrite } from "./store.js";

/**
 * How long the fair lock regards a silent waiter as alive, in milliseconds. A waiter polls three
 * times in it.
 */
const FAIR_LIFE_MS = 3_000;

export const ROLES = {
  lock: { alone: (one) => hold(one, [{ ...step(one.locks.lock(one.key), "alone"), begin: (lease) => writeGuarded(one, lease) }]) },
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
  permits: { one: acquirePermit },
  latch: { count: countDown, wait: passLatch },
  pairs: Object.fromEntries(contendersOf("pairs").map(({ role }) => [role, (one) => acquirePair(one, role.split("-"))])),
};

function step(lock, mode) {
  return { acquire: (options) => lock.acquire(options), mode };
}

/** Waiting writers go first: with readers who come and go a writer would starve. */
function readWriteLock({ locks, key }) {
  return locks.readWriteLock(key, { preferWriters: true });
}

/** The lock's holder writes at once, with its token. */
async function writeGuarded({ env, run, id, events }, lease) {
  events.send("wrote", await guardedWrite(env, run, lease.token, `worker-${id}`, { signal: lease.signal }));
}

function queue(one) {
  const lock = one.locks.fairLock(one.key, { lifeMs: FAIR_LIFE_MS });
  // The first holder stays until all contenders have joined, so that the page shows a queue.
  const begin = () => (one.role === "first" ? one.checker.waitFor("joined", CONTENDERS, one.events.disconnected) : null);
  return hold(one, [{ acquire: (options) => acquireInOrder(one, lock, options), mode: "alone", isOrdered: true, begin }]);
}

async function acquirePermit(one) {
  const semaphore = one.locks.semaphore(one.key);
  await semaphore.trySetPermits(PERMITS, { lifeMs: KEY_LIFE_SECONDS * 1000 });
  await hold(one, [{ acquire: (options) => semaphore.acquire(1, options), mode: "shared", limit: PERMITS }]);
}

function acquirePair(one, places) {
  // The names share a hash slot, so one request acquires both.
  const pair = one.locks.multiLock(places.map((place) => one.locks.lock(`demo:page:{${one.run}}:${place}`)));
  return hold(one, [{ ...step(pair, "alone"), places }]);
}
