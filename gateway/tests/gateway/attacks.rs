//! Attacks with a scoped token that succeeded in earlier versions: a rule refuses each, and Redis
//! does not change.

use std::io;

use edgelatch_gateway::Right;
use edgelatch_proto::protocol::script::{Script, scripts};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::breaches::{OWNER, REQUEST, Scene, latch, run, taking};
use crate::scopes::{now, with_claims};
use crate::support::{TOKEN, TestEnv};

/// The owner of the attacked client.
const VICTIM: &str = "02020202-0202-8202-8202-020202020202:1";
const KEPT: &str = "86400000";

/// Returns a call of a script with the frame of a client that knows Redis' clock.
fn call(script: &Script, keys: &[&str], args: &[&str]) -> Value {
    let bound = (now() * 1000 + 60_000).to_string();
    run(script, keys, &[&[REQUEST, &bound, "90000", "P"], args].concat())
}

fn record(name: &str) -> String {
    format!("el:{{{name}}}:{REQUEST}")
}

/// Returns the keys of a plain lock.
fn lock(name: &str) -> [String; 3] {
    [latch(name), name.to_owned(), format!("redisson_lock_token:{{{name}}}")]
}

/// Returns a guarded write to `key` with the fencing token `token`, whose fence lives for `kept`
/// milliseconds.
fn guarding(key: &str, token: &str, kept: &str, write: &[&str]) -> Value {
    let fence = format!("el:{{{key}}}:fence");
    call(&scripts::GUARD_WRITE, &[&fence, key], &[&[token, OWNER, "1", kept], write].concat())
}

