//! The faults of one schedule of a fair lock, and their probabilities.

use fastrand::Rng;

use super::super::runner::{Network, Plan};
use test_support::script_model::fair_head::Rule;

/// Probabilities are in per cent.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The number of Redisson waiters.
    pub(super) java: usize,
    /// Waiters of this library that subscribe.
    pub(super) streaming: u32,
    /// Polls that are up to 25 s late.
    pub(super) pauses: u32,
    /// Polls before which a waiter dies, gives up, or continues under a new owner.
    pub(super) dies: u32,
    pub(super) gives_up: u32,
    pub(super) rolls_over: u32,
    /// Owners whose requests have a bound.
    pub(super) bounded: u32,
    /// Holders that never release.
    pub(super) holder_dies: u32,
    /// Redisson waiters that die, that are stuck for a while, or that give up as Redisson's
    /// asynchronous waiters do.
    pub(super) java_dies: u32,
    pub(super) java_stuck: u32,
    pub(super) java_async: u32,
    /// Redisson's clocks are wrong by hours, instead of up to 8 s behind or 15 s ahead.
    pub(super) wild_clocks: bool,
    /// A client with an unknown outcome of a takeover forgets that owner, and names the one before
    /// again.
    pub(super) forgets: bool,
    /// The rule that the scripts leave out.
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
