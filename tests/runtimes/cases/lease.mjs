/** A lease: its extension, and its end when a block is left. */

import { asyncDispose, ok, rejects, same, throws, until } from "../check.mjs";
import { advanceTime } from "../watch.mjs";

const METHODS = {
  Locks: [
    "lock", "nonReentrantLock", "spinLock", "fairLock", "nonReentrantFairLock", "fencedLock", "readWriteLock", "fairReadWriteLock", "groupLock",
    "multiLock", "redLock", "semaphore", "permitExpirableSemaphore", "countDownLatch", "guard", "owner", "events",
  ],
  Lock: ["acquire", "forceRelease", "inspect", "name", "run", "tryAcquire"],
  Lease: [
    "eval", "events", "holdCount", "isHeld", "name", "permitIds", "release", "remaining", "renew", "signal", "token", "tokenOf",
    String(asyncDispose),
  ],
  Semaphore: [
    "acquire", "addPermits", "availablePermits", "drainPermits", "forceRelease", "inspect", "name", "release", "releaseIfExists",
    "run", "tryAcquire", "trySetPermits",
  ],
  PermitExpirableSemaphore: [
    "acquire", "addPermits", "availablePermits", "forceRelease", "inspect", "name", "release", "run", "setPermits", "tryAcquire",
    "trySetPermits", "updateLeaseTime",
  ],
  CountDownLatch: ["count", "countDown", "delete", "name", "trySetCount", "wait"],
  Guard: ["claim", "delete", "key", "newest", "set"],
};

export const lease = {
  async "a renewal extends the lease, locally and in Redis"(world) {
    const lock = world.lock();
    const lease = await lock.acquire({ leaseMs: 60_000 });
    same(await lease.renew({ leaseMs: 600_000 }), undefined);
    ok(lease.remaining() > 60_000, "it lasts longer here");
    ok((await lock.inspect()).remainingMs > 60_000, "it lasts longer in Redis");
    await lease.renew();
    await lease.renew({});
    await lease.renew({ leaseMs: undefined });
    ok((await lock.inspect()).remainingMs > 60_000, "a renewal never shortens");
    await lease.release();
    await rejects(lease.renew(), world.LeaseLostError, { reason: "gone" });
  },

  async "a lease without leaseMs is renewed automatically"(world) {
    const { locks, sent } = world.client();
    const lease = await locks.lock(world.name()).acquire();
    const requests = sent.length;
    advanceTime(10_000);
    await until(() => sent.length > requests && lease.remaining() > 25_000, "a renewal, a third of 30 s later");
    same(lease.signal.aborted, false);
    await lease.release();
  },

  async "a lease with leaseMs is not renewed automatically"(world) {
    const { locks, sent } = world.client();
    const lease = await locks.lock(world.name()).acquire({ leaseMs: 60_000 });
    const requests = sent.length;
    advanceTime(50_000);
    same([await lease.isHeld(), sent.length], [true, requests + 1], "the only request is that of isHeld");
    same(await lease.release(), "released");
  },

  async "leaving the block of `await using` releases the lock"(world) {
    const lock = world.lock();
    const syntax = await import("./using.mjs").catch(notUnderstood);
    if (syntax) {
      const token = await syntax.acquireInBlock(lock, async (lease) => {
        same((await lock.inspect()).locked, true);
        return lease.token;
      });
      ok(token > 0, "the block ran");
      same(await syntax.tryInBlock(lock, async (lease) => lease.holdCount), 1);
      const holder = await lock.acquire();
      same(await syntax.tryInBlock(lock, async (lease) => lease), null);
      await holder.release();
    }
    const lease = await lock.acquire();
    same(await lease[asyncDispose](), undefined);
    same((await lock.inspect()).locked, false);
    same(await lease[asyncDispose](), undefined, "a second time");
  },

  async "asyncDispose rejects if the lease was lost"(world) {
    const lock = world.lock();
    const lease = await lock.acquire();
    await lock.forceRelease();
    await rejects(lease[asyncDispose](), world.LeaseLostError, { reason: "gone" });
  },

  async "`using` without `await` throws, recommends `await using`, and leaves no hold"(world) {
    if (!Symbol.dispose) return;
    const lock = world.lock();
    // Does what `using` does with its value at the declaration.
    const forms = [() => lock.acquire(), () => lock.tryAcquire(), async () => ({ lease: await lock.acquire() })];
    for (const form of forms) {
      const value = form();
      const used = forms.indexOf(form) < 2 ? value : (await value).lease;
      const { message } = throws(() => used[Symbol.dispose], TypeError);
      ok(message.includes("await using"), message);
      await until(async () => !(await lock.inspect()).locked, "it is released");
    }
  },

  async "objects have exactly the members that their types declare"(world) {
    const { locks } = world.client();
    const owner = locks.owner();
    const lock = owner.lock(world.name());
    const lease = await lock.acquire();
    const objects = [
      ["Locks", locks], ["Locks", owner], ["Lock", lock], ["Lock", locks.readWriteLock("a").read], ["Lease", lease],
      ["Semaphore", locks.semaphore("a")], ["PermitExpirableSemaphore", locks.permitExpirableSemaphore("a")],
      ["CountDownLatch", locks.countDownLatch("a")], ["Guard", locks.guard("a")],
    ];
    for (const [name, object] of objects) {
      const prototype = Object.getPrototypeOf(object);
      const internal = /^(constructor|__.*|Symbol\((Symbol|nodejs)\.dispose\)|Symbol\(edgelatch\.object\))$/;
      const members = Reflect.ownKeys(prototype).map(String).filter((key) => !internal.test(key));
      same(members.sort(), [...METHODS[name]].sort(), name);
      ok(!JSON.stringify(object).includes(world.token), "an object shows no token");
    }
    await lease.release();
  },
};

/** Runtimes that have `SuppressedError` also have the syntax. */
function notUnderstood(error) {
  if (error instanceof SyntaxError && !("SuppressedError" in globalThis)) return null;
  throw error;
}
