/**
 * Calls in real time: they are repeated with longer times until the machine is fast enough for
 * them.
 */

import { isTooSlow } from "../../runtimes/check.mjs";

/** The longest time for one call. No machine is so slow that it needs more. */
const MAX_MS = 60_000;

/**
 * The result or error of `call` with the first time (a wait, or a lease) that suffices for this
 * machine.
 */
export async function inTime(ms, call) {
  try {
    return await call(ms);
  } catch (error) {
    if (!isTooSlow(error) || ms * 2 > MAX_MS) throw error;
  }
  return inTime(ms * 2, call);
}
