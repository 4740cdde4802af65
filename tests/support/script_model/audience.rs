//! What scripts publish, and who listens.

use super::{Run, ScriptModel};

/// Something that was published.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    pub channel: String,
    pub text: String,
    /// By `SPUBLISH`, to those who listen to the channel of a shard.
    pub sharded: bool,
}

/// Who listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Audience {
    /// One who hears by a pattern whatever is published, but nothing that is for a shard, and whom
    /// `PUBSUB NUMSUB` does not count; and to these channels, of either sort.
    EverythingAnd(Vec<String>),
    /// To these channels, of either sort, as many as there are of each.
    These(Vec<String>),
}

impl Audience {
    /// Those to which somebody has subscribed.
    pub fn channels(&self) -> &[String] {
        match self {
            Self::EverythingAnd(channels) | Self::These(channels) => channels,
        }
    }

    /// How many have subscribed to this channel.
    fn subscribed(&self, channel: &str) -> usize {
        self.channels().iter().filter(|other| *other == channel).count()
    }

    /// Whether somebody hears what is published there so.
    pub fn hears(&self, channel: &str, sharded: bool) -> bool {
        !sharded && !matches!(self, Self::These(_)) || self.subscribed(channel) > 0
    }
}

impl ScriptModel {
    /// `say`
    pub(super) fn say(&mut self, run: &Run<'_>, channel: &str, text: &str) {
        for (sharded, other) in [(false, "S"), (true, "P")] {
            if run.args[3] != other {
                self.publish(channel, text, sharded);
            }
        }
    }

    pub(super) fn publish(&mut self, channel: &str, text: &str, sharded: bool) {
        self.published.push(Message { channel: channel.into(), text: text.into(), sharded });
    }

    /// Whether somebody hears what a script says there.
    pub(super) fn hears(&self, run: &Run<'_>, channel: &str) -> bool {
        let hears = |sharded| self.audience.hears(channel, sharded);
        run.args[3] != "S" && hears(false) || run.args[3] != "P" && hears(true)
    }

    /// `parts/listeners.lua`
    pub(super) fn listeners(&self, channel: &str) -> usize {
        self.audience.subscribed(channel)
    }

    /// `parts/taken.lua`
    pub(super) fn say_taken(&mut self, run: &Run<'_>, channel: &str, lease: u64) {
        let others = u64::try_from(self.listeners(channel).min(999)).unwrap();
        self.say(run, channel, &(lease * 1000 + others).to_string());
    }
}
