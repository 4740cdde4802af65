//! The two clocks of a host, in virtual time.

use edgelatch::time::Instant;

/// The state of a host's clocks. Times are in microseconds of exact time since the schedule began.
#[derive(Clone, Debug)]
pub(crate) struct Clocks {
    monotonic_base: u64,
    wall_base: u64,
    /// The amount by which both clocks run fast, in millionths.
    ppm: i64,
    /// The amount by which the wall clock was set, in microseconds.
    set_by: i64,
    /// Whether the monotonic clock stands still while its host is suspended.
    monotonic_stops: bool,
    wall_stops: bool,
    suspended_for: u64,
    suspended_since: Option<u64>,
}

impl Clocks {
    pub(crate) const fn new(
        monotonic_base: u64,
        wall_base: u64,
        ppm: i64,
        monotonic_stops: bool,
    ) -> Self {
        let (set_by, suspended_for, suspended_since) = (0, 0, None);
        Self {
            monotonic_base,
            wall_base,
            ppm,
            set_by,
            monotonic_stops,
            wall_stops: false,
            suspended_for,
            suspended_since,
        }
    }

    /// Makes both clocks stand still while their host is suspended, so that a client cannot notice
    /// it.
    pub(crate) const fn with_both_clocks_suspended(mut self) -> Self {
        (self.monotonic_stops, self.wall_stops) = (true, true);
        self
    }

    const fn scaled(&self, time: u64) -> u64 {
        // A schedule lasts a few hours at most: far below the range's end.
        time.saturating_mul(1_000_000u64.saturating_add_signed(self.ppm)) / 1_000_000
    }

    /// The monotonic clock's time, in microseconds.
    pub(crate) fn monotonic(&self, now: u64) -> u64 {
        self.monotonic_base + self.scaled(self.running_time(now))
    }

    /// The time for which the host was not suspended, if its monotonic clock stands still during a
    /// suspension; otherwise `now`.
    fn running_time(&self, now: u64) -> u64 {
        self.suspended_since.filter(|_| self.monotonic_stops).unwrap_or(now) - self.suspended_for
    }

    /// The time on both clocks.
    pub(crate) fn read(&self, now: u64) -> Instant {
        let passed = if self.wall_stops { self.running_time(now) } else { now };
        let wall = (self.wall_base + self.scaled(passed)).saturating_add_signed(self.set_by);
        Instant::from_millis(self.monotonic(now) / 1000, wall / 1000)
    }

    /// When the monotonic clock reaches this time, unless it stands still before.
    pub(crate) fn time_of(&self, monotonic: u64, now: u64) -> u64 {
        let left = monotonic.saturating_sub(self.monotonic(now));
        now + left * 1_000_000 / 1_000_000u64.saturating_add_signed(self.ppm) + 1
    }

    pub(crate) const fn set(&mut self, by: i64) {
        self.set_by += by;
    }

    pub(crate) const fn suspend(&mut self, now: u64) {
        self.suspended_since = Some(now);
    }

    pub(crate) fn resume(&mut self, now: u64) {
        let since = self.suspended_since.take().unwrap_or(now);
        if self.monotonic_stops {
            self.suspended_for += now - since;
        }
    }
}
