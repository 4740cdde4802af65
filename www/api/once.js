/**
 * The smallest use of a lock: read, change and write a counter under it. Without the lock, updates
 * would be lost.
 */

import { connect } from "edgelatch";

import { command, KEY_LIFE_SECONDS } from "./redis.js";

const COUNTER = "demo:counter";

/** Long enough for a few dozen requests that want the lock at once. */
const WAIT_MS = 30_000;

/**
 * Time between the read and the write, in milliseconds: long enough that two overlapping requests
 * would read the same number.
 */
const WORK_MS = 5;

/** `POST /api/once?id=<name>`: adds 1 to the counter under the lock. */
export async function once({ env, query, request }) {
  const holder = `worker-${query.name("id")}`;
  const lock = connect.fromEnv(env).lock("demo:once");
  const sentAt = Date.now();
  const result = await lock.run({ waitMs: WAIT_MS, signal: request.signal }, async ({ token, signal }) => {
    const held = Date.now();
    const before = Number((await command(env, ["GET", COUNTER], { signal })) ?? 0);
    await new Promise((done) => setTimeout(done, WORK_MS));
    const after = before + 1;
    await command(env, ["SET", COUNTER, after, "EX", KEY_LIFE_SECONDS], { signal });
    return { holder, token, waitedMs: held - sentAt, heldMs: Date.now() - held, before, after };
  });
  return Response.json(result);
}

/** `POST /api/reset`: sets the counter to 0. */
export async function reset({ env }) {
  await command(env, ["SET", COUNTER, 0, "EX", KEY_LIFE_SECONDS]);
  return Response.json({ counter: 0 });
}
