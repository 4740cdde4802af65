/**
 * Standing in line for the fair lock: who comes after whom has to be certain, or the order of
 * grants would say nothing.
 */

import { castOf } from "../kinds.js";
import { command } from "./redis.js";
import { pause } from "./story.js";

/** How often it is looked whether the lock's queue has this one. */
const LOOK_MS = 50;

/** All that come for the fair lock. */
export const CROWD = castOf("fair").length;

/** The reason of a wait that was given up; not an error. */
export class LeftError extends Error {}

/**
 * Acquires the lock, and joins when Redis has this one in its queue, so that the next one may come.
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
  // Whoever did not get into the queue, or was refused, says why.
  if (isSettled) await grant;
  story.tell("queued", { place: await witness.join() });
  if (contender.role !== "leave") return grant;
  await witness.sees("joined", CROWD, story.left);
  await pause(contender.holdMs / 2, [story.left]);
  await witness.quit();
  leaving.abort(new LeftError());
  // Granted after all: it goes anyway.
  const lease = await grant;
  await lease.release();
  throw new LeftError();
}

/** Redisson's queue, as it lies in Redis. */
function queueOf(env, lock) {
  return command(env, ["LRANGE", `redisson_lock_queue:${lock.name.includes("{") ? lock.name : `{${lock.name}}`}`, 0, -1]);
}
