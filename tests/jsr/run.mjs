/**
 * Checks the package for JSR without the registry: Deno's rehearsal of a publication, and programs
 * in Deno that use the package by the paths that it exports.
 *
 * Environment: EDGELATCH_JSR (the folder of the package), EDGELATCH_TEST_URL and
 * EDGELATCH_TEST_TOKEN (a gateway), EDGELATCH_TOOLS (a `node_modules` with deno).
 */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

import { required } from "../runtimes/project.mjs";

const jsr = required("EDGELATCH_JSR");
const manifest = JSON.parse(await readFile(join(jsr, "jsr.json"), "utf8"));

let folder;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "edgelatch-jsr-"));
  for (const name of ["use.ts", "misuse.ts"]) await cp(fileURLToPath(new URL(name, import.meta.url)), join(folder, name));
  const paths = Object.entries(manifest.exports);
  const imports = paths.map(([path, file]) => [manifest.name + path.slice(1), pathToFileURL(join(jsr, file)).href]);
  await writeFile(join(folder, "deno.json"), JSON.stringify({ imports: Object.fromEntries(imports) }));
});
after(() => rm(folder, { recursive: true, force: true }));

/** Runs Deno, and returns `{ code, stdout, stderr }`. It reaches no registry. */
function deno(args, cwd) {
  const env = { PATH: process.env.PATH, HOME: folder, NO_COLOR: "1", EDGELATCH_URL: process.env.EDGELATCH_TEST_URL, EDGELATCH_TOKEN: process.env.EDGELATCH_TEST_TOKEN };
  return new Promise((resolve) => {
    execFile(join(required("EDGELATCH_TOOLS"), ".bin/deno"), args, { cwd, env }, (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }));
  });
}

test("the rehearsal of a publication finds no problem, and publishes what an import needs", async () => {
  // The build folder is not committed.
  const { code, stderr } = await deno(["publish", "--dry-run", "--allow-dirty"], jsr);
  assert.equal(code, 0, stderr);
  const published = [...stderr.matchAll(/file:\S+\/jsr\/(\S+) \(/g)].map(([, name]) => name);
  for (const name of ["README.md", "edgelatch.js", "jsr.json", "wasm/inline.js", ...Object.values(manifest.exports)]) {
    assert.ok(published.includes(name.replace("./", "")), `${name} is missing in ${published}`);
  }
  assert.ok(published.every((name) => !/\.(cjs|cts|map)$/.test(name)), String(published));
});

test("a program in Deno is compiled with the types, and acquires a lock", async () => {
  const { code, stdout, stderr } = await deno(["run", "--check", "--no-lock", "--no-remote", "--allow-env", "--allow-net=127.0.0.1", "use.ts"], folder);
  assert.equal(code, 0, stderr);
  assert.equal(stdout, "released\n");
});

test("a wrong use does not compile", async () => {
  const { code, stderr } = await deno(["check", "--no-lock", "--no-remote", "misuse.ts"], folder);
  assert.equal(code, 1, stderr);
  assert.match(stderr, /TS2322.*'string' is not assignable to type 'number'/);
});
