/**
 * Tests `edgelatch/testing` of the packed package: under the fake timers of Node, Vitest and Jest,
 * in jsdom, in Deno and Bun, and the programs of `docs/testing.md`.
 *
 * Environment: EDGELATCH_TARBALL (the output of `npm pack`), EDGELATCH_TOOLS (a `node_modules` with
 * Deno, Bun and esbuild), EDGELATCH_BUNDLERS (in a full run a `node_modules` with Vitest and Jest),
 * EDGELATCH_EXTENT (`quick`: without Vitest and Jest).
 */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

import { newProject, removeProjects, required } from "../runtimes/project.mjs";
import { argumentTests } from "./arguments.mjs";
import { asCommonJs, JEST, JEST_ESM, NODE, VITEST } from "./runners.mjs";

const start = promisify(execFile);
/** A program that takes longer hangs. This is no statement about how long it should take. */
const PATIENCE_MS = 600_000;

const tools = required("EDGELATCH_TOOLS");
const isFull = (process.env.EDGELATCH_EXTENT ?? "full") === "full";
const PAGE = new URL("../../docs/testing.md", import.meta.url);

const page = await readFile(PAGE, "utf8");
/** The programs of the page, by the names in their first lines. */
const programs = new Map([...page.matchAll(/^```js\n\/\/ (\S+)\n(.+?)^```$/gms)].map(([, name, source]) => [name, source]));
const cases = await readFile(new URL("cases.mjs", import.meta.url), "utf8");

after(removeProjects);

/** Runs a program of this machine; a failure shows all of its output. */
async function run(program, args, cwd) {
  const env = { PATH: process.env.PATH, HOME: cwd, NO_COLOR: "1", CI: "1" };
  try {
    return (await start(program, args, { cwd, env, timeout: PATIENCE_MS, maxBuffer: 64 << 20 })).stdout;
  } catch (error) {
    throw new Error(`${program} ${args.join(" ")}:\n${error.stdout}\n${error.stderr}`);
  }
}

async function write(folder, files) {
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
}

