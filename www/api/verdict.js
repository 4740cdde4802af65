/** The verdict on a run, from its record in Redis. */

import { COUNTS, KINDS, PERMITS, requestsOf } from "../kinds.js";
import { recordOf } from "./checker.js";

/**
 * `GET /api/cast?kind=…&run=<name>&holdMs=<number>&leaseMs=<number>`: returns the contenders of a
 * round, as queries of `/api/contend`.
 */
export function listContenders({ query }) {
  const kind = query.oneOf("kind", KINDS);
  const settings = {
    run: query.name("run"),
    holdMs: query.integer("holdMs", 100, 15_000),
    leaseMs: query.integer("leaseMs", 500, 15_000),
  };
  return Response.json({ cast: requestsOf(kind, settings) });
}

/**
 * `GET /api/verdict?kind=…&run=<name>`: returns whether the promise of the kind was kept, the
 * number of entries, and a sentence with both.
 */
export async function verdict({ env, query }) {
  const kind = query.oneOf("kind", KINDS);
  const record = await recordOf(env, query.name("run"));
  const entered = record.alone + record.shared + record.passed;
  const isKept = record.wrong === 0 && entered > 0;
  const body = { isKept, entered, sentence: describe(kind, record, entered) };
  return Response.json(body, { headers: { "cache-control": "no-store" } });
}

function describe(kind, record, entered) {
  if (entered === 0) return "Redis recorded no entry.";
  if (record.wrong > 0) return `Broken: Redis saw ${record.wrong} of ${entered} enter when they should not have.`;
  return `Redis saw ${KEPT[kind](record)}.`;
}

/** The sentence for a promise that was kept. */
const KEPT = {
  lock: ({ alone }) => `${alone} enter, never two at once`,
  readers: ({ alone, shared, most }) =>
    `${shared} read, ${most} of them at once, and ${alone} write, never at the same time as another contender`,
  fair: ({ alone, left }) => `${alone} enter in the order in which they came; ${left} left the queue`,
  permits: ({ shared, most }) => `${shared} enter, at most ${most} at once, with ${PERMITS} permits`,
  latch: ({ counted, passed }) => `${passed} go through, none before the gate was counted down ${counted} of ${COUNTS} times`,
  pairs: ({ alone, most }) => `${alone} pairs held, up to ${most} at once, and never two that share a lock`,
};
