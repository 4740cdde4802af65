/**
 * Every fault of a gateway in one request of an operation, on every kind: as
 * `tests/fault_injection/matrix` does with the crate.
 */

import { ok, rejects, same } from "../check.mjs";

/** The actions of `faulty.mjs`. Those in `REPEATED` return the true response. */
const LOST = [
  "lost-before", "lost-before-and-late", "lost-after", "lost-after-twice-and-late", "cut", "null", "empty", "ok", "another", "page",
  ...[429, 500, 502, 503, 504].flatMap((status) => [`${status}-before`, `${status}-after`]),
];
const REPEATED = ["twice", "late"];

const readWriteOf = (locks, name) => locks.readWriteLock(name);
const KINDS = {
  lock: (locks, name) => locks.lock(name),
  nonReentrantLock: (locks, name) => locks.nonReentrantLock(name),
  spinLock: (locks, name) => locks.spinLock(name),
  fencedLock: (locks, name) => locks.fencedLock(name),
  fairLock: (locks, name) => locks.fairLock(name),
  nonReentrantFairLock: (locks, name) => locks.nonReentrantFairLock(name),
  read: (locks, name) => readWriteOf(locks, name).read,
  write: (locks, name) => readWriteOf(locks, name).write,
  groupLock: (locks, name) => locks.groupLock(name, ["one", "two"]),
  multiLock: (locks, name) => locks.multiLock(["", "-2"].map((end) => locks.lock(`{${name}}${end}`))),
};
/** The lock that excludes the held one, if it is another: readers do not exclude readers. */
const RIVALS = { read: KINDS.write };

const CONCURRENCY = 8;
/** One in this many cells is run: a prime, so that each action and each kind is covered. */
const SAMPLE_INTERVAL = 3;

const OPERATIONS = {
  async acquire({ lock, rival, deliverCopies }) {
    const lease = await lock.tryAcquire();
    ok(lease, "the lock is granted after retries");
    await deliverCopies();
    same([await rival.tryAcquire(), await lease.isHeld(), await lease.release()], [null, true, "released"]);
  },

  async renew({ lock, rival, deliverCopies, hasResponse }, world) {
    const lease = await lock.acquire();
    // One attempt only: a caller that renews by hand decides when to retry.
    if (hasResponse) await lease.renew();
    else await rejects(lease.renew(), world.GatewayUnreachableError);
    await deliverCopies();
    await lease.renew({ leaseMs: 60_000 });
    same([await rival.tryAcquire(), await lease.isHeld(), await lease.release()], [null, true, "released"]);
  },

  async inspect({ lock, rival, deliverCopies }) {
    const lease = await lock.acquire();
    same(await lease.isHeld(), true);
    await deliverCopies();
    same([await rival.tryAcquire(), await lease.release()], [null, "released"]);
  },

  async release({ lock }) {
    const lease = await lock.acquire();
    same([await lease.release(), await lease.release()], ["released", "released"]);
  },
};

export const faults = Object.fromEntries(
  Object.entries(OPERATIONS).map(([operation, run]) => [
    `${operation} keeps its guarantees when the gateway fails one of its requests`,
    (world) => eachCell(world, operation, run),
  ]),
);

async function eachCell(world, operation, run) {
  const actions = [...LOST, ...REPEATED];
  const all = Object.keys(KINDS).flatMap((kind) => actions.map((action) => ({ kind, action })));
  const cells = all.filter((_, number) => (number + operation.length) % SAMPLE_INTERVAL === 0);
  const lanes = Array.from({ length: CONCURRENCY }, async () => {
    for (let cell = cells.pop(); cell; cell = cells.pop()) await runCell(world, operation, run, cell);
  });
  await Promise.all(lanes);
}

async function runCell(world, operation, run, { kind, action }) {
  const name = `fault:${action}:${operation}:${crypto.randomUUID()}`;
  const lock = KINDS[kind](world.client({ url: world.faulty }).locks, name);
  const rival = (RIVALS[kind] ?? KINDS[kind])(world.client().locks, name);
  const deliverCopies = async () => (await fetch(`${world.faulty}/copies/${encodeURIComponent(name)}`, { method: "POST" })).text();
  try {
    await run({ lock, rival, deliverCopies, hasResponse: REPEATED.includes(action) }, world);
    same(await deliverCopies(), "injected");
    same(await (await rival.acquire()).release(), "released");
  } catch (error) {
    throw new Error(`${operation}, ${kind}, ${action}: ${error?.stack ?? error}`);
  }
}
