/**
 * The packed npm package in every runtime that it is for: one suite, and what only a Worker can show.
 *
 * Environment: EDGELATCH_TARBALL (what `npm pack` made), EDGELATCH_TEST_URL and EDGELATCH_TEST_TOKEN (a gateway),
 * EDGELATCH_TEST_SCOPE_KEY (by which it knows scoped tokens),
 * EDGELATCH_TOOLS (a `node_modules` with deno, bun, wrangler, esbuild and playwright-core), CHROMIUM (the browser).
 */

import assert from "node:assert/strict";
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";

import { launch, runPage, ways } from "./browser.mjs";
import { until } from "./check.mjs";
import { openFaulty } from "./faulty.mjs";
import { openFront } from "./front.mjs";
import { startHolder } from "./holder.mjs";
import { freeze, hide, leave, openLonePage } from "./lone_page.mjs";
import { newProject, removeProjects, required, runProgram } from "./project.mjs";
import { scopedToken } from "./scoped.mjs";
import { startStores } from "./stores.mjs";
import { names } from "./suite.mjs";
import { startWebdis } from "./webdis.mjs";
import { startWorker } from "./worker.mjs";

const url = required("EDGELATCH_TEST_URL");
const token = required("EDGELATCH_TEST_TOKEN");
const tools = required("EDGELATCH_TOOLS");
const env = { EDGELATCH_TEST_URL: url, EDGELATCH_TEST_TOKEN: token };

/** They wait more than they compute. */
const AT_ONCE = { concurrency: 3 };

let front;
let faulty;
before(async () => ([front, faulty] = [await openFront(url), await openFaulty(url)]));
after(async () => {
  front.close();
  faulty.close();
  await removeProjects();
});

