/** The differences that docs/migrating-from-redlock.md and -upstash-lock.md state. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { until } from "../runtimes/check.mjs";
import { aborted } from "./redlock.mjs";
import { TOKEN } from "./servers.mjs";

const HOUR = 3_600_000;
const FAST = { retryDelay: 1, retryJitter: 0 };

const newName = () => `drop-in:${crypto.randomUUID()}`;

/** Returns a fetch function whose first response is lost after the request was executed. */
function losingFirst(fetch = globalThis.fetch) {
  let isLost = false;
  return async (...request) => {
    const response = await fetch(...request);
    if (isLost) return response;
    isLost = true;
    await response.arrayBuffer();
    throw new TypeError("the response was lost");
  };
}

export function redlockDifferences(ours, theirs, edgelatch) {
  inputs(ours, theirs);
  votes(ours);
  ends(ours);
  faults(ours, edgelatch);
}

function inputs(ours, theirs) {
  test("clients of another kind, scripts, no resources and durations out of range are refused", async () => {
    const Redlock = ours.module.default;
    assert.throws(() => new Redlock([theirs.clients[0]]), { name: "TypeError", message: /takes edgelatch clients/ });
    assert.throws(() => new Redlock([undefined]), { name: "TypeError" });
    assert.throws(() => new Redlock(ours.clients, {}, { acquireScript: (script) => script }), { name: "TypeError" });
    const redlock = new Redlock([ours.clients[0]]);
    await redlock.quit();
    await assert.rejects(redlock.acquire([], HOUR), { message: "At least one resource is required." });
    for (const duration of [0, 99, 24 * HOUR + 1]) {
      await assert.rejects(redlock.acquire([newName()], duration), { message: "Duration must be from 100 to 86400000 milliseconds." });
    }
    await assert.rejects(redlock.acquire(["a\nb"], HOUR), { code: "invalid-option", option: "name" });
    const foreign = new ours.module.Lock(redlock, [newName()], "value", [], Date.now() + HOUR);
    await assert.rejects(foreign.release(), { name: "ExecutionError", message: /not acquired by edgelatch\/redlock in this process/ });
  });

  test("each lock has a fencing token, which rises, and excludes edgelatch's own locks", async () => {
    const redlock = new ours.module.default([ours.clients[0]]);
    const [a, b] = [newName(), newName()];
    const first = await redlock.acquire([a], HOUR);
    assert.ok(Number.isSafeInteger(first.token) && first.tokenOf(a) === first.token);
    assert.equal(await ours.clients[0].lock(a).tryAcquire(), null);
    await first.release();
    const second = await redlock.acquire([a, b, a], HOUR);
    assert.ok(second.tokenOf(a) > first.token && second.tokenOf(b) > 0);
    assert.deepEqual([second.token, second.tokenOf("c")], [null, null]);
    await second.release();
    const many = await new ours.module.default(ours.clients).acquire([a], HOUR);
    assert.equal(many.token, null);
    await many.release();
  });

  test("an owner does not acquire its own lock again", async () => {
    const redlock = new ours.module.default([ours.clients[0].owner()], { retryCount: 0 });
    const name = newName();
    const lock = await redlock.acquire([name], HOUR);
    await assert.rejects(redlock.acquire([name], HOUR), { name: "ExecutionError" });
    await lock.release();
  });
}

function votes(ours) {
  test("a retry is not refused by the votes of the attempt before it", async () => {
    const name = newName();
    const busy = await ours.clients[1].lock(name).acquire();
    const alsoBusy = await ours.clients[2].lock(name).acquire();
    const redlock = new ours.module.default(ours.clients, { ...FAST, retryCount: -1 });
    const refused = new Promise((resolve) => redlock.once("error", resolve));
    const waiting = redlock.acquire([name], HOUR);
    await refused;
    await busy.release();
    const lock = await waiting;
    assert.deepEqual((await lock.attempts.at(-1)).votesFor, new Set(ours.clients.slice(0, 2)));
    await lock.release();
    await alsoBusy.release();
  });

  test("an even number of clients that is divided is refused, and does not hang", async () => {
    const name = newName();
    const busy = await ours.clients[1].lock(name).acquire();
    const redlock = new ours.module.default(ours.clients.slice(0, 2), { retryCount: 0 });
    const error = await redlock.acquire([name], HOUR).catch((error) => error);
    assert.equal(error.name, "ExecutionError");
    // The refusal may come before the grant, which is undone afterwards.
    await error.attempts.at(-1);
    await until(async () => !(await ours.clients[0].lock(name).inspect()).locked, "the grant is undone");
    await busy.release();
  });
}

function ends(ours) {
  test("a lost hold ends retries of extensions and releases, which cannot succeed", async () => {
    const redlock = new ours.module.default([ours.clients[0]]);
    const name = newName();
    const lock = await redlock.acquire([name], HOUR);
    await ours.clients[0].lock(name).forceRelease();
    await assert.rejects(lock.extend(HOUR), ({ attempts }) => attempts.length === 1);
    await assert.rejects(lock.release(), ({ attempts }) => attempts.length === 1);
  });

  test("an extension does not shorten a hold", async () => {
    const redlock = new ours.module.default([ours.clients[0]]);
    const name = newName();
    const lock = await (await redlock.acquire([name], HOUR)).extend(1_000);
    assert.ok((await ours.nodes[0].pttl(name)) > HOUR / 2);
    assert.ok(lock.expiration <= Date.now() + 1_000);
    await lock.release();
  });

  test("an error of a routine takes precedence over that of its release", async () => {
    const redlock = new ours.module.default([ours.clients[0]], { retryCount: 0 });
    const name = newName();
    const used = redlock.using([name], HOUR, async () => {
      await ours.clients[0].lock(name).forceRelease();
      throw new RangeError("its own");
    });
    await assert.rejects(used, { name: "RangeError", message: "its own" });
  });

  test("a lost hold aborts with the error as its reason", async () => {
    const redlock = new ours.module.default([ours.clients[0]], { automaticExtensionThreshold: 59_800 });
    const name = newName();
    const used = redlock.using([name], 60_000, async (signal) => {
      await ours.clients[0].lock(name).forceRelease();
      await aborted(signal);
      assert.equal(signal.reason, signal.error);
    });
    await assert.rejects(used, { name: "ExecutionError" });
  });
}

