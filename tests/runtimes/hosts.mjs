/**
 * Tests of the packed npm package in hosts that are frozen, stopped, killed or evicted while it
 * holds or waits: pages, Workers, processes; and tests of the recipes of docs/fencing.md, which
 * reject late writes of such a host.
 *
 * Environment: as of tests/runtimes/run.mjs, without EDGELATCH_TEST_SCOPE_KEY and EDGELATCH_EXTENT.
 */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { launch } from "./browser.mjs";
import { until } from "./check.mjs";
import { openFront } from "./front.mjs";
import { startHolder } from "./holder.mjs";
import { freeze, hide, leave, openLonePage } from "./lone_page.mjs";
import { newClient, removeProjects, required } from "./project.mjs";
import { startStores } from "./stores.mjs";
import { startWorker } from "./worker.mjs";

const url = required("EDGELATCH_TEST_URL");
const token = required("EDGELATCH_TEST_TOKEN");
const env = { EDGELATCH_TEST_URL: url, EDGELATCH_TEST_TOKEN: token };

/** The tests wait more than they compute. */
const CONCURRENT = { concurrency: 3 };

let front;
let locks;
before(async () => {
  front = await openFront(url);
  locks = await newClient({ url, token, requestTimeoutMs: 60_000 });
});
after(async () => {
  front?.close();
  await removeProjects();
});

describe("hosts", { concurrency: 4 }, () => {
  describe("Chromium", CONCURRENT, pages);
  describe("workerd", { concurrency: 1 }, requestsOfWorker);
  describe("hosts that stop", CONCURRENT, stoppedHosts);
  describe("fencing in workerd", { concurrency: 1 }, fencing);
});

// Runs after all other tests, and checks their requests.
test("pages and Workers request only the paths of a gateway", () => assert.deepEqual(front.unexpected, []));

function pages() {
  let browser;
  before(async () => (browser = await launch()));
  after(() => browser?.close());

  for (const [what, way] of Object.entries({ frozen: freeze, hidden: hide, "put into the back/forward cache": leave })) {
    // S31, S35, S37.
    test(`a page that was ${what} past the end of its lease reports it lost`, async (t) => {
      const page = await openLonePage(browser, { url: front.url, token });
      t.after(page.close);
      const name = `page:${crypto.randomUUID()}`;
      const held = await page.call("hold", name, 1_500);
      const resume = await way(page);
      const next = await locks.lock(name).acquire({ waitMs: 120_000 });
      assert.ok(next.token > held);
      await resume();
      const { remaining, aborted, reason, pageEvents } = await page.call("state");
      assert.deepEqual([remaining, aborted, reason], [0, true, "expired"]);
      assert.ok(pageEvents.includes({ frozen: "freeze", hidden: "hidden" }[what] ?? "restored"), `the browser reported it: ${pageEvents}`);
      assert.equal(await next.release(), "released");
    });
  }
}

function requestsOfWorker() {
  let worker;
  let get;
  before(async () => {
    worker = await startWorker({ EDGELATCH_TEST_URL: front.url, EDGELATCH_TEST_TOKEN: token });
    get = (page, options) => fetch(new URL(page, worker.url), options);
  });
  after(() => worker?.close());

  // S39.
  test("a lease that outlives its request is renewed only while waitUntil keeps the request alive", async () => {
    const name = `outlives:${crypto.randomUUID()}`;
    await (await get(`/outlive?name=${name}:gone`)).json();
    await (await get(`/outlive?name=${name}:stays&stays`)).json();
    // Before the lease of ten minutes ends. Without renewals `stays` would be free by then, too.
    const next = await locks.readWriteLock(`${name}:gone`).write.acquire({ waitMs: 300_000, maxRequests: 10_000 });
    assert.equal(await next.release(), "released");
    assert.equal(await locks.readWriteLock(`${name}:stays`).write.tryAcquire(), null);
    assert.equal(await locks.readWriteLock(`${name}:stays`).read.forceRelease(), true);
  });

  for (const [what, page] of [["has ended", "/lend-signal"], ["is under way", "/lend-signal?stays"]]) {
    test(`the signal of another request that ${what} does not fail an acquisition`, async (t) => {
      const client = new AbortController();
      t.after(() => client.abort());
      assert.equal((await get(page, { signal: client.signal })).status, 200);
      const result = await (await get(`/use-lent-signal?name=use-lent-signal:${crypto.randomUUID()}`)).json();
      assert.deepEqual(result, { first: "released", second: "released" });
    });
  }

  for (const manner of ["with-signal", "without-signal"]) {
    // S40, S41.
    test(`of two overlapping requests (${manner}), the one whose client stays acquires the lock`, async (t) => {
      const name = `overlap:${crypto.randomUUID()}`;
      const page = (id) => `/${manner}?id=${manner}-${id}&name=${name}`;
      const holder = await locks.lock(name).acquire();
      t.after(() => holder.release());
      const client = new AbortController();
      const leaves = get(page("leaves"), { signal: client.signal }).then((response) => response.text()).catch((error) => error.name);
      const stays = get(page("stays")).then((response) => response.json());
      await until(() => front.owners(name).size === 2, "both requests wait in Redis");

      client.abort();
      assert.equal(await leaves, "AbortError");
      if (manner === "with-signal") {
        const ended = async () => (await (await get("/ended")).json())["with-signal-leaves"];
        assert.equal(await until(ended, "the request notices that its client has gone"), "AbortError");
      }
      await holder.release();
      const result = await stays;
      assert.ok(result.held && result.token > holder.token);
      // A request without its signal goes on without its client, and is granted in its order too.
      const isFree = async () => manner === "without-signal" || !(await locks.lock(name).inspect()).locked;
      assert.ok(await isFree(), "no client holds it any more");

      const later = await Promise.all([1, 2, 3].map(async (id) => (await get(page(id))).json()));
      assert.equal(new Set(later.map(({ token }) => token)).size, 3);
      assert.ok(later.every(({ held, token }) => held && token > result.token));
      assert.ok(await isFree(), "no client holds it any more");
    });
  }
}