describe("programs", AT_ONCE, () => {
  const rights = ["--allow-env", "--allow-net=127.0.0.1", "--allow-read"];
  const deno = ["run", ...rights, "--no-lock", "--node-modules-dir=manual", "--v8-flags=--expose-gc"];
  test("Node of the tools", (t) => {
    const variables = { ...env, EDGELATCH_TEST_FAULTY: faulty.url };
    return report(t, () => runProgram(process.execPath, ["--expose-gc"], variables), { faulty });
  });
  test("Node of the machine", (t) => report(t, async () => runProgram(await nodeOfMachine(), ["--expose-gc"], env)));
  test("Deno", (t) => report(t, () => runProgram(join(tools, ".bin/deno"), deno, env)));
  test("Node on Webdis", async (t) => {
    const webdis = await startWebdis();
    t.after(() => webdis.close());
    const variables = { EDGELATCH_TEST_URL: webdis.url, EDGELATCH_TEST_TOKEN: webdis.token, EDGELATCH_TEST_DIALECT: "webdis" };
    await report(t, () => runProgram(process.execPath, ["--expose-gc"], variables), { dialect: "webdis" });
  });
  // What is frozen there, we do not need to change.
  test("Node with frozen intrinsics", async () => {
    const flags = ["--frozen-intrinsics", "--disable-proto=throw", "--no-warnings"];
    assert.deepEqual(await runProgram(process.execPath, flags, env, "frozen.mjs"), ["released", true]);
  });
  // S84.
  for (const trap of ["clock", "memory"]) {
    test(`a module that fails inside (${trap}) is used no more, and everybody is told`, async () => {
      const told = await runProgram(process.execPath, [], { ...env, TRAP: trap }, "trap.mjs");
      assert.deepEqual(told, ["first", "told", "asked", "again", "atOnce"].map((what) => [what, true]));
    });
  }
  test("Node shows no token of any object", async () => {
    const shown = await runProgram(process.execPath, [], env, "inspect.mjs");
    assert.ok(shown.length > 10 && shown.every((text) => text.length > 0));
    for (const text of shown) assert.ok(!text.includes(token) && !/[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-/.test(text), text);
  });
  test("Bun", (t) => report(t, () => runProgram(join(tools, ".bin/bun"), ["run"], env)));
});

describe("Chromium", AT_ONCE, () => {
  let browser;
  let outside;
  before(async () => {
    browser = await launch();
    outside = await clientOutside();
  });
  after(() => browser.close());
  for (const way of ways) {
    test(way.name, async (t) => {
      const page = await runPage(browser, way, { url: front.url, token });
      await report(t, async () => page.results);
      assert.deepEqual(page.complaints, []);
      // S44.
      await t.test("nothing is stored that a copy of the tab could begin with", () => assert.deepEqual(page.stored, []));
    });
  }

  for (const [what, way] of Object.entries({ frozen: freeze, hidden: hide, "put into the back/forward cache": leave })) {
    // S31, S35, S37.
    test(`a page that was ${what} for longer than its lease finds it lost`, async (t) => {
      const page = await openLonePage(browser, { url: front.url, token });
      t.after(page.close);
      const name = `page:${crypto.randomUUID()}`;
      const held = await page.call("hold", name, 1_500);
      const comeBack = await way(page);
      const next = await outside.lock(name).acquire({ waitMs: 120_000 });
      assert.ok(next.token > held);
      await comeBack();
      const { remaining, aborted, reason, happened } = await page.call("look");
      assert.deepEqual([remaining, aborted, reason], [0, true, "expired"]);
      assert.ok(happened.includes({ frozen: "freeze", hidden: "hidden" }[what] ?? "came back"), `the browser did it: ${happened}`);
      assert.equal(await next.release(), "released");
    });
  }
  test("with a scoped token", async (t) => {
    const scoped = await scopedToken({ prefix: "own:", maxLeaseMs: 60_000, livesSeconds: 600 });
    const way = { map: "/node_modules/edgelatch/browser.js", program: "scoped.mjs", loads: [] };
    const page = await runPage(browser, way, { url: front.url, token: scoped });
    assert.equal(page.results.length, 8);
    for (const { name, error } of page.results) await t.test(name, () => assert.ok(!error, error));
    assert.deepEqual(page.complaints, []);
  });
});

describe("workerd", () => {
  let worker;
  let outside;
  let get;
  before(async () => {
    worker = await startWorker({ EDGELATCH_TEST_URL: front.url, EDGELATCH_TEST_TOKEN: token, EDGELATCH_TEST_FAULTY: faulty.url });
    outside = await clientOutside();
    get = (page, options) => fetch(new URL(page, worker.url), options);
  });
  after(() => worker?.close());

  test("suite", (t) => report(t, async () => (await get("/suite")).json(), { faulty }));

  // S39.
  test("a hold that outlives its request is renewed for as long as waitUntil keeps that, and no longer", async () => {
    const name = `outlives:${crypto.randomUUID()}`;
    await (await get(`/outlives?name=${name}:gone`)).json();
    await (await get(`/outlives?name=${name}:stays&stays`)).json();
    // Sooner than the minute that was asked for, and later than what is there without renewals.
    const next = await outside.readWriteLock(`${name}:gone`).write.acquire({ waitMs: 30_000 });
    assert.equal(await next.release(), "released");
    assert.equal(await outside.readWriteLock(`${name}:stays`).write.tryAcquire(), null);
    assert.equal(await outside.readWriteLock(`${name}:stays`).read.forceRelease(), true);
  });

  for (const [what, page] of [["has ended", "/lends"], ["is under way", "/lends?stays"]]) {
    test(`the signal of a request that ${what} is no signal of this one, and the package goes on`, async (t) => {
      const client = new AbortController();
      t.after(() => client.abort());
      assert.equal((await get(page, { signal: client.signal })).status, 200);
      const answer = await (await get(`/borrows?name=borrows:${crypto.randomUUID()}`)).json();
      assert.deepEqual(answer, { first: "released", now: "released" });
    });
  }

  for (const manner of ["attentive", "heedless"]) {
    // S40, S41.
    test(`of two ${manner} requests that overlap, the one whose client stays gets the lock`, async (t) => {
      const name = `overlap:${crypto.randomUUID()}`;
      const page = (id) => `/${manner}?id=${manner}-${id}&name=${name}`;
      const holder = await outside.lock(name).acquire();
      t.after(() => holder.release());
      const client = new AbortController();
      const leaves = get(page("leaves"), { signal: client.signal }).then((response) => response.text()).catch((error) => error.name);
      const stays = get(page("stays")).then((response) => response.json());
      await until(() => front.owners(name).size === 2, "both of them wait in Redis");

      client.abort();
      assert.equal(await leaves, "AbortError");
      if (manner === "attentive") {
        const ended = async () => (await (await get("/ended")).json())["attentive-leaves"];
        assert.equal(await until(ended, "the request notices that its client has gone"), "AbortError");
      }
      await holder.release();
      const answer = await stays;
      assert.ok(answer.held && answer.token > holder.token);
      // A heedless request goes on without its client, and takes its turn too.
      const isFree = async () => manner === "heedless" || !(await outside.lock(name).inspect()).locked;
      assert.ok(await isFree(), "nobody holds it any more");

      const later = await Promise.all([1, 2, 3].map(async (id) => (await get(page(id))).json()));
      assert.equal(new Set(later.map(({ token }) => token)).size, 3);
      assert.ok(later.every(({ held, token }) => held && token > answer.token));
      assert.ok(await isFree(), "nobody holds it any more");
    });
  }
});

describe("hosts that stop", AT_ONCE, () => {
  let locks;
  before(async () => (locks = await clientOutside()));

  // S32, S33.
  test("a process that was stopped for longer than its lease finds it lost, and its write is refused", async (t) => {
    const name = `stopped:${crypto.randomUUID()}`;
    const holder = await startHolder(env, name, 2_000);
    t.after(() => holder.kill());
    holder.signal("SIGSTOP");
    const next = await locks.lock(name).acquire({ waitMs: 120_000 });
    assert.ok(next.token > holder.token);
    const guard = locks.guard(`${name}:value`);
    await guard.set(next, "second");
    holder.signal("SIGCONT");
    const { remaining, aborted, written } = await holder.ask();
    assert.deepEqual([remaining, aborted], [0, true]);
    assert.match(written, /^(LeaseLostError|StaleTokenError)$/);
    assert.equal(await guard.newest(), next.token);
    assert.equal(await next.release(), "released");
  });

  // S36.
  test("what a process that was killed has held is free after its lease", async (t) => {
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
  test("what an isolate that was evicted has held is free after its lease, and the next one is another owner", async (t) => {
    const name = `evicted:${crypto.randomUUID()}`;
    const holds = async () => {
      const worker = await startWorker({ EDGELATCH_TEST_URL: front.url, EDGELATCH_TEST_TOKEN: token });
      t.after(() => worker.close());
      const answer = await (await fetch(new URL(`/keeps?name=${name}`, worker.url))).json();
      await worker.close("SIGKILL");
      return answer;
    };
    const [first, second] = [await holds(), await holds()];
    assert.ok(second.token > first.token);
    assert.equal(front.owners(name).size, 2);
  });
});

describe("fencing in workerd", () => {
  let stores;
  let old;
  let young;
  before(async () => {
    stores = await startStores();
    const lock = (await clientOutside()).lock(`fencing:${crypto.randomUUID()}`);
    // Tokens as they come: of a holder whose time is over, and of the next.
    [old, young] = [await lock.run((lease) => lease.token), await lock.run((lease) => lease.token)];
  });
  after(() => stores?.close());

  // S33.
  test("D1 refuses what an older holder writes", async () => {
    await stores.sql(["table"]);
    assert.deepEqual(await stores.sql(["upsert", { id: "a", total: 1, token: old }]), [1]);
    assert.deepEqual(await stores.sql(["claim", { id: "a", token: young }]), [1]);
    for (const title of ["update", "upsert"]) assert.deepEqual(await stores.sql([title, { id: "a", total: 2, token: old }]), [0]);
    assert.deepEqual(await stores.sql(["update", { id: "a", total: 3, token: young }]), [1]);
    assert.deepEqual(await stores.rows("SELECT total, fence FROM invoice"), [{ total: 3, fence: young }]);
  });

  test("D1 refuses a late copy of an earlier write of the same holder", async () => {
    await stores.sql(["numbered table"]);
    await stores.rows("INSERT INTO account (id, balance) VALUES ('a', 0)");
    const write = (step, balance, token) => stores.sql(["numbered update", { id: "a", balance, step, token }]);
    assert.deepEqual([await write(1, 10, old), await write(2, 20, old), await write(1, 10, old)], [[1], [1], [0]]);
    assert.deepEqual([await write(1, 30, young), await write(3, 40, old)], [[1], [0]]);
    assert.deepEqual(await stores.rows("SELECT balance FROM account"), [{ balance: 30 }]);
  });

  test("D1 deletes in one batch under a fence that stays", async () => {
    await stores.sql(["fences"], ["upsert", { id: "b", total: 1, token: old }]);
    const remove = (token) => stores.sql(["raise", { name: "n", token }], ["fenced delete", { id: "b", name: "n", token }]);
    await stores.sql(["raise", { name: "n", token: young }]);
    assert.deepEqual([await remove(old), await remove(young)], [[0, 0], [1, 1]]);
  });

  // S33.
  test("R2 refuses what an older holder puts", async () => {
    assert.ok(await stores.put("a", "first", old));
    assert.ok(await stores.put("a", "second", young));
    assert.equal(await stores.put("a", "late", old), false);
    assert.equal(await stores.read("a"), "second");
    const puts = await Promise.all(["x", "y", "z"].map((body) => stores.put("b", body, young)));
    assert.ok(puts.every(Boolean), "of one token each is put, after another look");
  });
});

// Last: of all that came through a door before.
test("no page and no Worker has asked for a path that is none of a gateway's", () => {
  assert.deepEqual([...front.strays, ...faulty.strays], []);
});

/** A client in this process, of the packed package too. */
async function clientOutside() {
  const { connect } = await import(pathToFileURL(join(await newProject(), "node_modules/edgelatch/node.js")));
  return connect({ url, token });
}

/** One subtest for each case of the suite, also for those that were not come to. */
async function report(t, run, where) {
  const results = new Map((await run()).map((result) => [result.name, result]));
  const expected = names(where);
  for (const name of expected) {
    await t.test(name, () => {
      const result = results.get(name);
      assert.ok(result, "it was not run");
      assert.ok(!result.error, result.error);
    });
  }
  assert.equal(results.size, expected.length);
}

/** The one that users of this machine have, which may be older than the tools'. */
async function nodeOfMachine() {
  for (const folder of process.env.PATH.split(delimiter).filter((folder) => folder && !folder.startsWith(tools))) {
    const program = join(folder, "node");
    const found = await access(program, constants.X_OK).then(() => true, () => false);
    if (found) return program;
  }
  throw new Error("no node on PATH beside the tools'");
}
