/**
 * The statements of the tests of `redlock`, and of its types and its README, for `redlock` itself
 * and for `edgelatch/redlock`. Redis is asked only for keys, their holders and their times to live,
 * since the two store different values.
 */

import assert from "node:assert/strict";
import { test } from "node:test";

import { soon, until } from "../runtimes/check.mjs";

const HOUR = 3_600_000;
/** Fast retries: their number is the default. */
const FAST = { retryDelay: 1, retryJitter: 0 };
const QUORUM = "The operation was unable to achieve a quorum during its retry window.";
const EXPIRED = "Cannot extend an already-expired lock.";

/**
 * Defines the tests. `env` has the module (`default`, `ExecutionError`, `ResourceLockedError`), one
 * client of each node (`clients`), connections to their Redis servers (`nodes`), and a client of a
 * server that does not exist (`unreachable`).
 */
export function redlockTests(env) {
  settings(env);
  oneClient(env);
  refusals(env);
  lostHolds(env);
  using(env);
  threeClients(env);
}

/** Waits until the signal aborts, which it may have done already. */
export async function aborted(signal) {
  const event = new Promise((resolve) => signal.addEventListener("abort", resolve));
  if (!signal.aborted) await soon(event, "the signal aborts");
}

/** Names that no other test uses, in one hash slot. */
const newNames = (count) => Array.from({ length: count }, (_, i) => `{redlock:${crypto.randomUUID()}}:${i}`);

/** Returns the value or the owner field of a key; null if there is none. */
async function holder(redis, key) {
  const type = await redis.type(key);
  if (type === "none") return null;
  return type === "string" ? redis.get(key) : (await redis.hkeys(key)).join();
}

async function isFor(redis, key, duration) {
  const left = await redis.pttl(key);
  return left > duration * 0.9 && left <= duration;
}

const votesAgainst = async ({ attempts }) => (await Promise.all(attempts)).flatMap((stats) => [...stats.votesAgainst.values()]);

/** Returns the `ExecutionError` of a promise. */
async function failure(env, promise) {
  const error = await promise.then(() => assert.fail("it did not fail"), (error) => error);
  assert.ok(error instanceof env.module.ExecutionError, String(error));
  assert.equal(error.name, "ExecutionError");
  return error;
}

function settings(env) {
  test("the defaults are those of the documentation", () => {
    const { settings, clients } = new env.module.default([env.clients[0]]);
    const defaults = { driftFactor: 0.01, retryCount: 10, retryDelay: 200, retryJitter: 100, automaticExtensionThreshold: 500 };
    assert.deepEqual(settings, defaults);
    assert.deepEqual([...clients], [env.clients[0]]);
    const odd = new env.module.default([env.clients[0]], { retryCount: "3", retryDelay: 7 });
    assert.deepEqual(odd.settings, { ...defaults, retryDelay: 7 });
  });

  test("an instance without a client, a fractional duration and bad arguments of `using` are refused", async () => {
    const Redlock = env.module.default;
    assert.throws(() => new Redlock([]), { message: "Redlock must be instantiated with at least one redis client." });
    const redlock = new Redlock([env.clients[0]]);
    const [name] = newNames(1);
    const integer = { message: "Duration must be an integer value in milliseconds." };
    const lock = await redlock.acquire([name], HOUR);
    for (const duration of [Number.MAX_SAFE_INTEGER / 10, 1000.5, Number.NaN, "1000", undefined]) {
      await assert.rejects(redlock.acquire(newNames(1), duration), integer);
      await assert.rejects(redlock.extend(lock, duration), integer);
      await assert.rejects(redlock.using(newNames(1), duration, async () => {}), integer);
    }
    await lock.release();
    await assert.rejects(redlock.using([name], HOUR), { message: "INVARIANT: routine is not a function." });
    const margin = { message: "A lock `duration` must be at least 100ms greater than the `automaticExtensionThreshold` setting." };
    await assert.rejects(redlock.using([name], 599, async () => {}), margin);
    await assert.rejects(redlock.using([name], 1_000, { automaticExtensionThreshold: 901 }, async () => {}), margin);
  });
}

