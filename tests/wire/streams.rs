//! The events that a client reads from a stream, into whatever pieces the stream is cut.

use std::time::Duration;

use edgelatch_proto::machine::{Acquire, AcquireSpec, Entropy, Input, Machine as _, Output};
use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{
    FairCalls, FairSettings, GrantNotice, LockCalls, Message, Target, Topic, WakePolicy,
};
use edgelatch_proto::protocol::gateway::{Gateway, Request, StreamEvent, StreamParser};
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::Publish;
use edgelatch_proto::time::Instant;
use edgelatch_proto::timing::WaitPolicy;
use proptest::prelude::*;
use test_support::random::cases;

const NAME: &str = "a, \"b\" [é]";

/// The topic that a refused waiter subscribes to.
fn topic(target: Target) -> Topic {
    let now = Instant::from_millis(0, 0);
    let spec = AcquireSpec::new(target, WaitPolicy::UntilCancelled);
    let mut machine = Acquire::new(spec, Entropy::new([1; 32]), None, now);
    let Output::Call { call, .. } = machine.poll(now) else { panic!("it asks") };
    let value = "1".to_owned();
    let reply = Reply { code: Code::No, value, ms: 9_000, server_ms: 1, acknowledged: None };
    machine.handle(Input::Reply { call, reply }, now);
    match machine.poll(now) {
        Output::Subscribe { topic, .. } => topic,
        other => panic!("{other:?}"),
    }
}

fn lock(publish: Publish) -> Topic {
    topic(Target::Lock(LockCalls::new(LockName::parse(NAME).unwrap(), publish)))
}

fn fair(publish: Publish) -> Topic {
    let name = LockName::parse(NAME).unwrap();
    topic(Target::Fair(FairCalls::new(name, FairSettings::default(), publish)))
}

fn upstash() -> Gateway {
    Gateway::upstash("https://gateway.example/redis", "tok").unwrap()
}

fn webdis() -> Gateway {
    Gateway::webdis("https://gateway.example", "user:word").unwrap()
}

/// The events in a stream that arrives in these pieces.
fn parse(mut frames: StreamParser, pieces: &[&[u8]]) -> Vec<&'static str> {
    let mut events = Vec::new();
    for piece in pieces {
        let mut rest = *piece;
        while let Some((event, after)) = frames.next(rest) {
            rest = after;
            events.push(match event {
                StreamEvent::Subscribed => "subscribed",
                StreamEvent::Message(Message { number: 0, .. }) => "message",
                StreamEvent::Message(_) => "number",
            });
        }
    }
    events
}

fn request(gateway: &Gateway, topic: &Topic) -> Request {
    gateway.listen(topic).0
}

fn frames(gateway: &Gateway, topic: &Topic) -> StreamParser {
    gateway.listen(topic).1
}

const LINES: &str = concat!(
    "data: subscribe,redisson_lock__channel:{a, \"b\" [é]},1\n\n",
    ":keep-alive\n\n",
    "data: message,redisson_lock__channel:{a, \"b\" [é]},0\r\n\r\n",
    "data:message,redisson_lock__channel:{a, \"b\" [é]},0,with,commas\r\r",
    "data: message,redisson_lock__channel:{a,0\n",
    "data: message,redisson_lock__channel:{a, \"b\" [é]} and more,0\n",
    "event: message,redisson_lock__channel:{a, \"b\" [é]},0\n",
    "data: unsubscribe,redisson_lock__channel:{a, \"b\" [é]},0\n",
    "data: message,redisson_lock__channel:{a, \"b\" [é]},line\ndata: second\n\n",
);

const OBJECTS: &str = concat!(
    r#"{"SUBSCRIBE":["subscribe","redisson_lock__channel:{a, \"b\" [é]}",1]}"#,
    r#"{"SUBSCRIBE":["message","redisson_lock__channel:{a, \"b\" [é]}","0"]}"#,
    " \r\n",
    r#"{ "SUBSCRIBE" : [ "message", "redisson_lock__channel:{a, \"b\" [é]}", "}]\"{,\\" ] }"#,
    r#"{"SUBSCRIBE":["message","redisson_lock__channel:{a","0"]}"#,
    r#"{"SUBSCRIBE":["unsubscribe","redisson_lock__channel:{a, \"b\" [é]}",0]}"#,
    r#"{"SUBSCRIBE":["message","redisson_lock__channel:{a, \"b\" [é]}","é\\"]}"#,
);

