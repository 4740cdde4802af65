//! The pauses between tries: doubling, bounded, and jittered in full.

use core::time::Duration;

use super::TimeoutReason;
use super::ids::Ids;
use crate::error::InvalidOption;
use crate::time::Instant;

/// The first step of a waiter.
const FIRST_STEP: Duration = Duration::from_millis(50);
/// The first step of a request that ends or undoes a hold: its attempts extend over some seconds,
/// in which a gateway may restart.
const FIRST_STEP_OF_UNDOING: Duration = Duration::from_millis(500);
/// The largest step without a budget: a waiter retries once a second on average.
const STEP_MAX: Duration = Duration::from_secs(2);
/// The longest pause that `Retry-After` causes: a gateway may send any time, and a wait may have no
/// end.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);
/// The shortest pause: jitter may be zero, and an immediate retry would be refused again.
pub(super) const PAUSE_MIN: Duration = Duration::from_millis(10);
/// The shortest pause in a queue: a script may suggest 1 ms while it removes many dead waiters.
const QUEUE_PAUSE_MIN: Duration = Duration::from_millis(20);

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The back-off of one wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Backoff {
    pacing: Pacing,
    /// The upper limit of the next random pause; the next pause itself for a spin lock.
    step: Duration,
    /// The number of pauses so far.
    pauses: u32,
}

/// The pauses between a refused try and the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pacing {
    /// A random pause up to a step that doubles from 50 ms to 2 s, or until the holder's lease
    /// ends.
    #[default]
    Jittered,
    /// Pauses by the given policy, even if the end of the holder's lease is known: Redisson's spin
    /// lock.
    Spin(SpinBackoff),
    /// At least four fifths of the time that the queue sets; a waiter that stays away longer than
    /// that time loses its place.
    Queue,
}

/// The pauses of a spin lock: Redisson's two policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpinBackoff {
    /// An equal pause before each retry.
    Constant(Duration),
    /// Growing pauses: the first is `first`, each further one is `factor` times the previous one
    /// plus a small random time, at most `max`.
    Exponential {
        /// The first pause.
        first: Duration,
        /// The longest pause.
        max: Duration,
        /// The factor by which each pause is longer than the previous one.
        factor: u32,
    },
}

impl Default for SpinBackoff {
    /// Redisson's: from 1 ms, doubling, to 128 ms.
    fn default() -> Self {
        Self::Exponential { first: ms(1), max: ms(128), factor: 2 }
    }
}

impl SpinBackoff {
    /// The constant policy with Redisson's 64 ms.
    pub const CONSTANT: Self = Self::Constant(ms(64));

    /// Checks a policy.
    ///
    /// # Errors
    /// [`InvalidOption`] unless pauses are 1 ms to 60 s in whole milliseconds, the longest not
    /// shorter than the first, and the factor is 1 to 1000.
    pub fn check(self) -> Result<Self, InvalidOption> {
        let is_pause = |pause: Duration| {
            (ms(1)..=ms(60_000)).contains(&pause) && pause.subsec_nanos().is_multiple_of(1_000_000)
        };
        let is_valid = match self {
            Self::Constant(pause) => is_pause(pause),
            Self::Exponential { first, max, factor } => {
                is_pause(first) && is_pause(max) && first <= max && (1..=1000).contains(&factor)
            }
        };
        let accepted = "pauses of 1 to 60000 whole milliseconds, the longest not shorter than the first, and a factor of 1 to 1000";
        is_valid.then_some(self).ok_or_else(|| InvalidOption::new("backoff", accepted))
    }
}

impl Backoff {
    pub(super) const fn new(pacing: Pacing) -> Self {
        let step = match pacing {
            Pacing::Jittered | Pacing::Queue => FIRST_STEP,
            Pacing::Spin(SpinBackoff::Constant(pause)) => pause,
            Pacing::Spin(SpinBackoff::Exponential { first, .. }) => first,
        };
        Self { pacing, step, pauses: 0 }
    }

    /// Creates the back-off of a request that ends or undoes a hold: fewer attempts over a longer
    /// time.
    pub(super) const fn for_undoing() -> Self {
        Self { step: FIRST_STEP_OF_UNDOING, ..Self::new(Pacing::Jittered) }
    }

    /// Returns the next pause. `min_step` is the smallest step with which the budget lasts for the
    /// whole wait.
    pub(super) fn next(&mut self, min_step: Duration, ids: &mut Ids) -> Duration {
        self.pauses = self.pauses.saturating_add(1);
        if let Pacing::Spin(policy) = self.pacing {
            let pause = self.step;
            if let SpinBackoff::Exponential { max, factor, .. } = policy {
                let jitter = ids.jitter(ms(u64::from(self.pauses - 1)));
                self.step = pause.saturating_mul(factor).saturating_add(jitter).min(max);
            }
            return pause.max(min_step / 2);
        }
        let step = self.step.max(min_step);
        self.step = (self.step * 2).min(STEP_MAX);
        ids.jitter(step).max(PAUSE_MIN)
    }

    /// Returns the pause before a retry that a queue expects within `time`: four fifths of it or
    /// more, at random, so that waiters with the same time do not retry together.
    pub(super) fn queue_pause(time: Duration, ids: &mut Ids) -> Duration {
        (time * 4 / 5 + ids.jitter(time / 5)).max(QUEUE_PAUSE_MIN)
    }
}

