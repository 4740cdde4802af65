/** Kills the demo's Redis, where the demo was started with one that may be killed. */

/** This demo's Redis cannot be killed. */
export class NoOutageError extends Error {}

/** `POST /api/outage`: returns when an empty Redis has replaced the killed one. */
export async function outage({ env }) {
  if (!env.REDIS_CONTROL_URL) throw new NoOutageError("The Redis of this demo cannot be killed from here: run `cargo xtask demo`.");
  const headers = { authorization: `Bearer ${env.REDIS_CONTROL_KEY}` };
  const response = await fetch(env.REDIS_CONTROL_URL, { method: "POST", headers });
  if (!response.ok) throw new NoOutageError("The Redis of this demo refused to be killed.");
  return Response.json(await response.json());
}
