/** Several locks at once, values of a group, and a majority of independent Redis. */

import { isTooSlow, ok, same, throws } from "../check.mjs";

/**
 * Options of a wait that outlasts responses that are too late, as all are on a busy machine, and
 * the holds that they leave behind.
 */
const PATIENT = { waitMs: 600_000, maxRequests: 10_000 };

export const together = {
  async "a multi-lock holds all of its locks, or none"(world) {
    const { locks } = world.client();
    const [a, b] = [locks.lock(world.name()), locks.fencedLock(world.name())];
    const other = await b.acquire();
    same([await locks.multiLock([a, b]).tryAcquire(), (await a.inspect()).locked], [null, false]);
    await other.release();

    const lease = await locks.multiLock([b, a]).acquire();
    same([(await a.inspect()).locked, (await b.inspect()).locked, await lease.isHeld()], [true, true, true]);
    same([lease.tokenOf(a.name) > 0, lease.tokenOf(b.name) > other.token, lease.tokenOf("c")], [true, true, null]);
    same(lease.tokenOf(lease.name), lease.token);
    same(await lease.release(), "released");
    same([(await a.inspect()).locked, (await b.inspect()).locked], [false, false]);
  },

  async "multi-locks of the same locks in another order do not deadlock"(world) {
    const names = [world.name(), world.name()];
    let inside = 0;
    const work = () => same([++inside, --inside], [1, 0], "workers inside");
    const options = { waitMs: 60_000, maxRequests: 10_000 };
    const runs = [names, [...names].reverse(), names].map((order) => {
      const { locks } = world.client();
      return locks.multiLock(order.map((name) => locks.lock(name))).run(options, work);
    });
    await Promise.all(runs);
  },

  async "multiLock and redLock reject a value that is not a list of locks"(world) {
    const { locks, sent } = world.client();
    const lock = locks.lock(world.name());
    for (const list of [undefined, null, "locks", lock, [], [lock, "b"], [null], [locks], [locks.semaphore(world.name())]]) {
      throws(() => locks.multiLock(list), world.InvalidOptionError, { option: "locks" });
      throws(() => locks.redLock(list), world.InvalidOptionError, { option: "locks" });
    }
    throws(() => locks.redLock([lock, lock, lock]), world.InvalidOptionError, { option: "locks" });
    const three = Array.from({ length: 3 }, (_, number) => clientOfNode(world, world.name(), number).locks.lock("a"));
    throws(() => locks.redLock(three, 5), world.InvalidOptionError, { option: "options" });
    for (const rejoinDelayMs of [null, 999, 1_000.5, 86_400_001, "1000"]) {
      throws(() => locks.redLock(three, { rejoinDelayMs }), world.InvalidOptionError, { option: "rejoinDelayMs" });
    }
    same(sent.length, 0, "requests");
  },

  async "a redLock counts no vote of a node that started within its rejoin delay"(world) {
    const name = world.name();
    const all = Array.from({ length: 3 }, (_, number) => clientOfNode(world, name, number));
    const locks = all.map(({ locks }) => locks.lock(name));
    const day = all[0].locks.redLock(locks, { rejoinDelayMs: 86_400_000 });
    same([await tryPatiently(day), (await locks[0].inspect()).locked], [null, false]);
    // Each node has a tenth of the lease to respond.
    const lease = await all[0].locks.redLock(locks, { rejoinDelayMs: 20_000 }).acquire(PATIENT);
    ok(lease.remaining() <= 20_000, "the lease is no longer than requested");
    await lease.renew({ leaseMs: 60_000 });
    ok(lease.remaining() <= 20_000, "nor is that of a renewal");
    await lease.release();
  },

  async "a majority holds a redLock, also while one of three nodes does not respond"(world) {
    const name = world.name();
    const all = Array.from({ length: 3 }, (_, number) => clientOfNode(world, name, number));
    const locks = all.map(({ locks }) => locks.lock(name));
    const red = all[0].locks.redLock(locks);
    const lease = await red.acquire({ ...PATIENT, leaseMs: 60_000 });
    ok(lease.remaining() > 0, "enough of the lease is left");
    same([await tryPatiently(all[1].locks.redLock(locks)), await lease.release()], [null, "released"]);
    all[2].down = true;
    const second = await red.acquire({ ...PATIENT, leaseMs: 60_000 });
    same(await second.isHeld(), true);
    await second.release();
    all[1].down = true;
    const options = { leaseMs: 5_000, waitMs: 1 };
    const Class = await red.acquire(options).then(() => "acquired", ({ constructor }) => constructor);
    ok(Class !== "acquired", "one node of three is no majority");
  },

  async "a group lock holds all of its values or none, and excludes no other value"(world) {
    const { locks } = world.client();
    const group = world.name();
    const lease = await locks.groupLock(group, ["a", "b"]).acquire();
    same(await locks.groupLock(group, ["b", "c"]).tryAcquire(), null);
    same(await locks.groupLock(group, [new TextEncoder().encode("a")]).tryAcquire(), null);
    const other = await locks.groupLock(group, ["c"]).tryAcquire();
    same([await other.release(), await lease.isHeld(), await lease.release()], ["released", true, "released"]);
  },

  "invalid values of a group are rejected without a request"(world) {
    const { locks, sent } = world.client();
    for (const values of [undefined, [], "a", [5], [null], ["\ud800"], Array.from({ length: 1001 }, (_, i) => `${i}`)]) {
      throws(() => locks.groupLock("group", values), world.InvalidOptionError, { option: "values" });
    }
    throws(() => locks.groupLock("", ["a"]), world.InvalidOptionError, { option: "name" });
    throws(() => locks.groupLock("a", ["a"], { clockSkewMs: -1 }), world.InvalidOptionError, { option: "clockSkewMs" });
    same(sent.length, 0, "requests");
  },
};

/** Tries until no response is too late. */
async function tryPatiently(lock) {
  for (;;) {
    const outcome = await lock.tryAcquire().catch((error) => error);
    if (!isTooSlow(outcome)) return outcome;
  }
}

/** Returns a client of a simulated other Redis: it is the same Redis, with other names. */
function clientOfNode(world, name, number) {
  const one = { down: false };
  const send = async (_, init) => {
    if (one.down) throw new TypeError("it is down");
    return fetch(`${world.url}/`, { ...init, body: init.body.replaceAll(name, `${name}:${number}`) });
  };
  const url = `https://redis-${number}.invalid`;
  return Object.assign(one, { locks: world.connect({ url, token: world.token, fetch: send }) });
}
