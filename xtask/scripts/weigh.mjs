// Weighs each file below a folder, raw and compressed, and prints the figures as JSON. Used by `cargo xtask size`.
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const folder = process.argv[2];
const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));

const sizes = {};
const total = { raw: 0, gzip: 0, brotli: 0 };
for (const path of paths.sort()) {
  const bytes = readFileSync(path);
  const size = {
    raw: bytes.length,
    gzip: gzipSync(bytes, { level: 9 }).length,
    brotli: brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }).length,
  };
  sizes[relative(folder, path).replaceAll("\\", "/")] = size;
  for (const kind of Object.keys(total)) total[kind] += size[kind];
}
sizes["all files"] = total;
process.stdout.write(`${JSON.stringify(sizes, null, 2)}\n`);
