/**
 * The assertions of WPT's `acquire.https.any.js`, `held.https.any.js` and
 * `lock-attributes.https.any.js`.
 */

import { ok, same } from "../../check.mjs";
import { held, rejectsDom, rejectsExactly, rejectsType } from "../world.mjs";

export const acquire = {
  async "navigator.locks.request requires a name and a callback"({ locks, name }) {
    await rejectsType(locks.request());
    await rejectsType(locks.request(name()));
    same(locks.request.length, 2, "required arguments");
  },

  async 'mode must be "shared" or "exclusive"'({ locks, name }) {
    const res = name();
    for (const mode of ["foo", null]) await rejectsType(locks.request(res, { mode }, () => {}));
    for (const mode of ["exclusive", "shared"]) same(await locks.request(res, { mode }, (lock) => lock.mode), mode);
  },

  async "The 'steal' and 'ifAvailable' options are mutually exclusive"({ locks, name }) {
    await rejectsDom(locks.request(name(), { steal: true, ifAvailable: true }, () => {}), "NotSupportedError");
  },

  async "The 'steal' option must be used with exclusive locks"({ locks, name }) {
    await rejectsDom(locks.request(name(), { mode: "shared", steal: true }, () => {}), "NotSupportedError");
  },

  async "The 'signal' and 'steal' options are mutually exclusive"({ locks, name }) {
    const { signal } = new AbortController();
    await rejectsDom(locks.request(name(), { signal, steal: true }, () => {}), "NotSupportedError");
  },

  async "The 'signal' and 'ifAvailable' options are mutually exclusive"({ locks, name }) {
    const { signal } = new AbortController();
    await rejectsDom(locks.request(name(), { signal, ifAvailable: true }, () => {}), "NotSupportedError");
  },

  async "callback must be a function"({ locks, name }) {
    const res = name();
    for (const callback of [undefined, null, 123, "abc", [], {}, new Promise(() => {})]) {
      await rejectsType(locks.request(res, callback));
      await rejectsType(locks.request(res, {}, callback));
    }
  },

  async "navigator.locks.request's returned promise resolves after lock is released"({ locks, name }) {
    const { promise, resolve } = Promise.withResolvers();
    const order = [];
    const returned = locks.request(name(), () => promise);
    returned.then(() => order.push("returned"));
    promise.then(() => order.push("holding"));
    resolve();
    await Promise.all([returned, promise]);
    same(order, ["holding", "returned"]);
  },

  async "Returned Promise rejects if callback throws synchronously"({ locks, name }) {
    const reason = { name: "test" };
    const promise = locks.request(name(), () => {
      throw reason;
    });
    ok(Promise.resolve(promise) === promise, "request returns a Promise");
    await rejectsExactly(promise, reason);
  },

  async "Returned Promise rejects if callback throws asynchronously"({ locks, name }) {
    const reason = { name: "test" };
    await rejectsExactly(locks.request(name(), async () => Promise.reject(reason)), reason);
  },

  async "If callback throws a thenable, its then() should not be invoked"({ locks, name }) {
    let isInvoked = false;
    const reason = { then: () => (isInvoked = true) };
    const promise = locks.request(name(), async () => {
      throw reason;
    });
    await rejectsExactly(promise, reason);
    ok(!isInvoked, "then is not called");
  },
};

/** Whether the second request is granted once the first one's callback settles, and not before. */
async function isHeldUntil({ locks, name }, settle) {
  const res = name();
  const order = [];
  const first = held(locks, res);
  first.released.catch(() => {});
  await first.granted;
  const second = locks.request(res, () => order.push("2nd lock granted"));
  // Redis has queued the second request.
  await locks.query();
  order.push("1st lock released");
  settle(first);
  await second;
  same(order, ["1st lock released", "2nd lock granted"]);
}

export const heldLocks = {
  async "callback's result is promisified if not async"({ locks, name }) {
    const promise = locks.request(name(), () => 123);
    ok(Promise.resolve(promise) === promise, "request returns a Promise");
    same(await promise, 123);
  },

  "lock is held until callback's returned promise resolves": (world) => isHeldUntil(world, ({ release }) => release()),

  "lock is held until callback's returned promise rejects": (world) =>
    isHeldUntil(world, ({ release }) => release(Promise.reject(new Error("of the callback")))),

  async "held lock prevents the same client from acquiring it"({ locks, name }) {
    const res = name();
    let argument;
    await locks.request(res, () => locks.request(res, { ifAvailable: true }, (lock) => void (argument = lock)));
    same(argument, null);
  },
};

const attributes = (options, mode) => async ({ locks }) =>
  same(await locks.request("resource", options, (lock) => [lock.name, lock.mode, String(lock)]), ["resource", mode, "[object Lock]"]);

export const lockAttributes = {
  "Lock attributes reflect requested properties (exclusive)": attributes({}, "exclusive"),
  "Lock attributes reflect requested properties (shared)": attributes({ mode: "shared" }, "shared"),
};
