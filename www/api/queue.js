/**
 * The fair lock's contenders join its queue one after the other: with an uncertain order of
 * arrival, the order of grants would prove nothing.
 */

import { castOf } from "../kinds.js";
import { command } from "./redis.js";
import { pause } from "./story.js";

/** The interval in milliseconds at which the lock's queue is read. */
const LOOK_MS = 50;

/** The number of contenders for the fair lock. */
export const CROWD = castOf("fair").length;

/** The reason of a wait that a contender ends by itself; not an error. */
export class LeftError extends Error {}

/**
 * Acquires the lock, and joins the witness' line once Redis has this contender in the lock's queue,
 * so that the next contender may start.
 */
export async function inLine(contender, lock, options) {
  const { env, story, witness } = contender;
  const before = new Set(await queueOf(env, lock));
  const leaving = new AbortController();
  let isSettled = false;
  const grant = lock.acquire({ ...options, signal: AbortSignal.any([options.signal, leaving.signal]) });
  const settled = grant.catch(() => {}).then(() => (isSettled = true));
  while (!isSettled && (await queueOf(env, lock)).every((one) => before.has(one))) {
    await Promise.race([settled, pause(LOOK_MS, [options.signal])]);
  }
  // A contender that is not in the queue was granted the lock, or was refused with an error.
  if (isSettled) await grant;
  story.tell("queued", { place: await witness.join() });
  if (contender.role !== "leave") return grant;
  await witness.sees("joined", CROWD, story.left);
  await pause(contender.holdMs / 2, [story.left]);
  await witness.quit();
  leaving.abort(new LeftError());
  // The lock was granted after all: the contender leaves anyway.
  const lease = await grant;
  await lease.release();
  throw new LeftError();
}

/** Returns Redisson's queue from Redis. */
function queueOf(env, lock) {
  return command(env, ["LRANGE", `redisson_lock_queue:${lock.name.includes("{") ? lock.name : `{${lock.name}}`}`, 0, -1]);
}
