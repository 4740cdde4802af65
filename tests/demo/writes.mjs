/** Tests how the page judges the writes of a run. No Worker is needed. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { hasOverwritten } from "../../www/writes.js";

const newer = { token: 2, from: 10, at: 20 };

const CASES = [
  ["one after the answer to a newer one", true, [newer, { token: 1, from: 21, at: 30 }], []],
  ["the same, whose answer arrived first", true, [{ token: 1, from: 21, at: 30 }, newer], []],
  ["one before a newer one", false, [{ token: 1, from: 1, at: 9 }, newer], []],
  ["one that was sent before the answer to a newer one, and answered after it", false, [newer, { token: 1, from: 15, at: 30 }], []],
  ["one after an outage", false, [newer, { token: 1, from: 60, at: 70 }], [{ from: 40, to: 50 }]],
  ["one during an outage", false, [newer, { token: 1, from: 45, at: 70 }], [{ from: 40, to: null }]],
  ["one that was answered after a newer one of before an outage", false, [newer, { token: 1, from: 21, at: 45 }], [{ from: 40, to: 50 }]],
  ["one after a newer one that an outage may have lost", false, [newer, { token: 1, from: 21, at: 30 }], [{ from: 5, to: 15 }]],
  ["one after a newer one, both after an outage", true, [newer, { token: 1, from: 21, at: 30 }], [{ from: 1, to: 5 }]],
  ["one after a newer one, both before an outage", true, [newer, { token: 1, from: 21, at: 30 }], [{ from: 40, to: 50 }]],
];

for (const [what, expected, writes, outages] of CASES) {
  test(`of two accepted writes: ${what}`, () => assert.equal(hasOverwritten(writes, outages), expected));
}
