//! Collects the messages that a real Redis publishes, by the database whose commands caused them.

use std::collections::BTreeMap;
use std::convert::Infallible;

use redis::{FromRedisValue as _, PushInfo, PushKind, Value};

use super::script_model::subscribers::Message;

/// The channel on which the number of the database is published whose commands follow.
pub const DATABASE_CHANNEL: &str = "whose";

/// Published messages, by the database whose commands caused them.
#[derive(Default)]
pub struct PubsubCapture {
    messages: BTreeMap<usize, Vec<Message>>,
    database: usize,
}

impl PubsubCapture {
    /// Records a published message; ignores other push notifications.
    pub(super) fn on_push(&mut self, push: PushInfo) -> Result<(), Infallible> {
        let sharded = push.kind == PushKind::SMessage;
        // The pattern subscription receives each message too, so `Message` pushes would be
        // duplicates.
        if sharded || push.kind == PushKind::PMessage {
            let mut words = push.data.into_iter().skip(usize::from(!sharded)).map(text);
            let (channel, text) = (words.next().unwrap(), words.next().unwrap());
            if channel == DATABASE_CHANNEL {
                self.database = text.parse().unwrap();
                self.messages.remove(&self.database);
            } else {
                let message = Message { channel, text, sharded };
                self.messages.entry(self.database).or_default().push(message);
            }
        }
        Ok(())
    }

    /// Takes the messages of the commands in this database since the last call, or since the last
    /// of these commands began.
    pub(super) fn take(&mut self, database: usize) -> Vec<Message> {
        self.messages.remove(&database).unwrap_or_default()
    }
}

fn text(word: Value) -> String {
    String::from_redis_value(word).unwrap()
}
