//! The messages that scripts publish, and the subscriptions that exist.

use super::{Run, ScriptModel};

/// A published message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    pub channel: String,
    pub text: String,
    /// Whether it was published by `SPUBLISH`, to the subscribers of a shard channel.
    pub sharded: bool,
}

/// The subscriptions that exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subscribers {
    /// A pattern subscription to everything except shard channels, which `PUBSUB NUMSUB` does not
    /// count; and subscriptions to these channels, plain and sharded.
    PatternAnd(Vec<String>),
    /// Subscriptions to these channels, plain and sharded; a channel occurs once for each
    /// subscriber.
    Channels(Vec<String>),
}

impl Subscribers {
    /// The channels that have subscriptions.
    pub fn channels(&self) -> &[String] {
        match self {
            Self::PatternAnd(channels) | Self::Channels(channels) => channels,
        }
    }

    /// The number of subscriptions to this channel.
    fn subscribed(&self, channel: &str) -> usize {
        self.channels().iter().filter(|other| *other == channel).count()
    }

    /// Whether a message on this channel has a receiver.
    pub fn has_receiver_for(&self, channel: &str, sharded: bool) -> bool {
        !sharded && !matches!(self, Self::Channels(_)) || self.subscribed(channel) > 0
    }
}

impl ScriptModel {
    /// `say`
    pub(super) fn publish_to_both(&mut self, run: &Run<'_>, channel: &str, text: &str) {
        for (sharded, other) in [(false, "S"), (true, "P")] {
            if run.args[3] != other {
                self.publish(channel, text, sharded);
            }
        }
    }

    pub(super) fn publish(&mut self, channel: &str, text: &str, sharded: bool) {
        self.published.push(Message { channel: channel.into(), text: text.into(), sharded });
    }

    /// Whether a message that a script publishes on this channel has a receiver.
    pub(super) fn has_receiver(&self, run: &Run<'_>, channel: &str) -> bool {
        let has_receiver = |sharded| self.subscribers.has_receiver_for(channel, sharded);
        run.args[3] != "S" && has_receiver(false) || run.args[3] != "P" && has_receiver(true)
    }

    /// `parts/listeners.lua`
    pub(super) fn listeners(&self, channel: &str) -> usize {
        self.subscribers.subscribed(channel)
    }

    /// `parts/publish_grant.lua`
    pub(super) fn publish_acquired(&mut self, run: &Run<'_>, channel: &str, lease: u64) {
        let others = u64::try_from(self.listeners(channel).min(999)).unwrap();
        self.publish_to_both(run, channel, &(lease * 1000 + others).to_string());
    }
}
