//! How much a run measures.

/// What is measured, how often and for how long.
pub(super) struct Effort {
    /// How often each is measured, in turns, so that a slow moment of the machine does not hit one
    /// alone.
    pub(super) turns: usize,
    /// How often hand-offs are, of which each turn has many.
    pub(super) handoff_turns: usize,
    /// Who waits while a lock is handed on: how many, and whether each in a client of its own.
    pub(super) crowds: &'static [(u32, bool)],
    /// Hand-offs in each turn, at most.
    pub(super) handoffs: u32,
    /// For how long locks are handed on in each turn, at most, in seconds.
    pub(super) handoff_seconds: u32,
    /// Who waits for a lock that nobody gives back.
    pub(super) waiters: &'static [u32],
    /// For how long they do, in seconds.
    pub(super) waiting_seconds: u32,
    /// How often processor time is taken, and of how many pairs.
    pub(super) processor: (u32, u32),
    /// How many times a package is started.
    pub(super) starts: usize,
    /// Of how many leases and waiters memory is taken.
    pub(super) counts: &'static [u32],
    /// How many tasks take locks at the same time.
    pub(super) tasks: &'static [u32],
    /// For how long they do, in seconds.
    pub(super) throughput_seconds: f64,
    /// How Java is run: to be fast, or to be there at once.
    pub(super) java: &'static [&'static str],
    /// For how long the gateways are loaded, in seconds.
    pub(super) load_seconds: u32,
}

/// The figures that are published: some minutes.
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
};

/// Every table, from few figures: under a minute.
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
};
