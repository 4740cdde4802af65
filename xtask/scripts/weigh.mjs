/**
 * `node weigh.mjs <folder> <tarball>`: measures each file of the installed package, raw and
 * compressed, then the files that a runtime loads of each entry, and the tarball. Prints the sizes
 * as JSON. Used by `cargo xtask size`.
 */

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, posix, relative } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const [folder, tarball] = process.argv.slice(2);

/** The module that programs pass to `edgelatch/slim` themselves. */
const MODULE = "wasm/edgelatch_bg.wasm";
/** The entries, each with the files that it loads without importing them. */
const ENTRIES = { "index.js": [], "index.cjs": [], "workerd.js": [], "edge-light.js": [], "slim.js": [MODULE] };

const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));

const none = () => ({ raw: 0, gzip: 0, brotli: 0 });
const sum = (sizes) => sizes.reduce((total, size) => ({ raw: total.raw + size.raw, gzip: total.gzip + size.gzip, brotli: total.brotli + size.brotli }), none());

const files = {};
for (const path of paths.sort()) {
  const bytes = readFileSync(path);
  files[relative(folder, path).replaceAll("\\", "/")] = {
    raw: bytes.length,
    gzip: gzipSync(bytes, { level: 9 }).length,
    brotli: brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }).length,
  };
}

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
// npm compresses the tarball itself.
weighed.tarball = { ...none(), gzip: statSync(tarball).size };
process.stdout.write(`${JSON.stringify(weighed, null, 2)}\n`);
