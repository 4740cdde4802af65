//! What is heard of what is published in a real Redis, and by whose commands it was.

use std::collections::BTreeMap;
use std::convert::Infallible;

use redis::{FromRedisValue as _, PushInfo, PushKind, Value};

use super::script_model::audience::Message;

/// The channel on which is published whose commands follow: those in the database of this number.
pub const WHOSE: &str = "whose";

/// Messages by who caused them.
#[derive(Default)]
pub struct Mail {
    heard: BTreeMap<usize, Vec<Message>>,
    whose: usize,
}

impl Mail {
    /// A message, or another thing that was pushed.
    pub(super) fn arrives(&mut self, push: PushInfo) -> Result<(), Infallible> {
        let sharded = push.kind == PushKind::SMessage;
        // Whoever has subscribed to a channel as well hears what is said there once more.
        if sharded || push.kind == PushKind::PMessage {
            let mut words = push.data.into_iter().skip(usize::from(!sharded)).map(text);
            let (channel, text) = (words.next().unwrap(), words.next().unwrap());
            if channel == WHOSE {
                self.whose = text.parse().unwrap();
                self.heard.remove(&self.whose);
            } else {
                let message = Message { channel, text, sharded };
                self.heard.entry(self.whose).or_default().push(message);
            }
        }
        Ok(())
    }

    /// What somebody's commands have published since that was asked last, or since the last of them
    /// began.
    pub(super) fn take(&mut self, whose: usize) -> Vec<Message> {
        self.heard.remove(&whose).unwrap_or_default()
    }
}

fn text(word: Value) -> String {
    String::from_redis_value(word).unwrap()
}
