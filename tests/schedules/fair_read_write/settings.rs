//! The faults of one schedule, and their probabilities.

use std::time::Duration;

use edgelatch_proto::protocol::calls::FairReadWriteSettings;
use fastrand::Rng;

use super::super::runner::{Network, Plan};

/// Numbers that end in `_percent` are probabilities.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) clients: usize,
    /// The probability that an acquisition is shared.
    pub(super) shared_percent: u32,
    /// The probability that an acquisition steals, and that it does not wait.
    pub(super) steal_percent: u32,
    pub(super) once_percent: u32,
    /// The probability that a holder ends all holds by force.
    pub(super) force_percent: u32,
    /// The probability that a client dies before a poll or a renewal.
    pub(super) death_percent: u32,
    /// The probability that it does nothing for up to 3 s.
    pub(super) pause_percent: u32,
    /// The probability that it gives up before a poll.
    pub(super) give_up_percent: u32,
    /// The probability that a client knows Redis' clock, so that its requests have a bound.
    pub(super) bounded_percent: u32,
    /// Whether clients that steal send no bound at first.
    pub(super) unbounded_steals: bool,
    pub(super) max_holders: usize,
    /// The longest wait, in milliseconds.
    pub(super) max_wait: u64,
    /// The longest part of a wait under one owner, in milliseconds.
    pub(super) max_round: u64,
    /// How long Redis remembers a request without a bound at least.
    pub(super) first_keep: Duration,
}

impl Settings {
    pub(super) fn limits(&self) -> FairReadWriteSettings {
        let limits = FairReadWriteSettings::default().life(Duration::from_secs(1)).unwrap();
        limits.max_holders(self.max_holders.try_into().unwrap()).unwrap()
    }
}

/// Draws the faults of one schedule.
pub(super) fn plan(seed: u64) -> Plan<Settings> {
    // The environment draws its choices from `seed` itself.
    let mut rng = Rng::with_seed(seed ^ 0x5eed);
    let mut up_to = |max: u32| rng.u32(0..=max);
    let network = Network {
        loss_percent: up_to(25),
        reply_loss_percent: up_to(25),
        copy_percent: up_to(40),
        slow_percent: up_to(15),
        max_delay_ms: 40,
        max_slow_delay_ms: 600,
        max_copy_delay_ms: 6_000,
    };
    let is_long = up_to(3) == 0;
    let settings = Settings {
        clients: 3 + up_to(3) as usize,
        shared_percent: [20, 55, 85][up_to(2) as usize],
        steal_percent: up_to(10),
        once_percent: up_to(20),
        force_percent: up_to(5),
        death_percent: up_to(6),
        pause_percent: up_to(10),
        give_up_percent: up_to(8),
        bounded_percent: 80,
        unbounded_steals: false,
        max_holders: [2, 3, 100][up_to(2) as usize],
        max_wait: if is_long { 9_000 } else { 3_000 },
        max_round: if is_long { 300 } else { 3_000 },
        first_keep: Duration::from_secs(20),
    };
    Plan::new(network, settings)
}