function oneClient(env) {
  for (const count of [1, 2]) {
    test(`${count === 1 ? "a resource is" : "several resources are"} acquired, extended and released`, async () => {
      const [redlock, redis, names] = [new env.module.default([env.clients[0]]), env.nodes[0], newNames(count)];
      let lock = await redlock.acquire(names, HOUR);
      const first = await Promise.all(names.map((name) => holder(redis, name)));
      for (const name of names) assert.ok(await isFor(redis, name, HOUR));
      assert.deepEqual(lock.resources, names);
      assert.equal(lock.redlock, redlock);
      assert.match(lock.value, /^[0-9a-f]{32}$/);
      assert.ok(lock.expiration > Date.now() + HOUR * 0.9 && lock.expiration < Date.now() + HOUR);

      const old = lock;
      lock = await lock.extend(3 * HOUR);
      for (const name of names) assert.ok(await isFor(redis, name, 3 * HOUR));
      assert.deepEqual(await Promise.all(names.map((name) => holder(redis, name))), first);
      assert.deepEqual([old.expiration, lock.value, lock.resources], [0, old.value, names]);
      assert.ok(lock.expiration > Date.now() + 2 * HOUR);

      const { attempts } = await lock.release();
      assert.equal((await attempts[0]).votesFor.size, 1);
      assert.equal(lock.expiration, 0);
      for (const name of names) assert.equal(await redis.exists(name), 0);
    });
  }

  test("a hold expires, and another client gets the resource", async () => {
    const [redlock, redis, [name]] = [new env.module.default([env.clients[0]], FAST), env.nodes[0], newNames(1)];
    const lock = await redlock.acquire([name], 1_000);
    await until(async () => (await redis.exists(name)) === 0, "the key expires");
    const second = await redlock.acquire([name], HOUR);
    await failure(env, redlock.release(lock));
    assert.notEqual(await holder(redis, name), null);
    await second.release();
    assert.equal(await redis.exists(name), 0);
  });

  test("a release after an extension also works with the lock before it", async () => {
    const [redlock, redis, [name]] = [new env.module.default([env.clients[0]]), env.nodes[0], newNames(1)];
    const lock = await redlock.acquire([name], HOUR);
    await redlock.extend(lock, HOUR);
    await redlock.release(lock);
    assert.equal(await redis.exists(name), 0);
  });

  test("unlimited retries end with the release of another client", async () => {
    const [redlock, [name]] = [new env.module.default([env.clients[0]], { ...FAST, retryCount: -1 }), newNames(1)];
    const lock = await redlock.acquire([name], HOUR);
    const refused = new Promise((resolve) => redlock.once("error", resolve));
    const waiting = redlock.acquire([name], HOUR);
    await refused;
    await lock.release();
    const second = await waiting;
    assert.ok(second.attempts.length > 1);
    await second.release();
  });
}

function refusals(env) {
  test("a held resource is refused in each attempt, with its own error", async () => {
    const redlock = new env.module.default([env.clients[0]], FAST);
    const [redis, [name]] = [env.nodes[0], newNames(1)];
    const lock = await redlock.acquire([name], HOUR);
    const first = await holder(redis, name);
    const error = await failure(env, redlock.acquire([name], HOUR));
    assert.equal(error.message, QUORUM);
    assert.equal(error.attempts.length, 11);
    for (const vote of await votesAgainst(error)) {
      assert.ok(vote instanceof env.module.ResourceLockedError);
      assert.deepEqual([vote.name, vote.message], ["ResourceLockedError", "The operation was applied to: 0 of the 1 requested resources."]);
    }
    const once = await failure(env, redlock.acquire([name], HOUR, { retryCount: 0 }));
    assert.equal(once.attempts.length, 1);
    const { membershipSize, quorumSize, votesFor } = await once.attempts[0];
    assert.deepEqual([membershipSize, quorumSize, votesFor.size], [1, 1, 0]);
    assert.equal(await holder(redis, name), first);
    await lock.release();
  });

  test("overlapping sets of resources exclude each other, and the rest stays free", async () => {
    const redlock = new env.module.default([env.clients[0]], FAST);
    const [redis, [a, b, c]] = [env.nodes[0], newNames(3)];
    const lock = await redlock.acquire([a, b], HOUR);
    const before = [await holder(redis, a), await holder(redis, b)];
    const error = await failure(env, redlock.acquire([b, c], HOUR));
    assert.equal(error.attempts.length, 11);
    for (const vote of await votesAgainst(error)) {
      assert.equal(vote.message, "The operation was applied to: 0 of the 2 requested resources.");
    }
    assert.deepEqual([await holder(redis, a), await holder(redis, b), await holder(redis, c)], [...before, null]);
    await lock.release();
    for (const name of [a, b, c]) assert.equal(await redis.exists(name), 0);
  });
}

