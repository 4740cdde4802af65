//! The health of a gateway's streams: whether they may be opened, and when one counts as dead.

use core::time::Duration;

use super::NotificationMode;
use crate::protocol::gateway::StreamStatus;
use crate::time::{Instant, millis};

/// Longest delay after the first failure; each further failure doubles it, up to `RETRY_DELAY_MAX`.
const RETRY_DELAY: Duration = Duration::from_secs(1);
const RETRY_DELAY_MAX: Duration = Duration::from_secs(60);
/// Consecutive missing acknowledgements after which the client opens no more streams.
const ACK_TIMEOUTS_MAX: u32 = 2;
/// Longest age of a stream before it is reopened. This replaces a stream that died without a sign,
/// and is shorter than the limits of the platforms.
const AGE_MAX: Duration = Duration::from_secs(50);
/// Shortest assumed interval between signs of life, since they may be late by this.
const HEARTBEAT_MIN: Duration = Duration::from_secs(1);

/// Whether and when a stream may be opened.
#[derive(Clone, Debug, Default)]
pub(super) struct Health {
    /// Whether no stream is opened any more.
    has_no_streams: bool,
    failures: u32,
    ack_timeouts: u32,
    retry_at: Option<Instant>,
    /// Longest interval observed between signs of life while nothing is published.
    heartbeat: Option<Duration>,
    /// State of the jitter's generator.
    seed: u64,
    /// How waiters learn of releases; `None` before the first wait.
    notification_mode: Option<NotificationMode>,
}

impl Health {
    /// Whether this client opens no more streams at this gateway, for as long as the client lives.
    pub(super) const fn has_no_streams(&self) -> bool {
        self.has_no_streams
    }

    /// Records that a waiter has no stream.
    pub(super) const fn on_polling(&mut self) {
        self.notification_mode = Some(NotificationMode::Polling);
    }

    pub(super) fn can_open(&self, now: Instant) -> bool {
        !self.has_no_streams && self.retry_at.is_none_or(|until| now.has_reached(until))
    }

    /// When a stream may be opened again, if it has to wait.
    pub(super) const fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// How waiters learn of releases; `None` before the first wait.
    pub(super) const fn notification_mode(&self) -> Option<NotificationMode> {
        self.notification_mode
    }

