/** The measurements: each returns a table with a figure for each library. */

import { figures, newFolder, withEnv } from "./env.mjs";
import { median, percentile, table } from "./figures.mjs";

const EDGELATCH = ["edgelatch", "edgelatch"];
const UPSTASH = ["upstash", "@upstash/lock"];
const REDLOCK = ["redlock", "redlock (TCP)"];
const SEMAPHORE = ["redis-semaphore", "redis-semaphore (TCP)"];
const REDISSON = ["redisson", "Redisson (TCP)"];
/** The npm packages: their names in `tests/bench/subjects.mjs`, and in tables. */
const PACKAGES = [EDGELATCH, UPSTASH, REDLOCK, SEMAPHORE];
/** The libraries that are measured with waiters. */
const WAITERS = [
  ["edgelatch", "edgelatch, stream"],
  ["edgelatch-polling", "edgelatch, polling"],
  ["edgelatch-fair", "edgelatch, fair, stream"],
  UPSTASH,
  REDLOCK,
  SEMAPHORE,
  REDISSON,
];
const BUNDLES = [
  ["edgelatch", "edgelatch, for Workers"],
  ["edgelatch-inline", "edgelatch, one file"],
  ["upstash", "@upstash/lock + redis"],
  ["redlock", "redlock + ioredis"],
  ["redis-semaphore", "redis-semaphore + ioredis"],
];

const labels = (libraries) => libraries.map(([, label]) => label);
const announce = (what) => console.log(`→ measuring: ${what}`);
const plural = (count, what) => (count === 1 ? `1 ${what}` : `${count} ${what}s`);

/** Calls `work` for each item, one after the other, and returns the results. */
async function inTurn(items, work) {
  const results = [];
  for (const item of items) results.push(await work(item));
  return results;
}

/**
 * Calls `measure` for each library in each of `turns` turns; returns the figures of each library.
 */
async function inTurns(turns, libraries, measure) {
  const found = libraries.map(() => []);
  for (let turn = 0; turn < turns; turn += 1) {
    for (const [at, [key]] of libraries.entries()) found[at].push(await measure(key));
  }
  return found;
}

/**
 * Counts the requests and bytes of each call, on a Redis that knows the scripts; and of the first.
 */
export async function measureTraffic(effort) {
  announce("traffic");
  // Each on its own Redis, which does not know the scripts yet.
  const found = await inTurn(PACKAGES, ([key]) => withEnv(effort, (env) => env.measure(key, "traffic")));
  const calls = { acquire: "acquire", contended: "acquire, refused", renew: "renew", release: "release" };
  const units = { requests: "requests", up: "bytes up", down: "bytes down" };
  const pair = (when, unit) => found.map((one) => one[when].acquire[unit] + one[when].release[unit]);
  const rows = Object.entries(units).flatMap(([unit, label]) => [
    ...Object.entries(calls).map(([call, what]) => [what, label, found.map(({ later }) => later[call][unit])]),
    ["acquire + release", label, pair("later", unit)],
    ["acquire + release, the first", label, pair("first", unit)],
  ]);
  const how = "counted once, headers included; over TCP each command counts as a request";
  return table("traffic", "Traffic per call", how, labels(PACKAGES), rows);
}

/**
 * Measures the time from a release to the next holder: in round trips, milliseconds and requests.
 */
export function measureHandoffs(effort) {
  return withEnv(effort, async (env) => {
    const [ratios, times, requests] = [[], [], []];
    for (const [waiters, apart] of effort.crowds) {
      const name = waiters === 1 ? "1 waiter" : `${waiters} waiters${apart ? ", each a client" : " of one client"}`;
      announce(`hand-off, ${name}`);
      const options = { waiters, apart, handoffs: effort.handoffs, seconds: effort.handoffSeconds };
      const found = await inTurns(effort.handoffTurns, WAITERS, (key) => env.measure(key, "handoff", options));
      const seen = found.map((turns) => {
        const ms = turns.flatMap((turn) => turn.ms);
        const trip = median(turns.flatMap((turn) => turn.roundTrips));
        const sent = turns.reduce((sum, turn) => sum + turn.requests, 0);
        return { middle: median(ms), late: percentile(ms, 0.99), trip, requests: sent / ms.length };
      });
      const row = (unit, figure) => [name, unit, seen.map(figure)];
      ratios.push(row("round trips, median", ({ middle, trip }) => middle / trip), row("round trips, p99", ({ late, trip }) => late / trip));
      times.push(row("ms, median", ({ middle }) => middle), row("ms, p99", ({ late }) => late), row("ms of a round trip", ({ trip }) => trip));
      requests.push(row("requests", (one) => one.requests));
    }
    const how =
      `from the call of release until the next holder runs; holds of 20 to 40 ms; ${effort.handoffTurns} turns of up to ` +
      `${effort.handoffs} hand-offs or ${effort.handoffSeconds} s; HTTP through edgelatch-gateway, TCP directly to Redis, with round ` +
      "trips measured in the same way";
    const all =
      "all requests divided by the number of hand-offs: the release, the requests of the next holder, wasted retries of other waiters, " +
      "and the former holder's return to the waiters (a try; with streams also the subscription, and a retry once it is confirmed)";
    return [
      table("handoff", "Hand-off in round trips of the same run", how, labels(WAITERS), ratios),
      table("handoff-ms", "Hand-off in milliseconds", how, labels(WAITERS), times),
      table("handoff-requests", "Requests per hand-off", all, labels(WAITERS), requests),
    ];
  });
}

