/** Every use of the package, each on names that are used only once. */

import { isTooSlow } from "../check.mjs";
import { inUse } from "./cycles.mjs";

const LONG = { waitMs: 60_000 };
const ENDING = { lifeMs: 60_000 };
/**
 * The lease of a redLock, in milliseconds; a node has a tenth of it to respond. Also the delay of
 * its nodes, which is over soon after their start.
 */
const RED_MS = 10_000;

/**
 * Runs `rounds` of `together` scenarios for each sort, and returns the use of memory and timers
 * after each round.
 */
export async function eachSort({ connect, url, token, name, rounds, together }) {
  const world = newWorld(connect, url, token);
  const parts = {};
  for (const [what, scenario] of Object.entries(sorts)) {
    parts[what] = [];
    for (let round = 0; round < rounds; round += 1) {
      const runLane = (_, lane) => retryWhileSlow((tries) => scenario(world, `${name}:${what}:${round}:${lane}:${tries}`));
      await Promise.all(Array.from({ length: together }, runLane));
      parts[what].push(await inUse(together));
    }
  }
  return parts;
}

/** How often a scenario is repeated that was too slow on a busy machine. */
const MAX_TRIES = 100;

/**
 * Repeats a scenario until no response is later than the request timeout, which is a second for the
 * nodes of a redLock and a third of the lease for other locks. Each repetition has new names, since
 * a hold with an unknown outcome ends only with its lease.
 */
async function retryWhileSlow(scenario) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await scenario(tries);
    } catch (error) {
      if (!isTooSlow(error) || tries === MAX_TRIES) throw error;
    }
  }
}

/**
 * Returns a client, a second owner of it, clients of three simulated other Redis, and a function
 * that creates a client.
 */
function newWorld(connect, url, token) {
  const options = { token, requestTimeoutMs: 60_000 };
  const newClient = () => connect({ url, ...options });
  const locks = newClient();
  const forward = (input, init) => fetch(new URL(new URL(input).pathname, url), init);
  const nodes = [1, 2, 3].map((number) => connect({ url: `https://redis-${number}.invalid`, ...options, fetch: forward }));
  return { locks, other: locks.owner(), nodes, newClient };
}

const plain = (locks, name) => locks.lock(name);

/** Returns a scenario that acquires a lock, calls `work` with the lease, and releases it. */
const held = (lock, work) => async (world, name) => {
  const lease = await lock(world.locks, name).acquire();
  await work?.(lease, world, name);
  await lease.release();
};

const sorts = {
  lock: held(plain),
  nonReentrantLock: held((locks, name) => locks.nonReentrantLock(name)),
  spinLock: held((locks, name) => locks.spinLock(name)),
  fairLock: held((locks, name) => locks.fairLock(name)),
  fencedLock: held((locks, name) => locks.fencedLock(name)),
  "a read lock": held((locks, name) => locks.readWriteLock(name).read),
  "a write lock": held((locks, name) => locks.readWriteLock(name).write),
  groupLock: held((locks, name) => locks.groupLock(name, ["a", "b"])),
  multiLock: held((locks, name) => locks.multiLock([locks.lock(`${name}:a`), locks.lock(`${name}:b`)])),
  async redLock({ locks, nodes }, name) {
    const red = locks.redLock(nodes.map((node, number) => node.lock(`${name}:${number}`)), { rejoinDelayMs: RED_MS });
    await (await red.acquire({ ...LONG, leaseMs: RED_MS })).release();
  },
  async run({ locks }, name) {
    await locks.lock(name).run((lease) => lease.token);
  },
  "a renewed lease": held(plain, async (lease) => {
    await lease.renew();
    if (!(await lease.isHeld())) throw new Error("it is not held");
  }),
  "a lease's signal": held(plain, (lease) => lease.signal.addEventListener("abort", () => {})),
  async "a lease's events"({ locks }, name) {
    const lease = await locks.lock(name).acquire();
    const events = lease.events();
    const first = events.next();
    await lease.release();
    await first;
    await events.return();
  },
  "an owner": held((locks, name) => locks.owner().lock(name)),
  "a client": ({ newClient }, name) => held(plain)({ locks: newClient() }, name),
  async "a wait that is granted"({ locks, other }, name) {
    const lease = await locks.lock(name).acquire();
    const granted = other.lock(name).acquire(LONG);
    await locks.lock(name).inspect();
    await lease.release();
    await (await granted).release();
  },
  "a wait that is aborted": held(plain, async (_, { locks, other }, name) => {
    const controller = new AbortController();
    const aborted = other.lock(name).acquire({ signal: controller.signal }).catch((error) => error);
    await locks.lock(name).inspect();
    controller.abort();
    await aborted;
  }),
  "a try that is refused": held(plain, async (_, { other }, name) => {
    if (await other.lock(name).tryAcquire()) throw new Error("it was granted");
  }),
  async semaphore({ locks }, name) {
    const semaphore = locks.semaphore(name);
    await semaphore.trySetPermits(2, ENDING);
    await (await semaphore.acquire(1)).release();
  },
  async permitExpirableSemaphore({ locks }, name) {
    const semaphore = locks.permitExpirableSemaphore(name);
    await semaphore.trySetPermits(2);
    await (await semaphore.acquire(1)).release();
    await semaphore.forceRelease();
  },
  async countDownLatch({ locks }, name) {
    const latch = locks.countDownLatch(name);
    await latch.trySetCount(1);
    const open = latch.wait(LONG);
    await latch.countDown();
    await open;
  },
  "a guarded write": held(plain, (lease, { locks }, name) => {
    return locks.guard(`guarded:${name}`, { memoryMs: 60_000 }).set(lease, "written", ENDING);
  }),
  "a script": held(plain, (lease) => lease.eval("return 1", [], [])),
};
