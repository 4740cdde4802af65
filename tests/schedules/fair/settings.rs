//! What may go wrong in one schedule of a fair lock, and how often.

use fastrand::Rng;

use super::super::runner::{Network, Plan};
use test_support::script_model::fair_head::Rule;

/// Chances are in per cent.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// How many waiters of Redisson's there are.
    pub(super) java: usize,
    /// Waiters of ours that subscribe.
    pub(super) streaming: u32,
    /// Polls that come up to 25 s late.
    pub(super) pauses: u32,
    /// Polls before which a waiter dies, gives up, or goes on under a new owner.
    pub(super) dies: u32,
    pub(super) gives_up: u32,
    pub(super) rolls_over: u32,
    /// Owners whose requests have a bound.
    pub(super) bounded: u32,
    /// Holders that never release.
    pub(super) holder_dies: u32,
    /// Waiters of Redisson's that die, that are stuck for a while, that give up the way its
    /// asynchronous ones do.
    pub(super) java_dies: u32,
    pub(super) java_stuck: u32,
    pub(super) java_async: u32,
    /// Redisson's clocks are hours off, instead of up to 8 s behind or 15 s ahead.
    pub(super) wild_clocks: bool,
    /// A client that does not know the outcome of a takeover forgets that owner, and names the one
    /// before again.
    pub(super) forgets: bool,
    /// The rule that the scripts leave out.
    pub(super) without: Option<Rule>,
}

/// The faults of one schedule.
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
    /// By how many milliseconds a clock of Redisson's is ahead.
    pub(super) fn draw_skew(&self, rng: &mut Rng) -> i64 {
        if self.wild_clocks {
            rng.choice([-21_600_000, -720_000, 0, 720_000]).unwrap()
        } else {
            rng.i64(-8_000..=15_000)
        }
    }
}
