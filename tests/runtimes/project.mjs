/** Empty projects with the packed package installed, as in a user's project. */

import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

const start = promisify(execFile);

/** A program that takes longer hangs. This is no statement about how long a program should take. */
const PATIENCE_MS = 1_800_000;

const made = [];

/** The project that `newProject` copies: npm installs the package once in each process. */
let template;

/** Creates a project with only the package and these tests, and returns its folder. */
export async function newProject() {
  template ??= createTemplate();
  const [source, folder] = await Promise.all([template, newFolder()]);
  await cp(source, folder, { recursive: true });
  return folder;
}

async function createTemplate() {
  const folder = await newFolder();
  await writeFile(join(folder, "package.json"), JSON.stringify({ name: "user", private: true, type: "module" }));
  const quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"];
  await start("npm", ["install", "--offline", ...quiet, required("EDGELATCH_TARBALL")], { cwd: folder });
  await mkdir(join(folder, "tests"));
  for (const name of ["cases", "programs", "web_locks", "check.mjs", "suite.mjs", "watch.mjs"]) {
    await cp(new URL(name, import.meta.url), join(folder, "tests", name), { recursive: true });
  }
  return folder;
}

async function newFolder() {
  const folder = await mkdtemp(join(tmpdir(), "edgelatch-runtime-"));
  made.push(folder);
  return folder;
}

export async function removeProjects() {
  await Promise.all(made.map((folder) => rm(folder, { recursive: true, force: true })));
}

/**
 * Runs a file with a program of this machine; returns the JSON that the file prints, once the
 * program has ended by itself.
 */
export async function runProgram(program, args, env, file) {
  return JSON.parse(await runFile(program, args, env, file, () => {}));
}

/**
 * Runs the suite, or only one case of it, with a program of this machine. Calls `report` with each
 * event as it arrives. `file` is the program of another suite.
 */
export async function runSuite(program, args, env, { report, only, file = "process.mjs" }) {
  const variables = { ...env, ...(only && { EDGELATCH_ONLY: only }) };
  await runFile(program, args, variables, file, (line) => report(JSON.parse(line)));
}

export async function runFile(program, args, env, file, onLine) {
  const cwd = await newProject();
  const clean = { PATH: process.env.PATH, HOME: cwd, NO_COLOR: "1", ...env };
  const options = { cwd, env: clean, timeout: PATIENCE_MS, maxBuffer: 16 << 20 };
  const running = start(program, [...args, `tests/programs/${file}`], options);
  createInterface({ input: running.child.stdout }).on("line", onLine);
  const { stdout, stderr } = await running;
  if (stderr.trim()) throw new Error(`it complained: ${stderr}`);
  return stdout;
}

/** Returns a client of the packed package, in this process. */
export async function newClient(options) {
  const { connect } = await import(pathToFileURL(join(await newProject(), "node_modules/edgelatch/index.js")));
  return connect(options);
}

export function required(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}