function lostHolds(env) {
  test("a released lock is neither extended nor released", async () => {
    const redlock = new env.module.default([env.clients[0]], FAST);
    const lock = await redlock.acquire(newNames(1), HOUR);
    await lock.release();
    const error = await failure(env, lock.extend(HOUR));
    assert.deepEqual([error.message, error.attempts], [EXPIRED, []]);
    assert.equal((await failure(env, lock.release())).message, QUORUM);
  });

  test("a hold that is gone is not extended", async () => {
    const redlock = new env.module.default([env.clients[0]], FAST);
    const [name] = newNames(1);
    const lock = await redlock.acquire([name], HOUR);
    await env.nodes[0].del(name);
    const error = await failure(env, lock.extend(HOUR));
    assert.ok((await votesAgainst(error)).every((vote) => vote instanceof env.module.ResourceLockedError));
    assert.equal(await env.nodes[0].exists(name), 0);
  });

  test("a server that does not exist fails each attempt", async () => {
    const redlock = new env.module.default([env.unreachable], { ...FAST, retryCount: 1 });
    const error = await failure(env, redlock.acquire(newNames(1), HOUR));
    assert.equal(error.attempts.length, 2);
    const votes = await votesAgainst(error);
    assert.equal(votes.length, 2);
    assert.ok(votes.every((vote) => vote instanceof Error && !(vote instanceof env.module.ResourceLockedError)));
  });

  test("each vote against is an event, and none is needed", async () => {
    const redlock = new env.module.default([env.clients[0]], { ...FAST, retryCount: 2 });
    const names = newNames(1);
    const lock = await redlock.acquire(names, HOUR);
    await failure(env, redlock.acquire(names, HOUR));
    const seen = { on: [], once: [] };
    const listener = (error) => seen.on.push(error);
    redlock.on("error", listener).once("error", (error) => seen.once.push(error));
    const error = await failure(env, redlock.acquire(names, HOUR));
    assert.deepEqual(seen.on.slice(0, 3), await votesAgainst(error));
    assert.deepEqual(seen.once, seen.on.slice(0, 1));
    redlock.off("error", listener);
    const count = seen.on.length;
    await failure(env, redlock.acquire(names, HOUR));
    assert.equal(seen.on.length, count);
    await lock.release();
  });
}

