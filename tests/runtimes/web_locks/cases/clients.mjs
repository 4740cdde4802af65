/** Several clients of one namespace, and what a request has beyond the platform. */

import { ok, same, soon, until } from "../../check.mjs";
import { held, rejectsDom, unreached } from "../world.mjs";

const STEAL = { steal: true };

/** Requests a lock for `clients[i]`, one after the other, and returns the order of their grants. */
async function orderOf(world, requests) {
  const res = world.name();
  const clients = [world.locks, world.other()];
  const first = held(clients[0], res);
  await first.granted;
  const granted = [];
  const all = [];
  for (const [i, mode] of requests) {
    const place = all.length;
    all.push(clients[i].request(res, { mode }, () => void granted.push(place)));
    // Redis has received the request.
    await clients[i].query();
  }
  first.release();
  await Promise.all(all);
  return granted;
}

export const clients = {
  async "requests of two clients are granted in the order in which they were made"(world) {
    same(await orderOf(world, [[1, "exclusive"], [0, "exclusive"], [1, "exclusive"], [0, "exclusive"]]), [0, 1, 2, 3]);
  },

  async "a shared request waits behind an exclusive one of another client that came before"(world) {
    const [res, there] = [world.name(), world.other()];
    const reader = held(world.locks, res, { mode: "shared" });
    await reader.granted;
    const order = [];
    const writer = there.request(res, () => void order.push("exclusive"));
    await there.query();
    same(await world.locks.request(res, { mode: "shared", ifAvailable: true }, (lock) => lock), null);
    const late = world.locks.request(res, { mode: "shared" }, () => void order.push("shared"));
    await world.locks.query();
    reader.release();
    await Promise.all([writer, late]);
    same(order, ["exclusive", "shared"]);
  },

  async "requests of one client keep their order across turns of the event loop"(world) {
    const res = world.name();
    const granted = [];
    const all = [];
    for (let i = 0; i < 12; i++) {
      all.push(world.locks.request(res, { mode: i % 3 ? "exclusive" : "shared" }, () => void granted.push(i)));
      await new Promise((resolve) => setTimeout(resolve));
    }
    await Promise.all(all);
    same(granted, [...all.keys()]);
  },

  async "query returns the requests of all clients with their ids"(world) {
    const [one, two] = ["one", "two"].map((clientId) => world.other({ clientId }));
    const res = world.name();
    const holder = held(one, res, { mode: "shared" });
    await holder.granted;
    const abort = new AbortController();
    const waiting = two.request(res, { signal: abort.signal }, unreached("the lock"));
    await two.query();
    same(await one.query(), {
      held: [{ name: res, mode: "shared", clientId: "one" }],
      pending: [{ name: res, mode: "exclusive", clientId: "two" }],
    });
    abort.abort();
    await rejectsDom(waiting, "AbortError");
    holder.release();
    await holder.released;
    same(await two.query(), { held: [], pending: [] });
  },

  async "locks of other names with the tag of the namespace are not listed"(world) {
    const client = world.client();
    const lease = await client.fairReadWriteLock(`{${world.namespace}}other`).write.acquire();
    same(await world.locks.query(), { held: [], pending: [] });
    await lease.release();
  },

  async "a lease has a rising token and the time that is left"(world) {
    const res = world.name();
    const tokens = [];
    for (const _ of [1, 2]) {
      await world.locks.request(res, ({ lease }) => {
        ok(lease.remaining() > 0, "time is left");
        tokens.push(lease.token);
      });
    }
    ok(tokens[1] > tokens[0], "the token rises");
  },

  async "navigator.locks can be replaced: the package's own locks stay those of the browser"({ locks, name }) {
    Object.defineProperty(navigator, "locks", { value: locks, configurable: true });
    try {
      const res = name();
      const holder = held(navigator.locks, res);
      await holder.granted;
      // In a page, its stream takes a lock of the browser.
      const next = navigator.locks.request(res, () => navigator.locks.query());
      await navigator.locks.query();
      holder.release();
      same((await next).held.map(({ name }) => name), [res]);
    } finally {
      delete navigator.locks;
    }
  },

  async "the options of webLocks are checked"({ webLocks: { webLocks }, edgelatch, namespace }) {
    const locks = edgelatch.connect({ url: "https://locks.example.com", token: "token" });
    const isRefused = (...values) => {
      try {
        webLocks(...values);
      } catch (error) {
        return error instanceof TypeError || error instanceof edgelatch.InvalidOptionError;
      }
      return false;
    };
    const refused = [
      [undefined, { namespace }], [{}, { namespace }], [locks], [locks, {}], [locks, { namespace: "" }], [locks, { namespace: 1 }],
      [locks, { namespace: "n".repeat(600) }], [locks, { namespace, leaseMs: 999 }], [locks, { namespace, leaseMs: "renewed" }],
      [locks, { namespace, clientId: "c".repeat(65) }], [locks, { namespace, mode: "shared" }],
    ];
    same(refused.map((values) => isRefused(...values)), refused.map(() => true));
    ok(!isRefused(locks, { namespace, clientId: "me", leaseMs: 1_000 }), "valid options are accepted");
    same(String(webLocks(locks, { namespace })), "[object LockManager]");
  },
};

