/** The checks of the smoke test find each violation. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { problemOf, violations } from "./smoke.mjs";

const holds = () =>
  Array.from({ length: 20 }, (_, index) => ({ holder: `worker-${index}`, token: 100 + index, before: index, after: index + 1 }));

test("holds that follow each other violate nothing", () => {
  assert.deepEqual(violations(holds(), 0, 20), []);
});

test("a lost update is a violation", () => {
  const all = holds();
  Object.assign(all[5], { before: 4, after: 5 });
  assert.equal(violations(all, 0, 20).length, 1);
  assert.equal(violations(all, 0, 19).length, 2);
});

test("a fencing token that does not rise is a violation", () => {
  const all = holds();
  all[7].token = all[6].token;
  assert.equal(violations(all, 0, 20).length, 1);
});

test("a missing hold is a violation", () => {
  assert.notDeepEqual(violations(holds().slice(0, 10), 0, 10), []);
});

test("a contender may end with a release or leave", () => {
  assert.equal(problemOf('\n{"event":"held"}\n\n{"event":"released"}\n\n'), null);
  assert.equal(problemOf('{"event":"left"}\n'), null);
});

test("a contender that ends in any other way is a problem", () => {
  for (const stream of ["", "\n\n", '{"event":"held"}\n', '{"event":"lost"}\n', '{"event":"rel']) assert.ok(problemOf(stream), stream);
  assert.match(problemOf('{"event":"error","message":"no"}\n'), /"no"/);
});
