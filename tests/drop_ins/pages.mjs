/**
 * Runs the programs of the migration pages, of docs/web-locks.md and of the page about red locks in
 * Node, Deno and Bun, as they stand there.
 */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";

import { newProject, required } from "../runtimes/project.mjs";

const tools = required("EDGELATCH_TOOLS");
const RUNTIMES = [
  [process.execPath],
  [join(tools, ".bin/deno"), "run", "--allow-env", "--allow-net=127.0.0.1"],
  [join(tools, ".bin/bun"), "run"],
];

/** The output of each program, by the page and the name in its first line. */
const PAGES = {
  "docs/migrating-from-redlock.md": {
    "transfer.mjs": /^transferred$/,
    "quorum.mjs": /^2 or 3 of 3 granted it: true$/,
  },
  "docs/migrating-from-upstash-lock.md": { "report.mjs": /^written under token \d{16}$/ },
  "docs/migrating-from-redis-semaphore.md": {
    "mutex.mjs": /^one at a time, token \d{16}$/,
    "semaphore.mjs": /^one of five$/,
  },
  "site/pages/red-lock.md": { "red-lock.mjs": /^a majority granted token \d{16}$/ },
  "docs/web-locks.md": { "rebuild.mjs": /^exclusive lock, token \d{16}\n42 pages\nfree\n\{"held":\[\],"pending":\[\]\}$/ },
};

/** Defines the tests. `nodes` has three gateways when they run. */
export function pageTests(nodes) {
  test("`require` finds the entries, with the names of the packages that they replace", async () => {
    const require = createRequire(join(await newProject(), "program.cjs"));
    assert.deepEqual(Object.keys(require("edgelatch/redlock")).sort(), ["ExecutionError", "Lock", "ResourceLockedError", "default"]);
    assert.deepEqual(Object.keys(require("edgelatch/upstash-lock")), ["Lock"]);
    assert.deepEqual(Object.keys(require("edgelatch/web-locks")), ["webLocks"]);
  });
  for (const [page, outputs] of Object.entries(PAGES)) {
    describe(page, async () => {
      const text = await readFile(new URL(`../../${page}`, import.meta.url), "utf8");
      const programs = new Map([...text.matchAll(/^```js\n\/\/ (\S+)\n(.+?)^```$/gms)].map(([, name, source]) => [name, source]));
      test("every block of JavaScript is a program with a name", () => {
        assert.deepEqual([...programs.keys()], Object.keys(outputs));
        assert.equal(programs.size, text.split("```js\n").length - 1);
      });
      for (const [name, source] of programs) {
        test(name, async () => {
          const cwd = await newProject();
          await writeFile(join(cwd, name), source);
          for (const [program, ...args] of RUNTIMES) {
            const { stdout, stderr } = await promisify(execFile)(program, [...args, name], { cwd, env: environment(nodes, cwd) });
            assert.equal(stderr, "");
            assert.match(stdout.trim(), outputs[name]);
          }
        });
      }
    });
  }
}

function environment(nodes, home) {
  const env = { PATH: process.env.PATH, HOME: home, NO_COLOR: "1" };
  nodes.forEach(({ url, token }, i) => {
    for (const prefix of i === 0 ? ["", "A_"] : [["B_"], ["C_"]][i - 1]) {
      Object.assign(env, { [`${prefix}UPSTASH_REDIS_REST_URL`]: url, [`${prefix}UPSTASH_REDIS_REST_TOKEN`]: token });
    }
  });
  return env;
}