/** Measures requests, and commands in Redis, per second of waiting for a lock that stays held. */
export async function measureWaiting(effort) {
  const seconds = effort.waitingSeconds;
  const [requests, commands] = [[], []];
  for (const waiters of effort.waiters) {
    announce(`waiting, ${waiters}`);
    const measure = ([key]) => withEnv(effort, (env) => env.measure(key, "waiting", { waiters, seconds }));
    // Side by side, except for the library that sends so many requests that it would slow down
    // others.
    const others = await Promise.all(WAITERS.map((one) => (one === SEMAPHORE ? null : measure(one))));
    const alone = await measure(SEMAPHORE);
    const found = others.map((one) => one ?? alone);
    const what = plural(waiters, "waiter");
    requests.push([what, "requests/s", found.map((one) => one.requests / seconds)]);
    commands.push([what, "commands in Redis/s", found.map((one) => one.commands / seconds)]);
  }
  const how =
    `over the first ${seconds} s of a wait; each waiter has its own client; each library has its own Redis, which also counts the ` +
    "commands inside scripts";
  return table("waiting", "Requests while waiting, per second", how, labels(WAITERS), [...requests, ...commands]);
}

/** Measures processor time, and the time until the first lock is held. */
export function measureTime(effort) {
  announce("processor time, start");
  return withEnv(effort, async (env) => {
    const { processor, starts } = effort;
    const cpu = await inTurn(PACKAGES, ([key]) => env.measure(key, "cpu", processor));
    const found = await inTurns(starts, PACKAGES, (key) => env.measure(key, "start"));
    const times = (kind) => found.map((all) => median(all.map((one) => one[kind])));
    const how =
      `median of ${processor.rounds} turns of ${processor.pairs} pairs, and of ${starts} starts in Node, in turns; the library's share is ` +
      "the difference to the same requests sent by fetch or ioredis alone, and at least 0";
    return table("time", "Processor time per acquire + release, and start-up time", how, labels(PACKAGES), [
      ["acquire + release, the library", "µs of processor time", cpu.map(({ library }) => Math.max(0, median(library)))],
      ["acquire + release, all", "µs of processor time", cpu.map(({ whole }) => median(whole))],
      ["import until a call can be made", "ms", times("ready")],
      ["import until the first lock is held", "ms", times("first")],
    ]);
  });
}

/** Measures Redis' own time for a pair. */
export async function measureServer(effort) {
  announce("Redis' time");
  const libraries = [...PACKAGES, REDISSON];
  const scripts = ["eval", "evalsha"];
  // These set the key by a command of its own.
  const commands = { upstash: [...scripts, "set"], "redis-semaphore": [...scripts, "set"] };
  const { rounds, pairs } = effort.server;
  const found = await inTurn(libraries, ([key]) =>
    // Each on its own Redis, whose statistics count no other library.
    withEnv(effort, (env) => env.measure(key, "server", { rounds, pairs, commands: commands[key] ?? scripts })),
  );
  const how =
    `the least of ${rounds} rounds of ${pairs} pairs, since other load only adds, by INFO commandstats; without the time for ` +
    "connections and protocol, and without Redisson's DEL after each unlock";
  const least = found.map(({ us }) => Math.min(...us));
  return table("server", "Redis' time per acquire + release", how, labels(libraries), [["acquire + release", "µs", least]]);
}

/** Measures memory per held lease and per waiter. */
export function measureMemory(effort) {
  announce("memory");
  return withEnv(effort, async (env) => {
    const cases = Object.entries({ held: "a held lease", waiting: "a waiter" }).flatMap(([what, label]) =>
      effort.counts.map((count) => ({ what, count, name: `${label}, of ${count}` })),
    );
    const rows = await inTurn(cases, async ({ what, count, name }) => {
      const found = await inTurn(PACKAGES, ([key]) => env.measure(key, "memory", { count, what }));
      return [name, "kB", found.map(({ bytes }) => bytes / 1_000)];
    });
    const how =
      "measured once, after a garbage collection: the JavaScript heap, external memory and WebAssembly memory; one client, with leases of " +
      "different locks, or waiters of one lock; polling libraries poll once a minute here";
    return table("memory", "Memory in Node", how, labels(PACKAGES), rows);
  });
}

/** Measures uncontended pairs per second: of the npm packages and of the crate. */
export function measureThroughput(effort) {
  return withEnv(effort, async (env) => {
    const seconds = effort.throughputSeconds;
    const libraries = [EDGELATCH, ["native", "edgelatch (Rust)"], UPSTASH, REDLOCK, SEMAPHORE];
    const rows = await inTurn(effort.tasks, async (tasks) => {
      announce(`throughput, ${tasks} at a time`);
      const options = { tasks, seconds };
      const measure = (key) => (key === "native" ? env.rust("native", options) : env.measure(key, "throughput", options));
      const found = await inTurns(effort.turns, libraries, measure);
      return [plural(tasks, "task"), "pairs/s", found.map((turns) => median(turns.map(({ pairs }) => pairs)))];
    });
    const how =
      `median of ${effort.turns} turns of ${seconds} s; each task has its own lock, and all tasks share one client; Redis and the gateway ` +
      "run on the same machine";
    return table("throughput", "Throughput: acquire + release of free locks", how, labels(libraries), rows);
  });
}

/** Measures the size of a program that contains the package, bundled by esbuild and compressed. */
export async function measureSize() {
  announce("bundles");
  const found = await figures("bundles", process.execPath, ["tests/bench/bundle.mjs", newFolder()]);
  const row = (what, kind) => [what, "kB", BUNDLES.map(([key]) => found[key][kind] / 1_000)];
  const how =
    "everything that a program ships which imports the library, with its Redis client if it needs one; minified by esbuild, all files " +
    "together, including WebAssembly";
  const rows = [row("gzip -9", "gzip"), row("brotli 11", "brotli"), row("raw", "raw")];
  return table("size", "Size in a program", how, labels(BUNDLES), rows);
}