/** Runs these test files with Node's test runner; returns the number of tests that have passed. */
async function runNode(files) {
  const folder = await newProject();
  await write(folder, files);
  const names = Object.keys(files).filter((name) => name.endsWith(".test.mjs"));
  const output = await run(process.execPath, ["--test", "--test-reporter=tap", ...names], folder);
  return Number(/^# pass (\d+)$/m.exec(output)[1]);
}

test("every block of JavaScript of the page is a program with a name", () => {
  assert.equal(programs.size, page.split("```js\n").length - 1);
});

describe("the package in this process", () => {
  argumentTests(async () => {
    const folder = join(await newProject(), "node_modules/edgelatch");
    return import(pathToFileURL(join(folder, "testing.js")));
  });

  test("`require` finds the entry, with the same exports", async () => {
    const require = createRequire(join(await newProject(), "program.cjs"));
    assert.deepEqual(Object.keys(require("edgelatch/testing")), ["createTestGateway"]);
  });
});

describe("entries are separate", () => {
  /** Returns the packed files that a program with this text loads, as esbuild sees them. */
  async function loaded(text) {
    const folder = await newProject();
    await writeFile(join(folder, "program.mjs"), text);
    const flags = ["--bundle", "--format=esm", "--platform=node", "--outfile=bundle.mjs", "--metafile=meta.json", "--log-level=warning"];
    await run(join(tools, ".bin/esbuild"), ["program.mjs", ...flags], folder);
    const { outputs } = JSON.parse(await readFile(join(folder, "meta.json"), "utf8"));
    const inputs = Object.entries(outputs["bundle.mjs"].inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
    return inputs.map(([path]) => basename(path)).filter((name) => name !== "program.mjs").sort();
  }

  test("a program without the gateway in memory has none of its code", async () => {
    const names = await loaded('import { connect } from "edgelatch";\nconsole.log(connect);\n');
    assert.deepEqual(names, ["edgelatch.js", "index.js", "inline.js"]);
  });

  test("the gateway in memory has no code of the clients", async () => {
    const names = await loaded('import { createTestGateway } from "edgelatch/testing";\nconsole.log(createTestGateway);\n');
    assert.deepEqual(names, ["testing-inline.js", "testing.js"]);
  });

  test("an import that is not used leaves nothing in a bundle", async () => {
    assert.deepEqual(await loaded('import { createTestGateway } from "edgelatch/testing";\nconsole.log(1);\n'), []);
  });
});

describe("Node", () => {
  test("fake timers", async () => {
    const passed = await runNode({ "cases.mjs": cases, "gateway.test.mjs": NODE });
    assert.equal(passed, Object.keys((await import("./cases.mjs")).cases).length);
  });

  test("the programs of docs/testing.md", async () => {
    const own = [...programs].filter(([name]) => name.endsWith(".test.mjs"));
    assert.ok(own.length > 0);
    assert.ok((await runNode(Object.fromEntries(own))) >= own.length);
  });
});

describe("other runtimes", () => {
  const PROGRAM = `import { connect } from "edgelatch";
import { createTestGateway } from "edgelatch/testing";
const gateway = createTestGateway();
const lock = connect({ url: gateway.url, token: gateway.token, fetch: gateway.fetch }).lock("report");
const other = gateway.hold("report");
console.log(await lock.tryAcquire());
const waits = lock.acquire();
other.release();
const lease = await waits;
console.log(gateway.held().length, await lease.release());
`;
  for (const [name, args] of [["deno", ["run", "--no-prompt"]], ["bun", ["run"]]]) {
    test(name, async () => {
      const folder = await newProject();
      await write(folder, { "program.mjs": PROGRAM });
      assert.equal(await run(join(tools, ".bin", name), [...args, "program.mjs"], folder), "null\n1 released\n");
    });
  }
});

if (isFull) {
  let folder;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "edgelatch-testing-"));
    const runners = required("EDGELATCH_BUNDLERS");
    for (const file of ["package.json", "package-lock.json"]) await cp(join(dirname(runners), file), join(folder, file));
    // Hard links, or copies if the file system has none.
    await start("cp", ["-al", runners, folder]).catch(() => start("cp", ["-a", runners, folder]));
    const unpacked = join(folder, "node_modules/edgelatch");
    await mkdir(unpacked, { recursive: true });
    await start("tar", ["-xzf", required("EDGELATCH_TARBALL"), "-C", unpacked, "--strip-components=1"]);
  });
  after(() => rm(folder, { recursive: true, force: true }));

  /** Runs these files with a test runner, in a project of their own. */
  async function runFiles(name, files, args) {
    const project = join(folder, name.replaceAll(/\W+/g, "-"));
    await mkdir(project);
    await write(project, { "package.json": '{"name":"user","private":true}', ...files });
    await run(process.execPath, args.map((arg) => arg.replace("$", join(folder, "node_modules"))), project);
  }

  const onPage = (ending) => Object.fromEntries([...programs].filter(([name]) => name.endsWith(ending)));
  const vitest = (name, environment) =>
    test(name, () => {
      const config = `export default ${JSON.stringify({ test: { environment } })};\n`;
      const files = { "cases.mjs": cases, "gateway.test.js": VITEST, ...onPage(".test.js"), "vitest.config.mjs": config };
      return runFiles(name, files, ["$/vitest/vitest.mjs", "run"]);
    });
  const jest = (name, files, testEnvironment, flags = []) =>
    test(name, () => {
      const config = JSON.stringify({ transform: {}, testEnvironment, testMatch: ["**/*.test.*js"] });
      return runFiles(name, { "jest.config.json": config, ...files }, [...flags, "$/jest/bin/jest.js"]);
    });

  describe("test runners", { concurrency: 1 }, () => {
    vitest("Vitest", "node");
    vitest("Vitest, jsdom", "jsdom");
    const files = { "cases.cjs": asCommonJs(cases), "gateway.test.cjs": JEST };
    jest("Jest", { ...files, ...onPage(".test.cjs") }, "node");
    jest("Jest, jsdom", files, "jest-fixed-jsdom");
    jest("Jest, ESM", { "cases.mjs": cases, "gateway.test.mjs": JEST_ESM }, "node", ["--experimental-vm-modules"]);
  });
}
