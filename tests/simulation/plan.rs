//! The plan of a schedule: drawn from its seed, within the limits of the command.

use fastrand::Rng;

use super::faults::{Fault, Faults};
use super::named::named;

named! {
    /// The kind of object that clients use.
    Kind {
        Lock = "lock",
        Owner = "owner",
        Spin = "spin",
        Fenced = "fenced",
        Fair = "fair",
        ReadWrite = "read-write",
        Semaphore = "semaphore",
        Permits = "permits",
        Latch = "latch",
        Group = "group",
        Multi = "multi",
        Red = "red",
        FairReadWrite = "fair-read-write",
    }
}

named! {
    /// A deliberate fault in the product or its environment, which the simulation must find.
    SeededFault {
        /// Scripts keep no grant latch.
        NoLatch = "no-latch",
        /// Scripts ignore the bound of requests.
        NoBound = "no-bound",
        /// A cloned host continues with the same entropy.
        SharedEntropy = "shared-entropy",
        /// Redis' clock runs 3 % fast.
        FastServer = "fast-server",
        /// Both clocks of a host stand still with it.
        StoppedClocks = "stopped-clocks",
        /// A release deletes the hold of any owner.
        BlindRelease = "blind-release",
        /// A guard accepts a write with an older token.
        BlindGuard = "blind-guard",
        /// A renewal does not compare the token of the grant.
        BlindRenewal = "blind-renewal",
        /// An acquisition replaces another owner's hold.
        BlindGrant = "blind-grant",
        /// Tokens are a counter that restarts when it is lost.
        PlainCounter = "plain-counter",
        /// The gateway returns the reply to another client, with the echo that the caller expects.
        ForgedEcho = "forged-echo",
        /// Redis confirms a release without executing it.
        LazyRelease = "lazy-release",
        /// A host whose client keeps its lease gets no timer at the lease's end.
        MissingTimers = "missing-timers",
        /// A granted hold has no end in Redis.
        EndlessLease = "endless-lease",
        /// Redis keeps no record of an idempotent call, so it executes each attempt.
        NoRecord = "no-record",
    }
}

/// The limits that the command sets; unset ones are drawn.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) clients: Option<usize>,
    pub(crate) rounds: Option<u32>,
    pub(crate) faults: Option<Faults>,
    pub(crate) seeded_fault: Option<SeededFault>,
    /// Whether only the checker of histories runs, without a view of Redis.
    pub(crate) checks_history_only: bool,
    /// Whether the history is exported. Then no fault breaks an assumption of exclusion.
    pub(crate) exports: bool,
}

/// The plan of one schedule.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) kind: Kind,
    pub(crate) clients: usize,
    pub(crate) rounds: u32,
    pub(crate) faults: Faults,
    pub(crate) seeded_fault: Option<SeededFault>,
    pub(crate) checks_history_only: bool,
    pub(crate) exports: bool,
    /// The probability, in 256ths, that a message meets a given fault that is on.
    pub(crate) odds: u32,
    /// The number of Redis servers.
    pub(crate) nodes: usize,
    /// The longest latency of a message without a fault, in microseconds.
    pub(crate) max_latency: u64,
    /// The longest lease that clients request, in milliseconds.
    pub(crate) lease: u64,
    /// The timeout of one attempt, in milliseconds.
    pub(crate) attempt: u64,
    /// Whether Redis has cached the scripts at the start.
    pub(crate) knows_scripts: bool,
    /// Whether streams notify waiters of releases.
    pub(crate) streams: bool,
    /// Whether the faults end, after which every remaining client must be served.
    pub(crate) ends_faults: bool,
    /// The number of permits.
    pub(crate) permits: u32,
    /// The seed of all further draws.
    pub(crate) rng_seed: u64,
}

impl Plan {
    /// Draws the schedule of this seed.
    pub(crate) fn draw(seed: u64, kind: Kind, limits: &Limits) -> Self {
        // Consecutive seeds must give unrelated schedules.
        let mut rng = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ kind as u64);
        let mut faults = Faults::draw(&mut rng);
        let competitors = rng.u32(0..64);
        let clients = match competitors {
            0..48 => 2,
            48..60 => 3,
            60..63 => 4,
            _ => rng.usize(5..=8),
        };
        let rounds = [1, 1, 1, 1, 2, 3][rng.usize(0..6)];
        // The kinds with the most requests have fewer clients and rounds.
        let (clients, rounds) = match kind {
            Kind::Red | Kind::Spin => (clients.min(3), rounds.min(2)),
            _ => (clients, rounds),
        };
        let odds = [4, 16, 48, 128][rng.usize(0..4)];
        let nodes = match kind {
            Kind::Red => [3, 3, 5][rng.usize(0..3)],
            Kind::Multi => rng.usize(1..=2),
            _ => 1,
        };
        let max_latency = 1 << rng.u32(9..17);
        let lease = [300, 1_000, 5_000, 30_000][rng.usize(0..4)];
        let attempt = [100, 1_000, 5_000][rng.usize(0..3)];
        let (knows_scripts, streams) = (rng.u32(0..8) > 0, rng.u32(0..4) == 0);
        let ends_faults = rng.u32(0..8) == 0;
        if ends_faults && matches!(kind, Kind::Semaphore | Kind::Permits) {
            // No client returns permits that Redis has lost.
            faults = faults.without_those_of_redis();
        }
        let permits = rng.u32(1..=3);
        let mut faults = limits.faults.unwrap_or(faults);
        if limits.exports {
            faults = faults.without_those_of_redis();
        }
        Self {
            seed,
            kind,
            clients: limits.clients.unwrap_or(clients),
            rounds: limits.rounds.unwrap_or(rounds),
            faults,
            seeded_fault: limits.seeded_fault,
            checks_history_only: limits.checks_history_only,
            exports: limits.exports,
            odds,
            nodes,
            max_latency,
            lease,
            attempt,
            knows_scripts,
            streams,
            ends_faults,
            permits,
            rng_seed: rng.u64(..),
        }
    }

    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.faults.has(fault)
    }

    /// Whether clients use plain locks, alone or as parts of a multi-lock.
    pub(crate) const fn has_plain_locks(&self) -> bool {
        matches!(self.kind, Kind::Lock | Kind::Owner | Kind::Spin | Kind::Fenced | Kind::Multi)
    }

    /// Whether clients use one lock with at most one holder.
    pub(crate) const fn has_single_locks(&self) -> bool {
        self.has_plain_locks() && !matches!(self.kind, Kind::Multi)
            || matches!(self.kind, Kind::Fair)
    }

    pub(crate) fn has_seeded(&self, seeded_fault: SeededFault) -> bool {
        self.seeded_fault == Some(seeded_fault)
    }

    /// The command that plays this schedule again.
    pub(crate) fn command(&self) -> String {
        let seeded_fault = self
            .seeded_fault
            .map_or_else(String::new, |seeded_fault| format!(" --without {}", seeded_fault.name()));
        let blind = if self.checks_history_only { " --blind" } else { "" };
        format!(
            "cargo xtask sim --kind {} --seed {} --schedules 1 --clients {} --rounds {} --faults {}{seeded_fault}{blind}",
            self.kind.name(),
            self.seed,
            self.clients,
            self.rounds,
            self.faults.names(),
        )
    }
}
