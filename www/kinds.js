/**
 * Who comes in a round of each kind. The page and the Worker read it: one asks, the other knows how
 * many to expect.
 */

/** Permits that there are. */
export const PERMITS = 2;

/** How often the latch wants to be counted down. */
export const COUNTS = 3;

/** Covers the turns of all the others in a round, a few of them killed. */
export const WAIT_MS = 60_000;

/**
 * `delay` and `hold` are parts of the time for which one holds; `after` is what the witness has to
 * see before somebody comes.
 */
const CASTS = {
  lock: (count) => Array.from({ length: count }, (_, index) => ({ name: `Worker ${index + 1}`, role: "alone" })),
  readers: () => [
    { name: "Reader 1", role: "read" },
    { name: "Reader 2", role: "read", delay: 0.25 },
    { name: "Writer 3", role: "downgrade", delay: 0.5 },
    { name: "Reader 4", role: "read", after: ["alone", 1] },
    { name: "Reader 5", role: "read", after: ["alone", 1], delay: 0.2 },
    { name: "Writer 6", role: "write", after: ["shared", 5] },
  ],
  fair: () => ["first", "stay", "leave", "stay", "stay"].map((role, index) => ({
    name: `Worker ${index + 1}`,
    role,
    after: ["joined", index],
  })),
  permits: () => [1, 1.5, 1.2, 0.8, 1, 0.7].map((hold, index) => ({ name: `Worker ${index + 1}`, role: "one", hold })),
  latch: () => [
    ...Array.from({ length: COUNTS }, (_, index) => ({ name: `Step ${index + 1}`, role: "count", hold: 0.6 + 0.6 * index })),
    ...Array.from({ length: 3 }, (_, index) => ({ name: `Waiter ${index + 1}`, role: "wait", hold: 0.5 })),
  ],
  pairs: () => ["a-b", "b-c", "c-d", "d-e", "e-a"].map((role) => ({ name: role.toUpperCase().replace("-", " + "), role })),
};

export const KINDS = Object.keys(CASTS);

/**
 * How many come for the lock, unless somebody chose another number. The other kinds have a cast of
 * their own.
 */
const COUNT = 4;

/** The cast of a kind: the `name` and `role` of each, and when it comes. */
export function castOf(kind, count = COUNT) {
  return CASTS[kind](count);
}

/**
 * The same as requests of one run: `name`, and the `query` that lets the Worker contend in its
 * place.
 */
export function requestsOf(kind, { run, holdMs, leaseMs, count }) {
  return castOf(kind, count).map(({ name, role, delay = 0, hold = 1, after = ["joined", 0] }, index) => {
    const times = { holdMs: Math.round(hold * holdMs), delayMs: Math.round(delay * holdMs), leaseMs };
    const query = new URLSearchParams({ kind, role, run, id: `${index + 1}`, after: after[0], number: after[1], ...times });
    return { name, role, query: `${query}` };
  });
}
