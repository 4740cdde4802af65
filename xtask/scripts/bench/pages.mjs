/** Writes recorded figures into the pages, between two marks. Everything else on a page stays. */

import { readFileSync, writeFileSync } from "node:fs";

import { cell, machineOf, short } from "./figures.mjs";

const ROOT = new URL("../../../", import.meta.url);
const END = "<!-- to here -->\n";
/** The recorded results of the benchmark and of the sizes. */
export const RESULTS = "bench/results.json";
export const SIZES = "xtask/size.json";

/** The other libraries, by the beginnings of their columns. */
const PEERS = ["@upstash/lock", "redlock", "redis-semaphore"];
/** The rows of the README's table: the smallest figure of each measure is the best. */
const MEASURES = [
  ["acquire + release: bytes sent", "traffic", "acquire + release", "bytes up", "edgelatch"],
  ["acquire + release: processor time of the library, µs", "time", "acquire + release, the library", "µs of processor time", "edgelatch"],
  ["from import to the first lock held, ms", "time", "import until the first lock is held", "ms", "edgelatch"],
  ["from release to the next holder, 1 waiter, ms", "handoff-ms", "1 waiter", "ms, median", "edgelatch, stream"],
  ["from release to the next holder, 100 waiting clients, ms", "handoff-ms", "100 waiters, each a client", "ms, median", "edgelatch, stream"],
  ["100 waiting clients: requests per second", "waiting", "100 waiters", "requests/s", "edgelatch, stream"],
  ["size in a Worker, kB (gzip)", "size", "gzip -9", "kB", "edgelatch, for Workers"],
  ["size elsewhere, kB (gzip)", "size", "gzip -9", "kB", "edgelatch, one file"],
];

/** The keys of the recorded sizes, and their names in the table of docs/environments.md. */
const ROWS = {
  "entry index.js": "`index.js`, with the module as text",
  "entry index.cjs": "`index.cjs`, with the module as text",
  "entry workerd.js": "`workerd.js`, with the module",
  "entry edge-light.js": "`edge-light.js`, with the module",
  "entry slim.js": "`slim.js`, and the module that the program brings",
  "entry log.js": "`log.js`, beside one of these",
  "entry opentelemetry.js": "`opentelemetry.js`, beside one of these and `@opentelemetry/api`",
  "entry redlock.js": "`redlock.js`, beside one of these",
  "entry testing.js": "`testing.js`, in tests, beside one of these",
  "entry upstash-lock.js": "`upstash-lock.js`, beside one of these",
  "entry web-locks.js": "`web-locks.js`, beside one of these",
  "wasm/edgelatch_bg.wasm": "of these: the module, as a file",
  "wasm/inline.js": "of these: the module, as text",
  "module as base64": "for comparison: the module as base64",
  tarball: "the tarball, as npm downloads it",
};
const SMALL = "Weighed as released: the module's standard library is built for size.";
const PLAIN =
  "Weighed with the standard library as rustup distributes it. A release builds the standard library for size, so its module is smaller.";

/** The pages, the mark before their figures, and the text between the marks. */
export const PAGES = [
  { page: "docs/performance.md", begin: "<!-- cargo xtask bench writes from here on -->\n", text: ({ results }) => allTables(results) },
  { page: "README.md", begin: "<!-- cargo xtask bench writes from here on -->\n", text: ({ results }) => summary(results) },
  {
    page: "docs/environments.md",
    begin: "<!-- cargo xtask size --record and cargo xtask bench write from here on -->\n",
    text: ({ results, sizes }) => costs(sizes, results),
  },
];

/** Returns the recorded figures. */
export const recorded = () => ({ results: JSON.parse(read(RESULTS)), sizes: JSON.parse(read(SIZES)) });
export const read = (file) => readFileSync(new URL(file, ROOT), "utf8");

