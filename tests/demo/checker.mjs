/**
 * Tests the checker in Redis: it accepts correct runs, and detects each broken promise. No Worker
 * is needed.
 */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Checker, recordOf } from "../../www/api/checker.js";
import { required } from "./visit.mjs";

const env = {
  UPSTASH_REDIS_REST_URL: required("EDGELATCH_TEST_URL"),
  UPSTASH_REDIS_REST_TOKEN: required("EDGELATCH_TEST_TOKEN"),
};
const lease = { remaining: () => 60_000 };
const over = { remaining: () => -1 };
const alone = { mode: "alone" };
const shared = { mode: "shared" };

/** Runs a trace with checkers by id, and returns the number of wrong entries. */
async function wrong(trace) {
  const run = `checker-${crypto.randomUUID().slice(0, 8)}`;
  const checkers = {};
  const of = (id) => (checkers[id] ??= new Checker(env, run, id));
  const { signal } = new AbortController();
  for (const id of ["a", "b", "c"]) await of(id).waitFor("joined", 0, signal);
  await trace(of("a"), of("b"), of("c"));
  return (await recordOf(env, run)).wrong;
}

const TRACES = [
  ["two in turn", 0, async (a, b) => { await a.enter(lease, alone); await a.leave(); await b.enter(lease, alone); }],
  ["two at once", 1, async (a, b) => { await a.enter(lease, alone); await b.enter(lease, alone); }],
  ["one after a dead one", 0, async (a, b) => { await a.enter(over, alone); await b.enter(lease, alone); }],
  ["one beside a renewed one", 1, async (a, b) => {
    await a.enter(over, alone);
    await a.stay(lease, alone);
    await b.enter(lease, alone);
  }],
  ["two readers", 0, async (a, b) => { await a.enter(lease, shared); await b.enter(lease, shared); }],
  ["a writer beside a reader", 1, async (a, b) => { await a.enter(lease, shared); await b.enter(lease, alone); }],
  ["a reader beside a writer", 1, async (a, b) => { await a.enter(lease, alone); await b.enter(lease, shared); }],
  ["a reader after a downgrade", 0, async (a, b) => {
    await a.enter(lease, alone);
    await a.enter(lease, shared);
    await b.enter(lease, shared);
  }],
  ["a third one with two permits", 1, async (a, b, c) => {
    for (const one of [a, b, c]) await one.enter(lease, { ...shared, limit: 2 });
  }],
  ["other places", 0, async (a, b) => {
    await a.enter(lease, { ...alone, places: ["a", "b"] });
    await b.enter(lease, { ...alone, places: ["c", "d"] });
  }],
  ["a place that is shared", 1, async (a, b) => {
    await a.enter(lease, { ...alone, places: ["a", "b"] });
    await b.enter(lease, { ...alone, places: ["b", "c"] });
  }],
  ["in order", 0, async (a, b, c) => {
    for (const one of [a, b, c]) await one.join();
    await b.quit();
    await a.enter(lease, { ...alone, isOrdered: true });
    await a.leave();
    await c.enter(lease, { ...alone, isOrdered: true });
  }],
  ["out of order", 1, async (a, b) => {
    for (const one of [a, b]) await one.join();
    await b.enter(lease, { ...alone, isOrdered: true });
  }],
  ["through an open gate", 0, async (a, b) => { await a.count(); await a.count(); await b.pass(2); }],
  ["through a closed gate", 1, async (a, b) => { await a.count(); await b.pass(2); }],
];

for (const [name, faults, trace] of TRACES) {
  test(`the checker sees ${faults === 0 ? "no fault" : "the fault"}: ${name}`, async () => {
    assert.equal(await wrong(trace), faults);
  });
}
