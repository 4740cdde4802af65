//! The faults of one schedule of a fair lock, and their probabilities.

use fastrand::Rng;

use super::super::runner::{Network, Plan};
use test_support::script_model::fair_head::Rule;

/// Probabilities are in per cent.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The number of Redisson waiters.
    pub(super) java: usize,
    /// The probability that a waiter of this library subscribes to messages.
    pub(super) streaming: u32,
    /// The probability that a waiter's poll is 3 to 25 s late.
    pub(super) pauses: u32,
    /// The probability that a waiter dies instead of polling.
    pub(super) dies: u32,
    /// The probability that it gives up.
    pub(super) gives_up: u32,
    /// The probability that it continues under a new owner, as after the bound of the old one.
    pub(super) rolls_over: u32,
    /// The probability that the requests of an owner have a bound.
    pub(super) bounded: u32,
    /// The probability that a holder of either side never releases.
    pub(super) holder_dies: u32,
    /// The probability that a Redisson waiter dies.
    pub(super) java_dies: u32,
    /// The probability that it does nothing for a while, although it stays subscribed.
    pub(super) java_stuck: u32,
    /// The probability that it gives up as an asynchronous one, which subtracts another time from
    /// the scores of the waiters behind it than it has added.
    pub(super) java_async: u32,
    /// Whether Redisson's clocks are wrong by hours, instead of up to 8 s behind or 15 s ahead.
    pub(super) wild_clocks: bool,
    /// Whether a client with an unknown outcome of a takeover breaks rule F11: its next owner names
    /// the previous one a second time, and the one in between is neither named nor ended.
    pub(super) forgets: bool,
    /// The rule that the scripts leave out; `None` to keep all rules.
    pub(super) without: Option<Rule>,
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
        slow_percent: up_to(20),
        max_delay_ms: 50,
        max_slow_delay_ms: 4_000,
        max_copy_delay_ms: 60_000,
    };
    let settings = Settings {
        java: up_to(3) as usize,
        streaming: 60,
        pauses: up_to(6),
        dies: up_to(5),
        gives_up: up_to(5),
        rolls_over: up_to(25),
        bounded: up_to(60),
        holder_dies: up_to(15),
        java_dies: up_to(10),
        java_stuck: up_to(10),
        java_async: up_to(100),
        wild_clocks: false,
        forgets: false,
        without: None,
    };
    Plan::new(network, settings)
}

impl Settings {
    /// Draws by how many milliseconds a Redisson clock is ahead.
    pub(super) fn draw_skew(&self, rng: &mut Rng) -> i64 {
        if self.wild_clocks {
            const MINUTE: i64 = 60_000;
            const HOUR: i64 = 60 * MINUTE;
            rng.choice([-6 * HOUR, -12 * MINUTE, 0, 12 * MINUTE]).unwrap()
        } else {
            rng.i64(-8_000..=15_000)
        }
    }
}
