/** What Redis says of the lock of one run of the page. */

import { connect } from "edgelatch";

/** `GET /api/state?run=<name>`. */
export async function state({ env, query }) {
  const { locked, holdCount, remainingMs, lastToken } = await pageLock(env, query.name("run")).inspect();
  return Response.json({ locked, holdCount, remainingMs, lastToken }, { headers: { "cache-control": "no-store" } });
}

/** The lock that all contenders of one run want. Runs do not meet: two visitors do not disturb each other. */
export function pageLock(env, run) {
  return connect.fromEnv(env).lock(`demo:page:${run}`);
}