/// Returns the step with which `tries` tries last on average until the wait is over; zero without a
/// budget or without an end.
pub(super) fn min_step(
    wait_deadline: Option<Instant>,
    tries: Option<u32>,
    now: Instant,
) -> Duration {
    wait_deadline
        .zip(tries)
        .map_or(Duration::ZERO, |(deadline, tries)| now.until(deadline) * 2 / tries.max(1))
}

/// The facts that determine when a refused waiter retries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RetryHints {
    /// Its place in a queue, where 0 is the head, and the time within which the queue expects a
    /// retry.
    pub(super) queue: Option<(u64, Duration)>,
    /// How long the subscription is relied on without a message; `None` without a subscription.
    pub(super) silence: Option<Duration>,
    /// The remaining time of the holder's lease; `None` if it is unknown, or the waiter does not
    /// retry at its end.
    pub(super) remaining: Option<Duration>,
    /// The gateway's `Retry-After`.
    pub(super) retry_after: Option<Duration>,
}

/// Returns when to retry, and the reason. `min_step` as for [`Backoff::next`].
pub(super) fn next_try(
    hints: RetryHints,
    backoff: &mut Backoff,
    min_step: Duration,
    ids: &mut Ids,
    wait_deadline: Option<Instant>,
    now: Instant,
) -> (Instant, TimeoutReason) {
    let pause = match (hints.queue, hints.silence) {
        // The first waiter in the queue has to notice that the lock is free; the other waiters only
        // have to show that they are alive.
        (Some((0, queue)), None) => queue.min(backoff.next(min_step, ids)).max(QUEUE_PAUSE_MIN),
        (Some((_, queue)), _) => Backoff::queue_pause(queue, ids),
        (None, Some(silence)) => silence.max(min_step),
        (None, None) => backoff.next(min_step, ids),
    };
    let retry_after = hints.retry_after.map(|time| time.min(RETRY_AFTER_MAX));
    let longer_retry_after = retry_after.filter(|time| *time > pause);
    let (until, why) =
        retry_time(longer_retry_after.unwrap_or(pause), hints.remaining, wait_deadline, now);
    let why = match why {
        _ if longer_retry_after.is_some() => TimeoutReason::RetryAfter,
        TimeoutReason::BackOff if hints.silence.is_some() => TimeoutReason::Silence,
        why => why,
    };
    (until, why)
}

/// Returns when to retry: after the pause, or when the holder's lease ends, but not after the end
/// of the wait.
fn retry_time(
    pause: Duration,
    remaining: Option<Duration>,
    wait_deadline: Option<Instant>,
    now: Instant,
) -> (Instant, TimeoutReason) {
    // One millisecond more, since Redis counts in whole milliseconds too.
    let expires = remaining.map(|remaining| remaining + ms(1)).filter(|expires| *expires < pause);
    let next = expires.map_or((now + pause, TimeoutReason::BackOff), |expires| {
        (now + expires, TimeoutReason::HolderExpires)
    });
    wait_deadline
        .filter(|deadline| next.0.has_reached(*deadline))
        .map_or(next, |deadline| (deadline, TimeoutReason::WaitOver))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Entropy;

    #[test]
    fn steps_double_up_to_two_seconds_and_pauses_stay_below_them() {
        let mut ids = Ids::new(Entropy::new([7; 32]));
        let mut backoff = Backoff::new(Pacing::Jittered);
        let mut step = FIRST_STEP;
        for _ in 0..200 {
            let pause = backoff.next(Duration::ZERO, &mut ids);
            assert!(pause >= PAUSE_MIN && pause <= step, "{pause:?} within {step:?}");
            step = (step * 2).min(STEP_MAX);
        }
    }

    #[test]
    fn pauses_average_half_of_a_minimal_step() {
        let mut ids = Ids::new(Entropy::new([7; 32]));
        let min_step = Duration::from_secs(100);
        let pauses: Duration =
            (0..1000).map(|_| Backoff::new(Pacing::Jittered).next(min_step, &mut ids)).sum();
        let mean = pauses / 1000;
        assert!(mean > min_step * 45 / 100 && mean < min_step * 55 / 100, "{mean:?}");
    }

    #[test]
    fn a_spin_lock_s_pauses_grow_as_redisson_s_do() {
        let mut ids = Ids::new(Entropy::new([7; 32]));
        // The figures of Redisson's own test: 10, 30 to 31, 90 to 95, 100, 100.
        let policy = SpinBackoff::Exponential { first: ms(10), max: ms(100), factor: 3 };
        let mut backoff = Backoff::new(Pacing::Spin(policy));
        let mut next = || backoff.next(Duration::ZERO, &mut ids);
        assert_eq!(next(), ms(10));
        assert_eq!(next(), ms(30));
        assert!((ms(90)..=ms(93)).contains(&next()));
        assert_eq!((next(), next()), (ms(100), ms(100)));
        let mut backoff = Backoff::new(Pacing::Spin(SpinBackoff::CONSTANT));
        assert!((0..9).all(|_| backoff.next(Duration::ZERO, &mut ids) == ms(64)));
    }

    #[test]
    fn a_waiter_retries_before_the_time_that_its_queue_set_is_over() {
        let mut ids = Ids::new(Entropy::new([7; 32]));
        for _ in 0..200 {
            let pause = Backoff::queue_pause(ms(3_000), &mut ids);
            assert!((ms(2_400)..=ms(3_000)).contains(&pause), "{pause:?}");
        }
    }
}
