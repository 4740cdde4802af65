/** The assertions of WPT's `steal.https.any.js`. */

import { ok, same } from "../../check.mjs";
import { rejectsDom } from "../world.mjs";

const never = new Promise(() => {});
const STEAL = { steal: true };

export const steal = {
  async "Lock available"({ locks, name }) {
    ok(await locks.request(name(), STEAL, (lock) => lock !== null), "the lock is granted");
  },

  async "Lock not available"({ locks, name }) {
    const res = name();
    locks.request(res, () => never).catch(() => {});
    ok(await locks.request(res, STEAL, (lock) => lock !== null), "the lock is granted");
  },

  async "Broken lock's release promise rejects"({ locks, name }) {
    const res = name();
    const broken = rejectsDom(locks.request(res, () => never), "AbortError");
    await locks.request(res, STEAL, () => {});
    await broken;
  },

  async "Requested lock's release promise is deferred"({ locks, name }) {
    const res = name();
    const order = [];
    locks.request(res, () => never).catch(() => {});
    const waiting = locks.request(res, () => void order.push("granted"));
    await locks.request(res, STEAL, () => void order.push("stolen"));
    await waiting;
    same(order, ["stolen", "granted"]);
  },

  async "Last caller wins"({ locks, name }) {
    const res = name();
    locks.request(res, () => never).catch(() => {});
    const first = rejectsDom(locks.request(res, STEAL, () => never), "AbortError");
    await locks.request(res, STEAL, () => {});
    await first;
  },
};