function faults(ours, edgelatch) {
  // Slow: a lease of 2 s expires, and then its release is repeated.
  test("the signal aborts at the expiration while extensions are retried", async () => {
    let isConnected = true;
    const fetchOrFail = async (...request) => {
      if (isConnected) return fetch(...request);
      throw new TypeError("the gateway is gone");
    };
    const client = edgelatch.connect({ url: ours.url, token: TOKEN, fetch: fetchOrFail });
    const redlock = new ours.module.default([client], { ...FAST, retryCount: -1, automaticExtensionThreshold: 1_800 });
    let error;
    const used = redlock.using([newName()], 2_000, async (signal) => {
      isConnected = false;
      await aborted(signal);
      error = signal.error;
    });
    await assert.rejects(used, { name: "ExecutionError" });
    assert.equal(error.name, "ExecutionError");
  });

  test("a client that is not reachable is a vote against", async () => {
    const clients = [...ours.clients.slice(0, 2), ours.unreachable];
    const redlock = new ours.module.default(clients, { retryCount: 0 });
    const lock = await (await redlock.acquire([newName()], HOUR)).extend(HOUR);
    const { votesAgainst } = await (await lock.release()).attempts[0];
    assert.deepEqual([...votesAgainst.keys()], [ours.unreachable]);
  });

  test("an exception of a listener does not change the outcome, and is not hidden", async (t) => {
    const thrown = [];
    t.mock.method(globalThis, "queueMicrotask", (report) => {
      try {
        report();
      } catch (error) {
        thrown.push(error);
      }
    });
    const redlock = new ours.module.default([ours.clients[0]], { retryCount: 0 });
    const name = newName();
    const lock = await redlock.acquire([name], HOUR);
    const own = new RangeError("its own");
    redlock.on("error", () => {
      throw own;
    });
    await assert.rejects(redlock.acquire([name], HOUR), { name: "ExecutionError" });
    assert.deepEqual(thrown, [own]);
    await lock.release();
  });

  test("a lost response changes nothing", async () => {
    const client = edgelatch.connect({ url: ours.url, token: TOKEN, fetch: losingFirst() });
    const redlock = new ours.module.default([client], { retryCount: 0 });
    const name = newName();
    const lock = await redlock.acquire([name], HOUR);
    await lock.release();
    assert.equal(await ours.nodes[0].exists(name), 0);
  });
}

export function upstashLockDifferences(ours, theirs, edgelatch, Redis) {
  test("other clients and values out of range are refused", async () => {
    const { Lock } = ours.module;
    const id = newName();
    assert.throws(() => new Lock({ id, redis: theirs.redis }), { name: "TypeError", message: /is an edgelatch client/ });
    assert.throws(() => new Lock({ id, redis: ours.redis, lease: 99 }), { name: "RangeError", message: /`lease`/ });
    assert.throws(() => new Lock({ redis: ours.redis }), { code: "invalid-option", option: "name" });
    const lock = new Lock({ id, redis: ours.redis });
    await assert.rejects(lock.acquire({ lease: 24 * HOUR + 1 }), { name: "RangeError" });
    await lock.acquire();
    await assert.rejects(lock.extend(-1_000), { name: "RangeError" });
    await assert.rejects(lock.extend(24 * HOUR), { name: "RangeError" });
    await lock.release();
  });

  test("an extension of part of a second is possible", async () => {
    const [our, their] = [ours, theirs].map(({ module, redis }) => new module.Lock({ id: newName(), redis }));
    assert.deepEqual([await our.acquire(), await their.acquire()], [true, true]);
    assert.equal(await our.extend(1_500), true);
    await assert.rejects(their.extend(1_500), /not an integer/);
    await Promise.all([our.release(), their.release()]);
  });

  test("a lost response leaves no hold without a holder", async () => {
    const redis = edgelatch.connect({ url: ours.url, token: TOKEN, fetch: losingFirst() });
    const our = new ours.module.Lock({ id: newName(), redis });
    assert.equal(await our.acquire(), true);
    assert.equal(await our.release(), true);
    assert.equal(await ours.node.exists(our.id), 0);
  });

  test("with @upstash/lock a lost response leaves a hold without a holder", async (t) => {
    const losing = losingFirst(globalThis.fetch);
    t.mock.method(globalThis, "fetch", losing);
    const redis = new Redis({ url: theirs.url, token: TOKEN });
    const their = new theirs.module.Lock({ id: newName(), redis, retry: { attempts: 1, delay: 0 } });
    assert.equal(await their.acquire(), false);
    assert.equal(await theirs.node.exists(their.id), 1);
  });

  test("a hold has a fencing token, which rises, and a signal", async () => {
    const lock = new ours.module.Lock({ id: newName(), redis: ours.redis });
    assert.deepEqual([lock.token, lock.signal], [null, null]);
    await lock.acquire();
    const { token } = lock;
    assert.ok(Number.isSafeInteger(token) && !lock.signal.aborted);
    assert.equal(await ours.redis.lock(lock.id).tryAcquire(), null);
    await lock.release();
    await lock.acquire();
    assert.ok(lock.token > token);
    await lock.release();
  });
}
