//! From Redis' replies to JSON.

use std::fmt;

use axum::http::HeaderMap;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use redis::{ServerError, Value, from_redis_value_ref};
use serde::Serialize;
use serde::ser::{Error as _, SerializeMap as _, Serializer};

use crate::failure::Failure;

/// How the strings of a result are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// In base64, so that bytes that are no text survive. The status `OK` stays as it is.
    Base64,
    /// As text; what is not UTF-8 becomes U+FFFD.
    Text,
}

impl Encoding {
    /// What the client asked for by `Upstash-Encoding`.
    pub(crate) fn asked(headers: &HeaderMap) -> Self {
        match headers.get("upstash-encoding") {
            Some(value) if value.as_bytes().eq_ignore_ascii_case(b"base64") => Self::Base64,
            _ => Self::Text,
        }
    }
}

/// One answer: `{"result": …}` or `{"error": "…"}`.
pub(crate) enum Answer {
    /// No reply, while others of the same pipeline have theirs: it may have been executed.
    Lost(Failure),
    /// The gateway said no, and the command was not sent.
    Refused(String),
    /// Redis replied; that may be an error too.
    Replied(Value, Encoding),
}

impl Answer {
    /// Whether the command had its effect and its result.
    pub(crate) fn is_result(&self) -> bool {
        matches!(self, Self::Replied(value, _) if !matches!(value, Value::ServerError(_)))
    }
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Self::Lost(failure) => map.serialize_entry("error", failure.text())?,
            Self::Refused(text) => map.serialize_entry("error", text)?,
            Self::Replied(Value::ServerError(error), _) => {
                map.serialize_entry("error", &ErrorText(error))?;
            }
            Self::Replied(value, encoding) => {
                map.serialize_entry("result", &Encoded { value, encoding: *encoding })?;
            }
        }
        map.end()
    }
}

/// A value inside a result.
struct Encoded<'a> {
    value: &'a Value,
    encoding: Encoding,
}

impl Encoded<'_> {
    fn string<S: Serializer>(&self, bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        match self.encoding {
            Encoding::Base64 => serializer.collect_str(&Base64Display::new(bytes, &STANDARD)),
            Encoding::Text => serializer.serialize_str(&String::from_utf8_lossy(bytes)),
        }
    }
}

impl Serialize for Encoded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::Array(values) => serializer
                .collect_seq(values.iter().map(|value| Encoded { value, encoding: self.encoding })),
            Value::BulkString(bytes) => self.string(bytes, serializer),
            Value::Int(number) => serializer.serialize_i64(*number),
            Value::Nil => serializer.serialize_none(),
            Value::Okay => serializer.serialize_str("OK"),
            // An error caught by a script and put into an array: an object, so that no client
            // takes it for a string, and the rest of the array stays readable.
            Value::ServerError(error) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("error", &ErrorText(error))?;
                map.end()
            }
            Value::SimpleString(text) => self.string(text.as_bytes(), serializer),
            // The gateway speaks RESP2 with Redis, which has nothing else.
            other => {
                let text: String = from_redis_value_ref(other).map_err(S::Error::custom)?;
                self.string(text.as_bytes(), serializer)
            }
        }
    }
}

/// The whole line that Redis sent: code and message.
pub(crate) struct ErrorText<'a>(pub(crate) &'a ServerError);

impl fmt::Display for ErrorText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.code())?;
        match self.0.details() {
            Some(details) => write!(f, " {details}"),
            None => Ok(()),
        }
    }
}

impl Serialize for ErrorText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use redis::parse_redis_value;

    use super::*;

    fn json(wire: &[u8], encoding: Encoding) -> String {
        let value = parse_redis_value(wire).unwrap();
        serde_json::to_string(&Answer::Replied(value, encoding)).unwrap()
    }

    #[test]
    fn integers_keep_all_their_64_bits() {
        let wire = b"*2\r\n:9223372036854775807\r\n:-9223372036854775808\r\n";
        let expected = r#"{"result":[9223372036854775807,-9223372036854775808]}"#;
        assert_eq!(json(wire, Encoding::Text), expected);
        assert_eq!(json(wire, Encoding::Base64), expected);
    }

    #[test]
    fn nested_replies_keep_their_shape_in_both_encodings() {
        let wire = b"*5\r\n$1\r\na\r\n$-1\r\n+OK\r\n*2\r\n:2\r\n$2\r\n\xff\xfe\r\n+PONG\r\n";
        assert_eq!(
            json(wire, Encoding::Text),
            "{\"result\":[\"a\",null,\"OK\",[2,\"\u{fffd}\u{fffd}\"],\"PONG\"]}"
        );
        assert_eq!(
            json(wire, Encoding::Base64),
            r#"{"result":["YQ==",null,"OK",[2,"//4="],"UE9ORw=="]}"#
        );
    }

    #[test]
    fn an_error_keeps_its_whole_line_and_is_never_encoded() {
        for encoding in [Encoding::Text, Encoding::Base64] {
            let wire = b"-NOSCRIPT No matching script. Please use EVAL.\r\n";
            let expected = r#"{"error":"NOSCRIPT No matching script. Please use EVAL."}"#;
            assert_eq!(json(wire, encoding), expected);
            assert_eq!(json(b"-HELD  by me \r\n", encoding), r#"{"error":"HELD  by me "}"#);
            assert_eq!(json(b"-HELD\r\n", encoding), r#"{"error":"HELD"}"#);
            let nested = json(b"*2\r\n-ERR no\r\n:1\r\n", encoding);
            assert_eq!(nested, r#"{"result":[{"error":"ERR no"},1]}"#);
        }
    }
}
