/**
 * `node weigh.mjs <folder> <tarball> [--record]`: prints the size of each file of the installed
 * package, raw and compressed, then of the files that a runtime loads of each entry, and of the
 * tarball, with the change since the sizes were recorded; then what starting each entry takes in
 * Node. `--record` records all that and writes docs/environments.md.
 *
 * Environment: EDGELATCH_SMALL_STD, set if the module's standard library is built for size.
 */

import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, posix, relative } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

import { recorded, SIZES, writePages } from "./bench/pages.mjs";
import { measureStarts } from "./starts.mjs";

const [folder, tarball, flag] = process.argv.slice(2);

/** The module that programs pass to `edgelatch/slim` themselves. */
const MODULE = "wasm/edgelatch_bg.wasm";
/**
 * The entries, each with the files that it loads without importing them. Programs use the others
 * beside one of the first five.
 */
const ENTRIES = {
  "index.js": [], "index.cjs": [], "workerd.js": [], "edge-light.js": [], "slim.js": [MODULE], "log.js": [], "opentelemetry.js": [],
  "redlock.js": [], "testing.js": [], "upstash-lock.js": [], "web-locks.js": [],
};

const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));

const none = () => ({ raw: 0, gzip: 0, brotli: 0 });
const sum = (sizes) => sizes.reduce((total, size) => ({ raw: total.raw + size.raw, gzip: total.gzip + size.gzip, brotli: total.brotli + size.brotli }), none());

const weigh = (bytes) => ({
  raw: bytes.length,
  gzip: gzipSync(bytes, { level: 9 }).length,
  brotli: brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }).length,
});
const files = {};
for (const path of paths.sort()) files[relative(folder, path).replaceAll("\\", "/")] = weigh(readFileSync(path));

/** Returns the files that an entry imports, itself included. */
function imported(name, found = new Set()) {
  if (found.has(name)) return found;
  if (!files[name]) throw new Error(`the package has no ${name}`);
  found.add(name);
  if (!/\.c?js$/.test(name)) return found;
  const text = readFileSync(join(folder, name), "utf8");
  for (const [, target] of text.matchAll(/(?:\bfrom|\bimport|\brequire\()\s*["'](\.[^"'?]+)/g)) {
    imported(posix.join(posix.dirname(name), target), found);
  }
  return found;
}

const weighed = { ...files, "all files": sum(Object.values(files)) };
for (const [entry, brought] of Object.entries(ENTRIES)) {
  weighed[`entry ${entry}`] = sum([...imported(entry), ...brought].map((name) => files[name]));
}
// For comparison: the module as other packages inline it.
weighed["module as base64"] = weigh(Buffer.from(readFileSync(join(folder, MODULE)).toString("base64")));
// npm compresses the tarball itself.
weighed.tarball = { ...none(), gzip: statSync(tarball).size };

const { sizes: { sizes: before } } = recorded();
const line = (name, raw, gzip, brotli, change) =>
  console.log(`${name.padEnd(24)} ${String(raw).padStart(9)} ${String(gzip).padStart(9)} ${String(brotli).padStart(9)}   ${change}`);
line("file", "raw", "gzip -9", "brotli", "change of gzip");
for (const [name, { raw, gzip, brotli }] of Object.entries(weighed)) {
  const change = gzip - (before[name]?.gzip ?? Number.NaN);
  line(name, raw, gzip, brotli, Number.isNaN(change) ? "new" : change === 0 ? "=" : change.toLocaleString("en", { signDisplay: "always", useGrouping: false }));
}
const starts = await measureStarts(folder);
for (const [entry, { load, connect }] of Object.entries(starts.entries)) {
  console.log(`${entry.padEnd(24)} loads in ${load} ms, first connect ${connect} ms (Node ${starts.node}, medians)`);
}
if (flag === "--record") {
  const sorted = Object.fromEntries(Object.entries(weighed).sort(([a], [b]) => (a < b ? -1 : 1)));
  const text = JSON.stringify({ sizes: sorted, standardLibraryForSize: Boolean(process.env.EDGELATCH_SMALL_STD), starts }, null, 2);
  writeFileSync(new URL(`../../${SIZES}`, import.meta.url), `${text}\n`);
  writePages();
  console.log("Recorded.");
}
