//! The two clocks of a host, in virtual time.

use edgelatch::time::Instant;

/// What a host's clocks are like. Times are in microseconds since the schedule began, by a clock
/// that is always right.
#[derive(Clone, Debug)]
pub(crate) struct Clocks {
    monotonic_base: u64,
    wall_base: u64,
    /// By how many millionths both run fast.
    ppm: i64,
    /// By how much the wall clock was set.
    set_by: i64,
    /// Whether the monotonic clock stands still while the host does.
    stands: bool,
    wall_stands: bool,
    stood_for: u64,
    stands_since: Option<u64>,
}

impl Clocks {
    pub(crate) const fn new(monotonic_base: u64, wall_base: u64, ppm: i64, stands: bool) -> Self {
        let (set_by, stood_for, stands_since) = (0, 0, None);
        Self {
            monotonic_base,
            wall_base,
            ppm,
            set_by,
            stands,
            wall_stands: false,
            stood_for,
            stands_since,
        }
    }

    /// The same, but a host that stands still notices it by no clock.
    pub(crate) const fn both_stand(mut self) -> Self {
        (self.stands, self.wall_stands) = (true, true);
        self
    }

    const fn paced(&self, time: u64) -> u64 {
        // Schedules last for hours at the most: far from the range's end.
        time.saturating_mul(1_000_000u64.saturating_add_signed(self.ppm)) / 1_000_000
    }

    /// What the monotonic clock shows, in microseconds.
    pub(crate) fn monotonic(&self, now: u64) -> u64 {
        self.monotonic_base + self.paced(self.awake(now))
    }

    /// How much time has passed that a clock has noticed which stands still with its host.
    fn awake(&self, now: u64) -> u64 {
        self.stands_since.filter(|_| self.stands).unwrap_or(now) - self.stood_for
    }

    /// What both show.
    pub(crate) fn read(&self, now: u64) -> Instant {
        let passed = if self.wall_stands { self.awake(now) } else { now };
        let wall = (self.wall_base + self.paced(passed)).saturating_add_signed(self.set_by);
        Instant::from_millis(self.monotonic(now) / 1000, wall / 1000)
    }

    /// When the monotonic clock shows this, unless it stands still before.
    pub(crate) fn when(&self, monotonic: u64, now: u64) -> u64 {
        let left = monotonic.saturating_sub(self.monotonic(now));
        now + left * 1_000_000 / 1_000_000u64.saturating_add_signed(self.ppm) + 1
    }

    pub(crate) const fn set(&mut self, by: i64) {
        self.set_by += by;
    }

    pub(crate) const fn stand(&mut self, now: u64) {
        self.stands_since = Some(now);
    }

    pub(crate) fn go_on(&mut self, now: u64) {
        let since = self.stands_since.take().unwrap_or(now);
        if self.stands {
            self.stood_for += now - since;
        }
    }
}
