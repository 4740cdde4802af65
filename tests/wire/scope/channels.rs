//! Each channel belongs to a name.

use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{CountDownLatchCalls, Target, Topic};
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::scope::Prefix;
use edgelatch_proto::protocol::script::Publish;

use test_support::calls::owner;
use test_support::every_call::targets;

/// The channels of all objects with this name.
fn channels(name: &str) -> Vec<String> {
    let busy =
        Reply { code: Code::No, value: "1".to_owned(), ms: 0, server_ms: 0, acknowledged: None };
    let topic = |target: &Target| target.topic(owner(1), &busy);
    let mut topics: Vec<Topic> =
        targets(name, "app:other", Publish::Plain).iter().map(topic).collect();
    topics.push(CountDownLatchCalls::new(LockName::parse(name).unwrap(), Publish::Plain).topic());
    topics.iter().map(|topic| topic.channel().to_owned()).collect()
}

#[test]
fn a_channel_is_covered_when_its_name_is() {
    let prefix = Prefix::new("app:").unwrap();
    for name in ["app:a", "app:{x}b", "app:a:timeout"] {
        assert!(channels(name).iter().all(|channel| prefix.covers_channel(channel)), "{name}");
    }
    for name in ["apq:a", "apq:{x}b", "xapp:a", "ap"] {
        let mut channels = channels(name);
        channels.retain(|channel| !channel.contains("app:other"));
        assert!(channels.iter().all(|channel| !prefix.covers_channel(channel)), "{name}");
    }
}

#[test]
fn a_foreign_channel_belongs_to_no_name() {
    let prefix = Prefix::new("app:").unwrap();
    for channel in [
        "",
        "app:a",
        "redisson_lock__channel:app:a",
        "redisson_lock__channel:{app:a",
        "redisson_lock__channel",
        "redisson_lock__channel:*",
        "redisson_other:{app:a}",
        "__keyspace@0__:app:a",
        "redisson_countdownlatch__channel__app:a",
    ] {
        assert!(!prefix.covers_channel(channel), "{channel}");
    }
}

#[test]
fn a_waiter_s_channel_is_that_of_the_lock() {
    let inside = Prefix::new("{tenant}:").unwrap();
    let waiter =
        format!("redisson_lock__channel:{{tenant}}:{}:1", "00000000-0000-8000-8000-000000000000");
    assert!(!inside.covers_channel(&waiter));
    assert!(Prefix::new("tenant").unwrap().covers_channel(&waiter));
    assert!(inside.covers_channel("redisson_lock__channel:{tenant}:a"));
}
