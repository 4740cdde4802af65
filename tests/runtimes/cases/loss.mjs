/** The loss of a lease: the holder is notified, with the reason. */

import { asyncDispose, ok, rejects, same, soon, until } from "../check.mjs";
import { advanceTime, moveClocks } from "../watch.mjs";

export const loss = {
  // S71, S80.
  async "a lease that another client ended is lost, and its signal aborts"(world) {
    const lock = world.lock();
    const lease = await lock.acquire();
    const aborted = abortOf(lease);
    await world.client().locks.lock(lock.name).forceRelease();
    same(await lease.isHeld(), false);
    await soon(aborted, "the signal");
    isLost(world, lease, "gone");
    same([await lease.release(), await lease.release()], ["lost", "lost"]);
    await rejects(lease.renew(), world.LeaseLostError, { reason: "gone" });
  },

  // S71.
  async "an automatic renewal detects that the lease is lost"(world) {
    const lock = world.lock();
    const lease = await lock.acquire();
    const aborted = abortOf(lease);
    await lock.forceRelease();
    advanceTime(10_000);
    await soon(aborted, "the signal");
    isLost(world, lease, "gone");
  },

  // S34.
  async "a lease expires by the holder's own clock"(world) {
    const lock = world.lock();
    const lease = await lock.acquire({ leaseMs: 60_000 });
    advanceTime(61_000);
    await soon(abortOf(lease), "the signal");
    isLost(world, lease, "expired");
    await rejects(lease.renew(), world.LeaseLostError, { reason: "expired" });
    await rejects(lease[asyncDispose](), world.LeaseLostError, { reason: "expired" });
  },

  // S24, S31, S32, S34.
  async "a host that slept past the end of a renewed lease reports it lost"(world) {
    const lock = world.lock();
    const lease = await lock.acquire();
    const aborted = abortOf(lease);
    advanceTime(31_000);
    await soon(aborted, "the signal");
    isLost(world, lease, "expired");
    await lease.release();
  },

  // S31.
  async "a renewal each minute keeps a lease of three minutes when timers fire once a minute"(world) {
    const lease = await world.lock().acquire({ leaseMs: 180_000 });
    for (let minute = 0; minute < 5; minute += 1) {
      advanceTime(60_000);
      await lease.renew();
      ok(!lease.signal.aborted && lease.remaining() > 150_000, "it is there, and long again");
    }
    same(await lease.release(), "released");
  },

  // S24.
  async "the wall clock reveals an expired lease when the monotonic clock stopped during sleep"(world) {
    const lease = await world.lock().acquire();
    const aborted = abortOf(lease);
    moveClocks({ wall: 600_000 });
    same(lease.remaining(), 0);
    await rejects(lease.renew(), world.LeaseLostError, { reason: "expired" });
    await soon(aborted, "the signal");
    isLost(world, lease, "expired");
    // Redis' clock has not advanced.
    same(await lease.release(), "released");
  },

  // S23.
  async "a wall clock that is set back extends no lease"(world) {
    const lease = await world.lock().acquire({ leaseMs: 30_000 });
    moveClocks({ wall: -3_600_000 });
    ok(lease.remaining() > 0 && lease.remaining() <= 30_000, "it is as long as it was");
    advanceTime(31_000);
    await soon(abortOf(lease), "the signal");
    isLost(world, lease, "expired");
    await lease.release();
  },

  // S34.
  async "an event loop blocked past the end of the lease reports it lost at once"(world) {
    const lease = await world.lock().acquire({ leaseMs: 60_000 });
    // While the program is blocked both clocks advance, and no timer fires.
    moveClocks({ monotonic: 61_000, wall: 61_000 });
    same(lease.remaining(), 0);
    await soon(abortOf(lease), "the signal");
    isLost(world, lease, "expired");
    await lease.release();
  },

  // S85.
  async "an abort listener of a lost lease can call the client"(world) {
    const lock = world.lock();
    const lease = await lock.acquire({ leaseMs: 60_000 });
    const calledByListener = new Promise((resolve) => {
      lease.signal.addEventListener("abort", () => {
        resolve(Promise.all([lease.remaining(), lease.release(), lock.inspect(), lock.acquire()]));
      });
    });
    advanceTime(61_000);
    const [remaining, , , next] = await soon(calledByListener, "the signal");
    same(remaining, 0);
    ok(next.token > lease.token, "it is another hold");
    same([await next.isHeld(), await next.release()], [true, "released"]);
  },

  // S82.
  async "the signal of a garbage-collected lease aborts when the lease is lost"(world) {
    for (const options of [{ leaseMs: 30_000 }, {}]) {
      const { signal, collected } = await onlySignal(world.lock(), options);
      const fetched = new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      const lost = rejects(soon(fetched, "the signal"), world.LeaseLostError, { reason: "expired" });
      if (collectGarbage) await until(() => (collectGarbage(), collected()), "the lease is collected");
      // A lease that was collected is no longer renewed; one that was not is not renewed in time.
      advanceTime(31_000);
      await lost;
    }
  },

  // S82.
  async "a garbage-collected lease is not renewed while another lease of its client is"(world) {
    if (!collectGarbage) return;
    const { locks, sent } = world.client();
    const kept = await locks.lock(world.name()).acquire();
    const dropped = world.name();
    const { collected } = await onlySignal(locks.lock(dropped), {});
    await until(() => (collectGarbage(), collected()), "the lease is collected");
    // The package frees its part of an object in a later turn. Each round of renewals is awaited
    // before the next.
    const isAlone = async () => {
      const before = sent.length;
      advanceTime(10_000);
      await until(() => sent.length > before && kept.remaining() > 25_000, "a renewal of the lease that is kept");
      return sent.slice(before).every(({ init }) => init.body.includes(kept.name) && !init.body.includes(dropped));
    };
    await until(isAlone, "a renewal of the lease that is kept, alone");
    same(await kept.release(), "released");
  },

  // S83.
  async "run rejects if the lease was lost before the end of the work"(world) {
    const lock = world.lock();
    const lost = lock.run(async (lease) => {
      await lock.forceRelease();
      await lease.isHeld();
      return "worked in vain";
    });
    await rejects(lost, world.LeaseLostError, { reason: "gone" });
    const expired = lock.run({ leaseMs: 60_000 }, (lease) => {
      advanceTime(61_000);
      return soon(abortOf(lease), "the signal");
    });
    await rejects(expired, world.LeaseLostError, { reason: "expired" });
    const thrown = new Error("mine");
    const both = lock.run(async () => {
      await lock.forceRelease();
      throw thrown;
    });
    ok((await both.catch((error) => error)) === thrown, "the error of the work takes precedence");
  },
};

const collectGarbage = globalThis.gc ?? (globalThis.Bun && (() => Bun.gc(true)));

async function onlySignal(lock, options) {
  const lease = await lock.acquire(options);
  const reference = new WeakRef(lease);
  return { signal: lease.signal, collected: () => !reference.deref() };
}

function abortOf({ signal }) {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", resolve);
  });
}

function isLost(world, lease, reason) {
  const error = lease.signal.reason;
  ok(error instanceof world.LeaseLostError && error instanceof world.EdgelatchError, "the reason is an error of ours");
  same([error.code, error.reason, error.name], ["lease-lost", reason, "LeaseLostError"]);
  same([lease.signal.aborted, lease.remaining()], [true, 0]);
}