/** Writes the recorded figures into all pages. */
export function writePages() {
  const figures = recorded();
  for (const { page, begin, text } of PAGES) writeFileSync(new URL(page, ROOT), replaced(read(page), begin, text(figures)));
}

/** Returns the page with `text` between its marks. */
export function replaced(page, begin, text) {
  const start = page.indexOf(begin) + begin.length;
  const end = page.indexOf(END, start);
  if (start < begin.length || end < 0) throw new Error(`a page without the marks ${begin}`);
  return page.slice(0, start) + text + page.slice(end);
}

/** Returns all tables, for docs/performance.md. */
function allTables({ machine, tables }) {
  const text = tables.map(({ title, how, columns, rows }) => {
    const method = how[0].toUpperCase() + how.slice(1);
    return `\n## ${title}\n\n${method}.\n\n${head(columns)}${rows.map(line).join("")}`;
  });
  return `Measured on: ${machine.map((pair) => pair.join(" ")).join(", ")}.\n${text.join("")}`;
}

/** Formats a row of docs/performance.md. */
export const line = ({ what, unit, cells }) => `| ${what} (${unit}) | ${cells.map(short).join(" | ")} |\n`;

/** Returns the README's table. */
function summary(results) {
  const is = (name) => machineOf(results, name);
  const rows = MEASURES.map(([name, table, row, unit, ours]) =>
    bestInBold(name, [ours, ...PEERS].map((column) => cell(results, { table, row, unit, column }))),
  );
  return (
    `Measured by \`cargo xtask bench\` with everything on one machine (${is("CPU")}, ${is("cores")} cores), Redis ${is("Redis")} and Node ` +
    `${is("Node")}. Less is better, and the best\nfigure of a row is bold. Libraries marked TCP do not run in pages. ` +
    `[docs/performance.md](docs/performance.md) has all figures.\n\n` +
    head(["edgelatch", "@upstash/lock", "redlock (TCP)", "redis-semaphore (TCP)"]) +
    rows.join("")
  );
}

/** Formats a row of figures, with the smallest in bold. */
export function bestInBold(name, cells) {
  const least = Math.min(...cells);
  return `| ${name} | ${cells.map((figure) => (figure <= least ? `**${short(figure)}**` : short(figure))).join(" | ")} |\n`;
}

/** Returns the table of sizes and starts, for docs/environments.md. */
function costs({ sizes, standardLibraryForSize, starts }, results) {
  const rows = Object.entries(ROWS).map(([key, label]) => {
    const { raw, gzip, brotli } = sizes[key];
    const { load, connect } = starts.entries[key.replace("entry ", "")] ?? {};
    return `| ${label} | ${[raw, gzip, brotli].map(kilobytes).join(" | ")} | ${[load, connect].map(milliseconds).join(" | ")} |\n`;
  });
  const first = short(cell(results, { table: "time", row: "import until the first lock is held", unit: "ms", column: "edgelatch" }));
  return (
    "| a runtime loads | raw, kB | gzip -9, kB | brotli, kB | import or require, ms | first `connect`, ms |\n|---|---:|---:|---:|---:|---:|\n" +
    `${rows.join("")}\n${standardLibraryForSize ? SMALL : PLAIN}\n\n` +
    `The times are medians of processes of Node ${starts.node} on ${starts.cpu} (${starts.cores} cores). \`slim.js\` is given the module as bytes. Workers and edge\n` +
    `functions import a module that their platform has compiled. From import until the first lock is held, ${first} ms pass (\`cargo xtask bench\`).\n`
  );
}

/** Formats milliseconds as `12.3`, or a dash for no time. */
const milliseconds = (time) => (time === undefined ? "–" : time.toFixed(1));

/** Formats kilobytes as `12.3`, or a dash for no size. */
export const kilobytes = (bytes) => (bytes === 0 ? "–" : (bytes / 1_000).toFixed(1));

const head = (columns) => `| | ${columns.join(" | ")} |\n|---|${"---:|".repeat(columns.length)}\n`;
