// Measures the size of a bundled program that acquires a lock, for edgelatch and each peer, with
// the same tool and settings.
//
//   node bundle.mjs FOLDER      writes into FOLDER, and prints the sizes as a line of JSON
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";

const folder = process.argv[2];
const ours = process.env.EDGELATCH_CONSUMER;
const tools = join(process.env.EDGELATCH_TOOLS, "..");
const connect = 'export { connect } from "edgelatch";';
const programs = {
  "edgelatch": { from: ours, text: connect, flags: ["--platform=neutral", "--conditions=workerd"] },
  "edgelatch-inline": { from: ours, text: connect, flags: ["--platform=neutral"] },
  "upstash": {
    from: tools,
    text: 'export { Lock } from "@upstash/lock"; export { Redis } from "@upstash/redis/cloudflare";',
    flags: ["--platform=browser"],
  },
  "redlock": {
    from: tools,
    text: 'export { default } from "redlock"; export { Redis } from "ioredis";',
    flags: ["--platform=node"],
  },
  "redis-semaphore": {
    from: tools,
    text: 'export { Mutex } from "redis-semaphore"; export { Redis } from "ioredis";',
    flags: ["--platform=node"],
  },
};
const SETTINGS = ["--bundle", "--minify", "--format=esm", "--target=es2022", "--loader:.wasm=copy", "--log-level=warning"];

const sizes = {};
for (const [name, program] of Object.entries(programs)) sizes[name] = weigh(bundle(name, program));
process.stdout.write(`${JSON.stringify(sizes)}\n`);

/** Returns the folder with the bundle, and the module if there is one. */
function bundle(name, { from, text, flags }) {
  const out = join(folder, name);
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  execFileSync("esbuild", [...SETTINGS, ...flags, "--sourcefile=program.mjs", `--outfile=${join(out, "program.js")}`], {
    cwd: from,
    input: text,
    stdio: ["pipe", "inherit", "inherit"],
  });
  return out;
}

function weigh(out) {
  const files = readdirSync(out).map((file) => readFileSync(join(out, file)));
  const sum = (size) => files.reduce((total, bytes) => total + size(bytes), 0);
  return {
    raw: sum((bytes) => bytes.length),
    gzip: sum((bytes) => gzipSync(bytes, { level: 9 }).length),
    brotli: sum((bytes) => brotliCompressSync(bytes).length),
  };
}
