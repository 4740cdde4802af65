/**
 * Time that a test controls: timers and both clocks of the runtime. Must be imported before the
 * package.
 */

const timers = new Map();
let [now, last] = [0, 0];
const WALL = 1_700_000_000_000;

globalThis.setTimeout = (call, ms = 0, ...values) => {
  const delay = ms >= 1 && ms < 2 ** 31 ? Math.trunc(ms) : 1;
  timers.set(++last, { at: now + delay, call: () => call(...values) });
  return last;
};
globalThis.clearTimeout = (timer) => timers.delete(timer);
Object.defineProperty(performance, "now", { value: () => now });
Date.now = () => WALL + now;

/** Fires the next timer; returns false if there is none. */
export function passes() {
  let next;
  for (const [id, timer] of timers) if (!next || timer.at < next.timer.at) next = { id, timer };
  if (!next) return false;
  timers.delete(next.id);
  now = Math.max(now, next.timer.at);
  next.timer.call();
  return true;
}

/** Discards all timers. */
export const forgetAll = () => timers.clear();

const turn = globalThis.setImmediate;
/** Completes everything that can be done without time passing. */
export const settled = () => new Promise((done) => turn(done));
