/**
 * Fuzzes the WebAssembly functions that JavaScript can reach, until the time is over or an
 * assertion fails: `--seconds=30`, `--executions=1000`, or one file with an input. It changes
 * inputs at random, and keeps those with an outcome that has not occurred before.
 */

import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { forgetAll, settled } from "./clock.mjs";
import { Choices } from "./choices.mjs";
import { play } from "./play.mjs";

const REGRESSIONS = fileURLToPath(new URL("../regressions/ffi_bytes", import.meta.url));
const INPUT_MAX = 300;
/** The same seed generates the same inputs. */
const random = below(Number(process.env.EDGELATCH_FUZZ_SEED ?? randomBytes(4).readUInt32LE()));
const begun = process.hrtime.bigint();
const seconds = () => Number(process.hrtime.bigint() - begun) / 1e9;

const corpus = [];
const known = new Set();
let executions = 0;
let current;

process.on("uncaughtException", found);
process.on("unhandledRejection", found);

/** The inputs of earlier findings, and some initial ones. */
function* beginning() {
  let files = [];
  try {
    files = readdirSync(REGRESSIONS);
  } catch {}
  for (const file of files) yield Buffer.from(readFileSync(join(REGRESSIONS, file), "utf8").replace(/\s/g, ""), "hex");
  for (let place = 0; place < 64; place++) yield Buffer.from(Array.from({ length: 120 }, (_, at) => (place * 31 + at * (2 * place + 1)) % 256));
}

async function tried(input) {
  current = input;
  executions++;
  const before = known.size;
  for (const outcome of await play(new Choices(input))) known.add(outcome);
  await settled();
  forgetAll();
  return known.size > before;
}

/** Mulberry32: whole numbers below the argument. */
function below(state) {
  return (most) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % most;
  };
}

/** The input with a few random changes. */
function changed(input) {
  const bytes = [...input];
  for (let count = 1 + random(4); count > 0; count--) {
    const at = random(bytes.length + 1);
    const kind = random(5);
    if (kind === 0) bytes.splice(at, 1 + random(8));
    else if (kind === 1) bytes.splice(at, 0, ...Array.from({ length: 1 + random(8) }, () => random(256)));
    else if (kind === 2) bytes.splice(at, random(20), ...corpus[random(corpus.length)].subarray(random(100), 100 + random(40)));
    else bytes[at] = random(256);
  }
  return Buffer.from(bytes.slice(0, INPUT_MAX));
}

function found(error) {
  console.error(error);
  const folder = process.env.EDGELATCH_FUZZ_FOUND ?? ".";
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `crash-${createHash("sha1").update(current).digest("hex")}`);
  writeFileSync(file, current);
  console.error(`Test unit written to ${file}`);
  process.exit(1);
}

const [given] = process.argv.slice(2);
try {
  if (given?.startsWith("--")) {
    const [measure, most] = given.split("=");
    const done = measure === "--seconds" ? seconds : () => executions;
    for (const input of beginning()) if ((await tried(input)) || corpus.length < 1) corpus.push(input);
    while (done() < Number(most)) {
      const input = changed(corpus[random(corpus.length)]);
      if (await tried(input)) corpus.push(input);
      if (executions % 1_000 === 0) console.log(`#${executions} cov: ${known.size} corp: ${corpus.length}`);
    }
  } else {
    await tried(readFileSync(given));
  }
  console.log(`#${executions} cov: ${known.size} corp: ${corpus.length}`);
  console.log(`stat::number_of_executed_units: ${executions}`);
  process.exit(0);
} catch (error) {
  found(error);
}
