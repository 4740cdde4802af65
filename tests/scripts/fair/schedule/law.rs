//! What may go wrong in one schedule, and how often.

use fastrand::Rng;

/// Chances are in percent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Law {
    pub(crate) ours: usize,
    pub(crate) java: usize,
    /// Requests that never arrive, and replies.
    pub(crate) lost: u32,
    pub(crate) reply_lost: u32,
    /// Requests of which a copy arrives later, up to a minute.
    pub(crate) copied: u32,
    /// Requests that take up to 4 s.
    pub(crate) slow: u32,
    /// Waiters of ours with a stream.
    pub(crate) streaming: u32,
    /// Polls that come 25 s later.
    pub(crate) pauses: u32,
    /// Polls before which a waiter dies, gives up, or goes on under a new owner.
    pub(crate) dies: u32,
    pub(crate) gives_up: u32,
    pub(crate) rolls_over: u32,
    /// Owners whose requests have a bound, and a short one.
    pub(crate) bounded: u32,
    /// Holders that never release.
    pub(crate) holder_dies: u32,
    /// Waiters of Redisson's that die, that are stuck for a while, that give up the way its asynchronous ones do.
    pub(crate) java_dies: u32,
    pub(crate) java_stuck: u32,
    pub(crate) java_async: u32,
    /// By how much Redisson's clocks are ahead: 8 s behind to 15 s, or hours.
    pub(crate) wild_clocks: bool,
    /// Whether who does not know what a takeover has come to forgets that owner, and names the one before again.
    pub(crate) forgets: bool,
}

impl Law {
    pub(crate) fn drawn(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed ^ 0x5eed);
        let mut upto = |most: u32| rng.u32(0..=most);
        Self {
            ours: 3,
            java: upto(3) as usize,
            lost: upto(25),
            reply_lost: upto(25),
            copied: upto(40),
            slow: upto(20),
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
        }
    }

    /// By how much a clock of Redisson's is ahead.
    pub(crate) fn ahead(&self, rng: &mut Rng) -> i64 {
        if self.wild_clocks {
            rng.choice([-21_600_000, -720_000, 0, 720_000]).unwrap()
        } else {
            rng.i64(-8_000..=15_000)
        }
    }
}
