//! The limits of a client and of an address: a client beyond them receives `Retry-After`, and other
//! clients are served.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;

use edgelatch_gateway::{Config, Right};
use edgelatch_proto::protocol::script::scripts;
use futures_util::future::join_all;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::breaches::{REQUEST, learn, run};
use crate::scopes::{now, scoped, with_claims, with_scopes};
use crate::support::{
    Stream, TIME_LIMIT, TOKEN, TestClient, TestEnv, header, until, until_blocked,
};

const CHANNEL: &str = "/subscribe/redisson_lock__channel:%7Bapp:a%7D";
const ONE: NonZeroU32 = NonZeroU32::MIN;

/// Starts a gateway with changed limits.
async fn start_env(change: impl FnOnce(&mut Config)) -> TestEnv {
    TestEnv::with(|config| {
        with_scopes(config);
        change(config);
    })
    .await
}

fn client(env: &TestEnv, token: &str) -> TestClient {
    TestClient::new(&format!("http://{}", env.gateway.address()), token)
}

/// Returns a token of this user. The tokens of all users have the same prefixes.
pub(crate) fn of_user(user: &str) -> String {
    let exp = now() + 600;
    with_claims(
        &json!({ "prefix": "app:", "latchPrefix": "gate:", "sub": user, "maxLeaseMs": 1000, "exp": exp }),
    )
}

/// Returns a command that changes nothing, and that the tokens of `scoped` allow.
pub(crate) fn inspecting() -> Value {
    run(&scripts::LATCH_INSPECT, &["gate:a"], &[REQUEST, "", "0", "P"])
}

