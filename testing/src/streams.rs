//! The streams of subscribers, as server-sent events.

use std::collections::BTreeMap;
use std::task::Poll;

use crate::script_model::subscribers::Message;

/// Identifies a stream of one gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId(pub u32);

/// A stream, from its opening to its closing.
#[derive(Debug)]
struct Stream {
    channel: String,
    is_sharded: bool,
    unread: String,
    has_ended: bool,
}

/// The streams of one gateway.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    last: u32,
    open: BTreeMap<StreamId, Stream>,
}

impl Streams {
    /// Opens a stream of the channel that the path `<verb>/<channel>` names. Returns `None` for any
    /// other path.
    pub(crate) fn open(&mut self, path: &str) -> Option<StreamId> {
        let (verb, channel) = path.split_once('/')?;
        let is_sharded = verb == "ssubscribe";
        if !is_sharded && verb != "subscribe" {
            return None;
        }
        let channel = percent_decoded(channel)?;
        let unread = format!("data: {verb},{channel},1\n\n");
        Some(self.add(Stream { channel, is_sharded, unread, has_ended: false }))
    }

    /// Opens a stream that has ended already: the body of a refusal.
    pub(crate) fn open_ended(&mut self) -> StreamId {
        let (channel, unread) = (String::new(), String::new());
        self.add(Stream { channel, is_sharded: false, unread, has_ended: true })
    }

    fn add(&mut self, stream: Stream) -> StreamId {
        self.last += 1;
        let id = StreamId(self.last);
        self.open.insert(id, stream);
        id
    }

    pub(crate) fn close(&mut self, id: StreamId) {
        self.open.remove(&id);
    }

    /// Ends all streams, as a gateway that stops.
    pub(crate) fn end_all(&mut self) {
        for stream in self.open.values_mut() {
            stream.has_ended = true;
        }
    }

    /// Takes the bytes that arrived since the last call; `None` at the end of the stream.
    pub(crate) fn read(&mut self, id: StreamId) -> Poll<Option<String>> {
        match self.open.get_mut(&id) {
            Some(stream) if !stream.unread.is_empty() => {
                Poll::Ready(Some(std::mem::take(&mut stream.unread)))
            }
            Some(stream) if !stream.has_ended => Poll::Pending,
            _ => Poll::Ready(None),
        }
    }

    /// The channels that have subscribers, once for each.
    pub(crate) fn channels(&self) -> Vec<String> {
        let open = self.open.values().filter(|stream| !stream.has_ended);
        open.map(|stream| stream.channel.clone()).collect()
    }

    /// Delivers a message to the subscribers of its channel.
    pub(crate) fn publish(&mut self, message: &Message) {
        let Message { channel, text, sharded } = message;
        let word = if *sharded { "smessage" } else { "message" };
        for stream in self.open.values_mut() {
            if stream.channel == *channel && stream.is_sharded == *sharded && !stream.has_ended {
                stream.unread.push_str(&format!("data: {word},{channel},{text}\n\n"));
            }
        }
    }
}

/// Decodes a percent-encoded text; `None` if it is malformed.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(decoded).ok()
}
