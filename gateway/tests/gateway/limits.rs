//! The limits of requests.

use std::net::SocketAddr;
use std::time::Duration;

use edgelatch_gateway::Right;
use reqwest::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::client_limits::assert_retry_after;
use crate::scopes::{scoped, with_scopes};
use crate::support::{Stream, TIME_LIMIT, TOKEN, TestClient, TestEnv, answer, until_blocked};

/// Sends these headers and this body, and reads until the gateway closes the connection.
async fn raw(address: SocketAddr, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head =
        format!("POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n{headers}\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    timeout(TIME_LIMIT, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused() {
    let TestEnv { gateway, client, redis: _redis } =
        TestEnv::with(|config| config.body_limit = 64).await;
    let fits = format!(r#"["SET","k","{}"]"#, "x".repeat(50));
    assert_eq!(fits.len(), 64);
    assert_eq!(client.command(&fits).await.0, 200);
    let refused = (413, r#"{"error":"ERR max request size exceeded"}"#.to_owned());
    assert_eq!(client.command(&format!("{fits} ")).await, refused);
    // A body without an announced length.
    let chunk = format!("{:x}\r\n{fits}\r\n", fits.len());
    let chunked = raw(
        gateway.address(),
        "Transfer-Encoding: chunked\r\nConnection: close\r\n",
        &format!("{chunk}{chunk}0\r\n\r\n"),
    )
    .await;
    assert!(chunked.starts_with("HTTP/1.1 413"), "{chunked}");
    assert!(chunked.contains("ERR max request size exceeded"), "{chunked}");
}

/// A fixed bug: the connection of a client that sent more than the gateway read was reset, and the
/// client lost the response.
#[tokio::test]
async fn a_client_can_send_all_of_a_too_large_body_and_receives_the_error() {
    let env = TestEnv::with(|config| config.body_limit = 2 << 20).await;
    let mut stream = TcpStream::connect(env.gateway.address()).await.unwrap();
    let head = |headers: &str| {
        format!("POST /echo HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n{headers}\r\n")
    };
    let body = "x".repeat(5 << 20);
    let announced = format!("{}{body}", head(&format!("Content-Length: {}\r\n", body.len())));
    let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let chunked = format!("{}{chunk}", head("Transfer-Encoding: chunked\r\n"));
    let last = format!("{}ok", head("Content-Length: 2\r\nConnection: close\r\n"));
    let sent = [announced, chunked, last].concat();
    let (mut reader, mut writer) = stream.split();
    let mut answers = String::new();
    let exchange = async {
        tokio::join!(writer.write_all(sent.as_bytes()), reader.read_to_string(&mut answers))
    };
    let (written, read) = timeout(TIME_LIMIT, exchange).await.unwrap();
    assert!(written.is_ok() && read.is_ok(), "{written:?} {read:?}");
    assert_eq!(answers.matches("HTTP/1.1 413").count(), 2, "{answers}");
    assert!(answers.ends_with(r#"{"result":"ok"}"#), "{answers}");
}

#[tokio::test]
async fn a_value_that_upstash_takes_passes_unless_the_token_is_scoped() {
    let TestEnv { gateway, client, redis: _redis } = TestEnv::with(with_scopes).await;
    let command = |bytes| format!(r#"["SET","k","{}"]"#, "x".repeat(bytes));
    assert_eq!(client.command(&command(9_900_000)).await.0, 200);
    let in_path = client.request(Method::POST, "/set/k").body("x".repeat(1_100_000));
    assert_eq!(answer(in_path).await.0, 200);
    assert_eq!(client.command(r#"["STRLEN","k"]"#).await.1, r#"{"result":1100000}"#);
    assert_eq!(client.command(&command(10_500_000)).await.0, 413);
    // Every visitor of a page has the page's token.
    let page = TestClient::new(&format!("http://{}", gateway.address()), &scoped(&[Right::Hold]));
    assert_eq!(page.command(&command(1_000_000)).await.0, 403);
    assert_eq!(page.command(&command(1_100_000)).await.0, 413);
}

#[tokio::test]
async fn a_body_that_does_not_arrive_frees_its_connection() {
    let TestEnv { gateway, client: _client, redis } =
        TestEnv::with(|config| config.request_time = Duration::from_millis(50)).await;
    let answer = raw(gateway.address(), "Content-Length: 20\r\n", r#"["SET","k""#).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains("did not arrive in time"), "{answer}");
    // Directly to Redis, since requests to this gateway have only 50 ms.
    let exists = redis::cmd("EXISTS").arg("k").take();
    let exists: u32 = exists.query_async(&mut redis.connect().await).await.unwrap();
    assert_eq!(exists, 0);
}

#[tokio::test]
async fn a_blocking_command_does_not_delay_other_clients() {
    let TestEnv { client, redis, gateway: _gateway } = TestEnv::new().await;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.command(r#"["WAIT",1,10000]"#).await }
    });
    until_blocked(&mut redis.connect().await).await;
    assert_eq!(client.command(r#"["PING"]"#).await.0, 200);
    assert!(!waiting.is_finished());
    waiting.abort();
}

#[tokio::test]
async fn no_more_streams_than_the_limit_are_open_at_once() {
    let TestEnv { client, gateway: _gateway, redis: _redis } =
        TestEnv::with(|config| config.stream_limit = 1).await;
    let open = || client.request(Method::POST, "/subscribe/ch");
    let mut first = Stream::open(open()).await;
    first.reach("data: subscribe,ch,1\n\n").await;
    assert_retry_after(&open().send().await.unwrap(), 503);
    drop(first);
    crate::support::until(async || {
        let response = open().send().await.unwrap();
        response.status().is_success().then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_pipeline_beyond_the_limit_is_refused_whole() {
    let TestEnv { client, gateway: _gateway, redis: _redis } =
        TestEnv::with(|config| config.pipeline_limit = 2).await;
    let refused = r#"{"error":"ERR more commands than one request may hold"}"#;
    for path in ["/pipeline", "/multi-exec"] {
        let three = r#"[["INCR","n"],["INCR","n"],["INCR","n"]]"#;
        assert_eq!(client.post(path, three).await, (413, refused.to_owned()), "{path}");
        assert_eq!(client.command(r#"["EXISTS","n"]"#).await.1, r#"{"result":0}"#);
        assert_eq!(client.post(path, r#"[["PING"],["PING"]]"#).await.0, 200, "{path}");
    }
}

/// A fixed bug: all commands were parsed, into many times the memory of the body, before their
/// number was checked.
#[tokio::test]
async fn the_commands_of_a_pipeline_are_counted_before_they_are_read() {
    let TestEnv { client, gateway: _gateway, redis: _redis } =
        TestEnv::with(|config| config.pipeline_limit = 2).await;
    for path in ["/pipeline", "/multi-exec"] {
        // Nothing is read behind the command that is one too many.
        for (commands, status) in
            [("[[],{},[]]", 413), ("[[],{},[]", 413), ("[[],{}]", 400), ("[[],{}", 400)]
        {
            assert_eq!(client.post(path, commands).await.0, status, "{path} {commands}");
        }
    }
}

/// Redis before version 7 closes the connection, which all requests share, at a million words.
#[tokio::test]
async fn a_command_with_too_many_words_is_refused() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    let command = |arguments: usize| format!(r#"["DEL"{}]"#, ",0".repeat(arguments));
    let refused = r#"{"error":"ERR a command may have at most 262144 arguments"}"#.to_owned();
    let (fits, too_long) = (command(1 << 18), command((1 << 18) + 1));
    assert_eq!(client.command(&fits).await, (200, r#"{"result":0}"#.to_owned()));
    assert_eq!(client.command(&too_long).await, (400, refused.clone()));
    for path in ["/pipeline", "/multi-exec"] {
        assert_eq!(client.post(path, &format!("[{fits}]")).await.0, 200, "{path}");
        let with_another = format!(r#"[["SET","k","v"],{too_long}]"#);
        assert_eq!(client.post(path, &with_another).await, (400, refused.clone()), "{path}");
    }
    assert_eq!(client.command(r#"["EXISTS","k"]"#).await.1, r#"{"result":0}"#);
}

#[tokio::test]
async fn a_command_that_deletes_all_data_is_refused_until_it_is_allowed() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    client.command(r#"["SET","k","v"]"#).await;
    for (path, body) in [
        ("/", r#"["FLUSHALL"]"#),
        ("/", r#"["flushdb","ASYNC"]"#),
        ("/", r#"["SCRIPT","FLUSH"]"#),
        ("/", r#"["FUNCTION","FLUSH"]"#),
        ("/pipeline", r#"[["FLUSHALL"]]"#),
        ("/multi-exec", r#"[["FLUSHALL"]]"#),
    ] {
        let (_, body) = client.post(path, body).await;
        assert!(body.contains(r#"{"error":"ERR the gateway does not allow "#), "{body}");
    }
    assert_eq!(client.command(r#"["GET","k"]"#).await.1, r#"{"result":"v"}"#);
    let TestEnv { client, gateway: _gateway, redis: _redis } =
        TestEnv::with(|config| config.allowed = vec!["FLUSHALL".parse().unwrap()]).await;
    assert_eq!(client.command(r#"["FLUSHALL"]"#).await.0, 200);
    assert_eq!(client.command(r#"["FLUSHDB"]"#).await.0, 400);
}
