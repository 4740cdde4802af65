/** Lends the page a token for the gateway: for the names of one run, and for two minutes. */

import { pageKey, pagePrefix } from "./names.js";
import { scopedToken } from "./scoped-token.js";

const LIVES_SECONDS = 120;

/** The shortest lease that the gateway accepts, for a page that only inspects. */
const SHORTEST_LEASE_MS = 100;

/** The demo has no key for scoped tokens. */
export class NoKeyError extends Error {}

/** `POST /api/token?run=<name>`, with `leaseMs=<number>` for a page that acquires the lock. */
export async function token({ env, query }) {
  const run = query.name("run");
  if (!env.SCOPE_KEY) throw new NoKeyError("This demo has no key for scoped tokens.");
  const claims = { prefix: pagePrefix(run), maxLeaseMs: query.integer("leaseMs", SHORTEST_LEASE_MS, 15_000, SHORTEST_LEASE_MS), livesSeconds: LIVES_SECONDS };
  const body = {
    url: env.UPSTASH_REDIS_REST_URL,
    token: await scopedToken(env.SCOPE_KEY, claims),
    livesMs: LIVES_SECONDS * 1000,
    key: pageKey(run),
  };
  return Response.json(body, { headers: { "cache-control": "no-store" } });
}