function using(env) {
  /** Waits until Redis has a later end of the hold. */
  const isExtended = async (redis, name) => {
    const first = await redis.pexpiretime(name);
    await until(async () => (await redis.pexpiretime(name)) > first, "the hold is extended");
  };

  test("`using` acquires, extends and releases, and returns the result", async () => {
    const [redlock, redis, [name]] = [new env.module.default([env.clients[0]]), env.nodes[0], newNames(1)];
    const settings = { automaticExtensionThreshold: 59_800 };
    const result = await redlock.using([name], 60_000, settings, async (signal) => {
      const first = await holder(redis, name);
      assert.notEqual(first, null);
      await isExtended(redis, name);
      assert.deepEqual([signal.aborted, signal.error], [false, undefined]);
      assert.equal(await holder(redis, name), first);
      return { first };
    });
    assert.notEqual(result.first, null);
    assert.equal(await redis.exists(name), 0);
  });

  test("routines exclude each other while their lock is extended", async () => {
    const redlock = new env.module.default([env.clients[0]], { ...FAST, retryCount: -1, automaticExtensionThreshold: 59_800 });
    const [redis, [name]] = [env.nodes[0], newNames(1)];
    let isLocked = false;
    const routine = async () => {
      assert.equal(isLocked, false);
      isLocked = true;
      await isExtended(redis, name);
      isLocked = false;
      return 1;
    };
    const results = await Promise.all([1, 2].map(() => redlock.using([name], 60_000, routine)));
    assert.deepEqual(results, [1, 1]);
    assert.equal(await redis.exists(name), 0);
  });

  test("a lost hold aborts the signal of a routine with its error", async () => {
    const redlock = new env.module.default([env.clients[0]], { retryCount: 0, automaticExtensionThreshold: 5_800 });
    const [name] = newNames(1);
    let error;
    const used = redlock.using([name], 6_000, async (signal) => {
      await env.nodes[0].del(name);
      await aborted(signal);
      error = signal.error;
    });
    await failure(env, used);
    assert.ok(error instanceof env.module.ExecutionError);
  });

  test("an error of the routine is the error of `using`, and the lock is released", async () => {
    const [redlock, [name]] = [new env.module.default([env.clients[0]]), newNames(1)];
    await assert.rejects(redlock.using([name], HOUR, async () => Promise.reject(new RangeError("its own"))), { message: "its own" });
    assert.equal(await env.nodes[0].exists(name), 0);
  });
}

function threeClients(env) {
  /** Makes another lock hold the resource on these nodes. */
  const occupy = (name, places) => Promise.all(places.map((i) => new env.module.default([env.clients[i]]).acquire([name], HOUR)));

  test("three clients each have the hold", async () => {
    const [redlock, [name]] = [new env.module.default(env.clients), newNames(1)];
    let lock = await redlock.acquire([name], HOUR);
    const { membershipSize, quorumSize, votesFor } = await lock.attempts[0];
    assert.deepEqual([membershipSize, quorumSize, votesFor], [3, 2, new Set(env.clients)]);
    for (const redis of env.nodes) assert.ok(await isFor(redis, name, HOUR));
    lock = await lock.extend(3 * HOUR);
    await Promise.all(lock.attempts);
    for (const redis of env.nodes) assert.ok(await isFor(redis, name, 3 * HOUR));
    const { attempts } = await lock.release();
    await Promise.all(attempts);
    for (const redis of env.nodes) assert.equal(await redis.exists(name), 0);
  });

  test("a minority that refuses does not prevent a lock, and keeps its own holder", async () => {
    const [redlock, [name]] = [new env.module.default(env.clients), newNames(1)];
    const [other] = await occupy(name, [2]);
    const kept = await holder(env.nodes[2], name);
    let lock = await redlock.acquire([name], HOUR);
    const { votesFor, votesAgainst } = await lock.attempts.at(-1);
    assert.deepEqual([votesFor, [...votesAgainst.keys()]], [new Set(env.clients.slice(0, 2)), [env.clients[2]]]);
    lock = await lock.extend(3 * HOUR);
    await Promise.all((await lock.release()).attempts);
    const holders = await Promise.all(env.nodes.map((redis) => holder(redis, name)));
    assert.deepEqual(holders, [null, null, kept]);
    await other.release();
  });

  test("a majority that refuses prevents a lock, and nothing of it is left", async () => {
    const [redlock, [name]] = [new env.module.default(env.clients, FAST), newNames(1)];
    const others = await occupy(name, [1, 2]);
    const kept = await Promise.all(env.nodes.map((redis) => holder(redis, name)));
    const error = await failure(env, redlock.acquire([name], HOUR));
    assert.equal(error.attempts.length, 11);
    const refused = (await votesAgainst(error)).map(({ message }) => message);
    assert.deepEqual(new Set(refused), new Set(["The operation was applied to: 0 of the 1 requested resources."]));
    await until(async () => (await holder(env.nodes[0], name)) === null, "the minority is free again");
    assert.deepEqual(await Promise.all(env.nodes.map((redis) => holder(redis, name))), kept);
    for (const other of others) await other.release();
  });
}
