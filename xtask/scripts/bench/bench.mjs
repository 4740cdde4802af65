/**
 * `node bench.mjs <folder> [--quick | --draw]`: measures edgelatch and other libraries in one run,
 * prints the tables, and writes the results and a chart of each table into the folder. A whole run
 * also writes the figures into the pages; `--draw` measures nothing, and writes charts and pages
 * from the recorded results. `env.mjs` lists the environment variables.
 */

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { measureBlocks } from "./blocks.mjs";
import { draw } from "./chart.mjs";
import { QUICK, WHOLE } from "./effort.mjs";
import { print } from "./figures.mjs";
import { measureGateways } from "./gateways.mjs";
import { describeMachine } from "./machine.mjs";
import {
  measureHandoffs, measureMemory, measureServer, measureSize, measureThroughput, measureTime, measureTraffic, measureWaiting,
} from "./measurements.mjs";
import { recorded, writePages } from "./pages.mjs";

const MEASUREMENTS = [
  measureTraffic, measureHandoffs, measureWaiting, measureTime, measureServer, measureMemory, measureThroughput, measureGateways,
  measureSize, measureBlocks,
];

/** Measures everything; returns the results, which are also written into the folder. */
export async function bench(folder, effort) {
  const machine = await describeMachine();
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const tables = [];
  for (const measure of MEASUREMENTS) tables.push(await measure(effort));
  const results = { machine, tables: tables.flat() };
  writeFileSync(join(folder, "results.json"), `${JSON.stringify(results, null, 2)}\n`);
  drawCharts(results, folder);
  return results;
}

function drawCharts({ tables }, folder) {
  for (const table of tables) writeFileSync(join(folder, `${table.id}.svg`), draw(table));
}

if (import.meta.main) {
  const [folder, flag] = process.argv.slice(2);
  if (flag === "--draw") {
    drawCharts(recorded().results, folder);
  } else {
    const results = await bench(folder, flag === "--quick" ? QUICK : WHOLE);
    results.tables.forEach(print);
    console.log(`\nThe results and charts are in ${folder}.`);
  }
  if (flag !== "--quick") writePages();
}
