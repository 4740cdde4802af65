/**
 * The assertions of WPT's `mode-exclusive.https.any.js`, `mode-shared.https.any.js` and
 * `mode-mixed.https.any.js`.
 */

import { same } from "../../check.mjs";
import { held } from "../world.mjs";

const SHARED = { mode: "shared" };
const modesOf = (list) => list.map(({ mode }) => mode);
const five = (value) => Array.from({ length: 5 }, () => value);

export const modeExclusive = {
  async "Lock requests are granted in order"({ locks }) {
    const granted = [];
    await Promise.all([1, 2, 3].map((n) => locks.request("a", () => void granted.push(n))));
    same(granted, [1, 2, 3]);
  },

  async "Requests for distinct resources can be granted"({ locks }) {
    const granted = [];
    let inner;
    await locks.request("a", async () => {
      inner = [locks.request("a", () => void granted.push(1)), locks.request("b", () => void granted.push(2))];
    });
    await Promise.all(inner);
    same(granted, [2, 1]);
  },
};

export const modeShared = {
  async "Lock requests are granted in order"({ locks }) {
    const granted = [];
    const names = ["a", "b", "c", "a", "b", "c"];
    await Promise.all(names.map((name, i) => locks.request(name, SHARED, () => void granted.push(i + 1))));
    same(granted, [1, 2, 3, 4, 5, 6]);
  },

  async "Shared locks are not exclusive"({ locks }) {
    const acquired = [];
    await locks.request("a", SHARED, async () => {
      acquired.push("first");
      await locks.request("a", SHARED, () => void acquired.push("second"));
    });
    same(acquired, ["first", "second"]);
  },
};

export const modeMixed = {
  async "Lock requests are granted in order"({ locks }) {
    const { promise: blocked, resolve: unblock } = Promise.withResolvers();
    const granted = [];
    const all = [1, 2, 3].map((n) =>
      locks.request("a", SHARED, async () => {
        granted.push(`a-shared-${n}`);
        await blocked;
      }));
    let mode;
    const exclusive = locks.request("a", (lock) => {
      granted.push("a-exclusive");
      ({ mode } = lock);
    });
    await locks.request("b", { mode: "exclusive" }, () => void granted.push("b-exclusive"));
    same(granted, ["a-shared-1", "a-shared-2", "a-shared-3", "b-exclusive"]);
    unblock();
    await Promise.all([exclusive, ...all]);
    same(mode, "exclusive");
    same(granted, ["a-shared-1", "a-shared-2", "a-shared-3", "b-exclusive", "a-exclusive"]);
  },

  async "Releasing exclusive lock grants multiple shared locks"(world) {
    const { locks } = world;
    const name = world.name();
    const exclusive = held(locks, name);
    for (const _ of five()) world.hold(name, SHARED);
    const before = await locks.query();
    same(modesOf(before.held), ["exclusive"]);
    same(modesOf(before.pending), five("shared"));
    exclusive.release();
    await exclusive.released;
    same(modesOf((await locks.query()).held), five("shared"));
  },

  async "An exclusive lock between shared locks"(world) {
    const { locks } = world;
    const name = world.name();
    const readers = five().map(() => held(locks, name, SHARED));
    const writer = held(locks, name);
    for (const _ of five()) world.hold(name, SHARED);
    same(modesOf((await locks.query()).held), five("shared"));
    for (const { release } of readers) release();
    await Promise.all(readers.map(({ released }) => released));
    same(modesOf((await locks.query()).held), ["exclusive"]);
    writer.release();
    await writer.released;
    same(modesOf((await locks.query()).held), five("shared"));
  },
};
