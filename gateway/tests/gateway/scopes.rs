//! Checks which scoped tokens the gateway accepts, and for how long.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use edgelatch_gateway::{Config, Right, ScopeKeys, ScopedNames, ScopedToken};
use jsonwebtoken::crypto::sign;
use jsonwebtoken::{Algorithm, EncodingKey};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Stream, TestClient, TestEnv};

pub(crate) const KEY: &str = "a key of thirty-two bytes or more";
const OTHER_KEY: &str = "another key, as long as the first";
const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;
const CHANNEL: &str = "/subscribe/redisson_lock__channel:%7Bapp:a%7D";

pub(crate) fn with_scopes(config: &mut Config) {
    config.scope_keys = Some(ScopeKeys::new([KEY]).unwrap());
}

/// Returns a token with these rights, for leases up to a minute and for every kind of object: locks
/// whose names begin with `app:`, and other kinds with prefixes of their own. It lists a few
/// objects in `lasting`.
pub(crate) fn scoped(rights: &[Right]) -> String {
    let prefix = |text: &str| Some(text.to_owned());
    let names = ScopedNames {
        locks: prefix("app:"),
        semaphores: prefix("seats:"),
        permits: prefix("permits:"),
        latches: prefix("gate:"),
        guarded: prefix("data:"),
    };
    let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
    let mut token = ScopedToken::of(names, minute, hour);
    token.rights = rights.to_vec();
    let lasting = ["app:fenced", "seats:a", "permits:a", "gate:a", "data:a"];
    token.lasting = lasting.map(str::to_owned).into();
    ScopeKeys::new([KEY]).unwrap().sign(&token).unwrap()
}

/// Returns the seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "tokens end by this clock")]
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Signs a token with exactly this header and these claims.
fn signed(header: &str, claims: &str, key: &str) -> String {
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let message = format!("{}.{}", encode(header), encode(claims));
    let key = EncodingKey::from_secret(key.as_bytes());
    let signature = sign(message.as_bytes(), &key, Algorithm::HS256).unwrap();
    format!("{message}.{signature}")
}

/// Returns a token with these claims.
pub(crate) fn with_claims(claims: &Value) -> String {
    signed(HEADER, &claims.to_string(), KEY)
}

fn claims() -> Value {
    json!({ "prefix": "app:", "maxLeaseMs": 60_000, "exp": now() + 3600 })
}

/// Returns a token with one of the claims changed.
fn with(name: &str, value: Value) -> String {
    let mut claims = claims();
    claims[name] = value;
    signed(HEADER, &claims.to_string(), KEY)
}

fn without(name: &str) -> String {
    let mut claims = claims();
    claims.as_object_mut().unwrap().remove(name);
    signed(HEADER, &claims.to_string(), KEY)
}

