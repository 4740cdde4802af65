/**
 * Waits for something, holds it for a while, and releases it.
 *
 * The page kills a holder by cutting its connection. A holder that loses its client stops where it
 * stands, as one that crashed would: no more renewals and no release, so that its lease runs out by
 * itself. A waiter that loses its client leaves.
 */

import { EdgelatchError, LeaseLostError } from "edgelatch";

import { WAIT_MS } from "../kinds.js";
import { pause } from "./story.js";

/**
 * Lives through its steps, one after the other; each is acquired before the one before it is
 * released.
 *
 * A step has `acquire(options)`, the `mode` (`alone` or `shared`), `limit`, `places` and
 * `isOrdered` that the witness shall see, and what is done first when it is held: `begin(lease)`.
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

/** Takes one step, and gives back what the step before it had. */
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
 * Keeps the lease for `holdMs`, renewing it at a third of its time, or until the client has left.
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
      // The hold stands as it was: try again at the next turn, until `lease.signal` says that it is
      // over.
    }
  }
}

async function giveBack({ story, witness }, lease) {
  // Told before it is sent: nobody else can be seen holding the lock before this moment.
  story.tell("releasing");
  await witness.leave();
  story.tell(await lease.release());
}

/**
 * Without the witness nothing is released: it would take the next one for an intruder. The lease
 * runs out by itself.
 */
async function giveUp({ witness }, leases) {
  await witness.leave();
  for (const lease of leases) await lease?.release();
}
