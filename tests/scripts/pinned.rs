//! The source of each script, pinned: Redis knows a script by its hash, so a change must be
//! intended.

use edgelatch_proto::protocol::script::scripts;
use serde_json::{Value, json};

use test_support::redis::Redis;

const PINNED: &str = include_str!("../vectors/scripts.json");

#[test]
fn every_script_is_the_one_that_is_pinned() {
    let pinned: Value = serde_json::from_str(PINNED).unwrap();
    let present: serde_json::Map<String, Value> = scripts::ALL
        .iter()
        .map(|script| {
            let hashes = json!({ "plain": script.sha1(false), "key_locking": script.sha1(true) });
            (script.name.to_owned(), hashes)
        })
        .collect();
    let text = serde_json::to_string_pretty(&present).unwrap();
    assert_eq!(pinned, Value::Object(present), "if the change is meant, pin this:\n{text}");
}

#[tokio::test]
async fn redis_computes_the_same_hash() {
    let redis = Redis::start().await;
    for script in scripts::ALL {
        let sha1: String = redis.query(&["SCRIPT", "LOAD", &script.source(false)]).await;
        assert_eq!(sha1, script.sha1(false), "{}", script.name);
    }
}

#[test]
fn key_locking_is_the_first_line_and_nothing_else() {
    for script in scripts::ALL {
        let line = if script.computes_keys() { "" } else { "#!lua flags=allow-key-locking\n" };
        assert_eq!(script.source(true), line.to_owned() + &script.source(false), "{}", script.name);
    }
}

#[tokio::test]
async fn plain_redis_refuses_the_key_locking_line() {
    let redis = Redis::start().await;
    for script in scripts::ALL.iter().filter(|script| !script.computes_keys()) {
        let error =
            redis.try_query::<String>(&["SCRIPT", "LOAD", &script.source(true)]).await.unwrap_err();
        assert!(error.to_string().contains("script shebang"), "{error}");
    }
}

#[test]
fn a_text_that_is_sent_has_no_comments_and_only_ascii() {
    for script in scripts::ALL {
        let source = script.source(false);
        assert!(source.is_ascii() && !source.contains("--"), "{}", script.name);
        // A poll of a queue must apply all its rules in one request.
        let is_poll = ["fair_acquire", "fair_rw_acquire"].contains(&script.name);
        let most = if is_poll { 8_192 } else { 5_120 };
        assert!(source.len() < most, "{}: {} bytes", script.name, source.len());
    }
}
