//! Incremental parser of a stream of messages: server-sent events in Upstash's dialect, JSON
//! objects in Webdis'.
//!
//! A message is only a hint, so the parser reads no more of it than its number. Memory is bounded
//! whatever the gateway sends: the beginning of a line or an object identifies it.

use alloc::string::String;
use alloc::vec::Vec;

use super::Dialect;
use crate::protocol::calls::Message;

/// The meaning of the status of a response to a request for a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamStatus {
    /// The stream is open.
    Open,
    /// Too many streams, or a temporary failure: retry later.
    Unavailable,
    /// The gateway has no streams, or refuses them.
    Unsupported,
}

impl StreamStatus {
    /// Returns the meaning of an HTTP status.
    pub const fn of(status: u16) -> Self {
        match status {
            200 => Self::Open,
            408 | 425 | 429 | 500 | 502..=504 => Self::Unavailable,
            _ => Self::Unsupported,
        }
    }
}

/// An event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The subscription is confirmed.
    Subscribed,
    /// A message was published.
    Message(Message),
}

/// The number of bytes that are read of a message: enough for the longest lease, the number of
/// listeners, and quotation marks around them.
const PAYLOAD_MAX: usize = 24;

/// Parses one stream about one channel, from its first byte on.
#[derive(Clone, Debug)]
pub struct StreamParser {
    form: Form,
    /// The beginnings of the two kinds of frames that matter.
    subscribed: String,
    message: String,
    /// The beginning of the current frame, or of the last one.
    frame: Vec<u8>,
    is_whole: bool,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    /// Lines, each of them an event. A line feed after a carriage return ends no second line.
    Lines { after_return: bool },
    /// Adjacent objects: the nesting depth, whether the next byte is in a string, and whether it is
    /// escaped.
    Objects { depth: usize, in_text: bool, escaped: bool },
}

impl StreamParser {
    /// Creates the parser of a subscription by this command to this channel.
    pub(super) fn new(dialect: Dialect, verb: &str, channel: &str) -> Self {
        let word = if verb == "ssubscribe" { "smessage" } else { "message" };
        let (form, subscribed, message) = match dialect {
            // A comma in the channel needs no escape: the whole beginning is compared.
            Dialect::Upstash => (
                Form::Lines { after_return: false },
                [verb, ",", channel, ","].concat(),
                [word, ",", channel, ","].concat(),
            ),
            Dialect::Webdis => {
                let key = verb.to_ascii_uppercase();
                let channel = serde_json::to_string(channel).unwrap_or_default();
                (
                    Form::Objects { depth: 0, in_text: false, escaped: false },
                    [r#"{""#, &key, r#"":[""#, verb, r#"","#, &channel, ","].concat(),
                    [r#"{""#, &key, r#"":[""#, word, r#"","#, &channel, ","].concat(),
                )
            }
        };
        Self { form, subscribed, message, frame: Vec::new(), is_whole: false }
    }

    /// Parses bytes up to the next event; returns the event and the remaining bytes.
    pub fn next<'a>(&mut self, bytes: &'a [u8]) -> Option<(StreamEvent, &'a [u8])> {
        let mut rest = bytes;
        while let Some((byte, after)) = rest.split_first() {
            rest = after;
            if core::mem::take(&mut self.is_whole) {
                self.frame.clear();
            }
            self.is_whole = self.ends_with(*byte);
            if self.is_whole {
                let content = self.content();
                if content.starts_with(self.subscribed.as_bytes()) {
                    return Some((StreamEvent::Subscribed, rest));
                }
                if let Some(payload) = content.strip_prefix(self.message.as_bytes()) {
                    return Some((StreamEvent::Message(Message::read(payload)), rest));
                }
            }
        }
        None
    }

    /// The content of the frame: for a line, the text after `data:` and an optional space.
    fn content(&self) -> &[u8] {
        match self.form {
            Form::Lines { .. } => {
                let data = self.frame.strip_prefix(b"data:").unwrap_or_default();
                data.strip_prefix(b" ").unwrap_or(data)
            }
            Form::Objects { .. } => &self.frame,
        }
    }

    /// Adds a byte, and returns whether it ends a frame.
    fn ends_with(&mut self, byte: u8) -> bool {
        match &mut self.form {
            Form::Lines { after_return } => {
                let second = core::mem::replace(after_return, byte == b'\r') && byte == b'\n';
                if matches!(byte, b'\r' | b'\n') {
                    return !second;
                }
                self.keep(byte);
                false
            }
            Form::Objects { depth, in_text, escaped } => {
                if *in_text {
                    *in_text = *escaped || byte != b'"';
                    *escaped = !*escaped && byte == b'\\';
                } else {
                    match byte {
                        b'"' => *in_text = true,
                        b'{' | b'[' => *depth += 1,
                        b'}' | b']' => *depth = depth.saturating_sub(1),
                        b' ' | b'\t' | b'\r' | b'\n' => return false,
                        _ => {}
                    }
                }
                let is_whole = *depth == 0 && !*in_text;
                self.keep(byte);
                is_whole
            }
        }
    }

    fn keep(&mut self, byte: u8) {
        // Includes `data: ` before the content.
        let most = self.subscribed.len().max(self.message.len()) + 8 + PAYLOAD_MAX;
        if self.frame.len() < most {
            self.frame.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_that_is_out_of_order_may_have_a_stream_later() {
        assert_eq!(StreamStatus::of(200), StreamStatus::Open);
        for status in [408, 425, 429, 500, 502, 503, 504] {
            assert_eq!(StreamStatus::of(status), StreamStatus::Unavailable, "{status}");
        }
        for status in [201, 204, 301, 400, 401, 403, 404, 501, 505] {
            assert_eq!(StreamStatus::of(status), StreamStatus::Unsupported, "{status}");
        }
    }

    #[test]
    fn a_frame_is_kept_up_to_the_longest_message() {
        let mut frames = StreamParser::new(Dialect::Upstash, "subscribe", "c");
        let most = "subscribe,c,".len() + "data: ".len() + 2 + PAYLOAD_MAX;
        for number in 1..=2 * most {
            assert_eq!(frames.next(b"x"), None);
            assert_eq!(frames.frame.len(), number.min(most));
        }
    }
}
