//! The pauses between tries: doubling, bounded, and jittered in full.

use core::time::Duration;

use super::ids::Ids;

/// The first step of a waiter.
const FIRST: Duration = Duration::from_millis(50);
/// The first step of what has to get through: a gateway that restarts is given some seconds.
const FIRST_OF_UNDOING: Duration = Duration::from_millis(500);
/// The largest step by itself: a waiter asks once a second in the mean.
const STEP_MAX: Duration = Duration::from_secs(2);
/// The shortest pause: jitter may come out as nothing, and nobody is helped by asking at once.
const PAUSE_MIN: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Backoff {
    step: Duration,
}

impl Backoff {
    pub(super) const fn new() -> Self {
        Self { step: FIRST }
    }

    /// For requests that end or undo something: fewer, and over a longer time.
    pub(super) const fn of_undoing() -> Self {
        Self { step: FIRST_OF_UNDOING }
    }

    /// The next pause. `stretch` is a step that must at least be taken, so that a budget lasts for the whole wait.
    pub(super) fn next(&mut self, stretch: Duration, ids: &mut Ids) -> Duration {
        let step = self.step.max(stretch);
        self.step = (self.step * 2).min(STEP_MAX);
        ids.jitter(step).max(PAUSE_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Entropy;

    #[test]
    fn steps_double_up_to_two_seconds_and_pauses_stay_below_them() {
        let mut ids = Ids::new(Entropy::new([7; 32]));
        let mut backoff = Backoff::new();
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
        let stretch = Duration::from_secs(100);
        let pauses: Duration = (0..1000).map(|_| Backoff::new().next(stretch, &mut ids)).sum();
        let mean = pauses / 1000;
        assert!(mean > stretch * 45 / 100 && mean < stretch * 55 / 100, "{mean:?}");
    }
}
