/** The assertions of WPT's `signal.https.any.js`. */

import { ok, same } from "../../check.mjs";
import { held, rejectsDom, rejectsExactly, rejectsType, unreached } from "../world.mjs";

const never = unreached("the callback");

/** Makes a request with a signal, which Redis queues behind another one; returns its `promise`. */
async function queued(world, signal) {
  const res = world.name();
  world.hold(res);
  const promise = world.locks.request(res, { signal }, never);
  promise.catch(() => {});
  const state = await world.locks.query();
  for (const list of ["held", "pending"]) same(state[list].filter(({ name }) => name === res).length, 1, list);
  return { promise };
}

/** A signal that aborts after the grant does not change the outcome. */
async function abortsLate({ locks, name }, end) {
  const controller = new AbortController();
  const hold = held(locks, name(), { signal: controller.signal });
  await hold.granted;
  end(hold, controller);
  same(await hold.released, "resolved ok");
}

export const signal = {
  async "The signal option must be an AbortSignal"({ locks, name }) {
    const res = name();
    for (const signal of ["string", 12.34, false, {}, Symbol(), () => {}, globalThis, null]) {
      await rejectsType(locks.request(res, { signal }, never));
    }
  },

  async "Passing an already aborted signal aborts"({ locks, name }) {
    await rejectsDom(locks.request(name(), { signal: AbortSignal.abort() }, never), "AbortError");
  },

  async "Passing an already aborted signal rejects with the custom abort reason."({ locks, name }) {
    const reason = "My dog ate it.";
    await rejectsExactly(locks.request(name(), { signal: AbortSignal.abort(reason) }, never), reason);
  },

  async "Passing an already aborted signal rejects with the default abort reason."({ locks, name }) {
    const signal = AbortSignal.abort();
    await rejectsExactly(locks.request(name(), { signal }, never), signal.reason);
  },

  async "An aborted request results in AbortError"(world) {
    const controller = new AbortController();
    const { promise } = await queued(world, controller.signal);
    controller.abort();
    await rejectsDom(promise, "AbortError");
  },

  async "Abort after a timeout"(world) {
    const controller = new AbortController();
    const { promise } = await queued(world, controller.signal);
    setTimeout(() => controller.abort(), 10);
    await rejectsDom(promise, "AbortError");
    ok(controller.signal.aborted, "the timeout has aborted it");
  },

  async "Signal that is not aborted"({ locks, name }) {
    const { signal } = new AbortController();
    same(await locks.request(name(), { signal }, async () => "got it"), "got it");
  },

  async "Synchronously signaled abort"({ locks, name }) {
    const res = name();
    const controller = new AbortController();
    let isGranted = false;
    const promise = locks.request(res, { signal: controller.signal }, () => (isGranted = true));
    controller.abort();
    await rejectsDom(promise, "AbortError");
    ok(!isGranted, "the request was aborted");
    same(await locks.request(res, () => "got it"), "got it", "the next request");
  },

  "Abort signaled after lock granted": (world) =>
    abortsLate(world, ({ release }, controller) => {
      controller.abort();
      release("resolved ok");
    }),

  "Abort signaled after lock released": (world) =>
    abortsLate(world, ({ release }, controller) => {
      release("resolved ok");
      controller.abort();
    }),

  async "Abort should process the next pending lock request"(world) {
    const res = world.name();
    const controller = new AbortController();
    const first = world.hold(res, { signal: controller.signal });
    const next = world.locks.request(res, () => "resolved");
    controller.abort();
    await rejectsDom(first, "AbortError");
    same(await next, "resolved");
  },

  async "Aborted promise should reject with the custom abort reason"(world) {
    const controller = new AbortController();
    const promise = world.hold(world.name(), { signal: controller.signal });
    const reason = "My cat handled it";
    controller.abort(reason);
    await rejectsExactly(promise, reason);
  },

  async "Aborted promise should reject with the default abort reason"(world) {
    const controller = new AbortController();
    const promise = world.hold(world.name(), { signal: controller.signal });
    controller.abort();
    await rejectsExactly(promise, controller.signal.reason);
  },
};