/**
 * A lease for cases that wait for a renewal: a slow machine has time for it, and a loss is noticed
 * after a third of it.
 */
const LEASE = { leaseMs: 60_000 };

/** Holds that end, and the renewals that notice it. */
export const losses = {
  async "a steal of another client rejects the request of the holder, and aborts its lease"(world) {
    const res = world.name();
    const victim = held(world.other(LEASE), res);
    const { lease } = await victim.granted;
    const broken = rejectsDom(victim.released, "AbortError");
    const token = await world.other().request(res, STEAL, (lock) => lock.lease.token);
    ok(token > lease.token, "the thief has a newer token");
    await soon(broken, "the request rejects");
    same([lease.signal.aborted, lease.signal.reason.reason], [true, "stolen"]);
  },

  async "a steal of another client ends shared locks, and the waiting requests keep their places"(world) {
    const [res, there, elsewhere] = [world.name(), world.other(LEASE), world.other(LEASE)];
    const readers = [held(elsewhere, res, { mode: "shared" }), held(there, res, { mode: "shared" })];
    await Promise.all(readers.map(({ granted }) => granted));
    const order = [];
    const waiting = [world.locks, there].map(async (locks, i) => {
      await locks.request(res, () => void order.push(i));
    });
    await Promise.all([world.locks.query(), there.query()]);
    const expected = (await there.query()).pending.map(({ clientId }) => clientId);
    const broken = Promise.all(readers.map(({ released }) => rejectsDom(released, "AbortError")));
    await there.request(res, STEAL, () => void order.push("thief"));
    await Promise.all([...waiting, soon(broken, "the requests reject")]);
    same([expected.length, order[0], order.length], [2, "thief", 3]);
  },

  async "a request whose hold was ended by force rejects with an AbortError"(world) {
    const res = world.name();
    const holder = held(world.other(LEASE), res);
    const { lease } = await holder.granted;
    const broken = rejectsDom(holder.released, "AbortError");
    ok(await world.client().fairReadWriteLock(lease.name).forceRelease(), "it was held");
    await soon(broken, "the request rejects");
    same(await world.other().request(res, () => "next"), "next");
  },

  async "a lease of another length is renewed while the callback runs"(world) {
    const locks = world.other(LEASE);
    await locks.request(world.name(), async ({ lease }) => {
      const least = lease.remaining();
      ok(least > 0 && least <= LEASE.leaseMs, "its length");
      let before = least;
      await until(() => {
        const now = lease.remaining();
        const hasRisen = now > before;
        before = now;
        return hasRisen;
      }, "a renewal");
    });
  },
};
