//! What a schedule is like.

/// How long Redisson's holders hold unless they renew, and after what they set the end of the hash when they do.
pub(super) const PEER_LEASE: u64 = 1_500;
/// For how long a copy of a request may be on its way.
pub(super) const COPY_MS: u64 = 12_000;

/// What a schedule is like: chances in per cent.
#[derive(Clone, Debug)]
pub(super) struct Law {
    /// That a request is never delivered.
    pub(super) lost: u8,
    /// That it is delivered late.
    pub(super) slow: u8,
    /// That it is delivered once more.
    pub(super) copied: u8,
    /// That a reply is lost.
    pub(super) unheard: u8,
    /// That a holder ends without a word, or does nothing for a while.
    pub(super) dies: u8,
    pub(super) pauses: u8,
    /// That a thread of Java's ends without a word, each time it might do something.
    pub(super) java_dies: u8,
    /// That whoever is refused gives up at once.
    pub(super) aborts: u8,
    /// That a client has not seen Redis' clock.
    pub(super) unbounded: u8,
    /// That a writer keeps readers out.
    pub(super) wants: u8,
    /// How many of ours there are at a time, and how many of Java's.
    pub(super) ours: usize,
    pub(super) java: usize,
    /// Leases are trusted for longer than Redisson's renewal lets a hash live.
    pub(super) trusts_all: bool,
    /// What one rule says is not done.
    pub(super) moving_bound: bool,
    pub(super) brief_first: bool,
}

impl Law {
    /// One by chance.
    pub(super) fn drawn(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut chance = |most: u8| if rng.bool() { rng.u8(..=most) } else { 0 };
        Self {
            lost: chance(15),
            slow: chance(15),
            copied: chance(25),
            unheard: chance(20),
            dies: chance(10),
            java_dies: chance(3),
            pauses: chance(15),
            aborts: chance(10),
            unbounded: chance(30),
            wants: chance(50),
            ours: rng.usize(2..5),
            java: rng.usize(0..3),
            trusts_all: false,
            moving_bound: false,
            brief_first: false,
        }
    }
}
