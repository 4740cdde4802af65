//! The pauses between tries: doubling, bounded, and jittered in full.

use core::time::Duration;

use super::TimeoutReason;
use super::ids::Ids;
use crate::error::InvalidOption;
use crate::time::Instant;

/// The first step of a waiter.
const FIRST: Duration = Duration::from_millis(50);
/// The first step of what has to get through: a gateway that restarts is given some seconds.
const FIRST_OF_UNDOING: Duration = Duration::from_millis(500);
/// The largest step by itself: a waiter asks once a second in the mean.
const STEP_MAX: Duration = Duration::from_secs(2);
/// For how long a gateway is left alone that asks for it, at the most: it may name any time, and a
/// wait may have no end.
const REST_MAX: Duration = Duration::from_secs(60);
/// The shortest pause: jitter may come out as nothing, and nobody is helped by asking at once.
const PAUSE_MIN: Duration = Duration::from_millis(10);

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Backoff {
    pacing: Pacing,
    step: Duration,
    taken: u32,
}

/// How a refused try is followed by the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pacing {
    /// After a pause of anything up to a step that doubles from 50 ms to 2 s, or when the holder's
    /// lease runs out.
    #[default]
    Jittered,
    /// After a pause of its own choosing, whatever is known of the holder: Redisson's spin lock.
    Spin(SpinBackoff),
    /// After four fifths or more of the time that the queue tells: who stays away longer loses its
    /// place.
    Queue,
}

/// How a spin lock pauses: Redisson's two policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpinBackoff {
    /// The same pause each time.
    Constant(Duration),
    /// Growing pauses: `first`, then each time `factor` times the last and a little by chance,
    /// `max` at the most.
    Exponential {
        /// The first pause.
        first: Duration,
        /// The longest pause.
        max: Duration,
        /// By what each is longer than the one before.
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
        let fine = match self {
            Self::Constant(pause) => is_pause(pause),
            Self::Exponential { first, max, factor } => {
                is_pause(first) && is_pause(max) && first <= max && (1..=1000).contains(&factor)
            }
        };
        let accepted = "pauses of 1 to 60000 whole milliseconds, the longest not shorter than the first, and a factor of 1 to 1000";
        fine.then_some(self).ok_or_else(|| InvalidOption::new("backoff", accepted))
    }
}

impl Backoff {
    pub(super) const fn new(pacing: Pacing) -> Self {
        let step = match pacing {
            Pacing::Jittered | Pacing::Queue => FIRST,
            Pacing::Spin(SpinBackoff::Constant(pause)) => pause,
            Pacing::Spin(SpinBackoff::Exponential { first, .. }) => first,
        };
        Self { pacing, step, taken: 0 }
    }

    /// For requests that end or undo something: fewer, and over a longer time.
    pub(super) const fn of_undoing() -> Self {
        Self { step: FIRST_OF_UNDOING, ..Self::new(Pacing::Jittered) }
    }

    /// The next pause. `min_step` is a step that must at least be taken, so that a budget lasts for
    /// the whole wait.
    pub(super) fn next(&mut self, min_step: Duration, ids: &mut Ids) -> Duration {
        self.taken = self.taken.saturating_add(1);
        if let Pacing::Spin(policy) = self.pacing {
            let pause = self.step;
            if let SpinBackoff::Exponential { max, factor, .. } = policy {
                let by_chance = ids.jitter(ms(u64::from(self.taken - 1)));
                self.step = pause.saturating_mul(factor).saturating_add(by_chance).min(max);
            }
            return pause.max(min_step / 2);
        }
        let step = self.step.max(min_step);
        self.step = (self.step * 2).min(STEP_MAX);
        ids.jitter(step).max(PAUSE_MIN)
    }

    /// The pause that a queue has told: four fifths of it or more, so that those who were told the
    /// same do not come together.
    pub(super) fn told(told: Duration, ids: &mut Ids) -> Duration {
        (told * 4 / 5 + ids.jitter(told / 5)).max(PAUSE_MIN)
    }
}

/// The step whose mean makes so many tries last until the wait is over; nothing where either has no
/// end.
pub(super) fn min_step(over: Option<Instant>, tries: Option<u32>, now: Instant) -> Duration {
    over.zip(tries).map_or(Duration::ZERO, |(over, tries)| now.until(over) * 2 / tries.max(1))
}

/// What a refused waiter knows of when to ask again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RetryHints {
    /// Its place in a queue, and when the queue wants to hear of it.
    pub(super) queue: Option<(u64, Duration)>,
    /// How long it trusts that it would hear of a release; `None` when it hears nothing.
    pub(super) silence: Option<Duration>,
    /// How long the hold that is in the way lasts, where that counts.
    pub(super) remaining: Option<Duration>,
    /// For how long the gateway wants to be left alone.
    pub(super) rest: Option<Duration>,
}

/// When to ask again, and why then. `min_step` as for [`Backoff::next`].
pub(super) fn next_try(
    hints: RetryHints,
    backoff: &mut Backoff,
    min_step: Duration,
    ids: &mut Ids,
    over: Option<Instant>,
    now: Instant,
) -> (Instant, TimeoutReason) {
    let pause = match (hints.queue, hints.silence) {
        // Who is next has to notice when it is; the others only have to be heard of.
        (Some((0, queue)), None) => queue.min(backoff.next(min_step, ids)),
        (Some((_, queue)), _) => Backoff::told(queue, ids),
        (None, Some(silence)) => silence.max(min_step),
        (None, None) => backoff.next(min_step, ids),
    };
    let rest = hints.rest.map(|rest| rest.min(REST_MAX)).filter(|rest| *rest > pause);
    let (until, why) = ask_again(rest.unwrap_or(pause), hints.remaining, over, now);
    let why = match why {
        _ if rest.is_some() => TimeoutReason::RetryAfter,
        TimeoutReason::BackOff if hints.silence.is_some() => TimeoutReason::Silence,
        why => why,
    };
    (until, why)
}

/// When to ask again: after the pause, or when the hold that is in the way ends, but not beyond the
/// end of the wait.
fn ask_again(
    pause: Duration,
    remaining: Option<Duration>,
    over: Option<Instant>,
    now: Instant,
) -> (Instant, TimeoutReason) {
    // One more, since Redis counts in whole milliseconds too.
    let expires = remaining.map(|remaining| remaining + ms(1)).filter(|expires| *expires < pause);
    let next = expires.map_or((now + pause, TimeoutReason::BackOff), |expires| {
        (now + expires, TimeoutReason::HolderExpires)
    });
    over.filter(|over| next.0.has_reached(*over))
        .map_or(next, |over| (over, TimeoutReason::WaitOver))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Entropy;

    #[test]
    fn steps_double_up_to_two_seconds_and_pauses_stay_below_them() {
        let mut ids = Ids::new(Entropy::new([7; 32]));
        let mut backoff = Backoff::new(Pacing::Jittered);
        let mut step = FIRST;
        for _ in 0..200 {
            let pause = backoff.next(Duration::ZERO, &mut ids);
            assert!(pause >= PAUSE_MIN && pause <= step, "{pause:?} within {step:?}");
            step = (step * 2).min(STEP_MAX);
        }
    }

    #[test]
    fn a_stretched_step_is_filled_evenly() {
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
    fn a_queue_is_asked_again_before_the_time_that_it_told_is_over() {
        let mut ids = Ids::new(Entropy::new([7; 32]));
        for _ in 0..200 {
            let pause = Backoff::told(ms(3_000), &mut ids);
            assert!((ms(2_400)..=ms(3_000)).contains(&pause), "{pause:?}");
        }
    }
}
