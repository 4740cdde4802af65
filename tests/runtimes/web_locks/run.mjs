/**
 * Runs the cases of `edgelatch/web-locks` against the packed npm package in Node, and in a full run
 * also in Deno, Bun, Chromium and workerd; then clients in several processes. docs/web-locks.md
 * lists the tests of the web platform (WPT) that the cases correspond to.
 *
 * Environment: EDGELATCH_TARBALL (the output of `npm pack`), EDGELATCH_TEST_URL and
 * EDGELATCH_TEST_TOKEN (a gateway), EDGELATCH_TOOLS (a `node_modules` with deno, bun,
 * wrangler and playwright-core), CHROMIUM (the browser), EDGELATCH_EXTENT (`quick` or `full`),
 * EDGELATCH_WPT (a checkout of WPT: its own files run too, unchanged).
 */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { after, before, describe, test } from "node:test";

import { launch, runPage } from "../browser.mjs";
import { openFront } from "../front.mjs";
import { newProject, removeProjects, required, runFile, runSuite } from "../project.mjs";
import { remoteTests } from "../remote.mjs";
import { startWorkerOf } from "../worker.mjs";
import { processes } from "./processes.mjs";
import { list, wpt } from "./suite.mjs";

const token = required("EDGELATCH_TEST_TOKEN");
const tools = required("EDGELATCH_TOOLS");
const env = { EDGELATCH_TEST_URL: required("EDGELATCH_TEST_URL"), EDGELATCH_TEST_TOKEN: token };
const isFull = process.env.EDGELATCH_EXTENT !== "quick";
const IN_TURN = { concurrency: 1 };

after(removeProjects);

describe("web-locks", { concurrency: 2 }, () => {
  program("Node", process.execPath, []);
  if (isFull) {
    const rights = ["--allow-env", "--allow-net=127.0.0.1", "--allow-read"];
    program("Deno", join(tools, ".bin/deno"), ["run", ...rights, "--no-lock", "--node-modules-dir=manual"]);
    program("Bun", join(tools, ".bin/bun"), ["run"]);
    describe("Chromium", IN_TURN, page);
    describe("workerd", IN_TURN, worker);
  }
  describe("processes", () => processes(env));
});
if (process.env.EDGELATCH_WPT) describe("WPT", IN_TURN, () => originals(process.env.EDGELATCH_WPT));

/** Declares the suite in a program of this machine. */
function program(title, path, args) {
  describe(title, IN_TURN, () => {
    const end = remoteTests(list(), (report, only) => runSuite(path, args, env, { report, only, file: "../web_locks/process.mjs" }));
    test("the program exits by itself and writes nothing to stderr", end);
  });
}

function page() {
  let browser;
  let front;
  before(async () => {
    [browser, front] = await Promise.all([launch(), openFront(env.EDGELATCH_TEST_URL)]);
  });
  after(async () => {
    await browser?.close();
    front?.close();
  });
  const way = { map: "/node_modules/edgelatch/index.js", program: "../web_locks/page.mjs", loads: [] };
  const end = remoteTests(list(), (report, only) => runPage(browser, way, { url: front.url, token, only, report }));
  test("the browser reports no error", async () => assert.deepEqual((await end()).complaints, []));
}

function worker() {
  const end = remoteTests(list(), async (report, only) => {
    const { url, close } = await startWorkerOf(await newProject(), "tests/web_locks/worker.mjs", env);
    try {
      const { body } = await fetch(new URL(`/?${new URLSearchParams(only && { only })}`, url));
      for await (const line of createInterface({ input: Readable.fromWeb(body) })) report(JSON.parse(line));
    } finally {
      await close();
    }
  });
  test("the Worker ends its response", end);
}

/** The tests of WPT that need a worker or a frame, which the cases replace by another client. */
const NEED_WORKERS = [
  "query() reports different ids for held locks from different contexts",
  "query() can observe a deadlock",
];

/** Declares a test for each file of WPT that is a script: it runs as it is. */
function originals(folder) {
  for (const name of Object.keys(wpt).filter((name) => name.endsWith(".any.js"))) {
    test(name, async () => {
      const results = new Map();
      const variables = { ...env, WPT: join(folder, "web-locks"), WPT_FILE: name };
      await runFile(process.execPath, [], variables, "../web_locks/originals.mjs", (line) => {
        const { title, error } = JSON.parse(line);
        results.set(title, error ?? null);
      });
      const failed = [...results].filter(([title, error]) => error && !NEED_WORKERS.includes(title));
      assert.deepEqual(failed, []);
      assert.deepEqual([...results.keys()].sort(), Object.keys(wpt[name]).sort());
    });
  }
}

test("docs/web-locks.md names each file of WPT, with the number of its tests", async () => {
  const page = await readFile(new URL("../../../docs/web-locks.md", import.meta.url), "utf8");
  const rows = [...page.matchAll(/^\| `([\w.-]+)` \| (\d+) /gm)].map(([, name, count]) => [name, Number(count)]);
  assert.deepEqual(rows, Object.entries(wpt).map(([name, cases]) => [name, Object.keys(cases).length]));
});
