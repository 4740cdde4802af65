//! A stream of messages, as it comes in: server-sent events in Upstash's dialect, one JSON object
//! after the other in Webdis'.
//!
//! What is heard is a hint and nothing else, so of a message no more is looked at than the number
//! that it is. Memory is bounded whatever is sent: the beginning of a line or an object tells what
//! it is.

use alloc::string::String;
use alloc::vec::Vec;

use super::Dialect;
use crate::protocol::calls::Message;

/// What a gateway means by the status with which it answers a request for a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    /// Here it is.
    Stream,
    /// There are too many, or it is out of order: later, perhaps.
    NotNow,
    /// It has none, or will not have it.
    Never,
}

impl Opened {
    pub(crate) const fn of(status: u16) -> Self {
        match status {
            200 => Self::Stream,
            408 | 425 | 429 | 500 | 502..=504 => Self::NotNow,
            _ => Self::Never,
        }
    }
}

/// One thing that a stream says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The subscription stands from here on.
    Subscribed,
    /// Something was published.
    Message(Message),
}

/// So much of a message is looked at: the longest lease, how many listen, and quotation marks
/// around it.
const PAYLOAD_MAX: usize = 24;

/// Reads one stream about one channel, from its first byte on.
#[derive(Clone, Debug)]
pub struct Frames {
    form: Form,
    /// How the two kinds of frames begin that mean something.
    subscribed: String,
    message: String,
    /// The beginning of the frame that is under way, or of the last one.
    frame: Vec<u8>,
    is_whole: bool,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    /// Lines, each of them an event. After a carriage return a line feed ends no second line.
    Lines { after_return: bool },
    /// Objects without anything between them: how deep it is in one, and whether it is in a text,
    /// and behind a backslash there.
    Objects { depth: usize, in_text: bool, escaped: bool },
}

impl Frames {
    /// For a subscription by this verb to this channel.
    pub(super) fn new(dialect: Dialect, verb: &str, channel: &str) -> Self {
        let word = if verb == "ssubscribe" { "smessage" } else { "message" };
        let (form, subscribed, message) = match dialect {
            // A comma in the channel is one like any other: the whole beginning is compared.
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

    /// Takes the next bytes up to the end of something that means something; answers what that is,
    /// and what is left.
    pub fn next<'a>(&mut self, bytes: &'a [u8]) -> Option<(Heard, &'a [u8])> {
        let mut rest = bytes;
        while let Some((byte, after)) = rest.split_first() {
            rest = after;
            if core::mem::take(&mut self.is_whole) {
                self.frame.clear();
            }
            self.is_whole = self.ends_with(*byte);
            if self.is_whole {
                let said = self.said();
                if said.starts_with(self.subscribed.as_bytes()) {
                    return Some((Heard::Subscribed, rest));
                }
                if let Some(payload) = said.strip_prefix(self.message.as_bytes()) {
                    return Some((Heard::Message(Message::read(payload)), rest));
                }
            }
        }
        None
    }

    /// What the frame carries: of an event's line what stands behind `data:`, and one space that
    /// may follow it.
    fn said(&self) -> &[u8] {
        match self.form {
            Form::Lines { .. } => {
                let data = self.frame.strip_prefix(b"data:").unwrap_or_default();
                data.strip_prefix(b" ").unwrap_or(data)
            }
            Form::Objects { .. } => &self.frame,
        }
    }

    /// Takes a byte; whether a frame is whole with it.
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
        // Room for `data: ` in front.
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
        assert_eq!(Opened::of(200), Opened::Stream);
        for status in [408, 425, 429, 500, 502, 503, 504] {
            assert_eq!(Opened::of(status), Opened::NotNow, "{status}");
        }
        for status in [201, 204, 301, 400, 401, 403, 404, 501, 505] {
            assert_eq!(Opened::of(status), Opened::Never, "{status}");
        }
    }

    #[test]
    fn of_a_frame_as_much_is_kept_as_a_message_can_have() {
        let mut frames = Frames::new(Dialect::Upstash, "subscribe", "c");
        let most = "subscribe,c,".len() + "data: ".len() + 2 + PAYLOAD_MAX;
        for number in 1..=2 * most {
            assert_eq!(frames.next(b"x"), None);
            assert_eq!(frames.frame.len(), number.min(most));
        }
    }
}
