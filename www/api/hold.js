/**
 * Waits for a lock or permits, holds the lease for a while, and releases it.
 *
 * The page kills a holder by cutting its connection. A holder whose client has disconnected stops
 * at once, as if it had crashed: it neither renews nor releases, so its lease expires by itself. A
 * waiter whose client has disconnected stops waiting.
 */

import { EdgelatchError, LeaseLostError } from "edgelatch";

import { WAIT_MS } from "../kinds.js";
import { pause } from "./event-stream.js";

/**
 * Runs the steps one after the other; each is acquired before the previous one is released.
 *
 * A step has `acquire(options)`; `mode` (`alone` or `shared`), `limit`, `places` and `isOrdered`
 * for the checker; and optionally `begin(lease)`, which runs first once the step is held.
 */
export async function hold(contender, steps) {
  const { events, checker, after, delayMs } = contender;
  await checker.waitFor(...after, events.disconnected);
  await pause(delayMs, [events.disconnected]);
  events.disconnected.throwIfAborted();
  events.send("waiting");
  let lease = null;
  for (const step of steps) lease = await acquireStep(contender, step, lease);
  if (events.disconnected.aborted) return;
  await release(contender, lease);
}

/** Acquires one step, and releases the previous one. */
async function acquireStep(contender, step, previous) {
  const { events, checker, leaseMs } = contender;
  let lease;
  try {
    lease = await step.acquire({ leaseMs, waitMs: WAIT_MS, signal: events.disconnected });
    events.send("held", { token: lease.token, leaseLeftMs: lease.remaining(), as: step.mode });
    await checker.enter(lease, step);
    if (previous) await previous.release();
    await step.begin?.(lease);
    await keepLease(lease, contender, step);
    return lease;
  } catch (error) {
    if (error instanceof LeaseLostError) events.send("lost", { reason: error.reason });
    else if (!events.disconnected.aborted) await releaseAll(contender, [lease, previous]);
    throw error;
  }
}

/**
 * Keeps the lease for `holdMs`, or until the client has disconnected, and renews it every third of
 * its time.
 */
async function keepLease(lease, { holdMs, leaseMs, events, checker }, step) {
  const until = Date.now() + holdMs;
  for (;;) {
    await pause(Math.min(leaseMs / 3, until - Date.now()), [events.disconnected, lease.signal]);
    if (events.disconnected.aborted || Date.now() >= until) return;
    lease.signal.throwIfAborted();
    try {
      await lease.renew();
      events.send("renewed", { leaseLeftMs: lease.remaining() });
      await checker.stay(lease, step);
    } catch (error) {
      if (error instanceof LeaseLostError || !(error instanceof EdgelatchError)) throw error;
      // The hold is as it was: retry at the next turn, until `lease.signal` aborts.
    }
  }
}

async function release({ events, checker }, lease) {
  // Reported before the release is sent: until this moment no other holder can appear.
  events.send("releasing");
  await checker.leave();
  events.send(await lease.release());
}

/**
 * Releases the leases, but only after the checker has recorded it: otherwise the checker would
 * report the next holder as an intruder. If that fails, the leases expire by themselves.
 */
async function releaseAll({ checker }, leases) {
  await checker.leave();
  for (const lease of leases) await lease?.release();
}
