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
    let mut rng = Rng::with_seed(seed ^ 0x5eed);
    let mut upto = |most: u32| rng.u32(0..=most);
    let network = Network {
        lost: upto(25),
        reply_lost: upto(25),
        copied: upto(40),
        slow: upto(20),
        usual_ms: 50,
        slow_ms: 4_000,
        copy_ms: 60_000,
    };
    let settings = Settings {
        java: upto(3) as usize,
        streaming: 60,
        pauses: upto(6),
        dies: upto(5),
        gives_up: upto(5),
        rolls_over: upto(25),
        bounded: upto(60),
        holder_dies: upto(15),
        java_dies: upto(10),
        java_stuck: upto(10),
        java_async: upto(100),
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
            rng.choice([-21_600_000, -720_000, 0, 720_000]).unwrap()
        } else {
            rng.i64(-8_000..=15_000)
        }
    }
}
