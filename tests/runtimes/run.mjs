/**
 * Runs the suite of cases against the packed npm package in every supported runtime.
 *
 * Environment: EDGELATCH_TARBALL (the output of `npm pack`), EDGELATCH_TEST_URL and
 * EDGELATCH_TEST_TOKEN (a gateway), EDGELATCH_TEST_SCOPE_KEY (its key for scoped tokens),
 * EDGELATCH_TOOLS (a `node_modules` with deno, bun, wrangler, esbuild and playwright-core),
 * CHROMIUM (the browser), EDGELATCH_EXTENT (`quick`: once in each runtime; `full`, the default:
 * also by each way to load the package and with each setting of Node), EDGELATCH_ONLY (the one case
 * to run in the runtimes that Node's `--test-name-pattern` selects).
 */

import assert from "node:assert/strict";
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { after, before, describe, test } from "node:test";

import { launch, runPage, ways } from "./browser.mjs";
import { scoped } from "./cases/scoped.mjs";
import { openFaulty } from "./faulty.mjs";
import { openFront } from "./front.mjs";
import { browserOf, pages } from "./pages.mjs";
import { processes } from "./processes.mjs";
import { removeProjects, required, runProgram, runSuite } from "./project.mjs";
import { remoteTests } from "./remote.mjs";
import { scopedToken } from "./scoped.mjs";
import { list } from "./suite.mjs";
import { startWebdis } from "./webdis.mjs";
import { startWorker } from "./worker.mjs";

const url = required("EDGELATCH_TEST_URL");
const token = required("EDGELATCH_TEST_TOKEN");
const tools = required("EDGELATCH_TOOLS");
const env = { EDGELATCH_TEST_URL: url, EDGELATCH_TEST_TOKEN: token };
const extent = process.env.EDGELATCH_EXTENT ?? "full";
assert.ok(["quick", "full"].includes(extent), `EDGELATCH_EXTENT is quick or full, not ${extent}`);
const isFull = extent === "full";

/** The cases wait more than they compute. */
const CONCURRENT = { concurrency: 2 };
/** The cases of one runtime are sequential: each test begins when the case before it has ended. */
const IN_TURN = { concurrency: 1 };

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
  describe("Chromium", { concurrency: 3 }, chromium);
  describe("workerd", IN_TURN, worker);
  describe("processes", CONCURRENT, () => processes(env));
});

// Runs after all other tests, and checks their requests.
test("pages and Workers request only the paths of a gateway", () => {
  assert.deepEqual([...front.unexpected, ...faulty.unexpected], []);
});

function programs() {
  const rights = ["--allow-env", "--allow-net=127.0.0.1", "--allow-read"];
  const deno = ["run", ...rights, "--no-lock", "--node-modules-dir=manual", "--v8-flags=--expose-gc"];
  program("Node of the tools", async () => process.execPath, ["--expose-gc"], () => ({ EDGELATCH_TEST_FAULTY: faulty.url }), { faulty: true });
  program("Deno", async () => join(tools, ".bin/deno"), deno);
  program("Bun", async () => join(tools, ".bin/bun"), ["run"]);
}

/** Declares the suite in a program of this machine. */
function program(title, find, args, variables = () => ({}), where = {}) {
  describe(title, IN_TURN, () => {
    const end = remoteTests(list(where), async (report, only) =>
      runSuite(await find(), args, { ...env, ...(await variables()) }, { report, only }));
    test("the program exits by itself and writes nothing to stderr", end);
  });
}

function settingsOfNode() {
  program("Node of the machine", nodeOfMachine, ["--expose-gc"]);
  let webdis;
  after(() => webdis?.close());
  const onWebdis = async () => {
    webdis = await startWebdis();
    return { EDGELATCH_TEST_URL: webdis.url, EDGELATCH_TEST_TOKEN: webdis.token, EDGELATCH_TEST_DIALECT: "webdis" };
  };
  program("Node on Webdis", async () => process.execPath, ["--expose-gc"], onWebdis, { dialect: "webdis" });
  // The package needs to change none of the frozen objects.
  test("the package works in Node with frozen intrinsics", async () => {
    const flags = ["--frozen-intrinsics", "--disable-proto=throw", "--no-warnings"];
    assert.deepEqual(await runProgram(process.execPath, flags, env, "frozen.mjs"), ["released", true]);
  });
  // S84.
  for (const trap of ["clock", "memory"]) {
    test(`a trap of the module (${trap}) rejects every later call, and each client is notified`, async () => {
      const checks = await runProgram(process.execPath, [], { ...env, TRAP: trap }, "trap.mjs");
      assert.deepEqual(checks, ["first", "signalReason", "pending", "later", "synchronous"].map((what) => [what, true]));
    });
  }
  test("util.inspect shows no token of any object", async () => {
    const shown = await runProgram(process.execPath, [], env, "inspect.mjs");
    assert.ok(shown.length > 10 && shown.every((text) => text.length > 0));
    for (const text of shown) assert.ok(!text.includes(token) && !/[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-/.test(text), text);
  });
}

function chromium() {
  const browser = browserOf(launch);
  pages(browser, isFull ? ways : ways.slice(0, 1), () => ({ url: front.url, token }));
  if (!isFull) return;
  describe("with a scoped token", IN_TURN, () => {
    const way = { map: "/node_modules/edgelatch/index.js", program: "scoped.mjs", loads: [] };
    const names = { prefix: "own:lock:", semaphorePrefix: "own:seats:" };
    const cases = Object.keys(scoped).map((name) => ({ name }));
    const end = remoteTests(cases, async (report, only) => {
      const token = await scopedToken({ ...names, rights: ["hold", "manage"], maxLeaseMs: 60_000, livesSeconds: 600 });
      return runPage(browser(), way, { url: front.url, token, only, report });
    });
    test("the browser reports no error", async () => assert.deepEqual((await end()).complaints, []));
  });
}

function worker() {
  const end = remoteTests(list({ faulty: true }), async (report, only) => {
    const bindings = { EDGELATCH_TEST_URL: front.url, EDGELATCH_TEST_TOKEN: token, EDGELATCH_TEST_FAULTY: faulty.url };
    const { url: address, close } = await startWorker(bindings);
    try {
      const { body } = await fetch(new URL(`/suite?${new URLSearchParams(only && { only })}`, address));
      for await (const line of createInterface({ input: Readable.fromWeb(body) })) report(JSON.parse(line));
    } finally {
      await close();
    }
  });
  test("the Worker ends its response", end);
}

/** Returns the Node that users of this machine have, which may be older than that of the tools. */
async function nodeOfMachine() {
  for (const folder of process.env.PATH.split(delimiter).filter((folder) => folder && !folder.startsWith(tools))) {
    const program = join(folder, "node");
    const found = await access(program, constants.X_OK).then(() => true, () => false);
    if (found) return program;
  }
  throw new Error("no node on PATH beside the tools'");
}
