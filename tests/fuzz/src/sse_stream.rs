//! A stream of messages: it has the same meaning however it is split into chunks, and contains no
//! message of another channel.
//!
//! The first byte selects the dialect and the channel, the second one how the rest is split.

use edgelatch_proto::protocol::calls::{LockCalls, Target, Topic};
use edgelatch_proto::protocol::gateway::{StreamEvent, StreamParser};
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::Publish;
use edgelatch_proto::time::Instant;
use edgelatch_proto::timing::LeaseTime;
use serde_json::{Deserializer, Value};

use crate::kit::{gateway, granted, name};

const NAMES: [&str; 2] = ["job", "{a}, \"b\" [é]"];

pub(crate) fn run(input: &[u8]) {
    let [flags, cut, bytes @ ..] = input else { return };
    let (webdis, lock) = (flags & 1 == 1, NAMES[usize::from(flags >> 1 & 1)]);
    let publish = if flags & 4 == 0 { Publish::Plain } else { Publish::Sharded };
    let topic = topic(lock, publish);
    let (_, frames) = gateway(webdis).listen(&topic);

    let whole = events(frames.clone(), [bytes]);
    let one_by_one = events(frames.clone(), bytes.chunks(1));
    let pieces = events(frames, bytes.chunks(usize::from(*cut) + 2));
    assert_eq!(whole, one_by_one);
    assert_eq!(whole, pieces);

    let word = if flags & 4 == 0 { "" } else { "s" };
    if webdis {
        objects(&whole, bytes, word, topic.channel());
    } else {
        lines(&whole, bytes, word, topic.channel());
    }
}

fn topic(lock: &str, publish: Publish) -> Topic {
    let target = Target::Lock(LockCalls::new(name(lock), publish));
    let owner = granted(target.clone(), LeaseTime::DEFAULT, Instant::from_millis(0, 0)).owner;
    let (code, value) = (Code::No, "1".to_owned());
    target.topic(owner, &Reply { code, value, ms: 1, server_ms: 1, acknowledged: None })
}

fn events<'a>(
    mut frames: StreamParser,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<StreamEvent> {
    let mut all = Vec::new();
    for piece in pieces {
        let mut rest = piece;
        while let Some((events, after)) = frames.next(rest) {
            assert!(after.len() < rest.len(), "it goes on");
            all.push(events);
            rest = after;
        }
    }
    all
}

/// Server-sent events, read by their rules: a line ends with a carriage return, a line feed or
/// both; a space may follow the colon.
fn lines(events: &[StreamEvent], bytes: &[u8], word: &str, channel: &str) {
    let subscribed = format!("{word}subscribe,{channel},");
    let message = format!("{word}message,{channel},");
    let mut wanted = events.iter();
    let mut rest = bytes;
    while let Some(end) = rest.iter().position(|byte| b"\r\n".contains(byte)) {
        let line = &rest[..end];
        rest = &rest[end + if rest[end..].starts_with(b"\r\n") { 2 } else { 1 }..];
        let Some(data) = line.strip_prefix(b"data:") else { continue };
        let data = data.strip_prefix(b" ").unwrap_or(data);
        if data.starts_with(subscribed.as_bytes()) {
            assert_eq!(wanted.next(), Some(&StreamEvent::Subscribed));
        } else if let Some(payload) = data.strip_prefix(message.as_bytes()) {
            let Some(StreamEvent::Message(read)) = wanted.next() else {
                panic!("a message has no event")
            };
            // A longer payload is not a number.
            if payload.len() <= 20 {
                let payload = payload.strip_prefix(b"\"").unwrap_or(payload);
                let digits = payload.iter().take_while(|byte| byte.is_ascii_digit()).count();
                // A number that is out of range counts as the largest.
                let all = std::str::from_utf8(&payload[..digits]).unwrap();
                let number = if digits == 0 { 0 } else { all.parse().unwrap_or(u64::MAX) };
                assert_eq!((usize::from(read.digits), read.number), (digits, number));
            }
        }
    }
    assert_eq!(wanted.next(), None, "what no line says");
}

/// One object after the other, as another library reads them. Every object that is spelt as Webdis
/// spells it is received, and no other.
fn objects(events: &[StreamEvent], bytes: &[u8], word: &str, channel: &str) {
    let key = format!("{word}subscribe").to_uppercase();
    let (mut least, mut most) = (0, 0);
    let mut begin = 0;
    let mut all = Deserializer::from_slice(bytes).into_iter::<Value>();
    while let Some(object) = all.next() {
        // After an error the end of an object is unknown.
        let Ok(object) = object else { return };
        let written = bytes[begin..all.byte_offset()].trim_ascii();
        begin = all.byte_offset();
        let array = object[&key].as_array().map(Vec::as_slice).unwrap_or_default();
        let is = |kind: &str| matches!(array, [what, of, _] if *what == format!("{word}{kind}") && of == channel);
        most += usize::from(array.first().is_some_and(Value::is_string));
        let is_plain = written == object.to_string().as_bytes();
        least += usize::from(is_plain && (is("message") || is("subscribe")));
    }
    let count = events.len();
    assert!(least <= count && count <= most, "{count} of {least} to {most}");
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let channel = "redisson_lock__channel:{job}";
    let odd = "redisson_lock__channel:{a}, \"b\" [é]";
    let line = |channel: &str, word: &str| {
        format!(
            "data: {word}subscribe,{channel},1\n\nevent: x\r\ndata:{word}message,{channel},0\r\n\r\ndata: {word}message,{channel},30000012\r: ping\n\
             data: {word}message,{channel}:x,0\ndata: pmessage,*,{channel},0\n"
        )
    };
    let object = |channel: &str, word: &str, key: &str| {
        let channel = Value::from(channel);
        format!(
            "{{\"{key}\":[\"{word}subscribe\",{channel},1]}}{{\"{key}\":[\"{word}message\",{channel},\"0\"]}}\n{{\"{key}\": [\"{word}message\", {channel}, \"30000012\"]}}{{\"x\":[{{}}]}}"
        )
    };
    vec![
        [&[0, 3], line(channel, "").as_bytes()].concat(),
        [&[4, 30], line(channel, "s").as_bytes()].concat(),
        [&[2, 7], line(odd, "").as_bytes()].concat(),
        [&[1, 3], object(channel, "", "SUBSCRIBE").as_bytes()].concat(),
        [&[5, 50], object(channel, "s", "SSUBSCRIBE").as_bytes()].concat(),
        // Braces and escapes inside a string neither start nor end an object.
        [&[1, 9][..], br#"{"x":"\"{\\"}"#, object(channel, "", "SUBSCRIBE").as_bytes()].concat(),
        [&[3, 11], object(odd, "", "SUBSCRIBE").as_bytes()].concat(),
    ]
}
