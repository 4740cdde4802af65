/** What a page does with a scoped token for locks below `own:lock:` and semaphores below `own:seats:`. Reports the result of each step. */

import { connect } from "edgelatch";

const query = new URLSearchParams(location.search);
const locks = connect({ url: query.get("url"), token: query.get("token") });
const id = crypto.randomUUID();
const name = `own:lock:${id}`;

const steps = {
  "a lock is taken, renewed and released": () => locks.lock(name).run((lease) => lease.renew()),
  "a waiter is woken": async () => {
    const holder = await locks.lock(name).acquire();
    const waiter = locks.lock(name).acquire({ waitMs: 30_000 });
    await holder.release();
    await (await waiter).release();
  },
  "locks of one turn are taken together": () =>
    Promise.all(["a", "b", "c"].map((part) => locks.lock(`${name}:${part}`).run(() => {}))),
  "a fair lock has its turn": () => locks.fairLock(`${name}:fair`).run(() => {}),
  "permits are taken for a time": async () => {
    const semaphore = locks.semaphore(`own:seats:${id}`);
    await semaphore.trySetPermits(1, { lifeMs: 60_000 });
    await semaphore.run(1, { leaseMs: 30_000 }, () => {});
  },
  "another's name is refused": () => refused(locks.lock("theirs").acquire()),
  "a lock under the name of a semaphore is refused": () => refused(locks.lock(`own:seats:${id}`).acquire()),
  "permits without an end are refused": () => refused(locks.semaphore(`own:seats:${id}:more`).trySetPermits(1)),
  "a count-down latch is refused": () => refused(locks.countDownLatch(`own:latch:${id}`).count()),
  "a longer lease is refused": () => refused(locks.lock(name).acquire({ leaseMs: 60_001 })),
  "force is refused": () => refused(locks.lock(name).forceRelease()),
};

/** Passes when the gateway says no, and says that it is not allowed. */
async function refused(promise) {
  const error = await promise.then(() => null, (reason) => reason);
  if (error?.code !== "gateway-refused" || error.reason !== "unauthorized") throw error ?? new Error("it was let in");
}

const results = [];
for (const [step, run] of Object.entries(steps)) {
  results.push(await run().then(() => ({ name: step }), (error) => ({ name: step, error: String(error?.stack ?? error) })));
}
globalThis.report(results);