/// H1: the gateway compared all pairs of keys before it checked their number.
#[tokio::test]
async fn h1_a_call_with_many_keys_is_refused_by_their_number() {
    let mut scene = Scene::new().await;
    let keys: Vec<String> = (0..50_000).map(|number| format!("el:{{{number}}}:")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    for script in [&scripts::CANCEL, &scripts::SEMAPHORE_RENEW, &scripts::PERMITS_RENEW] {
        let command = run(script, &keys, &[REQUEST, "", "0", "P", "60000"]);
        scene.assert_refused(&command, "only such calls").await;
    }
}

/// H3: a guard, a latch, a semaphore and a lock with one name could change each other's keys.
#[tokio::test]
async fn h3_no_kind_of_object_reaches_the_names_of_another() {
    let all = [Right::Hold, Right::Count, Right::Manage, Right::Guard];
    let mut scene = Scene::with(&all).await;
    for set in [
        &["HSET", "app:doc", VICTIM, "1"][..],
        &["SET", "seats:doc", "0"],
        &["ZADD", "el:{seats:doc}:held", "9999999999999", VICTIM],
        &["SET", "gate:doc", "3"],
    ] {
        redis::cmd(set[0]).arg(&set[1..]).exec_async(&mut scene.redis).await.unwrap();
    }
    let token = (now() * 1_000_000).to_string();
    for name in ["app:doc", "seats:doc", "gate:doc", "permits:doc"] {
        for write in [&["del"][..], &["claim"], &["set", "x", "1000"]] {
            scene
                .assert_refused(&guarding(name, &token, KEPT, write), "prefix for such objects")
                .await;
        }
    }
    for name in ["app:doc", "seats:doc", "permits:doc", "data:doc"] {
        let (record, channel) =
            (record(name), format!("redisson_countdownlatch__channel__{{{name}}}"));
        for operation in ["down", "delete"] {
            let args = ["60000", operation, "", &channel];
            let command = call(&scripts::LATCH_CHANGE, &[&record, name], &args);
            scene.assert_refused(&command, "prefix for such objects").await;
        }
    }
    for name in ["app:doc", "gate:doc", "permits:doc", "data:doc"] {
        let keys = [record(name), name.to_owned(), format!("el:{{{name}}}:held")];
        let channel = format!("redisson_sc:{{{name}}}");
        let keys = [keys[0].as_str(), &keys[1], &keys[2], &channel];
        let command = call(&scripts::SEMAPHORE_CHANGE, &keys, &["60000", "set", "1", "1000"]);
        scene.assert_refused(&command, "prefix for such objects").await;
    }
    for name in ["seats:doc", "gate:doc", "permits:doc", "data:doc"] {
        let keys = lock(name);
        let keys = keys.each_ref().map(String::as_str);
        scene.assert_refused(&taking(&keys, "", "60000", &[]), "prefix for such objects").await;
    }
}

/// H4: a fencing token that expired too soon let the next one fall; one in the future blocked all
/// other clients.
#[tokio::test]
async fn h4_tokens_neither_fall_nor_run_ahead() {
    let rights = [Right::Hold, Right::Guard, Right::Majority];
    let mut scene = Scene::with(&rights).await;
    let keys = lock("app:a");
    let keys = keys.each_ref().map(String::as_str);
    let raising =
        |token: &str, kept: &str| call(&scripts::LOCK_RAISE, &keys, &[OWNER, token, kept]);
    let (current, ahead) =
        ((now() * 1_000_000).to_string(), ((now() + 3599) * 1_000_000).to_string());
    for kept in ["1", "0", "86399999", "86400001"] {
        scene.assert_refused(&raising(&current, kept), "only such calls").await;
        let args = [REQUEST, "", "90000", "P", OWNER, "1000", "0", kept];
        scene.assert_refused(&run(&scripts::LOCK_ACQUIRE, &keys, &args), "only such calls").await;
    }
    scene.assert_refused(&raising(&ahead, KEPT), "too far into the future").await;
    for token in [ahead.as_str(), "9007199254740991"] {
        for kept in [KEPT, "60000"] {
            let command = guarding("data:a", token, kept, &["claim"]);
            scene.assert_refused(&command, "too far into the future").await;
        }
    }
    // A fence that expires sooner than the library's would accept an older token.
    for kept in ["1", "59999"] {
        scene
            .assert_refused(&guarding("data:a", &current, kept, &["claim"]), "only such calls")
            .await;
    }
    // A fence without an expiry is allowed only for a key in the token's `lasting`.
    scene.assert_refused(&guarding("data:other", &current, "0", &["claim"]), "`lasting`").await;
    let (status, body) =
        scene.client.command(&guarding("data:a", &current, "0", &["claim"]).to_string()).await;
    assert!(status == 200 && body.starts_with(r#"{"result":[1,"#), "{body}");
}

/// M1: a lease of 100 ms blocked other clients for minutes.
#[tokio::test]
async fn m1_nothing_beside_the_lease_excludes_clients_for_longer() {
    let mut scene = Scene::new().await;
    let field = "0123456789012345678901";
    let keys = lock("app:g");
    let keys = keys.each_ref().map(String::as_str);
    let args = [OWNER, "1000", "0", KEPT, "60000", field];
    scene.assert_refused(&call(&scripts::GROUP_ACQUIRE, &keys, &args), "`peerSkewMs`").await;
    let id = "0f".repeat(16);
    let name = "permits:a";
    let keys = [
        latch(name),
        name.to_owned(),
        format!("{{{name}}}:timeout"),
        format!("redisson_sc:{{{name}}}"),
        format!("el:{{{name}}}:token"),
    ];
    let keys = keys.each_ref().map(String::as_str);
    let args = ["60000", "1000", "0", KEPT, "0", &id];
    scene.assert_refused(&call(&scripts::PERMITS_ACQUIRE, &keys, &args), "`peerSkewMs`").await;
    // With the token's `peerSkewMs` the call is allowed.
    let args = ["1000", "1000", "0", KEPT, "0", &id];
    let command = call(&scripts::PERMITS_ACQUIRE, &keys, &args).to_string();
    let (status, body) = scene.client.command(&command).await;
    assert!(status == 200 && body.starts_with(r#"{"result":[0,"#), "{body}");
}

/// A hold of no permits uses none, so 10,000 such holds would fill a semaphore's set of holders.
#[tokio::test]
async fn a_semaphore_is_not_filled_by_holds_of_no_permits() {
    let mut scene = Scene::new().await;
    let name = "seats:a";
    let keys = [
        latch(name),
        name.to_owned(),
        format!("el:{{{name}}}:held"),
        format!("redisson_sc:{{{name}}}"),
        format!("el:{{{name}}}:token"),
    ];
    let keys = keys.each_ref().map(String::as_str);
    let taking = |permits| [OWNER, "1000", "0", KEPT, permits];
    scene
        .assert_refused(&call(&scripts::SEMAPHORE_ACQUIRE, &keys, &taking("0")), "only such calls")
        .await;
    let command = call(&scripts::SEMAPHORE_ACQUIRE, &keys, &taking("1")).to_string();
    let (status, body) = scene.client.command(&command).await;
    assert!(status == 200 && body.starts_with(r#"{"result":[0,"#), "{body}");
}

/// M2: keys without an expiry filled Redis.
#[tokio::test]
async fn m2_what_stays_for_ever_is_named_by_the_token() {
    let rights = [Right::Hold, Right::Guard, Right::Manage];
    let mut scene = Scene::with(&rights).await;
    let token = (now() * 1_000_000).to_string();
    let large = "x".repeat(65_537);
    let writes: [(&[&str], &str); 4] = [
        (&["set", "x", ""], "`lasting`"),
        (&["set", "x", "0"], "`lasting`"),
        (&["set", "x", "86400001"], "`lasting`"),
        (&["set", &large, "1000"], "too large"),
    ];
    for (write, reason) in writes {
        scene.assert_refused(&guarding("data:other", &token, KEPT, write), reason).await;
    }
    let keys = lock("app:a");
    let keys = keys.each_ref().map(String::as_str);
    scene.assert_refused(&taking(&keys, "", "60000", &["f"]), "`lasting`").await;
    let name = "gate:other";
    let channel = format!("redisson_countdownlatch__channel__{{{name}}}");
    let args = ["60000", "set", "1", &channel];
    let command = call(&scripts::LATCH_CHANGE, &[&record(name), name], &args);
    scene.assert_refused(&command, "`lasting`").await;
    // An object in the token's `lasting` may have no expiry.
    let keys = lock("app:fenced");
    let keys = keys.each_ref().map(String::as_str);
    let (status, body) =
        scene.client.command(&taking(&keys, "", "60000", &["f"]).to_string()).await;
    assert!(status == 200 && body.starts_with(r#"{"result":[1,"#), "{body}");
}

/// M2 for queues: the attacker of `attacker/` found an abandoned queue without an expiry.
#[tokio::test]
async fn m2_the_queue_of_a_fair_lock_ends_with_its_last_waiter() {
    let mut scene = Scene::new().await;
    let keys = ["queue", "timeout"].map(|key| format!("redisson_lock_{key}:{{app:held}}"));
    let ours = ["beat", "seat", "watch"].map(|key| format!("el:{{app:held}}:{key}"));
    let [latch, token] = [latch("app:held"), "redisson_lock_token:{app:held}".to_owned()];
    let channel = "redisson_lock__channel:{app:held}".to_owned();
    let keys = [&[latch, "app:held".to_owned()][..], &keys, &ours, &[channel, token]].concat();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let settings = [OWNER, "10000", "20000", "5000", "30000", "1", "60000", "0", "300000", KEPT];
    let command = call(&scripts::FAIR_ACQUIRE, &keys, &[&settings[..], &["", "690000"]].concat());
    let (status, body) = scene.client.command(&command.to_string()).await;
    assert!(status == 200 && body.starts_with(r#"{"result":[0,"0,"#), "{body}");
    for key in &keys[2..6] {
        let ttl: i64 = redis::cmd("PTTL").arg(key).query_async(&mut scene.redis).await.unwrap();
        assert!((1..=86_400_000).contains(&ttl), "{key}: {ttl}");
    }
}

/// The gateway and a proxy in front of it must find the same end of a request. hyper reads
/// `chunked, chunked` as chunks, so the gateway executed the bytes behind the last chunk as a
/// request. The attacker of `http_attacker/` found it.
#[tokio::test]
async fn bytes_after_an_ambiguous_request_are_not_read_as_a_request() {
    let env = TestEnv::new().await;
    let head = |length: usize, more: &str| {
        let common = format!("POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n");
        format!("{common}{more}Content-Length: {length}\r\n\r\n")
    };
    let set = r#"["SET","smuggled","1"]"#;
    let body = format!("8\r\n[\"PING\"]\r\n0\r\n\r\n{}{set}", head(set.len(), ""));
    let ambiguous = head(body.len(), "Transfer-Encoding: chunked\r\n");
    let unambiguous = |encoding: &str| {
        head(0, &format!("Transfer-Encoding: {encoding}\r\n")).replace("Content-Length: 0\r\n", "")
    };
    for head in [ambiguous, unambiguous("chunked, chunked"), unambiguous("gzip, chunked")] {
        let mut stream = TcpStream::connect(env.gateway.address()).await.unwrap();
        stream.write_all((head.clone() + &body).as_bytes()).await.unwrap();
        let mut answer = String::new();
        // A connection that the gateway closes with unread bytes may be reset.
        let _: io::Result<usize> = stream.read_to_string(&mut answer).await;
        assert!(answer.matches("HTTP/1.1").count() <= 1, "{head}: {answer}");
        let smuggled = env.client.command(r#"["EXISTS","smuggled"]"#).await;
        assert_eq!(smuggled.1, r#"{"result":0}"#, "{head}");
    }
}

/// The calls that need a right are refused without it, and allowed with it.
#[tokio::test]
async fn every_right_is_needed_for_what_it_allows() {
    let token = (now() * 1_000_000).to_string();
    let gate = "gate:a";
    let channel = format!("redisson_countdownlatch__channel__{{{gate}}}");
    let gated = |operation: &str, count: &str| {
        call(&scripts::LATCH_CHANGE, &[&record(gate), gate], &["60000", operation, count, &channel])
    };
    let keys = lock("app:a");
    let keys = keys.each_ref().map(String::as_str);
    let freed = [&record("app:a"), "app:a", "redisson_lock__channel:{app:a}"];
    let calls = [
        (Right::Hold, taking(&keys, "", "60000", &[])),
        (Right::Count, gated("down", "")),
        (Right::Manage, gated("set", "1")),
        (Right::Manage, gated("delete", "")),
        (Right::Guard, guarding("data:a", &token, KEPT, &["claim"])),
        (Right::Force, call(&scripts::LOCK_FORCE_RELEASE, &freed, &["60000"])),
        (Right::Majority, call(&scripts::LOCK_RAISE, &keys, &[OWNER, &token, KEPT])),
    ];
    for (right, command) in calls {
        let others: Vec<Right> = Right::ALL.into_iter().filter(|other| *other != right).collect();
        let mut scene = Scene::with(&others).await;
        scene.assert_refused(&command, &format!("lacks the right `{}`", right.name())).await;
        let scene = Scene::with(&[right]).await;
        let (status, body) = scene.client.command(&command.to_string()).await;
        assert_eq!(status, 200, "{}: {body}", right.name());
    }
}

/// A token of earlier versions has only the right `hold`, whatever its claim `force`.
#[tokio::test]
async fn a_token_of_earlier_versions_may_hold_locks_and_nothing_else() {
    let claims =
        json!({ "prefix": "app:", "maxLeaseMs": 60_000, "exp": now() + 600, "force": true });
    let mut scene = Scene::with_token(&with_claims(&claims)).await;
    let keys = lock("app:a");
    let keys = keys.each_ref().map(String::as_str);
    let (status, body) = scene.client.command(&taking(&keys, "", "60000", &[]).to_string()).await;
    assert_eq!(status, 200, "{body}");
    let freed = [&record("app:a"), "app:a", "redisson_lock__channel:{app:a}"];
    let command = call(&scripts::LOCK_FORCE_RELEASE, &freed, &["60000"]);
    scene.assert_refused(&command, "right `force`").await;
    let token = (now() * 1_000_000).to_string();
    let command = guarding("app:doc", &token, KEPT, &["claim"]);
    scene.assert_refused(&command, "prefix for such objects").await;
}
