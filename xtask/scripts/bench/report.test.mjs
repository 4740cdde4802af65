/** Figures, charts and pages; and the pages show the recorded figures. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { draw, scaleOf } from "./chart.mjs";
import { cell, gaps, median, percentile, short, table } from "./figures.mjs";
import { bestInBold, kilobytes, line, PAGES, read, recorded, replaced } from "./pages.mjs";

const tableOf = (...rows) => table("id", "A < B", "once", ["ours", "theirs"], rows);

test("the median is the figure in the middle", () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([1, 2]), 2);
  assert.ok(Number.isNaN(median([])));
});

test("a high percentile of few figures is the largest", () => {
  assert.equal(percentile([1, 5, 2], 0.99), 5);
  assert.equal(percentile(Array.from({ length: 200 }, (_, index) => index), 0.99), 198);
});

test("a figure is formatted with about three digits", () => {
  const cases = [
    [0, "0"], [0.0123, "0.012"], [1.04, "1.04"], [2, "2"], [12.34, "12.3"], [999.6, "1\u{202f}000"],
    [1_234_567, "1\u{202f}234\u{202f}567"], [-123, "-123"],
  ];
  for (const [value, text] of cases) assert.equal(short(value), text);
});

test("a table without a figure somewhere has gaps", () => {
  assert.equal(gaps(tableOf()).length, 1);
  assert.deepEqual(gaps(tableOf(["full", "ms", [1, 2]])), []);
  assert.equal(gaps(tableOf(["short", "ms", [1]], ["none", "ms", [Number.NaN, 1]], ["long", "ms", [1, 2, 3]])).length, 3);
});

test("a chart has a bar for each figure", () => {
  const svg = draw(tableOf(["one", "ms", [1, 2]], ["two", "kB", [1, 4000]]));
  // And one for each column in the legend.
  assert.equal(svg.match(/<rect/g).length, 6);
  assert.equal(svg.match(/class="unit"/g).length, 2);
  assert.ok(svg.includes("A &lt; B") && svg.includes("4\u{202f}000"));
});

test("the largest figure has the longest bar on both scales", () => {
  const [near, far] = [scaleOf([10, 20]), scaleOf([0.5, 900])];
  assert.ok(!near.isLogarithmic && far.isLogarithmic);
  assert.deepEqual([near.length(20), near.length(10), near.length(0)], [480, 240, 1]);
  assert.equal(far.length(900), 480);
});

test("a page keeps its text around the marks", () => {
  const end = "<!-- to here -->\n";
  assert.equal(replaced(`before\n${end}BEGIN\nold\n${end}after\n`, "BEGIN\n", "new\n"), `before\n${end}BEGIN\nnew\n${end}after\n`);
  assert.throws(() => replaced("no marks", "BEGIN\n", "new"), /without the marks/);
});

test("a row has its unit and absolute figures", () => {
  assert.equal(line({ what: "a", unit: "ms", cells: [2, 5] }), "| a (ms) | 2 | 5 |\n");
});

test("the smallest figure of a row is bold", () => {
  assert.equal(bestInBold("a, ms", [2, 5]), "| a, ms | **2** | 5 |\n");
  assert.equal(bestInBold("a, ms", [5, 2, 2]), "| a, ms | 5 | **2** | **2** |\n");
});

test("a size is in kilobytes or a dash", () => {
  assert.equal(kilobytes(34_072), "34.1");
  assert.equal(kilobytes(0), "–");
});

test("a figure that the results lack is an error", () => {
  const results = { machine: [], tables: [tableOf(["a", "ms", [1, Number.NaN]])] };
  const of = (changed) => () => cell(JSON.parse(JSON.stringify(results)), { table: "id", row: "a", unit: "ms", column: "ours", ...changed });
  assert.equal(of({})(), 1);
  for (const changed of [{ table: "x" }, { row: "b" }, { unit: "kB" }, { column: "x" }, { column: "theirs" }]) {
    assert.throws(of(changed), /results without/);
  }
});

// No figure on a page is copied by hand.
for (const { page, begin, text } of PAGES) {
  test(`${page} shows the recorded figures`, () => {
    assert.equal(replaced(read(page), begin, text(recorded())), read(page));
  });
}
