/**
 * The use of a scoped token by a page, for locks below `own:lock:` and semaphores below
 * `own:seats:`. A case is a function of `{ locks, id, name }`: a client, an id that no other run
 * has, and the name of a lock with it.
 */

export const scoped = {
  "a lock is acquired, renewed and released": ({ locks, name }) => locks.lock(name).run((lease) => lease.renew()),
  "a release notifies a waiter": async ({ locks, name }) => {
    const holder = await locks.lock(name).acquire();
    const waiter = locks.lock(name).acquire({ waitMs: 30_000 });
    await holder.release();
    await (await waiter).release();
  },
  "locks of one event-loop turn are acquired together": ({ locks, name }) =>
    Promise.all(["a", "b", "c"].map((part) => locks.lock(`${name}:${part}`).run(() => {}))),
  "a fair lock is acquired and released": ({ locks, name }) => locks.fairLock(`${name}:fair`).run(() => {}),
  "permits with a lifetime are acquired": async ({ locks, id }) => {
    const semaphore = locks.semaphore(`own:seats:${id}`);
    await semaphore.trySetPermits(1, { lifeMs: 60_000 });
    await semaphore.run(1, { leaseMs: 30_000 }, () => {});
  },
  "a name outside the token's prefix is refused": ({ locks }) => refused(locks.lock("theirs").acquire()),
  "a lock below the semaphore prefix is refused": ({ locks, id }) => refused(locks.lock(`own:seats:${id}`).acquire()),
  "permits without a lifetime are refused": ({ locks, id }) => refused(locks.semaphore(`own:seats:${id}:more`).trySetPermits(1)),
  "a count-down latch is refused": ({ locks, id }) => refused(locks.countDownLatch(`own:latch:${id}`).count()),
  "a lease longer than the token's maximum is refused": ({ locks, name }) => refused(locks.lock(name).acquire({ leaseMs: 60_001 })),
  "forceRelease is refused": ({ locks, name }) => refused(locks.lock(name).forceRelease()),
};

/** Passes if the gateway refuses the call as unauthorized. */
async function refused(promise) {
  const error = await promise.then(() => null, (reason) => reason);
  if (error?.code !== "gateway-refused" || error.reason !== "unauthorized") throw error ?? new Error("it was let in");
}
