/**
 * Measures what starting the package takes in Node: each start is a process of its own, so nothing
 * is cached but the files.
 */

import { execFile } from "node:child_process";
import { availableParallelism, cpus } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

import { median } from "./bench/figures.mjs";

const STARTS = 21;

/**
 * How a program loads each entry. Workers and edge functions import a compiled module, which Node
 * cannot do.
 */
const PROGRAMS = {
  "index.js": (path) => `const { connect } = await import(${address(path)});`,
  "index.cjs": (path) => `const { connect } = require(${JSON.stringify(path)});`,
  "slim.js": (path, module) => `const { connect, init } = await import(${address(path)}); before = () => init({ module: readFileSync(${JSON.stringify(module)}) });`,
};
const address = (path) => JSON.stringify(String(pathToFileURL(path)));

const source = (load) => `
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
const require = createRequire(import.meta.url);
let before = () => {};
const begin = performance.now();
${load}
const loaded = performance.now();
before();
connect({ url: "https://gateway.example", token: "token" });
console.log(JSON.stringify([loaded - begin, performance.now() - loaded]));
`;

/**
 * Returns the environment, and for each entry the medians of the milliseconds that loading and the
 * first `connect` take. The entries take turns, so that a busy moment affects all of them.
 */
export async function measureStarts(folder) {
  const seen = Object.fromEntries(Object.keys(PROGRAMS).map((entry) => [entry, []]));
  for (let round = 0; round < STARTS; round += 1) {
    for (const [entry, load] of Object.entries(PROGRAMS)) {
      const program = source(load(join(folder, entry), join(folder, "wasm/edgelatch_bg.wasm")));
      const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program]);
      seen[entry].push(JSON.parse(stdout));
    }
  }
  const medianOf = (all, at) => Number(median(all.map((times) => times[at])).toFixed(1));
  const entries = Object.entries(seen).map(([entry, all]) => [entry, { load: medianOf(all, 0), connect: medianOf(all, 1) }]);
  return { node: process.versions.node, cpu: cpus()[0]?.model ?? "an unknown processor", cores: availableParallelism(), entries: Object.fromEntries(entries) };
}
