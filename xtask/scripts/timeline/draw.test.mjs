/** Tests that the picture of the README shows the recorded run as the demo's code draws it now. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { draw, PICTURE, read, RECORD } from "./draw.mjs";

const record = JSON.parse(read(RECORD));

test("the README's picture is drawn from the recorded run by the demo's present code", () => {
  assert.equal(read(PICTURE), draw(record), "cargo xtask demo --picture draws it again");
  assert.ok(read("README.md").includes(`](${PICTURE})`), "the README shows it");
});

test("the recorded run shows turns, rising tokens, a killed holder, and a refused late write", () => {
  const served = record.contenders.toSorted((a, b) => a.holds[0].from - b.holds[0].from);
  assert.equal(served.length, 4);
  for (const [index, later] of served.slice(1).entries()) {
    const earlier = served[index];
    const end = earlier.killedAt === null ? earlier.holds[0].to : earlier.leaseEnd;
    assert.ok(end <= later.holds[0].from && earlier.token < later.token, `${earlier.name} before ${later.name}`);
  }
  const [killed, ...others] = record.contenders.filter(({ killedAt }) => killedAt !== null);
  assert.deepEqual([killed.state, killed.lateWrite.accepted, others], ["expired", false, []]);
  assert.ok(record.contenders.every((one) => one === killed || one.state === "released"));
  assert.ok(killed.lateWrite.newest > killed.token);
});
