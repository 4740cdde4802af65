/**
 * `node jsr.mjs <package> <folder>`: makes the package for JSR from the staged npm package.
 *
 * JSR publishes modules only, and chooses none of them by a condition: each entry is the one for
 * every environment, with the module as text. It takes the types of a script from a comment in it.
 * In types every import names its file, and no directive changes the user's libraries: Deno and
 * TypeScript's `esnext` have the one that the npm package names.
 */

import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The owner creates this scope once; CONTRIBUTING.md, "A release". */
const NAME = "@edgelatch/edgelatch";
/** The files that nothing imports: the caller of `edgelatch/slim` brings the module. */
const OTHERS = ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "wasm/edgelatch_bg.wasm"];
/** The entry that imports a package of npm: a rehearsal without the registry would not find it. */
const OF_NPM = "./opentelemetry";
/** An import of a file of the package. */
const IMPORT = /(from ?|import\()"(\.\/[a-z/-]+)\.js"/g;

const [staged, folder] = process.argv.slice(2);
const read = (name) => readFileSync(join(staged, name), "utf8");
const { version, license, description, exports } = JSON.parse(read("package.json"));
/** The entries that are scripts: their paths, each with the files of its script and its types. */
const entries = Object.entries(exports)
  .filter(([path, target]) => path !== OF_NPM && target.default?.default?.endsWith(".js"))
  .map(([path, target]) => [path, target.default]);

/** The text of each file, by its name: the entries, and the files that these import. */
const files = new Map();

/** Adds a file, and those that it imports. An import of types ends with `.d.ts` afterwards. */
function add(name, edit) {
  if (files.has(name)) return;
  const isTypes = name.endsWith(".d.ts");
  const text = edit(read(name));
  files.set(name, isTypes ? text.replaceAll(IMPORT, '$1"$2.d.ts"') : text);
  for (const [, , path] of text.matchAll(IMPORT)) add(path + (isTypes ? ".d.ts" : ".js"), isTypes ? withoutDirective : withoutMap);
}

const withoutDirective = (text) => text.replace(/^\/\/\/ <reference .*\n/, "");
/** The source maps stay behind. */
const withoutMap = (text) => text.replace(/\n\/\/# sourceMappingURL=.*/, "");

for (const [, { default: script, types }] of entries) {
  add(script, (text) => `/* @ts-self-types="${types}" */\n${withoutMap(text)}`);
  add(types, withoutDirective);
}
for (const name of [...files.keys(), ...OTHERS]) mkdirSync(dirname(join(folder, name)), { recursive: true });
for (const name of OTHERS) cpSync(join(staged, name), join(folder, name));
for (const [name, text] of files) writeFileSync(join(folder, name), text);
const manifest = { name: NAME, version, license, description, exports: Object.fromEntries(entries.map(([path, { default: script }]) => [path, script])) };
writeFileSync(join(folder, "jsr.json"), `${JSON.stringify(manifest, null, 2)}\n`);
