/**
 * The contenders in a round of each kind. The page uses them for its requests, the Worker for the
 * number to expect.
 */

/** The number of permits. */
export const PERMITS = 2;

/** The count of the latch. */
export const COUNTS = 3;

/** Covers the turns of all other contenders in a round, a few of them killed. */
export const WAIT_MS = 60_000;

/**
 * `delay` and `hold` are fractions of the time of a hold; `after` is the count that the checker
 * must show before the contender starts.
 */
const CONTENDERS = {
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

export const KINDS = Object.keys(CONTENDERS);

/** The default number of contenders for the lock. The other kinds have fixed numbers. */
const COUNT = 4;

/** Returns the contenders of a kind: the `name` and `role` of each, and when it starts. */
export function contendersOf(kind, count = COUNT) {
  return CONTENDERS[kind](count);
}

/**
 * Returns the requests of one run: for each contender its `name`, and the `query` with which the
 * Worker contends for it.
 */
export function requestsOf(kind, { run, holdMs, leaseMs, count }) {
  return contendersOf(kind, count).map(({ name, role, delay = 0, hold = 1, after = ["joined", 0] }, index) => {
    const times = { holdMs: Math.round(hold * holdMs), delayMs: Math.round(delay * holdMs), leaseMs };
    const query = new URLSearchParams({ kind, role, run, id: `${index + 1}`, after: after[0], number: after[1], ...times });
    return { name, role, query: `${query}` };
  });
}
