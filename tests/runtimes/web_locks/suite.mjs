/**
 * The cases of `edgelatch/web-locks`, the same in every runtime: tests of the web platform (WPT) by
 * the names of their files, and ours.
 */

import { acquire, heldLocks, lockAttributes } from "./cases/acquire.mjs";
import { clients, losses } from "./cases/clients.mjs";
import { ifAvailable } from "./cases/if_available.mjs";
import { modeExclusive, modeMixed, modeShared } from "./cases/modes.mjs";
import { ourNames, resourceNames } from "./cases/names.mjs";
import { query, queryEmpty, queryOrdering } from "./cases/query.mjs";
import { signal } from "./cases/signal.mjs";
import { steal } from "./cases/steal.mjs";
import { soon } from "../check.mjs";
import { World } from "./world.mjs";

/** Tests with the titles and the assertions of those in the WPT file of this name. */
export const wpt = {
  "acquire.https.any.js": acquire,
  "held.https.any.js": heldLocks,
  "ifAvailable.https.any.js": ifAvailable,
  "lock-attributes.https.any.js": lockAttributes,
  "mode-exclusive.https.any.js": modeExclusive,
  "mode-mixed.https.any.js": modeMixed,
  "mode-shared.https.any.js": modeShared,
  "query-empty.https.any.js": queryEmpty,
  "query-ordering.https.html": queryOrdering,
  "query.https.any.js": query,
  "resource-names.https.any.js": resourceNames,
  "signal.https.any.js": signal,
  "steal.https.any.js": steal,
};
const groups = { ...wpt, names: ourNames, clients, losses };

const cases = Object.entries(groups).flatMap(([group, members]) =>
  Object.entries(members).map(([title, run]) => ({ name: `${group}: ${title}`, run })),
);

/** The cases of this group wait for renewals, so they run concurrently. */
const CONCURRENT = "losses: ";

export const list = () => cases.map(({ name }) => ({ name, isConcurrent: name.startsWith(CONCURRENT) }));

/**
 * Runs the cases, or only the one of this name. Calls `report` first with `{ begun: true }`, and at
 * the end of each case with `{ name, error }`, without an `error` if it passed.
 */
export async function run({ only, report, ...where }) {
  const runCase = async ({ name, run }) => {
    const world = new World(where);
    const ended = soon(run(world), "the end of the case").finally(() => world.end());
    const error = await ended.then(() => undefined, (error) => String(error?.stack ?? error));
    await report({ name, error });
  };
  await report({ begun: true });
  const concurrent = [];
  for (const one of cases.filter(({ name }) => !only || name === only)) {
    if (one.name.startsWith(CONCURRENT)) concurrent.push(runCase(one));
    else await runCase(one);
  }
  await Promise.all(concurrent);
}
