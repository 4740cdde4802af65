/**
 * The statements of the tests of `@upstash/lock`, and of its types and its README, for
 * `@upstash/lock` itself and for `edgelatch/upstash-lock`.
 */

import assert from "node:assert/strict";
import { test } from "node:test";

import { until } from "../runtimes/check.mjs";

/**
 * Defines the tests. `env` has the class (`module.Lock`), a client for it (`redis`), and a
 * connection to its Redis server (`node`).
 */
export function upstashLockTests(env) {
  const once = { attempts: 1, delay: 0 };
  const newLock = (options) => new env.module.Lock({ id: `upstash:${crypto.randomUUID()}`, redis: env.redis, ...options });

  for (const [name, options] of [["defaults", {}], ["values", { lease: 5_000, retry: { attempts: 1, delay: 100 } }]]) {
    test(`a lock is created, extended and released with ${name}`, async () => {
      const lock = newLock(options);
      assert.equal(await lock.getStatus(), "FREE");
      assert.equal(await lock.acquire(), true);
      assert.equal(await lock.getStatus(), "ACQUIRED");
      const before = await env.node.pttl(lock.id);
      const lease = options.lease ?? 10_000;
      assert.ok(before > 0 && before <= lease);
      assert.equal(await lock.extend(60_000), true);
      assert.ok((await env.node.pttl(lock.id)) > 60_000);
      assert.equal(await lock.release(), true);
      assert.equal(await lock.getStatus(), "FREE");
      assert.equal(await env.node.exists(lock.id), 0);
      assert.deepEqual([await lock.release(), await lock.extend(1_000)], [false, false]);
    });
  }

  test("another instance and the same one are refused while the lock is held", async () => {
    const lock = newLock({ retry: once });
    const other = newLock({ id: lock.id, retry: { attempts: 3, delay: 1 } });
    assert.equal(other.id, lock.id);
    assert.equal(await lock.acquire(), true);
    assert.equal(await other.acquire(), false);
    assert.deepEqual([await other.getStatus(), await other.release(), await other.extend(1_000)], ["FREE", false, false]);
    assert.equal(await lock.getStatus(), "ACQUIRED");
    assert.equal(await lock.acquire(), false);
    // The failed acquisition has forgotten the hold, which ends with its lease.
    assert.deepEqual([await lock.getStatus(), await lock.release()], ["FREE", false]);
    assert.equal(await env.node.exists(lock.id), 1);
  });

  test("a hold ends with its lease", async () => {
    const lock = newLock({ lease: 4_000, retry: once });
    assert.equal(await lock.acquire(), true);
    await until(async () => (await lock.getStatus()) === "FREE", "the lease ends");
    assert.deepEqual([await lock.extend(1_000), await lock.release()], [false, false]);
    assert.equal(await newLock({ id: lock.id, retry: once }).acquire(), true);
  });

  test("the options of an acquisition are used, and its lease is kept", async () => {
    const lock = newLock({ retry: once });
    assert.equal(await lock.acquire({ lease: 60_000, uuid: "its-own" }), true);
    assert.ok((await env.node.pttl(lock.id)) > 10_000);
    const other = newLock({ id: lock.id });
    const waiting = other.acquire({ retry: { attempts: 100_000, delay: 1 } });
    assert.equal(await lock.release(), true);
    assert.equal(await waiting, true);
    assert.equal(await other.release(), true);
    assert.equal(await lock.acquire(), true);
    assert.ok((await env.node.pttl(lock.id)) > 10_000);
    assert.equal(await lock.release(), true);
    assert.equal(await lock.acquire({ retry: { attempts: 0, delay: 0 } }), false);
  });

  test("one of many contending instances gets the lock", async () => {
    const first = newLock({ lease: 60_000, retry: once });
    const all = [first, ...Array.from({ length: 9 }, () => newLock({ id: first.id, lease: 60_000, retry: once }))];
    const won = await Promise.all(all.map((lock) => lock.acquire()));
    assert.equal(won.filter(Boolean).length, 1);
    assert.equal(await all[won.indexOf(true)].release(), true);
  });
}
