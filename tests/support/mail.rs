//! Collects the messages that a real Redis publishes, by the database whose commands caused them.

use std::collections::BTreeMap;
use std::convert::Infallible;

use redis::{FromRedisValue as _, PushInfo, PushKind, Value};

use super::script_model::audience::Message;

/// The channel on which the number of the database is published whose commands follow.
pub const WHOSE: &str = "whose";

/// Published messages, by the database whose commands caused them.
#[derive(Default)]
pub struct Mail {
    heard: BTreeMap<usize, Vec<Message>>,
    whose: usize,
}

impl Mail {
    /// Records a published message; ignores other push notifications.
    pub(super) fn arrives(&mut self, push: PushInfo) -> Result<(), Infallible> {
        let sharded = push.kind == PushKind::SMessage;
        // The pattern subscription receives each message too, so `Message` pushes would be
        // duplicates.
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

    /// Takes the messages of the commands in this database since the last call, or since the last
    /// of these commands began.
    pub(super) fn take(&mut self, whose: usize) -> Vec<Message> {
        self.heard.remove(&whose).unwrap_or_default()
    }
}

fn text(word: Value) -> String {
    String::from_redis_value(word).unwrap()
}