/// Returns the response to a command that no scoped token allows: 403 if the token is accepted,
/// else 401.
async fn ping(env: &TestEnv, token: &str) -> (u16, String) {
    let client = TestClient::new(&format!("http://{}", env.gateway.address()), token);
    client.command(r#"["PING"]"#).await
}

#[tokio::test]
async fn a_token_that_any_library_signs_is_accepted() {
    let env = TestEnv::with(with_scopes).await;
    let mut more_claims = claims();
    more_claims["iat"] = json!(now());
    more_claims["sub"] = json!("user 7");
    more_claims["nbf"] = json!(now());
    for token in [
        scoped(&Right::ALL),
        signed(HEADER, &claims().to_string(), KEY),
        signed(r#"{"alg":"HS256"}"#, &more_claims.to_string(), KEY),
        // Clocks may differ by up to 30 s.
        with("nbf", json!(now() + 10)),
        with("nbf", Value::Null),
        with("rights", json!(["manage", "hold"])),
        with("lasting", json!(["app:a"])),
        with("latchPrefix", json!("gate:")),
        // A claim of earlier versions.
        with("force", json!(true)),
    ] {
        // The token is accepted, but does not allow the command.
        assert_eq!(ping(&env, &token).await.0, 403, "{token}");
    }
}

#[tokio::test]
async fn every_other_token_is_refused() {
    let env = TestEnv::with(with_scopes).await;
    let good = signed(HEADER, &claims().to_string(), KEY);
    let (message, signature) = good.rsplit_once('.').unwrap();
    let (header, _) = message.split_once('.').unwrap();
    let other = signed(HEADER, &json!({ "prefix": "b" }).to_string(), KEY);
    let other_payload = other.split('.').nth(1).unwrap();
    let twice_exp = claims().to_string().replacen('{', r#"{"exp":99999999999,"#, 1);
    for token in [
        signed(HEADER, &claims().to_string(), OTHER_KEY),
        signed(r#"{"alg":"none"}"#, &claims().to_string(), KEY),
        format!("{message}."),
        message.to_owned(),
        format!("{good}.x"),
        format!("{header}.{other_payload}.{signature}"),
        format!("{message}.{}", signature.chars().rev().collect::<String>()),
        signed(r#"{"alg":"HS512","typ":"JWT"}"#, &claims().to_string(), KEY),
        signed(r#"{"alg":"RS256","typ":"JWT"}"#, &claims().to_string(), KEY),
        signed(r#"{"alg":"hs256"}"#, &claims().to_string(), KEY),
        signed(r#"{"alg":"HS256","alg":"HS256"}"#, &claims().to_string(), KEY),
        signed(r#"{"alg":"HS256","crit":["b64"],"b64":false}"#, &claims().to_string(), KEY),
        signed(HEADER, &twice_exp, KEY),
        signed(HEADER, "", KEY),
        with("aud", json!("another gateway")),
        with("note", json!("x".repeat(4096))),
        "..".to_owned(),
        "a.b.c".to_owned(),
    ] {
        let unknown = r#"{"error":"WRONGPASS invalid or missing auth token"}"#.to_owned();
        assert_eq!(ping(&env, &token).await, (401, unknown), "{token}");
    }
}

#[tokio::test]
async fn a_signed_token_is_refused_with_the_reason() {
    let env = TestEnv::with(with_scopes).await;
    for (token, says) in [
        (with("exp", json!(now() - 60)), "has expired"),
        (with("exp", json!(0)), "has expired"),
        (with("nbf", json!(now() + 3000)), "not valid yet"),
        (with("exp", json!(now() + 25 * 3600)), "longer than the gateway allows"),
        (with("exp", json!(u64::MAX)), "longer than the gateway allows"),
    ] {
        assert_refused(&env, &token, says).await;
    }
}

async fn assert_refused(env: &TestEnv, token: &str, says: &str) {
    let (status, body) = ping(env, token).await;
    assert_eq!(status, 401, "{token}");
    assert!(body.starts_with(r#"{"error":"WRONGPASS "#) && body.contains(says), "{body}");
}

#[tokio::test]
async fn a_signed_token_with_unknown_claims_is_refused_with_the_reason() {
    let env = TestEnv::with(with_scopes).await;
    for token in [with("right", json!(["hold"])), with("guardPrefix", json!("app:data:"))] {
        assert_refused(&env, &token, "claims that this gateway does not accept").await;
    }
}

/// A fixed bug: an array of claims and unknown claims were accepted.
#[tokio::test]
async fn claims_are_an_object_of_known_claims_in_range() {
    let env = TestEnv::with(with_scopes).await;
    let array = json!(["app:", 60_000, now() + 3600, null, false]).to_string();
    let twice = claims().to_string().replacen('{', r#"{"prefix":"b","#, 1);
    for token in [
        signed(HEADER, "[]", KEY),
        signed(HEADER, &array, KEY),
        signed(HEADER, &twice, KEY),
        without("prefix"),
        without("maxLeaseMs"),
        without("exp"),
        with("prefix", json!(7)),
        with("prefix", json!(["app:"])),
        with("prefix", json!("")),
        with("prefix", json!("el:")),
        with("latchPrefix", json!("app:")),
        with("guardPrefix", json!("app:data:")),
        with("semaphorePrefix", json!("a")),
        // The permits of `app:x` are stored under `{app:x}:timeout`.
        with("permitPrefix", json!("{app:")),
        with("guardPrefix", json!("{")),
        with("maxLeaseMs", json!("60000")),
        with("maxLeaseMs", json!(-1)),
        with("maxLeaseMs", json!(0)),
        with("maxLeaseMs", json!(86_400_001)),
        with("maxLeaseMs", json!(1e300)),
        with("peerSkewMs", json!(60_001)),
        with("exp", json!((now() + 60).to_string())),
        with("exp", json!(-1)),
        with("rights", json!([])),
        with("rights", json!("hold")),
        with("rights", json!(["hold", "everything"])),
        with("right", json!(["hold"])),
        with("lasting", json!("app:a")),
        with("force", json!("yes")),
        with("scope", json!("app")),
    ] {
        // A malformed token is refused before its claims are parsed.
        assert_refused(&env, &token, "token").await;
    }
}

#[tokio::test]
async fn without_keys_there_are_no_scoped_tokens() {
    let env = TestEnv::new().await;
    assert_eq!(ping(&env, &scoped(&Right::ALL)).await.0, 401);
    let keys = ScopeKeys::new([OTHER_KEY, KEY]).unwrap();
    let env = TestEnv::with(|config| config.scope_keys = Some(keys)).await;
    assert_eq!(ping(&env, &scoped(&Right::ALL)).await.0, 403, "an older key still counts");
}

#[test]
fn a_key_that_could_be_guessed_is_refused() {
    assert!(ScopeKeys::new(["", " "]).is_err());
    assert!(ScopeKeys::new(["x".repeat(31)]).is_err());
    let keys = ScopeKeys::new(["x".repeat(32)]).unwrap();
    assert_eq!(format!("{keys:?}"), "ScopeKeys(1 hidden)");
    let minute = Duration::from_secs(60);
    assert!(keys.sign(&ScopedToken::new("", minute, minute)).is_err());
    assert!(keys.sign(&ScopedToken::new("app:", Duration::ZERO, minute)).is_err());
    assert!(keys.sign(&ScopedToken::new("app:", minute, Duration::MAX)).is_ok());
    let mut long = ScopedToken::new("app:", minute, minute);
    long.lasting = (0..1000).map(|number| format!("app:{number}")).collect();
    assert!(keys.sign(&long).is_err());
}

#[tokio::test]
async fn a_stream_ends_with_its_token() {
    let env = TestEnv::with(with_scopes).await;
    let url = format!("http://{}", env.gateway.address());
    // The token ends so soon that it may have ended before its use. Then the test tries another
    // one.
    let mut stream = loop {
        let token = with("exp", json!(now() - 30 + 2));
        let request = TestClient::new(&url, &token).request(Method::POST, CHANNEL);
        let response = request.send().await.unwrap();
        match response.status().as_u16() {
            200 => break Stream::of(response),
            status => assert_eq!(status, 401),
        }
    };
    stream.reach("data: subscribe,redisson_lock__channel:{app:a},1\n\n").await;
    stream.end().await;
}
