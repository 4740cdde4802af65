/**
 * The extent of a run. In each turn every library is measured, so that a slow moment of the machine
 * does not affect one alone. Times are in seconds.
 */

/** The run for the published figures, which takes some minutes. */
export const WHOLE = {
  turns: 3,
  /** Turns of hand-offs; each has many. */
  handoffTurns: 2,
  /** How many wait for a hand-off, and whether each has its own client. */
  crowds: [[1, false], [10, false], [10, true], [100, false], [100, true]],
  handoffs: 50,
  handoffSeconds: 3,
  /** The numbers of waiters for a lock that is never released. */
  waiters: [1, 10, 100],
  waitingSeconds: 10,
  processor: { rounds: 9, pairs: 400 },
  server: { rounds: 9, pairs: 400 },
  starts: 15,
  /** The numbers of leases and waiters whose memory is measured. */
  counts: [1_000, 10_000],
  /** The numbers of tasks that acquire locks concurrently. */
  tasks: [1, 8, 64],
  throughputSeconds: 1,
  /** Flags of the JVM: for fast code here, and for a quick start below. */
  java: ["-XX:+UseSerialGC"],
  loadSeconds: 5,
  /** The number of measurements of the longest calls and requests. */
  blockRounds: 5,
};

/** A run with few figures in every table, which takes under a minute. */
export const QUICK = {
  turns: 1,
  handoffTurns: 1,
  crowds: [[10, true]],
  handoffs: 4,
  handoffSeconds: 2,
  waiters: [10],
  waitingSeconds: 1,
  processor: { rounds: 2, pairs: 50 },
  server: { rounds: 1, pairs: 50 },
  starts: 1,
  counts: [200],
  tasks: [8],
  throughputSeconds: 0.3,
  java: ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
  loadSeconds: 1,
  blockRounds: 1,
};
