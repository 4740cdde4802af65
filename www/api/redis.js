/** Plain commands to the gateway that the locks use: for the demo's own data, not for the lock. */

/** The life of every key of the demo. */
export const KEY_LIFE_SECONDS = 3600;

/** The gateway or Redis did not execute a command. */
export class RedisError extends Error {}

/** Sends one command and returns its reply. */
export async function command(env, args, { signal } = {}) {
  const response = await send(env, args, signal);
  const body = await response.json().catch(() => null);
  if (body === null || typeof body !== "object") throw new RedisError("The gateway's answer is not JSON.");
  if (body.error !== undefined || !response.ok) {
    // The first word of a Redis error is its code; the rest may quote the command.
    const code = String(body.error ?? response.status).split(" ", 1)[0];
    throw new RedisError(`The gateway refused ${args[0]}: ${code}`);
  }
  return body.result;
}

async function send(env, args, signal) {
  try {
    return await fetch(env.UPSTASH_REDIS_REST_URL, {
      method: "POST",
      headers: { authorization: `Bearer ${env.UPSTASH_REDIS_REST_TOKEN}`, "content-type": "application/json" },
      body: JSON.stringify(args.map(String)),
      // The token goes only to the gateway. (workerd does not support "error".)
      redirect: "manual",
      signal,
    });
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    throw new RedisError("The gateway cannot be reached.", { cause: error });
  }
}
