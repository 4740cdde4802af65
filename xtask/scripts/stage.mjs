/**
 * `node stage.mjs <pkg> <wasm> <folder> <repository>`: makes the published package from `pkg` and
 * the generated files in `wasm`. The scripts that the entries share become one file, since a
 * runtime takes time to find and read each file; files for `require` are added; and the manifest
 * names the repository, once the owner has set it.
 */

import { execFileSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";

/** The entries of the npm package. */
const ENTRIES = ["edge-light.js", "index.js", "slim.js", "workerd.js"];
/** The entries beside clients of the others, which share nothing with them. */
const COMPANIONS = ["log.js", "opentelemetry.js", "redlock.js", "testing.js", "upstash-lock.js", "web-locks.js"];
/** The entries that `require` also finds. */
const COMMON_JS = ["index", "log", "opentelemetry", "redlock", "slim", "testing", "upstash-lock", "web-locks"];
/** The scripts that are joined to entries; those that several entries share, to `edgelatch.js`. */
const SHARED = [
  "api.js", "decode.js", "driver.js", "emitter.js", "errors.js", "mark.js", "methods.js", "observe.js", "options.js", "public.js", "random.js",
  "start.js", "wasm/edgelatch.js", "wasm/testing.js", "wasm/web.js",
];
/** The files and packages that stay separate. */
const SEPARATE = [
  "./wasm/edgelatch_bg.wasm", "./wasm/edgelatch_bg.wasm?module", "./wasm/inline.js", "./wasm/testing-inline.js", "@opentelemetry/api",
];
/** Those of them that are scripts, and have a copy for `require`. */
const INLINE = ["inline", "testing-inline"];
/** The declarations that have a copy for `require`. */
const DECLARATIONS = [
  "errors", "fair-read-write", "index", "log", "objects", "opentelemetry", "options", "redlock", "slim", "testing", "upstash-lock",
  "web-locks",
];
const LICENCES = ["LICENSE-APACHE", "LICENSE-MIT"];
/** White space is minified; lines are limited, since Node prints the line of an error. */
const COMMON_FLAGS = [
  "--minify-whitespace", "--line-limit=320", "--sourcemap", "--charset=utf8", "--log-level=warning", "--outdir=.", "--allow-overwrite",
];
const BUNDLE_FLAGS = [
  "--bundle", "--minify-syntax", "--log-override:duplicate-object-key=silent", ...SEPARATE.map((path) => `--external:${path}`),
];

const [pkg, wasm, folder, repository] = process.argv.slice(2);
const read = (name) => readFileSync(join(folder, name), "utf8");
const write = (name, text) => writeFileSync(join(folder, name), text);
const esbuild = (...flags) => execFileSync("esbuild", [...COMMON_FLAGS, ...flags], { cwd: folder, stdio: "inherit" });
const bundle = (entries, ...flags) => esbuild(...entries, ...BUNDLE_FLAGS, ...flags);

/** The end of a bundle: its exports; in a file for `require`, the hint of them for `import`. */
const EXPORTS = /\b(export\{[^{}]+\};|0&&\(module\.exports=\{[^{}]+\}\);)/;

/**
 * The name of an imported module with a line break in it. A bundler reads it, but not every tool
 * that searches a script for its imports.
 */
const BROKEN_NAME = /(?:\bfrom|\bimport|\brequire)[\s(]*"[^"\n]*\\\n/;

/**
 * Shortens the names of variables inside functions. Names at the top level stay, so that stack
 * traces are readable: esbuild keeps them in a script, which has no `export`.
 */
function shortenVariables(name) {
  const [script, exported, rest] = read(name).split(EXPORTS);
  if (!exported) throw new Error(`${name} exports nothing`);
  write(name, script + rest);
  esbuild(name, "--minify-identifiers", `--out-extension:.js=${extname(name)}`, `--footer:js=${exported}`);
}

cpSync(pkg, folder, { recursive: true, filter: (path) => path !== join(pkg, "wasm") });
cpSync(wasm, join(folder, "wasm"), { recursive: true });
for (const licence of LICENCES) cpSync(join(pkg, "..", licence), join(folder, licence));

// Bundled from the scripts that are not joined yet. For the platform `node`, so that `import` finds
// the names in it.
bundle(COMMON_JS.map((name) => `${name}.js`), "--format=cjs", "--platform=node", "--out-extension:.js=.cjs");
for (const name of COMMON_JS) write(`${name}.cjs`, read(`${name}.cjs`).replaceAll(/(\.\/wasm\/(?:testing-)?inline)\.js/g, "$1.cjs"));
// Never executed: TypeScript and attw find the name `default` by it, as `import` finds the other
// names by a line of esbuild's.
write("redlock.cjs", `${read("redlock.cjs")}0&&(module.exports.default=0);\n`);
for (const name of INLINE) write(`wasm/${name}.cjs`, read(`wasm/${name}.js`).replaceAll("export const ", "exports."));
for (const name of DECLARATIONS) write(`${name}.d.cts`, read(`${name}.d.ts`).replaceAll('.js"', '.cjs"'));

bundle(COMPANIONS, "--format=esm");
bundle(ENTRIES, "--splitting", "--format=esm", "--chunk-names=edgelatch");
for (const name of SHARED) rmSync(join(folder, name));
if (!existsSync(join(folder, "edgelatch.js"))) throw new Error("esbuild joined nothing");
for (const name of ["edgelatch.js", ...COMMON_JS.map((name) => `${name}.cjs`)]) shortenVariables(name);

for (const name of readdirSync(folder).filter((name) => /\.c?js$/.test(name))) {
  if (BROKEN_NAME.test(read(name))) throw new Error(`${name}: a line ends inside the name of a module; choose another --line-limit`);
}

if (!repository.includes("OWNER")) {
  const source = { repository: { type: "git", url: `git+${repository}.git` }, homepage: repository, bugs: `${repository}/issues` };
  write("package.json", `${JSON.stringify({ ...JSON.parse(read("package.json")), ...source }, null, 2)}\n`);
}
