/** The assertions of WPT's `ifAvailable.https.any.js`. */

import { ok, same } from "../../check.mjs";
import { rejectsExactly } from "../world.mjs";

/**
 * Requests a lock with `ifAvailable` while the same client holds `outer`; returns whether it was
 * granted.
 */
async function isGranted({ locks }, [outer, mode], [inner, options]) {
  let lock;
  await locks.request(outer, { mode }, () => locks.request(inner, { ...options, ifAvailable: true }, (argument) => void (lock = argument)));
  ok(lock !== undefined, "the callback is called");
  return lock !== null;
}

/** A request that cannot be granted, and whose callback fails, rejects as the callback does. */
async function rejectsAs({ locks, name }, fail) {
  const res = name();
  const reason = { name: "test" };
  await locks.request(res, () =>
    rejectsExactly(
      locks.request(res, { ifAvailable: true }, (lock) => {
        same(lock, null);
        return fail(reason);
      }),
      reason,
    ),
  );
}

const failNow = (reason) => {
  throw reason;
};

export const ifAvailable = {
  async "Lock request with ifAvailable - lock available"({ locks, name }) {
    same(await locks.request(name(), { ifAvailable: true }, (lock) => lock !== null), true);
  },

  async "Lock request with ifAvailable - lock not available"({ locks, name }) {
    const res = name();
    const result = await locks.request(res, () => locks.request(res, { ifAvailable: true }, async (lock) => [lock, 123]));
    same(result, [null, 123]);
  },

  "Lock request with ifAvailable - lock not available, callback throws": (world) => rejectsAs(world, async (reason) => failNow(reason)),

  async "Lock request with ifAvailable - unrelated lock held"(world) {
    ok(await isGranted(world, [world.name(), "exclusive"], ["different", {}]), "the other lock is granted");
  },

  async "Shared lock request with ifAvailable - shared lock held"(world) {
    const res = world.name();
    ok(await isGranted(world, [res, "shared"], [res, { mode: "shared" }]), "the lock is granted");
  },

  async "Exclusive lock request with ifAvailable - shared lock held"(world) {
    const res = world.name();
    ok(!(await isGranted(world, [res, "shared"], [res, {}])), "the lock is not granted");
  },

  async "Shared lock request with ifAvailable - exclusive lock held"(world) {
    const res = world.name();
    ok(!(await isGranted(world, [res, "exclusive"], [res, { mode: "shared" }])), "the lock is not granted");
  },

  "Returned Promise rejects if callback throws synchronously": (world) => rejectsAs(world, failNow),

  "Returned Promise rejects if async callback yields rejected promise": (world) => rejectsAs(world, (reason) => Promise.reject(reason)),

  async "Locks are available once previous release is processed"({ locks, name }) {
    const [outer, inner] = [name(), name()];
    const granted = [];
    await locks.request(outer, async () => {
      await locks.request(inner, (lock) => void granted.push(lock !== null));
      await locks.request(inner, { ifAvailable: true }, (lock) => void granted.push(lock !== null));
    });
    same(granted, [true, true]);
  },
};
