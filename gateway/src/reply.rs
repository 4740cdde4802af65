//! Encodes the replies of Redis in JSON or RESP2.

use std::borrow::Cow;
use std::fmt;

use axum::http::{HeaderMap, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redis::{ServerError, Value, from_redis_value_ref};

use crate::command::plain_length;
use crate::failure::{ErrorBody, Failure};

/// The capacity for the JSON around the string of a result, so that a long string is not moved.
const MAX_FRAME_BYTES: usize = 16;

/// The encoding of the result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON with strings in base64, which preserves bytes that are not UTF-8. The status `OK` is
    /// not encoded.
    Base64,
    /// RESP2, as Redis sends it over TCP.
    Resp2,
    /// JSON with strings as text; bytes that are not UTF-8 become U+FFFD.
    Text,
}

impl Format {
    /// Reads `Upstash-Encoding` and `Upstash-Response-Format`.
    pub(crate) fn requested(headers: &HeaderMap) -> Result<Self, Failure> {
        let is = |name, value: &str| {
            let found = headers.get(name).map(HeaderValue::as_bytes);
            found.is_some_and(|found| found.eq_ignore_ascii_case(value.as_bytes()))
        };
        let is_base64 = is("upstash-encoding", "base64");
        let refused = |text: &str| Err(Failure::Refused(text.to_owned()));
        if is("upstash-response-format", "resp2") {
            return match is_base64 {
                true => refused("ERR RESP2 needs no base64: leave Upstash-Encoding out"),
                false => Ok(Self::Resp2),
            };
        }
        if headers.contains_key("upstash-response-format") && !is("upstash-response-format", "json")
        {
            return refused("ERR Upstash-Response-Format is json or resp2");
        }
        Ok(if is_base64 { Self::Base64 } else { Self::Text })
    }
}

/// The result to one command: `{"result": …}` or `{"error": "…"}`.
pub(crate) enum CommandResult {
    /// No reply, while other commands of the pipeline have one. The command may have been executed.
    NoReply(Failure),
    /// The gateway refused the command, and did not send it.
    Refused(String),
    /// The reply of Redis, which may be an error.
    Reply(Value, Format),
}

impl CommandResult {
    /// Whether Redis executed the command without an error.
    pub(crate) fn is_result(&self) -> bool {
        matches!(self, Self::Reply(value, _) if !matches!(value, Value::ServerError(_)))
    }
}

impl CommandResult {
    /// Appends a list of results in JSON.
    pub(crate) fn write_json_list(results: &[Self], out: &mut Vec<u8>) -> Result<(), Failure> {
        write_json_array(results, out, Self::write_json)
    }

    /// Appends the result in JSON.
    pub(crate) fn write_json(&self, out: &mut Vec<u8>) -> Result<(), Failure> {
        let error = match self {
            Self::NoReply(failure) => failure.text(),
            Self::Refused(text) => text,
            Self::Reply(value @ Value::ServerError(_), format) => {
                return write_json(value, *format, out);
            }
            Self::Reply(value, format) => {
                out.extend_from_slice(b"{\"result\":");
                write_json(value, *format, out)?;
                out.push(b'}');
                return Ok(());
            }
        };
        serde_json::to_writer(out, &ErrorBody { error }).map_err(|_| Failure::BadReply)
    }

    /// Appends the result in RESP2.
    pub(crate) fn write_resp2(&self, out: &mut Vec<u8>) -> Result<(), Failure> {
        let error = match self {
            Self::NoReply(failure) => failure.text(),
            Self::Refused(text) => text,
            Self::Reply(value, _) => return write_resp2(value, out),
        };
        out.extend_from_slice(format!("-{error}\r\n").as_bytes());
        Ok(())
    }
}

fn write_resp2(value: &Value, out: &mut Vec<u8>) -> Result<(), Failure> {
    let line = match value {
        Value::Array(values) => {
            out.extend_from_slice(format!("*{}\r\n", values.len()).as_bytes());
            return values.iter().try_for_each(|value| write_resp2(value, out));
        }
        Value::BulkString(bytes) => {
            write_bulk_string(bytes, out);
            return Ok(());
        }
        Value::Int(number) => format!(":{number}\r\n"),
        // The driver does not distinguish a null array from a null string.
        Value::Nil => "$-1\r\n".to_owned(),
        Value::Okay => "+OK\r\n".to_owned(),
        Value::ServerError(error) => format!("-{}\r\n", ErrorText(error)),
        Value::SimpleString(text) => format!("+{text}\r\n"),
        // RESP2, which the gateway uses with Redis, has no other types.
        other => {
            let text: String = from_redis_value_ref(other).map_err(|_| Failure::BadReply)?;
            write_bulk_string(text.as_bytes(), out);
            return Ok(());
        }
    };
    out.extend_from_slice(line.as_bytes());
    Ok(())
}

