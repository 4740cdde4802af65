/**
 * Runs every program of `examples/`: copies it to a folder with the packed package and the packages
 * of its manifest, starts it by the command of its README, and checks what its user sees.
 *
 * Environment: as `tests/runtimes/run.mjs`, and EDGELATCH_EXAMPLES (a `node_modules` with the
 * packages of package.json) and, in a full run, EDGELATCH_BUNDLERS (a `node_modules` with the
 * bundlers), EDGELATCH_MOTO (a Python with moto) and EDGELATCH_GATEWAY (the gateway's program).
 */

import assert from "node:assert/strict";
import { readFile, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { Workshop } from "../bundlers/workshop.mjs";
import { removeProjects, required } from "../runtimes/project.mjs";
import { examples as java } from "./java.mjs";
import { EXAMPLES, commandOf } from "./kit.mjs";
import { examples as pages, frameworks } from "./pages.mjs";
import { examples as rust } from "./rust.mjs";
import { examples as servers } from "./servers.mjs";
import { examples as stores } from "./stores.mjs";
import { examples as workers } from "./workers.mjs";

const GROUPS = { servers, workers, stores, pages, frameworks, java, rust };

const isFull = (process.env.EDGELATCH_EXTENT ?? "full") === "full";

/** A folder with the packages of each list. */
const workshops = {};
before(async () => {
  workshops.examples = await Workshop.open({ tools: required("EDGELATCH_EXAMPLES") });
  if (!isFull) return;
  workshops.frameworks = await Workshop.open({ tools: required("EDGELATCH_BUNDLERS") });
  // npm searches this folder first. The list has old versions of Node, which wrangler refuses.
  await rm(join(workshops.frameworks.folder, "node_modules/.bin/node"));
});
after(async () => {
  for (const workshop of Object.values(workshops)) await workshop.close();
  await removeProjects();
});

for (const [group, examples] of Object.entries(GROUPS)) {
  describe(group, { concurrency: 2 }, () => {
    for (const { name, what, extent, run } of examples.filter(({ extent }) => isFull || extent === "quick")) {
      test(`${name}: ${what}`, (t) => run(t, workshops[group] ?? workshops.examples));
    }
  });
}

test("every example has a test, a line in the list, and a README with a command", async () => {
  const folders = (await readdir(EXAMPLES, { withFileTypes: true })).filter((entry) => entry.isDirectory()).map(({ name }) => name);
  const tested = Object.values(GROUPS).flat().map(({ name }) => name);
  assert.deepEqual(folders.sort(), [...new Set(tested)].sort());
  const list = await readFile(join(EXAMPLES, "README.md"), "utf8");
  for (const name of folders) {
    assert.ok(list.includes(`(${name}/README.md)`), name);
    assert.ok(await commandOf(name), name);
  }
});

test("the tests install the versions that the manifests of the examples name", async () => {
  const lists = [new URL("package.json", import.meta.url), new URL("../../xtask/tools/package.json", import.meta.url), new URL("../bundlers/package.json", import.meta.url)];
  const read = async (file) => JSON.parse(await readFile(file, "utf8"));
  const installed = Object.assign({}, ...(await Promise.all(lists.map(async (list) => (await read(list)).devDependencies))));
  const version = (await read(new URL("../../pkg/package.json", import.meta.url))).version;
  for (const folder of await readdir(EXAMPLES)) {
    const manifest = await read(join(EXAMPLES, folder, "package.json")).catch(() => ({}));
    for (const [name, wanted] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })) {
      assert.equal(wanted, name === "edgelatch" ? `^${version}` : installed[name], `${folder}: ${name}`);
    }
  }
});