    /// Records that a stream is being opened; `seed` starts the jitter until the next one.
    pub(super) const fn on_opening(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// Records a gateway's response. Returns the time until which to keep the stream, if it is one.
    pub(super) fn on_response(
        &mut self,
        status: u16,
        retry_after: Option<Duration>,
        now: Instant,
    ) -> Option<Instant> {
        match StreamStatus::of(status) {
            // Streams of many clients that were opened together do not end together.
            StreamStatus::Open => return Some(now + AGE_MAX * 4 / 5 + self.jitter(AGE_MAX / 5)),
            StreamStatus::Unavailable => {
                self.on_failure(now);
                self.delay_retry(retry_after, now);
            }
            StreamStatus::Unsupported => {
                self.has_no_streams = true;
                self.on_polling();
            }
        }
        None
    }

    /// Records that a stream could not be opened, or has ended early.
    pub(super) fn on_failure(&mut self, now: Instant) {
        self.on_polling();
        self.failures = self.failures.saturating_add(1);
        let delay = RETRY_DELAY
            .saturating_mul(1 << self.failures.saturating_sub(1).min(6))
            .min(RETRY_DELAY_MAX);
        self.retry_at = Some(now + delay / 2 + self.jitter(delay / 2));
    }

    /// Delays the next stream by the gateway's `Retry-After`. Jitter keeps clients that it refused
    /// at the same time from returning at the same time.
    fn delay_retry(&mut self, retry_after: Option<Duration>, now: Instant) {
        if let Some(delay) = retry_after.map(|delay| delay.min(RETRY_DELAY_MAX)) {
            let until = now + delay + self.jitter(RETRY_DELAY);
            self.retry_at = self
                .retry_at
                .map_or(Some(until), |at| Some(if at.has_reached(until) { at } else { until }));
        }
    }

    /// Records that the acknowledgement of a subscription has not come.
    pub(super) fn on_ack_timeout(&mut self, now: Instant) {
        self.ack_timeouts += 1;
        self.has_no_streams |= self.ack_timeouts >= ACK_TIMEOUTS_MAX;
        self.on_failure(now);
    }

    /// Records that a subscription is confirmed.
    pub(super) const fn on_confirmed(&mut self) {
        (self.failures, self.ack_timeouts, self.retry_at) = (0, 0, None);
        self.notification_mode = Some(NotificationMode::Stream);
    }

    /// Records a sign of life that came `after` the one before.
    pub(super) fn on_heartbeat(&mut self, after: Duration) {
        self.heartbeat = self.heartbeat.max(Some(after.max(HEARTBEAT_MIN)));
    }

    /// Whether a stream that has been silent for this time is dead: more than twice the longest
    /// interval between its gateway's signs of life. Without such an interval it is not.
    pub(super) fn is_dead(&self, silent: Duration) -> bool {
        self.silence_max().is_some_and(|most| silent > most)
    }

    /// The longest silence of a live stream, if it is known.
    pub(super) fn silence_max(&self) -> Option<Duration> {
        self.heartbeat.map(|heartbeat| heartbeat * 2)
    }

    /// Returns a random time between zero and `most`.
    fn jitter(&mut self, most: Duration) -> Duration {
        let mut jitter = fastrand::Rng::with_seed(self.seed);
        let pause = Duration::from_millis(jitter.u64(..=millis(most)));
        self.seed = jitter.get_seed();
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_millis(1_000_000, 2_000_000);

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// The time until a stream may be opened again.
    fn delay(health: &Health) -> Duration {
        NOW.until(health.retry_at().unwrap())
    }

    #[test]
    fn after_each_failure_in_a_row_the_next_stream_waits_twice_as_long_up_to_a_minute() {
        let mut health = Health::default();
        assert!(health.can_open(NOW) && health.notification_mode().is_none());
        health.on_opening(7);
        for longest in [1, 2, 4, 8, 16, 32, 60, 60] {
            health.on_failure(NOW);
            assert!(secs(longest) / 2 <= delay(&health) && delay(&health) <= secs(longest));
            assert!(!health.can_open(NOW) && health.can_open(NOW + delay(&health)));
            assert_eq!(health.notification_mode(), Some(NotificationMode::Polling));
        }
        health.on_confirmed();
        assert!(health.can_open(NOW));
        assert_eq!(health.notification_mode(), Some(NotificationMode::Stream));
        health.on_failure(NOW);
        assert!(delay(&health) <= secs(1), "failures before the confirmation count no more");
    }

    #[test]
    fn clients_whose_streams_fail_together_do_not_open_the_next_ones_together() {
        let delays = [1, 2, 3].map(|seed| {
            let mut health = Health::default();
            health.on_opening(seed);
            health.on_failure(NOW);
            let first = delay(&health);
            health.on_failure(NOW);
            (first, delay(&health))
        });
        assert!(delays[0] != delays[1] && delays[1] != delays[2], "{delays:?}");
        let kept = [1, 2].map(|seed| {
            let mut health = Health::default();
            health.on_opening(seed);
            NOW.until(health.on_response(200, None, NOW).unwrap())
        });
        assert_ne!(kept[0], kept[1]);
        assert!(kept.iter().all(|age| secs(40) <= *age && *age <= secs(50)), "{kept:?}");
    }

    #[test]
    fn the_next_stream_waits_for_the_retry_after_of_the_gateway_but_a_minute_at_most() {
        for (retry_after, least, most) in [(0, 0, 1), (20, 20, 21), (600, 60, 61)] {
            let mut health = Health::default();
            assert_eq!(health.on_response(503, Some(secs(retry_after)), NOW), None);
            let delay = delay(&health);
            assert!(secs(least) <= delay && delay <= secs(most), "{retry_after}: {delay:?}");
        }
    }

    #[test]
    fn a_gateway_without_streams_gets_no_further_request_for_one() {
        let mut health = Health::default();
        assert_eq!(health.on_response(404, None, NOW), None);
        assert!(health.has_no_streams() && !health.can_open(NOW + secs(600)));
        assert_eq!(health.notification_mode(), Some(NotificationMode::Polling));
    }

    #[test]
    fn a_stream_may_be_silent_for_twice_the_longest_interval_between_signs_of_life() {
        let mut health = Health::default();
        assert_eq!(health.silence_max(), None);
        assert!(!health.is_dead(secs(600)));
        health.on_heartbeat(Duration::from_millis(10));
        assert_eq!(health.silence_max(), Some(secs(2)), "signs of life may be late");
        health.on_heartbeat(secs(5));
        health.on_heartbeat(secs(3));
        assert!(!health.is_dead(secs(10)) && health.is_dead(Duration::from_millis(10_001)));
    }
}
