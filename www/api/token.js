/**
 * What the page may ask the gateway for itself: a token for the names of one run, and for minutes.
 */

import { pageKey, pagePrefix } from "./names.js";
import { scopedToken } from "./scoped-token.js";

const LIVES_SECONDS = 120;

/** The shortest that a gateway knows: the page only looks, and takes nothing. */
const MAX_LEASE_MS = 100;

/** The demo was set up without a key for scoped tokens. */
export class NoKeyError extends Error {}

/** `POST /api/token?run=<name>`. */
export async function token({ env, query }) {
  const run = query.name("run");
  if (!env.SCOPE_KEY) throw new NoKeyError("This demo has no key for scoped tokens.");
  const claims = { prefix: pagePrefix(run), maxLeaseMs: MAX_LEASE_MS, livesSeconds: LIVES_SECONDS };
  const answer = {
    url: env.UPSTASH_REDIS_REST_URL,
    token: await scopedToken(env.SCOPE_KEY, claims),
    livesMs: LIVES_SECONDS * 1000,
    key: pageKey(run),
  };
  return Response.json(answer, { headers: { "cache-control": "no-store" } });
}
