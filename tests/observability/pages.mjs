/** The programs of docs/observability.md, and `EDGELATCH_LOG` in Node, Deno and Bun. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

import { required } from "../runtimes/project.mjs";
import { leaks, project, token, url } from "./env.mjs";

const start = promisify(execFile);
const VARIABLES = { UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token };
const STEPS = ["acquire", "acquired", "release", "released", "end of"];

const tool = (name) => join(required("EDGELATCH_TOOLS"), ".bin", name);

/** How each runtime runs a program that does not import the log: `EDGELATCH_LOG` has a level. */
const RUNTIMES = {
  Node: [process.execPath, ["--import", "edgelatch/log"]],
  Deno: [tool("deno"), ["run", "--allow-net", "--allow-env", "--preload=node_modules/edgelatch/log.js"]],
  Bun: [tool("bun"), ["--preload", "edgelatch/log"]],
};

async function run(program, args, folder, env = {}) {
  const variables = { PATH: process.env.PATH, HOME: folder, NO_COLOR: "1", ...VARIABLES, ...env };
  const { stdout, stderr } = await start(program, args, { cwd: folder, env: variables, timeout: 600_000 });
  assert.deepEqual(leaks(stdout + stderr).found, []);
  return { stdout, stderr };
}

function assertSteps(log) {
  const steps = [...log.matchAll(/^\S+Z DEBUG edgelatch: ([a-z ]+?) lock "nightly-report" at /gm)].map(([, step]) => step);
  assert.deepEqual(steps, STEPS, log);
}

export async function pageTests() {
  const page = await readFile(new URL("../../docs/observability.md", import.meta.url), "utf8");
  const programs = [...page.matchAll(/^```js\n\/\/ (\S+)\n(.+?)^```$/gms)].map(([, name, source]) => [name, source]);
  test("every block of JavaScript is a program with a name", () => {
    assert.deepEqual(programs.map(([name]) => name), ["logged.mjs", "traced.mjs"]);
    assert.equal(page.split("```js\n").length - 1, programs.length);
  });
  const sources = Object.fromEntries(programs);
  const write = async (name, source) => {
    const folder = await project();
    await writeFile(join(folder, name), source);
    return folder;
  };

  test("logged.mjs prints a line for each step to stderr", async () => {
    const folder = await write("logged.mjs", sources["logged.mjs"]);
    const { stdout, stderr } = await run(process.execPath, ["logged.mjs"], folder);
    assert.match(stdout, /^token \d{16}\n$/);
    assertSteps(stderr);
  });

  test("traced.mjs prints its spans", async () => {
    const folder = await write("traced.mjs", sources["traced.mjs"]);
    const { stdout } = await run(process.execPath, ["traced.mjs"], folder);
    for (const part of ["acquire", "hold", "release"]) assert.match(stdout, new RegExp(`name: 'edgelatch\\.${part}'`));
  });

  const plain = sources["logged.mjs"]?.replace(/^import .+edgelatch\/log";\n/m, "").replace("undefined, { log }", "");
  for (const [runtime, [program, flags]] of Object.entries(RUNTIMES)) {
    test(`EDGELATCH_LOG=debug, ${runtime}`, async () => {
      const folder = await write("plain.mjs", plain);
      const args = [...flags, "plain.mjs"];
      assertSteps((await run(program, args, folder, { EDGELATCH_LOG: "debug" })).stderr);
      for (const env of [{ EDGELATCH_LOG: "warn" }, {}]) assert.equal((await run(program, args, folder, env)).stderr, "");
    });
  }

  test("Deno without the permission for the variable neither logs nor asks for it", async () => {
    const folder = await write("plain.mjs", plain);
    const [program, [, net, , preload]] = RUNTIMES.Deno;
    const read = `--allow-env=${Object.keys(VARIABLES)},KV_REST_API_URL,KV_REST_API_TOKEN`;
    const { stdout, stderr } = await run(program, ["run", net, read, preload, "plain.mjs"], folder, { EDGELATCH_LOG: "debug" });
    assert.match(stdout, /^token /);
    assert.equal(stderr, "");
  });
}
