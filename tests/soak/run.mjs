/**
 * Tests that the packed package leaks nothing: it runs many cycles in Node and in workerd, and
 * memory, timers and keys do not grow.
 *
 * Environment: as of tests/runtimes/run.mjs; EDGELATCH_SOAK_CYCLES, the minimum of cycles in each
 * (100,000), and EDGELATCH_SOAK_MINUTES, the minimum of minutes (0).
 */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { after, describe, test } from "node:test";

import { newProject, removeProjects, required } from "../runtimes/project.mjs";
import { startWorker } from "../runtimes/worker.mjs";

const url = required("EDGELATCH_TEST_URL");
const token = required("EDGELATCH_TEST_TOKEN");
const CYCLES = Number(process.env.EDGELATCH_SOAK_CYCLES ?? 100_000);
const MINUTES = Number(process.env.EDGELATCH_SOAK_MINUTES ?? 0);
/** The number of cycles in one request of the Worker. */
const PART = 10_000;
/**
 * The smallest allocation in WebAssembly's memory is sixteen bytes, so a leak of one object per
 * cycle exceeds this. After a collection nothing of a cycle remains.
 */
const WASM_BYTES_PER_CYCLE = 1;
/**
 * The size of JavaScript's heap fluctuates. Even the smallest object per cycle, with one property,
 * would exceed this.
 */
const HEAP_BYTES_PER_CYCLE = 32;
/**
 * Each sort runs few cycles, and the tables of waiters double in size, which is a difference of up
 * to twenty thousand bytes.
 */
const SORTS = { rounds: 6, together: 100, bytesPerCycle: 64 };
/** The largest number of pending timers: those of the last operations; each ends by itself. */
const MOST_TIMERS = 1_000;
/** The number of locks in programs/cycles.mjs. */
const LANES = 64;
/**
 * The longest time that a key of a cycle stays in Redis: the tombstone of a client that had not yet
 * seen its clock.
 */
const LONGEST_MS = 15 * 60_000;

after(removeProjects);

describe("cycles", { concurrency: 3 }, () => {
  test("Node", async () => {
    const name = newName();
    check(await soakNode(name), true);
    await checkKeys(name, LANES);
  });

  test("workerd", async (t) => {
    const name = newName();
    const worker = await startWorker({ EDGELATCH_TEST_URL: url, EDGELATCH_TEST_TOKEN: token }, ["--expose-gc"]);
    t.after(() => worker.close());
    check(await soakWorker(worker.url, name), false);
    await checkKeys(name, LANES);
  });

  // S86.
  test("each sort of use, on names that are never used again", async () => {
    const { rounds, together, bytesPerCycle } = SORTS;
    const [sorts] = await soakNode(newName(), { SOAK_WHAT: "sorts", SOAK_ROUNDS: rounds, SOAK_TOGETHER: together });
    for (const [sort, parts] of Object.entries(sorts)) {
      const wasm = grown(parts, (part) => part.wasm.used);
      assert.ok(wasm < bytesPerCycle * together * (rounds - 2), `${sort}: the memory in use in WebAssembly grows by ${wasm} bytes`);
    }
  });
});

// S86. It runs alone, since a thousand holds at a time leave no capacity to other tests.
test("Node, a hundred thousand holds, a thousand at a time", async () => {
  const name = newName();
  check(await soakNode(name, { SOAK_WHAT: "crowd", SOAK_TOGETHER: 1_000, SOAK_MINUTES: 0 }), true);
  await checkKeys(name, 1_000);
});

/** Runs a program in Node and returns the reports that it prints. */
async function soakNode(name, more = {}) {
  const cwd = await newProject();
  const variables = { SOAK_NAME: name, SOAK_CYCLES: CYCLES, SOAK_MINUTES: MINUTES, ...more };
  const env = { PATH: process.env.PATH, EDGELATCH_TEST_URL: url, EDGELATCH_TEST_TOKEN: token, ...variables };
  const child = spawn(process.execPath, ["--expose-gc", "tests/programs/soak.mjs"], { cwd, env, stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  const parts = [];
  for await (const line of createInterface({ input: child.stdout })) parts.push(JSON.parse(line));
  assert.deepEqual(await ended, [0, null]);
  return parts;
}

async function soakWorker(worker, name) {
  const parts = [];
  const end = Date.now() + MINUTES * 60_000;
  for (let done = 0; done < CYCLES || Date.now() < end; done += PART) {
    const response = await fetch(new URL(`/cycles?name=${name}&count=${PART}`, worker));
    assert.equal(response.status, 200);
    parts.push(await response.json());
  }
  return parts;
}

function check(parts, knowsHeap) {
  const [warm, last] = [parts[0], parts.at(-1)];
  const cycles = parts.slice(1).reduce((sum, part) => sum + part.cycles, 0);
  const told = ({ wasm, heap }) => `${wasm.used} of ${wasm.size}, heap ${heap}`;
  console.log(`# ${cycles + warm.cycles} cycles: wasm ${told(warm)} -> ${told(last)}`);
  assert.ok(warm.wasm.used > 0, "the memory of WebAssembly is seen");
  assert.ok(last.timers <= MOST_TIMERS, `${last.timers} timers are left`);
  const wasm = grown(parts, (part) => part.wasm.used);
  assert.ok(wasm < WASM_BYTES_PER_CYCLE * cycles, `the memory in use in WebAssembly grows by ${wasm} bytes in ${cycles} cycles`);
  const heap = knowsHeap ? grown(parts, (part) => part.heap) : 0;
  assert.ok(heap < HEAP_BYTES_PER_CYCLE * cycles, `the heap grows by ${heap} bytes in ${cycles} cycles`);
}

/**
 * Returns the growth after the first part, which warms up: engines compile and pools fill. The use
 * fluctuates afterwards, so the smallest of the last two parts is compared.
 */
function grown(parts, of) {
  const [warm, ...rest] = parts.map(of);
  return Math.min(...rest.slice(-2)) - warm;
}

/** Checks that every key in Redis expires, and that keys of a cycle expire soon. */
async function checkKeys(name, lanes) {
  let cursor = "0";
  let seen = 0;
  const tokens = new Set();
  do {
    const [next, keys] = await ask([["SCAN", cursor, "MATCH", `*${name}*`, "COUNT", "5000"]]).then(([answer]) => answer);
    const ends = keys.length ? await ask(keys.map((key) => ["PTTL", key])) : [];
    // The last token of each name is kept for longer; there is one for each name.
    const isToken = (key) => key.startsWith("redisson_lock_token:");
    const wrong = keys.filter((key, place) => ends[place] === -1 || (ends[place] > LONGEST_MS && !isToken(key)));
    assert.deepEqual(wrong, [], "what stays too long");
    for (const key of keys.filter(isToken)) tokens.add(key);
    seen += keys.length;
    cursor = next;
  } while (cursor !== "0");
  assert.ok(seen > tokens.size && tokens.size <= lanes, `${tokens.size} tokens of ${seen} keys`);
}

async function ask(commands) {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const answers = [];
  for (let from = 0; from < commands.length; from += 1_000) {
    const body = JSON.stringify(commands.slice(from, from + 1_000));
    const response = await fetch(new URL("/pipeline", url), { method: "POST", headers, body });
    for (const { result, error } of await response.json()) {
      assert.equal(error, undefined);
      answers.push(result);
    }
  }
  return answers;
}

function newName() {
  return `soak:${crypto.randomUUID()}`;
}
