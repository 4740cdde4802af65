/** Shared objects: permits, with and without ids; and the latch, which has no holder. */

import { ok, rejects, same, throws, until } from "../check.mjs";

export const permits = {
  async "permits are acquired, refused when too few are available, and released once"(world) {
    const { locks } = world.client();
    const semaphore = locks.semaphore(world.name());
    same([await semaphore.trySetPermits(3), await semaphore.trySetPermits(5)], [true, false]);
    const two = await semaphore.acquire(2);
    same([await semaphore.tryAcquire(2), await semaphore.availablePermits()], [null, 1]);
    same(await semaphore.inspect(), { available: 1, leases: 1, held: 2 });
    const one = await semaphore.tryAcquire();
    await rejects(semaphore.acquire(1, { waitMs: 1 }), world.WaitTimeoutError);
    same(await Promise.all([two.release(), two.release(), one.release()]), ["released", "released", "released"]);
    same(await semaphore.availablePermits(), 3);
  },

  async "a retry after a lost response acquires no permit twice"(world) {
    let responsesToLose = 1;
    const losing = async (input, init) => {
      const response = await fetch(input, init);
      if (response.ok && responsesToLose-- > 0) throw new TypeError("the connection broke");
      return response;
    };
    const name = world.name();
    const semaphore = world.client().locks.semaphore(name);
    await semaphore.trySetPermits(10);
    const losingSemaphore = world.client({ fetch: losing }).locks.semaphore(name);
    await losingSemaphore.availablePermits();
    responsesToLose = 1;
    const lease = await losingSemaphore.acquire(4);
    same(await semaphore.availablePermits(), 6);
    responsesToLose = 1;
    same([await losingSemaphore.addPermits(2), await semaphore.availablePermits()], [8, 8]);
    await lease.release();
    same(await semaphore.availablePermits(), 12);
  },

  async "permits are added, removed, drained and set with a lifetime"(world) {
    const semaphore = world.client().locks.semaphore(world.name());
    same([await semaphore.releaseIfExists(1), await semaphore.addPermits(5), await semaphore.addPermits(-2)], [false, 5, 3]);
    same([await semaphore.release(), await semaphore.releaseIfExists(2), await semaphore.drainPermits()], [undefined, true, 6]);
    same([await semaphore.availablePermits(), await semaphore.forceRelease()], [0, false]);
    same(await world.client().locks.semaphore(world.name()).trySetPermits(1, { lifeMs: 60_000 }), true);
  },

  async "more permits than a Java int can count are refused"(world) {
    const { locks } = world.client();
    for (const kind of ["semaphore", "permitExpirableSemaphore"]) {
      const semaphore = locks[kind](world.name());
      await semaphore.addPermits(2_147_483_647);
      const lease = await semaphore.acquire(2);
      const { message } = await rejects(semaphore.addPermits(1), world.GatewayRefusedError, { reason: "other" });
      ok(message.includes("LIMIT"), message);
      same([await lease.release(), await semaphore.availablePermits()], ["released", 2_147_483_647]);
    }
  },

  async "a missing semaphore is distinguished from one without permits"(world) {
    const { locks } = world.client();
    for (const kind of ["semaphore", "permitExpirableSemaphore"]) {
      const semaphore = locks[kind](world.name());
      const { message } = await rejects(semaphore.tryAcquire(), world.NotSetUpError);
      ok(message.includes("trySetPermits"), message);
      // It rejects at once, however long it may wait.
      await rejects(semaphore.run(1, { waitMs: 86_400_000 }, () => ok(false, "the work does not start")), world.NotSetUpError);
      same([await semaphore.trySetPermits(1), (await semaphore.acquire()) !== null], [true, true]);
      const empty = locks[kind](world.name());
      await empty.addPermits(0);
      same(await empty.tryAcquire(), null);
    }
  },

  async "run holds permits during the work, and their lease can be renewed"(world) {
    const semaphore = world.client().locks.semaphore(world.name());
    await semaphore.trySetPermits(2);
    same(await semaphore.run(2, async () => semaphore.availablePermits()), 0);
    const renewed = { leaseMs: "renewed", waitMs: 60_000 };
    same(await semaphore.run(1, renewed, (lease) => lease.remaining() <= 30_000), true);
    same(await semaphore.availablePermits(), 2);
    const held = await semaphore.acquire(2);
    same([await semaphore.forceRelease(), await held.isHeld(), await semaphore.availablePermits()], [true, false, 2]);
  },

  async "permits with ids are released by their ids"(world) {
    const { locks } = world.client();
    const semaphore = locks.permitExpirableSemaphore(world.name());
    same([await semaphore.trySetPermits(3), await semaphore.setPermits(4), await semaphore.addPermits(1)], [true, 4, 5]);
    const lease = await semaphore.acquire(3, { leaseMs: 60_000 });
    const ids = lease.permitIds;
    same([ids.length, new Set(ids).size, ids.every((id) => /^[0-9a-f]{32}$/.test(id))], [3, 3, true]);
    same([await semaphore.tryAcquire(3), await semaphore.availablePermits()], [null, 2]);
    same(await semaphore.updateLeaseTime(ids, 600_000), true);
    const state = await semaphore.inspect(ids);
    same([state.available, state.acquired, state.total, state.areHeld, state.remainingMs > 60_000], [2, 3, 5, true, true]);
    same([await semaphore.updateLeaseTime(ids, null), (await semaphore.inspect(ids)).remainingMs], [true, null]);
    same([await semaphore.release(ids.slice(0, 2)), await semaphore.release(ids.slice(0, 2))], [2, 0]);
    same([await lease.release(), await semaphore.availablePermits()].slice(1), [5]);
    same(await semaphore.run(1, ({ permitIds }) => permitIds.length), 1);
    await semaphore.acquire(2);
    same([await semaphore.forceRelease(), await semaphore.availablePermits()], [true, 5]);
  },

  async "invalid permit counts and ids are rejected without a request"(world) {
    const { locks, sent } = world.client();
    const [semaphore, withIds] = [locks.semaphore("a"), locks.permitExpirableSemaphore("a", { peerSkewMs: 0 })];
    const refused = (promise, option) => rejects(promise, world.InvalidOptionError, { option });
    for (const permits of [0, -1, 1.5, "1", null, 2_147_483_648, NaN]) {
      for (const call of ["acquire", "tryAcquire", "release", "releaseIfExists"]) await refused(semaphore[call](permits), "permits");
      await refused(withIds.acquire(permits), "permits");
      await refused(semaphore.run(permits, () => ok(false, "the work does not start")), "permits");
    }
    for (const permits of [undefined, -1, 0.5, 2_147_483_648]) {
      for (const of of [semaphore, withIds]) await refused(of.trySetPermits(permits), "permits");
      await refused(withIds.setPermits(permits), "permits");
    }
    await refused(semaphore.addPermits(), "permits");
    await refused(withIds.acquire(1001), "permits");
    await refused(semaphore.trySetPermits(1, { lifeMs: 0 }), "lifeMs");
    await refused(semaphore.acquire(1, { leaseMs: "for-ever" }), "leaseMs");
    for (const ids of [undefined, [], "x", [5]]) await refused(withIds.release(ids), "ids");
    await refused(withIds.release(["x"]), "permitId");
    await refused(withIds.updateLeaseTime(["0".repeat(32)]), "leaseMs");
    throws(() => locks.permitExpirableSemaphore("a", { peerSkewMs: 60_001 }), world.InvalidOptionError, { option: "peerSkewMs" });
    same(sent.length, 0, "requests");
  },

  async "a latch that is counted down to zero releases all waiters"(world) {
    const latch = world.client().locks.countDownLatch(world.name());
    same([await latch.wait(), await latch.trySetCount(2), await latch.trySetCount(5)], [undefined, true, false]);
    const { locks, sent } = world.client();
    const waits = [1, 2].map(() => locks.countDownLatch(latch.name).wait({ waitMs: 60_000 }));
    await until(() => sent.length > 1, "both waiters send a request");
    await rejects(latch.wait({ waitMs: 1 }), world.WaitTimeoutError);
    same([await latch.countDown(), await latch.count(), await latch.countDown()], [1, 1, 0]);
    same([await Promise.all(waits), await latch.countDown(), await latch.count()], [[undefined, undefined], 0, 0]);
  },

  async "a deleted latch is open, and a signal aborts the wait for a latch"(world) {
    const { locks, sent } = world.client();
    const latch = locks.countDownLatch(world.name());
    await latch.trySetCount(1);
    const controller = new AbortController();
    const ended = latch.wait({ waitMs: "until-aborted", signal: controller.signal }).catch((reason) => reason);
    const requests = sent.length;
    await until(() => sent.length > requests, "the waiter sends a request");
    controller.abort("enough");
    same(await ended, "enough");
    const waits = latch.wait({ waitMs: 60_000 });
    same([await latch.delete(), await waits, await latch.delete()], [true, undefined, false]);
    for (const count of [undefined, 0, -1, "2", 2 ** 60]) {
      await rejects(latch.trySetCount(count), world.InvalidOptionError, { option: "count" });
    }
    await rejects(latch.wait({ waitMs: 0 }), world.InvalidOptionError, { option: "waitMs" });
  },
};
