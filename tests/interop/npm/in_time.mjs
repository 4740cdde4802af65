/**
 * Calls whose times pass in reality: they are repeated with longer times until the machine is fast
 * enough for them.
 */

/** What a call fails with when an answer came later than its times allow. */
const SLOW = ["gateway-unreachable", "gateway-too-slow", "outcome-unknown"];
/** No machine is so slow that it needs more for one call. */
const MAX_MS = 60_000;

/**
 * What `call` answers, or rejects with, for the first time in which the machine manages it: a wait,
 * or a lease.
 */
export async function inTime(ms, call) {
  try {
    return await call(ms);
  } catch (error) {
    if (!SLOW.includes(error.code) || ms * 2 > MAX_MS) throw error;
  }
  return inTime(ms * 2, call);
}
