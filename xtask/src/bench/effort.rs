//! The extent of a run.

/// The measurements of a run: how often and how long each is made.
pub(super) struct Effort {
    /// The number of turns. Each turn measures every subject, so that a slow moment of the machine
    /// does not affect one alone.
    pub(super) turns: usize,
    /// The number of turns of hand-offs. Each turn has many hand-offs.
    pub(super) handoff_turns: usize,
    /// The crowds of waiters for hand-offs: how many wait, and whether each has a client of its
    /// own.
    pub(super) crowds: &'static [(u32, bool)],
    /// The largest number of hand-offs in each turn.
    pub(super) handoffs: u32,
    /// The longest time of hand-offs in each turn, in seconds.
    pub(super) handoff_seconds: u32,
    /// The numbers of waiters for a lock that is never released.
    pub(super) waiters: &'static [u32],
    /// The time for which they wait, in seconds.
    pub(super) waiting_seconds: u32,
    /// The number of measurements of processor time, and the number of pairs in each.
    pub(super) processor: (u32, u32),
    /// The number of starts of a package.
    pub(super) starts: usize,
    /// The numbers of leases and waiters whose memory is measured.
    pub(super) counts: &'static [u32],
    /// The numbers of tasks that acquire locks concurrently.
    pub(super) tasks: &'static [u32],
    /// The time for which they do, in seconds.
    pub(super) throughput_seconds: f64,
    /// Flags of the JVM: for fast code, or for a quick start.
    pub(super) java: &'static [&'static str],
    /// The time for which the gateways are loaded, in seconds.
    pub(super) load_seconds: u32,
    /// The number of measurements of the longest calls and requests.
    pub(super) block_rounds: usize,
}

/// The run for the published figures, which takes some minutes.
pub(super) const WHOLE: Effort = Effort {
    turns: 3,
    handoff_turns: 2,
    crowds: &[(1, false), (10, false), (10, true), (100, false), (100, true)],
    handoffs: 50,
    handoff_seconds: 3,
    waiters: &[1, 10, 100],
    waiting_seconds: 10,
    processor: (9, 400),
    starts: 15,
    counts: &[1_000, 10_000],
    tasks: &[1, 8, 64],
    throughput_seconds: 1.0,
    java: &["-XX:+UseSerialGC"],
    load_seconds: 5,
    block_rounds: 5,
};

/// A run with few figures in every table, which takes under a minute.
pub(super) const QUICK: Effort = Effort {
    turns: 1,
    handoff_turns: 1,
    crowds: &[(10, true)],
    handoffs: 4,
    handoff_seconds: 2,
    waiters: &[10],
    waiting_seconds: 1,
    processor: (2, 50),
    starts: 1,
    counts: &[200],
    tasks: &[8],
    throughput_seconds: 0.3,
    java: &["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
    load_seconds: 1,
    block_rounds: 1,
};
