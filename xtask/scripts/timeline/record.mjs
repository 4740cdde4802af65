/**
 * `node record.mjs`: runs the demo's lock once with the code of its page, kills the second holder,
 * lets it write when it is late, and writes the run and its picture into `docs/`.
 *
 * Environment: EDGELATCH_DEMO_URL (the running demo).
 */

import { writeFileSync } from "node:fs";

import { draw, PICTURE, RECORD } from "./draw.mjs";

const ROOT = new URL("../../../", import.meta.url);
/** How long the second holder lives, in milliseconds: past a renewal. */
const LIFE_MS = 2_400;
/** The fields of a contender that the picture shows. */
const FIELDS = ["number", "name", "state", "waitFrom", "holds", "leaseEnd", "renewals", "killedAt", "token", "lateWrite"];

// The page's code requests paths of its own origin.
const { fetch } = globalThis;
globalThis.fetch = (path, options) => fetch(new URL(path, process.env.EDGELATCH_DEMO_URL), options);
const { LockRun } = await import("../../../www/lock-run.js");

const run = new LockRun(4);
let killed = null;
run.addEventListener("change", () => {
  const [, second] = run.served;
  if (second?.isInside && killed === null) {
    killed = second;
    setTimeout(() => run.actionOn(second).act(), LIFE_MS);
  } else if (killed?.wasKilled && killed.lateWrite === null && run.actionOn(killed).isReady) {
    run.actionOn(killed).act();
  }
});
await run.start();
const others = run.contenders.filter((one) => one !== killed);
if (killed?.lateWrite?.accepted !== false || others.some(({ state }) => state !== "released")) {
  throw new Error(`not the run to draw, perhaps on a busy machine: ${run.verdict.sentence}`);
}

const { startedAt } = run;
const contenders = run.contenders.map((one) => Object.fromEntries(FIELDS.map((field) => [field, one[field]])));
const record = JSON.parse(JSON.stringify({ contenders, span: run.endedAt }, (_, value) => (isTime(value) ? value - startedAt : value)));
writeFileSync(new URL(RECORD, ROOT), `${JSON.stringify(record, null, 1)}\n`);
writeFileSync(new URL(PICTURE, ROOT), draw(record));

/** Whether a value is a time of the Worker's clock; tokens are larger. */
function isTime(value) {
  return typeof value === "number" && value >= startedAt && value <= startedAt + 3_600_000;
}
