/**
 * Tests the packed npm package in every environment that users install it in: built by current
 * versions of bundlers and frameworks, and run.
 *
 * Environment: as `tests/runtimes/run.mjs`, and EDGELATCH_BUNDLERS (a `node_modules` with the
 * packages of package.json), EDGELATCH_RECORD (set: writes the table of docs/environments.md from
 * the results; otherwise a full run compares it).
 */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";

import { environments as bundlers } from "./environments/bundlers.mjs";
import { environments as frameworks } from "./environments/frameworks.mjs";
import { environments as runtimes } from "./environments/runtimes.mjs";
import { environments as testRunners } from "./environments/test_runners.mjs";
import { removeProjects, required } from "../runtimes/project.mjs";
import { Workshop } from "./workshop.mjs";

const GROUPS = { "without a bundler": runtimes, bundlers, "frameworks and types": frameworks, "test runners": testRunners };
const PAGE = new URL("../../docs/environments.md", import.meta.url);
const [BEGIN, END] = ["<!-- EDGELATCH_RECORD=1 cargo xtask test bundlers --full writes from here on -->\n", "<!-- to here -->"];

const isFull = (process.env.EDGELATCH_EXTENT ?? "full") === "full";

let workshop;
before(async () => (workshop = await Workshop.open({ tools: isFull && required("EDGELATCH_BUNDLERS") })));
after(async () => {
  await workshop?.close();
  await removeProjects();
});

/** The environments that passed. */
const passed = new Set();

for (const [group, environments] of Object.entries(GROUPS)) {
  describe(group, { concurrency: 2 }, () => {
    for (const environment of environments.filter(({ extent }) => isFull || extent === "quick")) {
      test(environment.name, async () => {
        await environment.run(workshop);
        passed.add(environment);
      });
    }
  });
}

if (isFull) {
  test("the table of docs/environments.md is what was found", async () => {
    const rows = Object.entries(GROUPS).flatMap(([group, environments]) =>
      environments.map((one) => `| ${group} | ${one.name} | ${passed.has(one) ? "✓" : "✗"} | ${one.note ?? "–"} |`),
    );
    const table = ["| | environment | works | needs |", "|---|---|---|---|", ...rows, ""].join("\n");
    const page = await readFile(PAGE, "utf8");
    const [head, rest] = page.split(BEGIN);
    const [old, tail] = rest.split(END);
    if (process.env.EDGELATCH_RECORD) await writeFile(PAGE, [head, BEGIN, table, END, tail].join(""));
    else assert.equal(old, table);
  });
}
