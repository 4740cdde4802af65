//! What is known of a gateway's streams.

use core::time::Duration;

use std::sync::{Mutex, PoisonError};

use super::Waking;
use crate::client::notice::Notice;
use crate::protocol::gateway::Opened;
use crate::time::{Instant, millis};
use crate::transport::StreamHead;

/// How long to rest after the first failure, at the most; each further one doubles it.
const REST: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(60);
/// So many acknowledgements that never came in a row, and it is not asked again.
const HANGS_MAX: u32 = 2;
/// After so long at the most a stream is opened anew: one that died without a sign is found out,
/// and no platform has ended it before.
const AGE_MAX: Duration = Duration::from_secs(50);
/// Signs of life may be late by this.
const BEAT_MIN: Duration = Duration::from_secs(1);

/// The same for all who wait, who are also told when waits go on otherwise.
#[derive(Debug, Default)]
pub(super) struct SharedHealth {
    health: Mutex<Health>,
    changed: Notice,
}

impl SharedHealth {
    /// Looks at what is known, or changes it.
    pub(super) fn with<R>(&self, access: impl FnOnce(&mut Health) -> R) -> R {
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        let before = health.waking;
        let result = access(&mut health);
        let is_changed = health.waking != before;
        drop(health);
        if is_changed {
            self.changed.notify();
        }
        result
    }

    /// How waits go on, once that is another than `seen`.
    pub(super) async fn waking(&self, seen: Option<Waking>) -> Waking {
        let other = || self.with(|health| health.waking).filter(|now| Some(*now) != seen);
        self.changed.until(other).await
    }
}

/// Whether and when a stream may be opened.
#[derive(Debug, Default)]
pub(super) struct Health {
    hopeless: bool,
    failures: u32,
    hangs: u32,
    retry_at: Option<Instant>,
    /// How far apart the signs of life are that it gives while nothing is published.
    beat: Option<Duration>,
    /// Where the jitter's generator stands.
    seed: u64,
    /// How waits go on.
    waking: Option<Waking>,
}

impl Health {
    /// It has no streams, for as long as this client lives.
    pub(super) const fn is_hopeless(&self) -> bool {
        self.hopeless
    }

    /// Somebody waits without a stream.
    pub(super) const fn polls(&mut self) {
        self.waking = Some(Waking::Polling);
    }

    pub(super) fn may_open(&self, now: Instant) -> bool {
        !self.hopeless && self.retry_at.is_none_or(|until| now.has_reached(until))
    }

    /// A stream is asked for; what is drawn until the next begins with this seed.
    pub(super) const fn opens(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// Takes note of what a gateway answered; until when the stream may be kept if it is one.
    pub(super) fn opened(&mut self, head: StreamHead, now: Instant) -> Option<Instant> {
        match Opened::of(head.code()) {
            // Those of many clients that came together do not go together.
            Opened::Stream => return Some(now + AGE_MAX * 4 / 5 + self.jitter(AGE_MAX / 5)),
            Opened::NotNow => {
                self.failed(now);
                self.rest_at_least(head.retry_after, now);
            }
            Opened::Never => {
                self.hopeless = true;
                self.polls();
            }
        }
        None
    }

    /// It could not be opened, or has ended before its time.
    pub(super) fn failed(&mut self, now: Instant) {
        self.polls();
        self.failures = self.failures.saturating_add(1);
        let rest = REST.saturating_mul(1 << self.failures.saturating_sub(1).min(6)).min(REST_MAX);
        self.retry_at = Some(now + rest / 2 + self.jitter(rest / 2));
    }

    /// The gateway wants no request for this time. Clients that it refused at the same time do not
    /// return at the same time.
    fn rest_at_least(&mut self, retry_after: Option<Duration>, now: Instant) {
        if let Some(rest) = retry_after.map(|rest| rest.min(REST_MAX)) {
            let until = now + rest + self.jitter(REST);
            self.retry_at = self
                .retry_at
                .map_or(Some(until), |at| Some(if at.has_reached(until) { at } else { until }));
        }
    }

    /// The acknowledgement has not come.
    pub(super) fn hung(&mut self, now: Instant) {
        self.hangs += 1;
        self.hopeless |= self.hangs >= HANGS_MAX;
        self.failed(now);
    }

    /// A subscription stands.
    pub(super) const fn stands(&mut self) {
        (self.failures, self.hangs, self.retry_at) = (0, 0, None);
        self.waking = Some(Waking::Stream);
    }

    /// It gave a sign of life so long after the last.
    pub(super) fn beats(&mut self, after: Duration) {
        self.beat = self.beat.max(Some(after.max(BEAT_MIN)));
    }

    /// Whether a stream that has been silent for so long is dead, as far as its gateway's habits
    /// are known.
    pub(super) fn is_dead(&self, silent: Duration) -> bool {
        self.beat.is_some_and(|beat| silent > beat * 2)
    }

    /// Anything from nothing to `most`.
    fn jitter(&mut self, most: Duration) -> Duration {
        let mut jitter = fastrand::Rng::with_seed(self.seed);
        let pause = Duration::from_millis(jitter.u64(..=millis(most)));
        self.seed = jitter.get_seed();
        pause
    }
}
