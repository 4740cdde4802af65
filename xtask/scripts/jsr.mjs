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
/** The files beside the entries and their types. */
const OTHERS = ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "wasm/edgelatch_bg.wasm", "wasm/inline.js"];
/** The entry that imports a package of npm: a rehearsal without the registry would not find it. */
const OF_NPM = "./opentelemetry";
/** The types that the entries' types import. */
const SHARED_TYPES = ["errors.d.ts", "objects.d.ts"];

const [staged, folder] = process.argv.slice(2);
const read = (name) => readFileSync(join(staged, name), "utf8");
const write = (name, text) => writeFileSync(join(folder, name), text);

const { version, license, description, exports } = JSON.parse(read("package.json"));
/** The entries that are scripts, by their paths. */
const entries = Object.entries(exports).filter(([path, target]) => path !== OF_NPM && target.default?.default?.endsWith(".js"));

for (const name of OTHERS) {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  cpSync(join(staged, name), join(folder, name));
}
/** The scripts without the names of their source maps, which stay behind. */
const script = (name) => read(name).replace(/\n\/\/# sourceMappingURL=.*/, "");
write("edgelatch.js", script("edgelatch.js"));
for (const [, target] of entries) {
  const { default: name, types } = target.default;
  write(name, `/* @ts-self-types="${types}" */\n${script(name)}`);
}
const types = [...SHARED_TYPES, ...entries.map(([, target]) => target.default.types)];
for (const name of types) {
  write(name, read(name).replace(/^\/\/\/ <reference .*\n/, "").replaceAll(/(from |import\()("\.\/[a-z-]+)\.js"/g, '$1$2.d.ts"'));
}
write("jsr.json", `${JSON.stringify({
  name: NAME,
  version,
  license,
  description,
  exports: Object.fromEntries(entries.map(([path, target]) => [path, target.default.default])),
}, null, 2)}\n`);
