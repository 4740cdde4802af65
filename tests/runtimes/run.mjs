/**
 * The packed npm package in every runtime that it is for: one suite, and what only a Worker can show.
 *
 * Environment: EDGELATCH_TARBALL (what `npm pack` made), EDGELATCH_TEST_URL and EDGELATCH_TEST_TOKEN (a gateway),
 * EDGELATCH_TOOLS (a `node_modules` with deno, bun, wrangler, esbuild and playwright-core), CHROMIUM (the browser).
 */

import assert from "node:assert/strict";
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";

import { launch, runPage, ways } from "./browser.mjs";
import { until } from "./check.mjs";
import { openFront } from "./front.mjs";
import { removeProjects, required, runProgram } from "./project.mjs";
import { names } from "./suite.mjs";
import { startWorker } from "./worker.mjs";

const url = required("EDGELATCH_TEST_URL");
const token = required("EDGELATCH_TEST_TOKEN");
const tools = required("EDGELATCH_TOOLS");
const env = { EDGELATCH_TEST_URL: url, EDGELATCH_TEST_TOKEN: token };

/** They wait more than they compute. */
const AT_ONCE = { concurrency: 3 };

let front;
before(async () => (front = await openFront(url)));
after(async () => {
  front.close();
  await removeProjects();
});

describe("programs", AT_ONCE, () => {
  const rights = ["--allow-env", "--allow-net=127.0.0.1", "--allow-read"];
  const deno = ["run", ...rights, "--no-lock", "--node-modules-dir=manual", "--v8-flags=--expose-gc"];
  test("Node of the tools", (t) => report(t, () => runProgram(process.execPath, ["--expose-gc"], env)));
  test("Node of the machine", (t) => report(t, async () => runProgram(await nodeOfMachine(), ["--expose-gc"], env)));
  test("Deno", (t) => report(t, () => runProgram(join(tools, ".bin/deno"), deno, env)));
  test("Bun", (t) => report(t, () => runProgram(join(tools, ".bin/bun"), ["run"], env)));
});

describe("Chromium", AT_ONCE, () => {
  let browser;
  before(async () => (browser = await launch()));
  after(() => browser.close());
  for (const way of ways) {
    test(way.name, async (t) => {
      const page = await runPage(browser, way, { url: front.url, token });
      await report(t, async () => page.results);
      assert.deepEqual(page.complaints, []);
    });
  }
});

describe("workerd", () => {
  let worker;
  let outside;
  let get;
  before(async () => {
    worker = await startWorker({ EDGELATCH_TEST_URL: front.url, EDGELATCH_TEST_TOKEN: token });
    const { connect } = await import(pathToFileURL(join(worker.folder, "node_modules/edgelatch/node.js")));
    outside = connect({ url, token });
    get = (page, options) => fetch(new URL(page, worker.url), options);
  });
  after(() => worker?.close());

  test("suite", (t) => report(t, async () => (await get("/suite")).json()));

  for (const manner of ["attentive", "heedless"]) {
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

/** One subtest for each case of the suite, also for those that were not come to. */
async function report(t, run) {
  const results = new Map((await run()).map((result) => [result.name, result]));
  for (const name of names) {
    await t.test(name, () => {
      const result = results.get(name);
      assert.ok(result, "it was not run");
      assert.ok(!result.error, result.error);
    });
  }
  assert.equal(results.size, names.length);
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