function stoppedHosts() {
  // S32, S33.
  test("a process that was stopped past the end of its lease reports it lost, and its guarded write is rejected", async (t) => {
    const name = `stopped:${crypto.randomUUID()}`;
    const holder = await startHolder(env, name, 2_000);
    t.after(() => holder.kill());
    holder.signal("SIGSTOP");
    const next = await locks.lock(name).acquire({ waitMs: 120_000 });
    assert.ok(next.token > holder.token);
    const guard = locks.guard(`${name}:value`);
    await guard.set(next, "second");
    holder.signal("SIGCONT");
    const { remaining, aborted, written } = await holder.requestReport();
    assert.deepEqual([remaining, aborted], [0, true]);
    assert.match(written, /^(LeaseLostError|StaleTokenError)$/);
    assert.equal(await guard.newest(), next.token);
    assert.equal(await next.release(), "released");
  });

  // S36.
  test("the lock of a killed process is free after its lease expires", async (t) => {
    const name = `killed:${crypto.randomUUID()}`;
    const holder = await startHolder(env, name, 2_000);
    t.after(() => holder.kill());
    const waiting = locks.lock(name).acquire({ waitMs: 120_000 });
    await holder.kill();
    const next = await waiting;
    assert.ok(next.token > holder.token);
    assert.equal(await next.release(), "released");
  });

  // S38.
  test("the lock of an evicted isolate is free after its lease expires, and the next isolate is another owner", async (t) => {
    const name = `evicted:${crypto.randomUUID()}`;
    const holdUntilEvicted = async () => {
      const worker = await startWorker({ EDGELATCH_TEST_URL: front.url, EDGELATCH_TEST_TOKEN: token });
      t.after(() => worker.close());
      const result = await (await fetch(new URL(`/hold?name=${name}`, worker.url))).json();
      await worker.close("SIGKILL");
      return result;
    };
    const [first, second] = [await holdUntilEvicted(), await holdUntilEvicted()];
    assert.ok(second.token > first.token);
    assert.equal(front.owners(name).size, 2);
  });
}

function fencing() {
  let stores;
  let old;
  let young;
  before(async () => {
    stores = await startStores();
    const lock = locks.lock(`fencing:${crypto.randomUUID()}`);
    // Two tokens in the order of their grants: of a holder whose lease is over, and of the next
    // holder.
    [old, young] = [await lock.run((lease) => lease.token), await lock.run((lease) => lease.token)];
  });
  after(() => stores?.close());

  // S33.
  test("D1 rejects a write with an older fencing token", async () => {
    await stores.sql(["table"]);
    assert.deepEqual(await stores.sql(["upsert", { id: "a", total: 1, token: old }]), [1]);
    assert.deepEqual(await stores.sql(["claim", { id: "a", token: young }]), [1]);
    for (const title of ["update", "upsert"]) assert.deepEqual(await stores.sql([title, { id: "a", total: 2, token: old }]), [0]);
    assert.deepEqual(await stores.sql(["update", { id: "a", total: 3, token: young }]), [1]);
    assert.deepEqual(await stores.rows("SELECT total, fence FROM invoice"), [{ total: 3, fence: young }]);
  });

  test("D1 rejects a late duplicate of an earlier write of the same holder", async () => {
    await stores.sql(["numbered table"]);
    await stores.rows("INSERT INTO account (id, balance) VALUES ('a', 0)");
    const write = (step, balance, token) => stores.sql(["numbered update", { id: "a", balance, step, token }]);
    assert.deepEqual([await write(1, 10, old), await write(2, 20, old), await write(1, 10, old)], [[1], [1], [0]]);
    assert.deepEqual([await write(1, 30, young), await write(3, 40, old)], [[1], [0]]);
    assert.deepEqual(await stores.rows("SELECT balance FROM account"), [{ balance: 30 }]);
  });

  test("D1 deletes a row in one batch and keeps its fence", async () => {
    await stores.sql(["fences"], ["upsert", { id: "b", total: 1, token: old }]);
    const remove = (token) => stores.sql(["raise", { name: "n", token }], ["fenced delete", { id: "b", name: "n", token }]);
    await stores.sql(["raise", { name: "n", token: young }]);
    assert.deepEqual([await remove(old), await remove(young)], [[0, 0], [1, 1]]);
  });

  // S33.
  test("R2 rejects a put with an older fencing token", async () => {
    assert.ok(await stores.put("a", "first", old));
    assert.ok(await stores.put("a", "second", young));
    assert.equal(await stores.put("a", "late", old), false);
    assert.equal(await stores.read("a"), "second");
    const puts = await Promise.all(["x", "y", "z"].map((body) => stores.put("b", body, young)));
    assert.ok(puts.every(Boolean), "each put with the same token succeeds after a retry");
  });
}