fn write_bulk_string(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("${}\r\n", bytes.len()).as_bytes());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Appends a value in JSON.
fn write_json(value: &Value, format: Format, out: &mut Vec<u8>) -> Result<(), Failure> {
    match value {
        Value::Array(values) => {
            return write_json_array(values, out, |value, out| write_json(value, format, out));
        }
        Value::BulkString(bytes) => return write_json_string(bytes, format, out),
        Value::Int(number) => serde_json::to_writer(out, number),
        Value::Nil => serde_json::to_writer(out, &()),
        Value::Okay => serde_json::to_writer(out, "OK"),
        // An error that a script has caught and put into an array. It becomes an object, so that no
        // client takes it for a string, and the rest of the array stays readable.
        Value::ServerError(error) => {
            serde_json::to_writer(out, &ErrorBody { error: &ErrorText(error).to_string() })
        }
        Value::SimpleString(text) => return write_json_string(text.as_bytes(), format, out),
        // RESP2, which the gateway uses with Redis, has no other types.
        other => {
            let text: String = from_redis_value_ref(other).map_err(|_| Failure::BadReply)?;
            return write_json_string(text.as_bytes(), format, out);
        }
    }
    .map_err(|_| Failure::BadReply)
}

fn write_json_array<T>(
    values: &[T],
    out: &mut Vec<u8>,
    mut write: impl FnMut(&T, &mut Vec<u8>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    out.push(b'[');
    for (number, value) in values.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        write(value, out)?;
    }
    out.push(b']');
    Ok(())
}

fn write_json_string(bytes: &[u8], format: Format, out: &mut Vec<u8>) -> Result<(), Failure> {
    let encoded = match format {
        Format::Base64 => Cow::Owned(STANDARD.encode(bytes)),
        Format::Resp2 | Format::Text => String::from_utf8_lossy(bytes),
    };
    // Copying is much faster than looking at each byte for an escape.
    if plain_length(encoded.as_bytes()) < encoded.len() {
        return serde_json::to_writer(out, &encoded).map_err(|_| Failure::BadReply);
    }
    out.reserve(encoded.len() + MAX_FRAME_BYTES);
    out.push(b'"');
    out.extend_from_slice(encoded.as_bytes());
    out.push(b'"');
    Ok(())
}

/// Displays the whole line of an error of Redis: code and message.
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

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;
    use redis::parse_redis_value;

    use super::*;

    fn json(wire: &[u8], format: Format) -> String {
        let value = parse_redis_value(wire).unwrap();
        let mut out = Vec::new();
        CommandResult::Reply(value, format).write_json(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers_keep_all_their_64_bits() {
        let wire = b"*2\r\n:9223372036854775807\r\n:-9223372036854775808\r\n";
        let expected = r#"{"result":[9223372036854775807,-9223372036854775808]}"#;
        assert_eq!(json(wire, Format::Text), expected);
        assert_eq!(json(wire, Format::Base64), expected);
    }

    #[test]
    fn nested_replies_keep_their_shape_in_both_encodings() {
        let wire = b"*5\r\n$1\r\na\r\n$-1\r\n+OK\r\n*2\r\n:2\r\n$2\r\n\xff\xfe\r\n+PONG\r\n";
        assert_eq!(
            json(wire, Format::Text),
            "{\"result\":[\"a\",null,\"OK\",[2,\"\u{fffd}\u{fffd}\"],\"PONG\"]}"
        );
        assert_eq!(
            json(wire, Format::Base64),
            r#"{"result":["YQ==",null,"OK",[2,"//4="],"UE9ORw=="]}"#
        );
    }

    #[test]
    fn a_resp2_reply_has_the_bytes_that_redis_sent() {
        let wire: &[u8] = b"*6\r\n$2\r\n\xff\xfe\r\n:-7\r\n+OK\r\n$-1\r\n*2\r\n+PONG\r\n$0\r\n\r\n-ERR no  more \r\n";
        let mut out = Vec::new();
        let value = parse_redis_value(wire).unwrap();
        CommandResult::Reply(value, Format::Resp2).write_resp2(&mut out).unwrap();
        assert_eq!(out, wire);
        CommandResult::Refused("ERR refused".to_owned()).write_resp2(&mut out).unwrap();
        assert_eq!(out.strip_prefix(wire).unwrap(), b"-ERR refused\r\n");
    }

    #[test]
    fn the_headers_choose_the_format() {
        let format = |encoding: &'static str, format: &'static str| {
            let headers = [("upstash-encoding", encoding), ("upstash-response-format", format)];
            let headers = headers.into_iter().filter(|(_, value)| !value.is_empty());
            let pair =
                |(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
            Format::requested(&headers.map(pair).collect())
        };
        assert_eq!(format("", "").unwrap(), Format::Text);
        assert_eq!(format("Base64", "JSON").unwrap(), Format::Base64);
        assert_eq!(format("other", "json").unwrap(), Format::Text);
        assert_eq!(format("", "resp2").unwrap(), Format::Resp2);
        assert!(format("base64", "resp2").is_err() && format("", "resp3").is_err());
    }

    #[test]
    fn an_error_keeps_its_whole_line_and_is_never_encoded() {
        for format in [Format::Text, Format::Base64] {
            let wire = b"-NOSCRIPT No matching script. Please use EVAL.\r\n";
            let expected = r#"{"error":"NOSCRIPT No matching script. Please use EVAL."}"#;
            assert_eq!(json(wire, format), expected);
            assert_eq!(json(b"-HELD  by me \r\n", format), r#"{"error":"HELD  by me "}"#);
            assert_eq!(json(b"-HELD\r\n", format), r#"{"error":"HELD"}"#);
            let nested = json(b"*2\r\n-ERR no\r\n:1\r\n", format);
            assert_eq!(nested, r#"{"result":[{"error":"ERR no"},1]}"#);
        }
    }
}
