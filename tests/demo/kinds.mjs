/**
 * Tests the page of each kind: chooses it, runs it, and reads the drawing, on a desktop and on a
 * phone.
 */

import assert from "node:assert/strict";
import { test } from "node:test";

import { drawnHolds, isOver, noSidewaysScroll, open, picture, VISITORS } from "./visit.mjs";

const KINDS = [
  {
    kind: "readers",
    label: "Reading, writing",
    sentence: /^Redis saw 5 read, \d of them at once, and 2 write, never at the same time as another contender\.$/,
    check(holds) {
      const writes = holds.filter(({ as }) => as === "alone");
      assert.deepEqual(writes.map(({ name }) => name), ["Writer 3", "Writer 6"]);
      for (const write of writes) assert.equal(beside(write, holds).length, 0, "a writer is alone");
      const [, read] = holds.filter(({ name }) => name === "Writer 3");
      assert.equal(read.as, "shared", "the writer goes on reading");
      assert.equal(read.from, writes[0].to, "without a moment in between");
    },
  },
  {
    kind: "fair",
    label: "A fair queue",
    sentence: /^Redis saw 4 enter in the order in which they came; 1 left the queue\.$/,
    check(holds) {
      assert.deepEqual(holds.map(({ name }) => name), ["Worker 1", "Worker 2", "Worker 4", "Worker 5"]);
      for (const hold of holds) assert.equal(beside(hold, holds).length, 0, "one at a time");
    },
    said: ["Came first, served first", "Came second, served second", "Came third, left", "Came fourth, served third"],
  },
  {
    kind: "permits",
    label: "Permits",
    sentence: /^Redis saw 6 enter, at most [12] at once, with 2 permits\.$/,
    check(holds) {
      assert.equal(holds.length, 6);
      for (const { from } of holds) {
        const inside = holds.filter((other) => other.from <= from && from < other.to);
        assert.ok(inside.length <= 2, `at most two at once: ${JSON.stringify(inside)}`);
      }
    },
  },
  {
    kind: "latch",
    label: "A latch",
    sentence: /^Redis saw 3 go through, none before the gate was counted down 3 of 3 times\.$/,
    check(holds) {
      const counted = holds.filter(({ name }) => name.startsWith("Step"));
      const through = holds.filter(({ name }) => name.startsWith("Waiter"));
      assert.deepEqual([counted.length, through.length], [3, 3]);
      const last = Math.max(...counted.map(({ to }) => to));
      for (const { from } of through) assert.ok(last <= from, "no client passes before the last count");
    },
    said: ["Done, 2 left", "Done, 1 left", "Done, 0 left", "Through"],
  },
  {
    kind: "pairs",
    label: "Pairs of locks",
    sentence: /^Redis saw 5 pairs held, up to \d at once, and never two that share a lock\.$/,
    check(holds) {
      assert.equal(holds.length, 5);
      for (const hold of holds) {
        const locks = hold.name.split(" + ");
        const rivals = beside(hold, holds).filter(({ name }) => locks.some((lock) => name.includes(lock)));
        assert.equal(rivals.length, 0, `${hold.name} shares no lock with ${JSON.stringify(rivals)}`);
      }
    },
  },
];

for (const kind of KINDS) {
  for (const visitor of VISITORS.slice(0, 2)) {
    test(`${kind.label}: the drawing keeps the promise (${visitor.name})`, async () => {
      const visit = await open(visitor);
      await show(visit.page, kind, visitor.name);
      await visit.end();
    });
  }
}

test("a visitor who chooses by keyboard sees the text of the kind, and nothing of other kinds", async () => {
  const visit = await open(VISITORS[2]);
  const { page } = visit;
  await page.getByRole("radio", { name: "A lock" }).press("ArrowRight");
  assert.ok(await page.getByRole("radio", { name: "Reading, writing" }).isChecked());
  await page.getByText("Many readers, or one writer").waitFor();
  assert.equal(await page.getByText("A fencing token", { exact: true }).isVisible(), false);
  assert.equal(await page.getByRole("group", { name: "Contenders" }).isVisible(), false);
  assert.equal(await page.getByRole("button", { name: "Start" }).innerText(), "Start");
  await noSidewaysScroll(page);
  await visit.end();
});

test("an unresponsive Worker is reported in words", async () => {
  const visit = await open(VISITORS[0]);
  const { page } = visit;
  await page.route(/\/api\/(contend|verdict)/, (route) =>
    route.fulfill({ json: { error: { code: "redis", message: "The gateway cannot be reached." } } , status: 200 }),
  );
  await page.getByRole("radio", { name: "Permits" }).check();
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByRole("status").getByText(/^6 of 6 failed: The Worker closed the stream without a result\./).waitFor();
  await visit.end();
});

/** Operated by keyboard only. */
async function show(page, { kind, label, sentence, check, said = [] }, visitor) {
  await page.getByRole("radio", { name: label }).press("Space");
  await noSidewaysScroll(page);
  await page.getByRole("button", { name: "Start" }).press("Enter");
  await page.locator(".bar.hold").nth(1).waitFor();
  await noSidewaysScroll(page);
  await picture(page, `${visitor}-${kind}-running`);
  assert.match(await isOver(page), sentence);
  check(await drawnHolds(page));
  const states = await page.locator(".lane-state").allInnerTexts();
  for (const words of said) assert.ok(states.includes(words), `"${words}" is among ${JSON.stringify(states)}`);
  await noSidewaysScroll(page);
  await picture(page, `${visitor}-${kind}-over`);
}

/** Returns the holds that are drawn beside a hold. */
function beside(hold, holds) {
  return holds.filter((other) => other !== hold && other.from < hold.to && hold.from < other.to);
}
