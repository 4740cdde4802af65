//! The faults of one schedule of a fair lock, and their probabilities.

use fastrand::Rng;

use super::super::runner::{Network, Plan};
use test_support::script_model::fair_head::Rule;

/// Numbers that end in `_percent` are probabilities.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The number of Redisson waiters.
    pub(super) java: usize,
    /// The probability that a waiter of this library subscribes to messages.
    pub(super) streaming_percent: u32,
    /// The probability that a waiter's poll is 3 to 25 s late.
    pub(super) pause_percent: u32,
    /// The probability that a waiter dies instead of polling.
    pub(super) death_percent: u32,
    /// The probability that a waiter of this library gives up.
    pub(super) give_up_percent: u32,
    /// The probability that a waiter of this library continues under a new owner, as after the
    /// bound of the old one.
    pub(super) rollover_percent: u32,
    /// The probability that the requests of an owner have a bound.
    pub(super) bounded_percent: u32,
    /// The probability that a holder of either side never releases.
    pub(super) holder_death_percent: u32,
    /// The probability that a Redisson waiter dies.
    pub(super) java_death_percent: u32,
    /// The probability that a Redisson waiter does nothing for a while, although it stays
    /// subscribed.
    pub(super) java_stuck_percent: u32,
    /// The probability that a Redisson waiter that gives up is an asynchronous one: these subtract
    /// the default wait from the scores of the waiters behind them, although they have added
    /// their own.
    pub(super) java_async_percent: u32,
    /// Whether Redisson's clocks are 6 h or 12 min behind, right, or 12 min ahead, instead of up to
    /// 8 s behind or 15 s ahead.
    pub(super) wild_clocks: bool,
    /// Whether a client breaks rule F11 when it does not know whether a new owner has taken its
    /// place in the queue over: its next owner then names the owner before that one as its
    /// predecessor, so that no request ends the one in between.
    pub(super) skips_owner: bool,
    /// The rule that the scripts break; `None` if they keep all rules.
    pub(super) without_rule: Option<Rule>,
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
        streaming_percent: 60,
        pause_percent: up_to(6),
        death_percent: up_to(5),
        give_up_percent: up_to(5),
        rollover_percent: up_to(25),
        bounded_percent: up_to(60),
        holder_death_percent: up_to(15),
        java_death_percent: up_to(10),
        java_stuck_percent: up_to(10),
        java_async_percent: up_to(100),
        wild_clocks: false,
        skips_owner: false,
        without_rule: None,
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