/// Checks that a response has a `Retry-After` of 1 to 60 s, and says that nothing was executed.
pub(crate) fn assert_retry_after(response: &reqwest::Response, status: u16) {
    assert_eq!(response.status(), status);
    let after: u64 = header(response.headers(), "retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&after), "{after}");
    assert_eq!(header(response.headers(), "content-type"), Some("application/json"));
}

#[tokio::test]
async fn a_client_that_sends_too_often_gets_a_retry_after() {
    let env = start_env(|config| config.client_requests = ONE).await;
    let clients = ["one", "other"].map(|user| client(&env, &of_user(user)));
    let [one, other] = &clients;
    // Sent concurrently, so that the requests exceed the rate even on a slow machine.
    let sending = (0..200).map(|_| one.request(Method::POST, "/").body("[\"PING\"]").send());
    let answers = join_all(sending).await;
    let mut refused = answers.iter().map(|answer| answer.as_ref().unwrap());
    assert_retry_after(refused.find(|answer| answer.status() == 429).unwrap(), 429);
    // Another client's request is admitted: it gets 403, since its token does not allow `PING`.
    assert_eq!(other.command(r#"["PING"]"#).await.0, 403);
    assert_eq!(env.client.command(r#"["PING"]"#).await.0, 200);
}

/// Health checks need no token, and each costs Redis a command.
#[tokio::test]
async fn health_checks_of_one_address_have_a_rate_of_their_own() {
    let env = start_env(|config| {
        (config.client_requests, config.address_clients) = (ONE, ONE);
        config.trusted_proxies = 1;
    })
    .await;
    let check = |address: &str| {
        env.client.bare(Method::GET, "/healthz").header("x-forwarded-for", address).send()
    };
    let answers = join_all((0..200).map(|_| check("192.0.2.1"))).await;
    let mut answers = answers.into_iter().map(Result::unwrap);
    assert_retry_after(answers.find(|answer| answer.status() == 429).as_ref().unwrap(), 429);
    assert_eq!(check("192.0.2.2").await.unwrap().status(), 200);
    // Requests with a token from this address are still admitted.
    let client = client(&env, &of_user("one")).request(Method::POST, "/").body("[\"PING\"]");
    assert_eq!(client.header("x-forwarded-for", "192.0.2.1").send().await.unwrap().status(), 403);
}

/// A fixed bug: guesses of tokens were not counted, although each costs the gateway a comparison or
/// a check of a signature.
#[tokio::test]
async fn requests_without_a_valid_token_have_a_rate_for_each_address() {
    let origin = "https://app.example";
    for origins in [vec![], vec![origin.parse().unwrap()]] {
        let env = start_env(|config| {
            (config.client_requests, config.address_clients) = (ONE, ONE);
            (config.trusted_proxies, config.origins) = (1, origins.clone());
        })
        .await;
        let guess = client(&env, "a-guess-of-sixteen-characters");
        let scoped = client(&env, &of_user("one"));
        let preflight = || {
            let request = env.client.bare(Method::OPTIONS, "/").header("origin", origin);
            request.header("access-control-request-method", "POST")
        };
        let kinds: [(&dyn Fn() -> RequestBuilder, &str, u16); 3] = [
            (&|| guess.request(Method::POST, "/"), "192.0.2.1", 401),
            (&|| env.client.bare(Method::GET, "/get/k?_token=guess"), "192.0.2.2", 401),
            (&preflight, "192.0.2.3", if origins.is_empty() { 204 } else { 200 }),
        ];
        for (request, address, status) in kinds {
            let from = |address: &str| request().header("x-forwarded-for", address).send();
            let answers = join_all((0..200).map(|_| from(address))).await;
            let mut answers = answers.into_iter().map(Result::unwrap);
            assert_retry_after(
                answers.find(|answer| answer.status() == 429).as_ref().unwrap(),
                429,
            );
            assert_eq!(from("192.0.2.4").await.unwrap().status(), status, "{address}");
            // Requests with a token are still admitted.
            for (client, status) in [(&env.client, 200), (&scoped, 403)] {
                let request = client.request(Method::POST, "/").body(r#"["PING"]"#);
                let response = request.header("x-forwarded-for", address).send().await.unwrap();
                assert_eq!(response.status(), status, "{address}");
            }
        }
    }
}

#[tokio::test]
async fn commands_are_counted_one_by_one() {
    let env = start_env(|config| (config.client_commands, config.pipeline_limit) = (ONE, 50)).await;
    let client = client(&env, &scoped(&[Right::Hold]));
    let pipeline = json!(vec![inspecting(); 50]).to_string();
    let sending =
        (0..20).map(|_| client.request(Method::POST, "/pipeline").body(pipeline.clone()).send());
    let answers = join_all(sending).await;
    let statuses: Vec<u16> =
        answers.iter().map(|answer| answer.as_ref().unwrap().status().as_u16()).collect();
    assert!(statuses.contains(&200) && statuses.contains(&429), "{statuses:?}");
}

/// Each locked name leaves a fencing token for a day, so the number of names is limited.
#[tokio::test]
async fn a_client_uses_a_limited_number_of_names_in_a_day() {
    let env = start_env(|config| config.client_names = 2).await;
    learn(&mut env.redis.connect().await).await;
    let about = |name: &str| run(&scripts::LATCH_INSPECT, &[name], &[REQUEST, "", "0", "P"]);
    let [one, other] = ["one", "other"].map(|user| client(&env, &of_user(user)));
    let [first, second, third] = ["gate:a", "gate:b", "gate:c"].map(about);
    let both = json!([first, second, first]).to_string();
    assert_eq!(one.post("/pipeline", &both).await.0, 200);
    for (path, body) in [("/", third.to_string()), ("/pipeline", json!([first, third]).to_string())]
    {
        let response = one.request(Method::POST, path).body(body).send().await.unwrap();
        assert_eq!(response.status(), 429);
        let after: u64 = header(response.headers(), "retry-after").unwrap().parse().unwrap();
        assert!((80_000..=86_400).contains(&after), "{after}");
    }
    assert_eq!(one.command(&second.to_string()).await.0, 200);
    assert_eq!(other.command(&third.to_string()).await.0, 200);
}

/// M4: one scoped token could use all streams.
#[tokio::test]
async fn m4_streams_of_one_client_leave_some_to_other_clients() {
    let env = start_env(|config| (config.client_streams, config.client_concurrency) = (1, 1)).await;
    let open = |token: &str| client(&env, token).request(Method::POST, CHANNEL);
    let (one, other) = (of_user("one"), of_user("other"));
    let first = Stream::open(open(&one)).await;
    // The stream does not count as a request in flight.
    assert_eq!(client(&env, &one).command(r#"["PING"]"#).await.0, 403);
    assert_retry_after(&open(&one).send().await.unwrap(), 429);
    drop(Stream::open(open(&other)).await);
    drop(first);
    until(async || open(&one).send().await.unwrap().status().is_success().then_some(())).await;
}

/// Clients at one address share its limits, however many tokens they have. With trusted proxies the
/// address is that of `X-Forwarded-For`.
#[tokio::test]
async fn clients_at_one_address_share_the_limits_of_the_address() {
    let set = |config: &mut Config| (config.client_streams, config.address_clients) = (1, ONE);
    let direct = start_env(|config| set(config)).await;
    let behind_a_proxy = start_env(|config| {
        set(config);
        config.trusted_proxies = 1;
    })
    .await;
    let (one, other) = (of_user("one"), of_user("other"));
    let open = |env, token, address: &str| {
        let forwarded = format!("192.0.2.1, {address}");
        let request = client(env, token).request(Method::POST, CHANNEL);
        request.header("X-Forwarded-For", forwarded)
    };
    let _first = Stream::open(open(&direct, &one, "192.0.2.2")).await;
    assert_retry_after(&open(&direct, &other, "192.0.2.3").send().await.unwrap(), 429);
    let _first = Stream::open(open(&behind_a_proxy, &one, "192.0.2.2")).await;
    assert_retry_after(&open(&behind_a_proxy, &other, "192.0.2.2").send().await.unwrap(), 429);
    Stream::open(open(&behind_a_proxy, &other, "192.0.2.3")).await;
}

/// A token without `sub` is a client of its own, since many users' tokens may have its prefix.
#[tokio::test]
async fn tokens_are_one_client_by_their_subject_and_nothing_else() {
    let env = start_env(|config| config.client_streams = 1).await;
    let exp = now() + 600;
    let token = |claims: Value| {
        let mut all = json!({ "prefix": "app:", "maxLeaseMs": 1000, "exp": exp });
        all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
        with_claims(&all)
    };
    let open = |token: &str| client(&env, token).request(Method::POST, CHANNEL).send();
    let mut streams = Vec::new();
    for claims in [json!({ "jti": 1 }), json!({ "jti": 2 }), json!({ "sub": "7", "jti": 3 })] {
        streams.push(Stream::of(open(&token(claims)).await.unwrap()));
    }
    for claims in [json!({ "jti": 1 }), json!({ "sub": "7", "jti": 4 })] {
        assert_retry_after(&open(&token(claims)).await.unwrap(), 429);
    }
    streams.push(Stream::of(open(&token(json!({ "sub": "7", "prefix": "app" }))).await.unwrap()));
}

/// M3: each `WAIT` had a connection of its own, without a limit.
#[tokio::test]
async fn m3_waits_come_from_a_pool() {
    let env = start_env(|config| config.wait_limit = 1).await;
    let wait = r#"["WAIT",1,10000]"#;
    let waiting = tokio::spawn({
        let client = env.client.clone();
        async move { client.command(wait).await }
    });
    until_blocked(&mut env.redis.connect().await).await;
    for (path, body) in [("/", wait.to_owned()), ("/pipeline", format!(r#"[["PING"],{wait}]"#))] {
        let request = env.client.request(Method::POST, path).body(body);
        assert_retry_after(&request.send().await.unwrap(), 503);
    }
    assert_eq!(env.client.command(r#"["PING"]"#).await.0, 200);
    waiting.abort();
    let short = r#"["WAIT",0,1]"#;
    until(async || (env.client.command(short).await.0 == 200).then_some(())).await;
}

/// M3: a pipeline could have nine waits behind one call.
#[tokio::test]
async fn m3_one_wait_comes_behind_one_call() {
    let env = start_env(|_| ()).await;
    learn(&mut env.redis.connect().await).await;
    let client = client(&env, &scoped(&[Right::Hold]));
    let wait = json!(["WAIT", "1", "1"]);
    let commands = json!([inspecting(), wait, wait, inspecting(), wait]);
    let (status, body) = client.post("/pipeline", &commands.to_string()).await;
    assert_eq!(status, 200, "{body}");
    let slots: Vec<Value> = serde_json::from_str(&body).unwrap();
    let passed: Vec<bool> = slots.iter().map(|slot| slot.get("result").is_some()).collect();
    assert_eq!(passed, [true, true, false, true, true], "{body}");
}

/// M5: endless bodies used memory without a bound.
#[tokio::test]
async fn m5_the_memory_for_bodies_is_bounded() {
    let env = start_env(|config| (config.body_limit, config.body_memory) = (100, 100)).await;
    let head = format!("POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n");
    let start = format!("{head}Content-Length: 100\r\n\r\n[{}", " ".repeat(89));
    let mut unfinished = TcpStream::connect(env.gateway.address()).await.unwrap();
    unfinished.write_all(start.as_bytes()).await.unwrap();
    let command = format!(r#"["ECHO","{}"]"#, "x".repeat(20));
    let send = || env.client.request(Method::POST, "/").body(command.clone()).send();
    let refused = until(async || {
        let response = send().await.unwrap();
        (response.status() != 200).then_some(response)
    })
    .await;
    assert_retry_after(&refused, 503);
    drop(unfinished);
    until(async || (send().await.unwrap().status() == 200).then_some(())).await;
}

/// Connects from the address `from` of the loopback network.
async fn connect(from: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(IpAddr::V4(Ipv4Addr::from(from)), 0)).unwrap();
    socket.connect(to).await.unwrap()
}

/// Whether the gateway responds on this connection, which stays open.
async fn is_served(stream: &mut TcpStream) -> bool {
    let request = format!(
        "POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 8\r\n\r\n[\"PING\"]"
    );
    // A refused connection may be closed already.
    let _ = stream.write_all(request.as_bytes()).await;
    let mut start = [0; 12];
    let read = timeout(TIME_LIMIT, stream.read_exact(&mut start)).await.unwrap();
    read.is_ok() && &start == b"HTTP/1.1 200"
}

/// A fixed bug: silent connections of one address used up the limit of all connections.
#[tokio::test]
async fn connections_of_one_address_leave_some_to_other_addresses() {
    let env = start_env(|config| config.address_connections = 2).await;
    let address = env.gateway.address();
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut stream = connect([127, 0, 0, 2], address).await;
        assert!(is_served(&mut stream).await);
        open.push(stream);
    }
    assert!(!is_served(&mut connect([127, 0, 0, 2], address).await).await);
    assert!(is_served(&mut connect([127, 0, 0, 3], address).await).await);
    open.pop();
    until(async || is_served(&mut connect([127, 0, 0, 2], address).await).await.then_some(()))
        .await;
}
