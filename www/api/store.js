/**
 * A store that is guarded by fencing tokens: it remembers the newest token and rejects writes with
 * an older one.
 *
 * This makes a lock safe against a holder that was stopped, lost its lease, and resumes without
 * noticing.
 */

import { command, KEY_LIFE_SECONDS } from "./redis.js";

/**
 * KEYS[1] the store, a hash of `token` and `value`; ARGV: token, value, seconds to keep it.
 * Compares and writes in one atomic step. Replies 1 or 0 (written or rejected) and the newest
 * token. If it is sent twice, it writes the same again.
 */
const GUARDED_WRITE = `
local newest = redis.call('HGET', KEYS[1], 'token')
if newest and tonumber(ARGV[1]) < tonumber(newest) then
  return {0, newest}
end
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'value', ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return {1, ARGV[1]}
`;

/** `POST /api/write?run=<name>&token=<number>&value=<name>`. */
export async function write({ env, query }) {
  const run = query.name("run");
  const token = query.integer("token", 1, Number.MAX_SAFE_INTEGER);
  return Response.json(await guardedWrite(env, run, token, query.name("value")));
}

/** Writes unless a newer token has written before; returns `{ accepted, newest }`. */
export async function guardedWrite(env, run, token, value, { signal } = {}) {
  const args = ["EVAL", GUARDED_WRITE, 1, `demo:store:${run}`, token, value, KEY_LIFE_SECONDS];
  const [written, newest] = await command(env, args, { signal });
  return { accepted: written === 1, newest: Number(newest) };
}
