//! What a schedule is: drawn from its seed, and narrowed down by what the command names.

use fastrand::Rng;

use super::faults::{Fault, Faults};
use super::named::named;

named! {
    /// What is taken in a schedule.
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
    }
}

named! {
    /// A rule that is left out on purpose, to see that this is found.
    Tooth {
        /// Scripts keep no grant latch.
        NoLatch = "no-latch",
        /// A not-after is not looked at.
        NoBound = "no-bound",
        /// The clone of a host goes on with the same entropy.
        SharedEntropy = "shared-entropy",
        /// Redis' clock runs 3 % fast.
        FastServer = "fast-server",
        /// Both clocks of a host stand still together.
        StoppedClocks = "stopped-clocks",
        /// A release takes whatever is there.
        BlindRelease = "blind-release",
        /// A guard lets an older token write.
        BlindGuard = "blind-guard",
        /// A renewal does not compare the token of the grant.
        BlindRenewal = "blind-renewal",
        /// A grant does not look who has it.
        BlindGrant = "blind-grant",
        /// Tokens are a counter that starts anew when it is lost.
        PlainCounter = "plain-counter",
        /// The gateway answers what was asked by somebody else, with the echo of who asks.
        ForgedEcho = "forged-echo",
        /// Redis answers a release that it has not done.
        LazyRelease = "lazy-release",
        /// A host that keeps its lease is not woken at its end.
        DeafTimers = "deaf-timers",
        /// What is granted has no end in Redis.
        EndlessLease = "endless-lease",
        /// What is done once is done as often as it is asked.
        NoRecord = "no-record",
    }
}

/// What the command narrows down: what is not named is drawn.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) clients: Option<usize>,
    pub(crate) rounds: Option<u32>,
    pub(crate) faults: Option<Faults>,
    pub(crate) tooth: Option<Tooth>,
    /// Whether only what clients saw is judged.
    pub(crate) is_blind: bool,
}

/// A schedule before it is played.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) kind: Kind,
    pub(crate) clients: usize,
    pub(crate) rounds: u32,
    pub(crate) faults: Faults,
    pub(crate) tooth: Option<Tooth>,
    pub(crate) is_blind: bool,
    /// How likely one message meets a fault that is on, of 256.
    pub(crate) odds: u32,
    /// How many Redis there are.
    pub(crate) nodes: usize,
    /// How long a message is under way at the most, in microseconds, when nothing is wrong.
    pub(crate) way: u64,
    /// The longest lease that is asked for, in milliseconds.
    pub(crate) lease: u64,
    /// The time for one attempt, in milliseconds.
    pub(crate) attempt: u64,
    /// Whether Redis knows the scripts already.
    pub(crate) warm: bool,
    /// Whether releases are told over streams.
    pub(crate) streams: bool,
    /// Whether the faults end, and everybody who is still there has to be served after that.
    pub(crate) heals: bool,
    /// How many permits there are.
    pub(crate) permits: u32,
    /// What the rest is drawn from.
    pub(crate) draws: u64,
}

impl Plan {
    /// The schedule of this seed.
    pub(crate) fn draw(seed: u64, kind: Kind, limits: &Limits) -> Self {
        // Neighbouring seeds are to have nothing in common.
        let mut rng = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ kind as u64);
        let mut faults = Faults::draw(&mut rng);
        let crowd = rng.u32(0..64);
        let clients = match crowd {
            0..48 => 2,
            48..60 => 3,
            60..63 => 4,
            _ => rng.usize(5..=8),
        };
        let rounds = [1, 1, 1, 1, 2, 3][rng.usize(0..6)];
        // Those that ask most are played with fewer.
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
        let way = 1 << rng.u32(9..17);
        let lease = [300, 1_000, 5_000, 30_000][rng.usize(0..4)];
        let attempt = [100, 1_000, 5_000][rng.usize(0..3)];
        let (warm, streams) = (rng.u32(0..8) > 0, rng.u32(0..4) == 0);
        let heals = rng.u32(0..8) == 0;
        if heals && matches!(kind, Kind::Semaphore | Kind::Permits) {
            // Permits that were lost with their data come back by nobody.
            let lasting = faults.iter().filter(|fault| !fault.is_of_redis());
            faults = lasting.fold(Faults::NONE, Faults::with);
        }
        let permits = rng.u32(1..=3);
        Self {
            seed,
            kind,
            clients: limits.clients.unwrap_or(clients),
            rounds: limits.rounds.unwrap_or(rounds),
            faults: limits.faults.unwrap_or(faults),
            tooth: limits.tooth,
            is_blind: limits.is_blind,
            odds,
            nodes,
            way,
            lease,
            attempt,
            warm,
            streams,
            heals,
            permits,
            draws: rng.u64(..),
        }
    }

    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.faults.has(fault)
    }

    /// Whether what is taken are locks of the plainest kind.
    pub(crate) const fn has_plain_locks(&self) -> bool {
        matches!(self.kind, Kind::Lock | Kind::Owner | Kind::Spin | Kind::Fenced | Kind::Multi)
    }

    /// Whether what is taken is one lock that somebody has alone.
    pub(crate) const fn has_single_locks(&self) -> bool {
        self.has_plain_locks() && !matches!(self.kind, Kind::Multi)
            || matches!(self.kind, Kind::Fair)
    }

    pub(crate) fn lacks(&self, tooth: Tooth) -> bool {
        self.tooth == Some(tooth)
    }

    /// The command that plays it again.
    pub(crate) fn command(&self) -> String {
        let tooth =
            self.tooth.map_or_else(String::new, |tooth| format!(" --without {}", tooth.name()));
        let blind = if self.is_blind { " --blind" } else { "" };
        format!(
            "cargo xtask sim --kind {} --seed {} --schedules 1 --clients {} --rounds {} --faults {}{tooth}{blind}",
            self.kind.name(),
            self.seed,
            self.clients,
            self.rounds,
            self.faults.names(),
        )
    }
}
