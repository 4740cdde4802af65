/**
 * The fair lock's contenders join its queue one after the other: with an uncertain order of
 * arrival, the order of grants would prove nothing.
 */

import { contendersOf } from "../kinds.js";
import { command } from "./redis.js";
import { pause } from "./event-stream.js";

/** The interval in milliseconds at which the lock's queue is read. */
const POLL_MS = 50;

/** The number of contenders for the fair lock. */
export const CONTENDERS = contendersOf("fair").length;

/** The reason of a wait that a contender ends by itself; not an error. */
export class LeftError extends Error {}

/**
 * Acquires the lock, and joins the line of the checker once Redis has this contender in the lock's
 * queue, so that the next contender may start.
 */
export async function acquireInOrder(contender, lock, options) {
  const { env, events, checker } = contender;
  const before = new Set(await queueOf(env, lock));
  const leave = new AbortController();
  let isSettled = false;
  const grant = lock.acquire({ ...options, signal: AbortSignal.any([options.signal, leave.signal]) });
  const settled = grant.catch(() => {}).then(() => (isSettled = true));
  while (!isSettled && (await queueOf(env, lock)).every((one) => before.has(one))) {
    await Promise.race([settled, pause(POLL_MS, [options.signal])]);
  }
  // A contender that is not in the queue was granted the lock, or was refused with an error.
  if (isSettled) await grant;
  events.send("queued", { place: await checker.join() });
  if (contender.role !== "leave") return grant;
  await checker.waitFor("joined", CONTENDERS, events.disconnected);
  await pause(contender.holdMs / 2, [events.disconnected]);
  await checker.quit();
  leave.abort(new LeftError());
  // The lock was granted after all: the contender leaves anyway.
  const lease = await grant;
  await lease.release();
  throw new LeftError();
}

/** Returns Redisson's queue from Redis. */
function queueOf(env, lock) {
  return command(env, ["LRANGE", `redisson_lock_queue:${lock.name.includes("{") ? lock.name : `{${lock.name}}`}`, 0, -1]);
}
