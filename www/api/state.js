/** What Redis says of the lock of one run of the page. */

import { connect } from "edgelatch";

/** `GET /api/state?run=<name>`. */
export async function state({ env, query }) {
  const lock = connect.fromEnv(env).lock(pageKey(query.name("run")));
  const { locked, holdCount, remainingMs, lastToken } = await lock.inspect();
  return Response.json({ locked, holdCount, remainingMs, lastToken }, { headers: { "cache-control": "no-store" } });
}

/** What all contenders of one run want. Runs do not meet: two visitors do not disturb each other. */
export function pageKey(run) {
  return `demo:page:${run}`;
}
