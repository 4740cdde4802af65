/**
 * Compiles programs against the packed npm package with TypeScript, in both of its ways to resolve
 * packages.
 *
 * Environment: EDGELATCH_TARBALL (the output of `npm pack`), EDGELATCH_TOOLS (a `node_modules` with
 * typescript and `@opentelemetry/api`).
 */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { newProject, removeProjects, required } from "../runtimes/project.mjs";

let project;
before(async () => {
  project = await newProject();
  symlinkSync(join(required("EDGELATCH_TOOLS"), "@opentelemetry"), join(project, "node_modules/@opentelemetry"));
  cpSync(fileURLToPath(new URL(".", import.meta.url)), join(project, "types"), { recursive: true });
});
after(removeProjects);

for (const [name, file] of [["NodeNext", "tsconfig.json"], ["Bundler", "tsconfig.bundler.json"]]) {
  test(`good uses compile and bad ones do not, with ${name} resolution`, () => {
    const tsc = join(required("EDGELATCH_TOOLS"), "typescript/bin/tsc");
    const { status, stdout } = spawnSync(process.execPath, [tsc, "--project", `types/${file}`], { cwd: project, encoding: "utf8" });
    assert.equal(status, 0, stdout);
  });
}
