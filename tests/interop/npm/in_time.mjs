/**
 * Calls in real time: they are repeated with longer times until the machine is fast enough for
 * them.
 */

/** The errors of a call whose response came later than its times allow. */
const SLOW = ["gateway-unreachable", "gateway-too-slow", "outcome-unknown"];
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
    if (!SLOW.includes(error.code) || ms * 2 > MAX_MS) throw error;
  }
  return inTime(ms * 2, call);
}
