/**
 * The suite of cases of the packed npm package, in every runtime that it is for.
 *
 * Environment: EDGELATCH_TARBALL (what `npm pack` made), EDGELATCH_TEST_URL and EDGELATCH_TEST_TOKEN (a gateway),
 * EDGELATCH_TEST_SCOPE_KEY (by which it knows scoped tokens),
 * EDGELATCH_TOOLS (a `node_modules` with deno, bun, wrangler, esbuild and playwright-core), CHROMIUM (the browser),
 * EDGELATCH_EXTENT (`quick`: once in each runtime; `full`, the default: also by each way to the package and with each setting of Node).
 */

import assert from "node:assert/strict";
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { after, before, describe, test } from "node:test";

import { launch, runPage, ways } from "./browser.mjs";
import { openFaulty } from "./faulty.mjs";
import { openFront } from "./front.mjs";
import { processes } from "./processes.mjs";
import { removeProjects, required, runProgram } from "./project.mjs";
import { scopedToken } from "./scoped.mjs";
import { names } from "./suite.mjs";
import { startWebdis } from "./webdis.mjs";
import { startWorker } from "./worker.mjs";

const url = required("EDGELATCH_TEST_URL");
const token = required("EDGELATCH_TEST_TOKEN");
const tools = required("EDGELATCH_TOOLS");
const env = { EDGELATCH_TEST_URL: url, EDGELATCH_TEST_TOKEN: token };
const extent = process.env.EDGELATCH_EXTENT ?? "full";
assert.ok(["quick", "full"].includes(extent), `EDGELATCH_EXTENT is quick or full, not ${extent}`);
const isFull = extent === "full";

/** They wait more than they compute. */
const CONCURRENT = { concurrency: 2 };

let front;
let faulty;
before(async () => {
  front = await openFront(url);
  faulty = await openFaulty(url);
});
after(async () => {
  front?.close();
  faulty?.close();
  await removeProjects();
});

describe("runtimes", { concurrency: 3 }, () => {
  describe("programs", CONCURRENT, () => {
    programs();
    if (isFull) settingsOfNode();
  });
  describe("Chromium", { concurrency: 3 }, pages);
  describe("workerd", worker);
  describe("processes", CONCURRENT, () => processes(env));
});

// After all others: of their requests.
test("no page and no Worker has asked for a path that is none of a gateway's", () => {
  assert.deepEqual([...front.strays, ...faulty.strays], []);
});

function programs() {
  const rights = ["--allow-env", "--allow-net=127.0.0.1", "--allow-read"];
  const deno = ["run", ...rights, "--no-lock", "--node-modules-dir=manual", "--v8-flags=--expose-gc"];
  test("Node of the tools", (t) => {
    const variables = { ...env, EDGELATCH_TEST_FAULTY: faulty.url };
    return report(t, () => runProgram(process.execPath, ["--expose-gc"], variables), { faulty });
  });
  test("Deno", (t) => report(t, () => runProgram(join(tools, ".bin/deno"), deno, env)));
  test("Bun", (t) => report(t, () => runProgram(join(tools, ".bin/bun"), ["run"], env)));
}

function settingsOfNode() {
  test("Node of the machine", (t) => report(t, async () => runProgram(await nodeOfMachine(), ["--expose-gc"], env)));
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
}

function pages() {
  let browser;
  before(async () => (browser = await launch()));
  after(() => browser?.close());
  for (const way of isFull ? ways : ways.slice(0, 1)) {
    test(way.name, async (t) => {
      const page = await runPage(browser, way, { url: front.url, token });
      await report(t, async () => page.results);
      assert.deepEqual(page.complaints, []);
      // S44.
      await t.test("nothing is stored that a copy of the tab could begin with", () => assert.deepEqual(page.stored, []));
    });
  }
  if (!isFull) return;
  test("with a scoped token", async (t) => {
    const names = { prefix: "own:lock:", semaphorePrefix: "own:seats:" };
    const scoped = await scopedToken({ ...names, rights: ["hold", "manage"], maxLeaseMs: 60_000, livesSeconds: 600 });
    const way = { map: "/node_modules/edgelatch/index.js", program: "scoped.mjs", loads: [] };
    const page = await runPage(browser, way, { url: front.url, token: scoped });
    assert.equal(page.results.length, 11);
    for (const { name, error } of page.results) await t.test(name, () => assert.ok(!error, error));
    assert.deepEqual(page.complaints, []);
  });
}

function worker() {
  test("suite", async (t) => {
    const bindings = { EDGELATCH_TEST_URL: front.url, EDGELATCH_TEST_TOKEN: token, EDGELATCH_TEST_FAULTY: faulty.url };
    const { url: address, close } = await startWorker(bindings);
    t.after(() => close());
    await report(t, async () => (await fetch(new URL("/suite", address))).json(), { faulty });
  });
}

/** One subtest for each case of the suite; a case that did not run fails. */
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

/** The Node that users of this machine have, which may be older than that of the tools. */
async function nodeOfMachine() {
  for (const folder of process.env.PATH.split(delimiter).filter((folder) => folder && !folder.startsWith(tools))) {
    const program = join(folder, "node");
    const found = await access(program, constants.X_OK).then(() => true, () => false);
    if (found) return program;
  }
  throw new Error("no node on PATH beside the tools'");
}