#[test]
fn a_subscription_is_requested_in_the_gateway_s_dialect() {
    let subscribe_request = |gateway: &Gateway, topic: &Topic| {
        let request = request(gateway, topic);
        (request.url, request.body)
    };
    let encoded = "redisson_lock__channel%3A%7Ba%2C%20%22b%22%20%5B%C3%A9%5D%7D";
    let (url, body) = subscribe_request(&upstash(), &lock(Publish::Plain));
    let expected = format!("https://gateway.example/redis/subscribe/{encoded}");
    assert_eq!((url, body.as_str()), (expected, "[]"));
    let (url, _) = subscribe_request(&upstash(), &lock(Publish::Sharded));
    assert!(url.ends_with(&format!("/ssubscribe/{encoded}")));
    // Never a pattern: Redis would count it as a subscriber of every waiter's channel.
    let (url, _) = subscribe_request(&upstash(), &fair(Publish::Both));
    assert!(url.contains(&format!("/subscribe/{encoded}%3A")), "{url}");
    let (url, _) = subscribe_request(&upstash(), &fair(Publish::Sharded));
    assert!(url.contains(&format!("/ssubscribe/{encoded}%3A")), "{url}");
    let (url, body) = subscribe_request(&webdis(), &lock(Publish::Plain));
    assert_eq!((url.as_str(), body), ("https://gateway.example/", format!("SUBSCRIBE/{encoded}")));
}

/// S75, S77.
#[test]
fn a_message_of_another_channel_is_ignored() {
    let expected = ["subscribed", "message", "message", "message"];
    let topic = lock(Publish::Plain);
    assert_eq!(parse(frames(&upstash(), &topic), &[LINES.as_bytes()]), expected);
    assert_eq!(parse(frames(&webdis(), &topic), &[OBJECTS.as_bytes()]), expected);
}

/// S77.
#[test]
fn an_endless_line_uses_no_memory() {
    let topic = lock(Publish::Plain);
    for gateway in [upstash(), webdis()] {
        let mut frames = frames(&gateway, &topic);
        let long = vec![b'"'; 1 << 20];
        for _ in 0..8 {
            assert_eq!(frames.next(&long), None);
        }
        assert!(format!("{frames:?}").len() < 10_000);
    }
}

proptest! {
    #![proptest_config(cases(256))]

    /// S77.
    #[test]
    fn a_stream_cut_anywhere_has_the_same_events(
        cuts in proptest::collection::vec(0_usize..1000, 0..40),
        lines in any::<bool>(),
    ) {
        let (gateway, text) = if lines { (upstash(), LINES) } else { (webdis(), OBJECTS) };
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % bytes.len()).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        let topic = lock(Publish::Plain);
        prop_assert_eq!(
            parse(frames(&gateway, &topic), &pieces),
            ["subscribed", "message", "message", "message"]
        );
    }

    /// S77.
    #[test]
    fn arbitrary_bytes_of_a_stream_cause_no_panic(
        pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 0..50),
        lines in any::<bool>(),
    ) {
        let gateway = if lines { upstash() } else { webdis() };
        let mut frames = frames(&gateway, &fair(Publish::Plain));
        for piece in &pieces {
            let mut rest = piece.as_slice();
            while let Some((_, after)) = frames.next(rest) {
                prop_assert!(after.len() < rest.len());
                rest = after;
            }
        }
    }
}

#[test]
fn a_message_is_parsed_to_its_number() {
    let topic = lock(Publish::Plain);
    let channel = "redisson_lock__channel:{a, \\\"b\\\" [é]}";
    for (payload, number, digits) in [
        ("0", 0, 1),
        ("1", 1, 1),
        ("0000", 0, 4),
        ("00000000000000000000", 0, 20),
        ("30000012", 30_000_012, 8),
        ("86400000999", 86_400_000_999, 11),
        ("-1", 0, 0),
        ("", 0, 0),
        ("free", 0, 0),
    ] {
        let number = Some(StreamEvent::Message(Message { number, digits }));
        let line = format!("data: message,{},{payload}\n", channel.replace('\\', ""));
        let event = frames(&upstash(), &topic).next(line.as_bytes()).map(|(event, _)| event);
        assert_eq!(event, number);
        let object = format!(r#"{{"SUBSCRIBE":["message","{channel}","{payload}"]}}"#);
        let event = frames(&webdis(), &topic).next(object.as_bytes()).map(|(event, _)| event);
        assert_eq!(event, number);
    }
}

#[test]
fn redisson_s_numbers_are_no_grants_and_ours_are() {
    let read = |text: &str, wakes| GrantNotice::read(Message::read(text.as_bytes()), wakes);
    for text in ["0", "1", "2", "99999", "18446744073709551615", "-1"] {
        assert_eq!(read(text, WakePolicy::One), None);
    }
    let grant = |lease, listeners| {
        Some(GrantNotice { lease: Some(Duration::from_millis(lease)), listeners })
    };
    assert_eq!(read("30000012", WakePolicy::One), grant(30_000, Some(12)));
    assert_eq!(read("100000", WakePolicy::One), grant(100, None));
    assert_eq!(read("86400000999", WakePolicy::One), grant(86_400_000, Some(999)));
    // A permit message says that no permit is left, or how many are available.
    let none_left = |listeners| Some(GrantNotice { lease: None, listeners });
    assert_eq!(read("0000", WakePolicy::Permits(1)), none_left(Some(4)));
    assert_eq!(read("0", WakePolicy::Permits(1)), none_left(Some(1)));
    assert_eq!(read("-6", WakePolicy::Permits(1)), none_left(Some(0)));
    assert_eq!(read("30000012", WakePolicy::Permits(1)), None);
}
