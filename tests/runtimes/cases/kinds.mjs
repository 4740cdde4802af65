/** The other kinds of locks under one name: their common behaviour, and the purpose of each. */

import { ok, rejects, same, throws, until } from "../check.mjs";

const KINDS = ["nonReentrantLock", "spinLock", "fairLock", "nonReentrantFairLock", "fencedLock"];

export const kinds = {
  async "each kind of lock is acquired exclusively, inspected and released"(world) {
    const { locks } = world.client();
    for (const kind of KINDS) {
      const name = world.name();
      const lease = await locks[kind](name).acquire();
      same([await locks[kind](name).tryAcquire(), (await locks[kind](name).inspect()).locked], [null, true], kind);
      same([lease.name, lease.permitIds, await lease.isHeld(), await lease.release()], [name, [], true, "released"], kind);
      const next = await locks[kind](name).tryAcquire();
      ok(next.token > lease.token, `${kind}: tokens rise`);
      same([await locks[kind](name).forceRelease(), await next.isHeld()], [true, false], kind);
    }
  },

  async "plain, spin and fenced locks of one name exclude each other"(world) {
    const { locks } = world.client();
    const name = world.name();
    const lease = await locks.fencedLock(name).acquire();
    same([await locks.lock(name).tryAcquire(), await locks.spinLock(name).tryAcquire()], [null, null]);
    await lease.release();
  },

  async "a fair lock is granted in the order of arrival"(world) {
    const name = world.name();
    const holder = await world.client().locks.fairLock(name).acquire();
    const order = [];
    const waiters = [];
    for (const id of [1, 2, 3]) {
      let responses = 0;
      const counted = async (...call) => {
        const response = await fetch(...call);
        responses += 1;
        return response;
      };
      const { locks } = world.client({ fetch: counted });
      const work = () => order.push(id);
      // A waiter that a busy machine stops from polling for this long loses its place.
      waiters.push(locks.fairLock(name, { lifeMs: 60_000 }).run({ waitMs: 60_000, maxRequests: 10_000 }, work));
      await until(() => responses > 0, "the waiter is in the queue");
    }
    await holder.release();
    await Promise.all(waiters);
    same(order, [1, 2, 3]);
  },

  async "an aborted waiter leaves the queue of a fair lock"(world) {
    const { locks, sent } = world.client();
    const lock = locks.fairLock(world.name());
    const holder = await lock.acquire();
    const controller = new AbortController();
    const requests = sent.length;
    const aborted = lock.acquire({ waitMs: "until-aborted", signal: controller.signal }).catch((reason) => reason);
    await until(() => sent.length > requests + 1, "the waiter is in the queue");
    controller.abort("enough");
    same(await aborted, "enough");
    await holder.release();
    same(await (await lock.tryAcquire()).release(), "released");
  },

  async "a non-reentrant lock rejects a second acquisition of its owner"(world) {
    const { locks, sent } = world.client();
    for (const kind of ["nonReentrantLock", "nonReentrantFairLock"]) {
      const lock = locks.owner()[kind](world.name());
      const lease = await lock.acquire();
      const requests = sent.length;
      await rejects(lock.acquire(), world.ReentrancyError, { reason: "held" });
      await rejects(lock.tryAcquire(), world.ReentrancyError, { reason: "held" });
      same(sent.length, requests, "requests");
      same(await lease.release(), "released");
      same(await (await lock.acquire()).release(), "released");
    }
  },

  async "a spin lock polls by its back-off policy and rejects when its wait times out"(world) {
    const { locks } = world.client();
    const name = world.name();
    const holder = await locks.spinLock(name).acquire();
    for (const backoff of [{ type: "constant", delayMs: 5 }, { type: "exponential", initialMs: 1, maxMs: 4, factor: 2 }]) {
      await rejects(locks.spinLock(name, { backoff }).acquire({ waitMs: 20 }), world.WaitTimeoutError);
    }
    await holder.release();
  },

  "invalid lock options are rejected without a request"(world) {
    const { locks, sent } = world.client();
    const name = world.name();
    const refused = [
      ["spinLock", { backoff: "fast" }, "backoff"],
      ["spinLock", { backoff: {} }, "type"],
      ["spinLock", { backoff: { type: "linear" } }, "type"],
      ["spinLock", { backoff: { type: "constant", delayMs: 0 } }, "delayMs"],
      ["spinLock", { backoff: { type: "exponential", factor: 0 } }, "factor"],
      ["spinLock", { backoff: { type: "exponential", initialMs: 10, maxMs: 5 } }, "backoff"],
      ["fairLock", { lifeMs: 999 }, "lifeMs"],
      ["fairLock", { skewMs: -1 }, "skewMs"],
      ["nonReentrantFairLock", { redissonWaitTimeoutMs: "5s" }, "redissonWaitTimeoutMs"],
      ["fairLock", { shortMs: 10_000, longMs: 9_999 }, "longMs"],
      ["fairLock", 5, "options"],
    ];
    for (const [kind, options, option] of refused) {
      throws(() => locks[kind](name, options), world.InvalidOptionError, { option });
    }
    for (const kind of KINDS) throws(() => locks[kind]("a{b"), world.InvalidOptionError, { option: "name" });
    same(sent.length, 0, "requests");
  },
};
