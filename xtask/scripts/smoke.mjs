/**
 * `node smoke.mjs`: uses the running demo once. Twenty requests increment a counter in Redis under
 * one lock, then each kind of object has a round, whose verdict comes from the records in Redis.
 * Prints each result, and fails unless all of them are right.
 *
 * Environment: EDGELATCH_DEMO_URL (the Worker), EDGELATCH_TEST_URL and EDGELATCH_TEST_TOKEN (the
 * gateway that the Worker uses).
 */

const REQUESTS = 20;
/** Longer than the Worker waits for the lock. */
const REQUEST_MS = 90_000;
const KINDS = ["lock", "readers", "fair", "permits", "latch", "pairs"];
/** The longest lease that the Worker accepts, so that a slow machine does not lose one. */
const TIMES = "holdMs=500&leaseMs=15000";

/** Returns the violations of mutual exclusion and order by holds in the order of their counters. */
export function violations(holds, before, after) {
  const problems = [];
  if (after !== before + REQUESTS) problems.push(`the counter went from ${before} to ${after}, not up by ${REQUESTS}`);
  holds.forEach((hold, index) => {
    const expected = before + index;
    if (hold.before !== expected || hold.after !== expected + 1) {
      problems.push(`${hold.holder} read ${hold.before} and wrote ${hold.after} instead of ${expected} and ${expected + 1}`);
    }
    const previous = holds[index - 1];
    if (previous && hold.token <= previous.token) {
      problems.push(`${hold.holder} held after ${previous.holder}, and its token ${hold.token} is not above ${previous.token}`);
    }
  });
  return problems;
}

/**
 * Returns the problem of a contender, or null. Its stream of events must end with a release, or
 * with a contender that left.
 */
export function problemOf(stream) {
  // Empty lines only keep the connection alive.
  const last = stream.split("\n").findLast((line) => line.trim());
  if (!last) return "sent no event";
  let event;
  try {
    ({ event } = JSON.parse(last));
  } catch {
    // The stream broke off within a line.
  }
  return ["released", "left"].includes(event) ? null : `ended with ${last}`;
}

async function smoke({ url, gateway, token }) {
  const request = async (path, method = "POST") => {
    const response = await fetch(new URL(path, url), { method, signal: AbortSignal.timeout(REQUEST_MS) });
    const text = await response.text();
    if (!response.ok) throw new Error(`the Worker answered ${path} with ${response.status}: ${text}`);
    return text;
  };
  const post = async (path) => JSON.parse(await request(path));
  const get = async (path) => JSON.parse(await request(path, "GET"));
  const counter = async () => {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(gateway, { method: "POST", headers, body: '["GET","demo:counter"]' });
    const { result } = await response.json();
    return Number(result ?? 0);
  };

  await post("/api/reset");
  const before = await counter();
  console.log(`\n${REQUESTS} requests at once, each adds 1 to a counter in Redis under the same lock:\n`);
  const holds = await Promise.all(Array.from({ length: REQUESTS }, (_, index) => post(`/api/once?id=${index + 1}`)));
  const after = await counter();
  // The order of the holds is the order of the counter values that they read.
  holds.sort((a, b) => a.before - b.before);
  printHolds(holds);
  const problems = violations(holds, before, after);
  if (problems.length === 0) console.log(`\nCounter: ${before} + ${REQUESTS} = ${after}. Tokens only rose.`);

  console.log("\nOne round of each kind, and the verdict of Redis:\n");
  for (const kind of KINDS) {
    // The redis-server is private, so the name only has to be unique in it.
    const run = `once-${kind}`;
    const { cast } = await get(`/api/cast?kind=${kind}&run=${run}&${TIMES}`);
    const streams = await Promise.all(cast.map(({ query }) => request(`/api/contend?${query}`)));
    const { isKept, sentence } = await get(`/api/verdict?kind=${kind}&run=${run}`);
    console.log(`${kind.padEnd(8)} ${sentence}`);
    streams.forEach((stream, index) => {
      const problem = problemOf(stream);
      if (problem) problems.push(`${kind}: ${cast[index].name} ${problem}`);
    });
    if (!isKept) problems.push(`${kind}: ${sentence}`);
  }
  return problems;
}

function printHolds(holds) {
  const line = (...[holder, token, waited, held, counter]) =>
    console.log(`${holder.padEnd(12)} ${token.padStart(18)} ${waited.padStart(9)} ${held.padStart(9)}   ${counter}`);
  line("holder", "fencing token", "wait ms", "hold ms", "counter");
  for (const { holder, token, waitedMs, heldMs, before, after } of holds) {
    line(holder, String(token), String(waitedMs), String(heldMs), `${before} -> ${after}`);
  }
}

if (import.meta.main) {
  const { EDGELATCH_DEMO_URL: url, EDGELATCH_TEST_URL: gateway, EDGELATCH_TEST_TOKEN: token } = process.env;
  const problems = await smoke({ url, gateway, token });
  for (const problem of problems) console.error(`wrong: ${problem}`);
  if (problems.length > 0) process.exit(1);
  console.log("\nEvery promise was kept.");
}
