//! The contention at channels, as far as this client has received messages. It outlives a stream by
//! some seconds, since a client that has just released a lock may acquire it again.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use crate::machine::ContentionEstimator;
use crate::time::Instant;

/// Time without a message after which the contention at a channel is forgotten.
const REMEMBERED: Duration = Duration::from_secs(10);
/// Largest number of channels that are remembered.
const CHANNELS_MAX: usize = 16;

/// The contention at several channels.
#[derive(Clone, Debug, Default)]
pub(super) struct Contention(Vec<Channel>);

/// The contention at one channel, by waiters of this and of other clients.
#[derive(Clone, Debug)]
struct Channel {
    name: String,
    estimator: ContentionEstimator,
    /// The number of subscriptions of this client.
    subscriptions: u32,
}

impl Channel {
    fn is_over(&self, now: Instant) -> bool {
        let last_message_at = self.estimator.last_message_at();
        self.subscriptions == 0
            && last_message_at.is_none_or(|at| now.max_elapsed(at) >= REMEMBERED)
    }
}

impl Contention {
    /// Records a subscription to this channel; forgets the oldest channel if there are too many.
    pub(super) fn subscribed(&mut self, channel: &str, now: Instant) {
        self.forget(now);
        if let Some(known) = self.0.iter_mut().find(|known| known.name == channel) {
            known.subscriptions += 1;
            return;
        }
        if self.0.len() >= CHANNELS_MAX {
            self.0.remove(0);
        }
        self.0.push(Channel {
            name: channel.to_string(),
            estimator: ContentionEstimator::default(),
            subscriptions: 1,
        });
    }

    /// Records the end of a subscription to this channel.
    pub(super) fn unsubscribed(&mut self, channel: &str) {
        if let Some(known) = self.0.iter_mut().find(|known| known.name == channel) {
            known.subscriptions = known.subscriptions.saturating_sub(1);
        }
    }

    /// The estimate for this channel; `None` if it was forgotten.
    pub(super) fn at(&mut self, channel: &str) -> Option<&mut ContentionEstimator> {
        self.0.iter_mut().find(|known| known.name == channel).map(|known| &mut known.estimator)
    }

    /// Whether this client has a waiter at one of these channels, or has received a message there a
    /// moment ago. `channels` is called only if some channel is remembered.
    pub(super) fn is_at(&mut self, channels: impl FnOnce() -> Vec<String>, now: Instant) -> bool {
        self.forget(now);
        let is_known = |channel: &String| self.0.iter().any(|known| known.name == *channel);
        !self.0.is_empty() && channels().iter().any(is_known)
    }

    fn forget(&mut self, now: Instant) {
        self.0.retain(|channel| !channel.is_over(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(seconds * 1000, seconds * 1000)
    }

    fn is_at(contention: &mut Contention, channel: &str, seconds: u64) -> bool {
        contention.is_at(|| [channel.to_string()].into(), at(seconds))
    }

    #[test]
    fn a_channel_is_remembered_while_it_has_a_subscription_and_ten_seconds_after_its_last_message()
    {
        let mut contention = Contention::default();
        contention.subscribed("a", at(0));
        contention.subscribed("a", at(1));
        contention.subscribed("b", at(1));
        contention.at("a").unwrap().on_release(at(2));
        assert!(contention.at("c").is_none() && !is_at(&mut contention, "c", 2));
        contention.unsubscribed("b");
        assert!(!is_at(&mut contention, "b", 3), "no message has come");
        contention.unsubscribed("a");
        assert!(is_at(&mut contention, "a", 100), "one of two subscriptions is left");
        contention.unsubscribed("a");
        contention.at("a").unwrap().on_release(at(101));
        assert!(is_at(&mut contention, "a", 110));
        assert!(!is_at(&mut contention, "a", 111));
        assert!(contention.at("a").is_none());
    }

    #[test]
    fn the_oldest_of_too_many_channels_is_forgotten() {
        let mut contention = Contention::default();
        for number in 0..=CHANNELS_MAX {
            contention.subscribed(&number.to_string(), at(0));
        }
        assert!(!is_at(&mut contention, "0", 0) && is_at(&mut contention, "1", 0));
        assert!(is_at(&mut contention, &CHANNELS_MAX.to_string(), 0));
    }

    #[test]
    fn the_channels_of_a_target_are_computed_only_if_some_channel_is_remembered() {
        let mut contention = Contention::default();
        assert!(!contention.is_at(|| panic!("nothing is remembered"), at(0)));
    }
}
