/**
 * Waits for a lock or permits, holds the lease for a while, and releases it.
 *
 * The page kills a holder by cutting its connection. A holder whose client has disconnected stops
 * at once, as if it had crashed: it neither renews nor releases, so its lease expires by itself. A
 * waiter whose client has disconnected stops waiting.
 */

import { EdgelatchError, LeaseLostError } from "edgelatch";

import { WAIT_MS } from "../kinds.js";
import { pause } from "./story.js";

/**
 * Runs the steps one after the other; each is acquired before the previous one is released.
 *
 * A step has `acquire(options)`; `mode` (`alone` or `shared`), `limit`, `places` and `isOrdered`
 * for the witness; and optionally `begin(lease)`, which runs first once the step is held.
 */
export async function hold(contender, steps) {
  const { story, witness, after, delayMs } = contender;
  await witness.sees(...after, story.left);
  await pause(delayMs, [story.left]);
  story.left.throwIfAborted();
  story.tell("waiting");
  let lease = null;
  for (const step of steps) lease = await take(contender, step, lease);
  if (story.left.aborted) return;
  await giveBack(contender, lease);
}

/** Acquires one step, and releases the previous one. */
async function take(contender, step, before) {
  const { story, witness, leaseMs } = contender;
  let lease;
  try {
    lease = await step.acquire({ leaseMs, waitMs: WAIT_MS, signal: story.left });
    story.tell("held", { token: lease.token, leaseLeftMs: lease.remaining(), as: step.mode });
    await witness.enter(lease, step);
    if (before) await before.release();
    await step.begin?.(lease);
    await work(lease, contender, step);
    return lease;
  } catch (error) {
    if (error instanceof LeaseLostError) story.tell("lost", { reason: error.reason });
    else if (!story.left.aborted) await giveUp(contender, [lease, before]);
    throw error;
  }
}

/**
 * Keeps the lease for `holdMs`, or until the client has disconnected, and renews it every third of
 * its time.
 */
async function work(lease, { holdMs, leaseMs, story, witness }, step) {
  const until = Date.now() + holdMs;
  for (;;) {
    await pause(Math.min(leaseMs / 3, until - Date.now()), [story.left, lease.signal]);
    if (story.left.aborted || Date.now() >= until) return;
    lease.signal.throwIfAborted();
    try {
      await lease.renew();
      story.tell("renewed", { leaseLeftMs: lease.remaining() });
      await witness.stay(lease, step);
    } catch (error) {
      if (error instanceof LeaseLostError || !(error instanceof EdgelatchError)) throw error;
      // The hold is as it was: retry at the next turn, until `lease.signal` aborts.
    }
  }
}

async function giveBack({ story, witness }, lease) {
  // Reported before the release is sent: until this moment no other holder can appear.
  story.tell("releasing");
  await witness.leave();
  story.tell(await lease.release());
}

/**
 * Releases the leases, but only after the witness has recorded it: otherwise the witness would
 * report the next holder as an intruder. If that fails, the leases expire by themselves.
 */
async function giveUp({ witness }, leases) {
  await witness.leave();
  for (const lease of leases) await lease?.release();
}
