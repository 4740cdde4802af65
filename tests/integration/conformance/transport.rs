//! The conformance suite for transports. It needs no operating system: it uses a peer whose paths
//! select its behaviour.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use edgelatch::error::FailureKind;
use edgelatch::transport::{ByteStream as _, Request, Response, Transport};
use serde_json::Value;

/// The servers of the checks, and what depends on the runtime.
pub(crate) struct TransportEnv<'a> {
    /// The address of the peer.
    pub(crate) peer: &'a str,
    /// An address without a listener.
    pub(crate) unreachable: &'a str,
    /// Whether the runtime distinguishes a request that did not leave from one that may have.
    pub(crate) reports_unsent: bool,
    /// The names of the headers that the runtime adds, sorted.
    pub(crate) added_headers: &'a [&'a str],
}

const TOKEN: &str = "Bearer a-token_=+/.-~:";

/// Checks a transport.
pub(crate) async fn check(transport: &impl Transport, env: &TransportEnv<'_>) {
    a_request_is_sent_unchanged(transport, env).await;
    a_status_of_any_kind_is_a_response(transport, env).await;
    retry_after_is_a_number_of_seconds_or_a_date(transport, env).await;
    a_body_above_the_limit_is_rejected(transport, env).await;
    a_redirection_is_reported_and_not_followed(transport, env).await;
    a_connection_that_breaks_is_reported_as_broken(transport, env).await;
    a_refused_connection_is_reported_as_not_sent(transport, env).await;
    a_dropped_future_aborts_its_request(transport, env).await;
    a_stream_request_accepts_event_streams_and_is_read_to_its_end(transport, env).await;
    a_refused_stream_returns_its_status_or_an_error(transport, env).await;
    a_dropped_stream_is_closed(transport, env).await;
}

async fn a_stream_request_accepts_event_streams_and_is_read_to_its_end(
    transport: &impl Transport,
    env: &TransportEnv<'_>,
) {
    let (head, mut stream) = transport.open(request(env, "/mirror")).await.unwrap();
    let mut body = Vec::new();
    while let Some(chunk) = poll_fn(|cx| stream.poll_next(cx)).await {
        body.extend(chunk.unwrap());
    }
    let mirror: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((head.status, &mirror["headers"]["accept"]), (200, &"text/event-stream".into()));
    assert_eq!(mirror["headers"]["authorization"], TOKEN);
}

async fn a_refused_stream_returns_its_status_or_an_error(
    transport: &impl Transport,
    env: &TransportEnv<'_>,
) {
    for status in [400, 404, 503] {
        let opened = transport.open(request(env, &format!("/status/{status}"))).await;
        assert_eq!(opened.map(|(head, _)| head.status), Ok(status));
    }
    let unreachable = Request { url: env.unreachable.into(), ..request(env, "/mirror") };
    assert!(transport.open(unreachable).await.is_err());
}

async fn a_dropped_stream_is_closed(transport: &impl Transport, env: &TransportEnv<'_>) {
    let (_, mut stream) = transport.open(request(env, "/stream")).await.unwrap();
    let chunk = poll_fn(|cx| stream.poll_next(cx)).await;
    assert_eq!(chunk, Some(Ok(b"first".to_vec())));
    poll_fn(|cx| {
        assert!(stream.poll_next(cx).is_pending(), "the peer has sent only one chunk");
        Poll::Ready(())
    })
    .await;
    assert_eq!(count(transport, env, "closed").await, 0);
    drop(stream);
    // The peer counts a connection as closed once the client has closed it.
    while count(transport, env, "closed").await == 0 {}
    reset_counts(transport, env).await;
}

fn request(env: &TransportEnv<'_>, path: &str) -> Request {
    Request {
        url: format!("{}{path}", env.peer),
        authorization: Some(TOKEN.into()),
        sync_token: None,
        content_type: "application/json",
        body: r#"["EVALSHA","é \" \\ \u0000"]"#.into(),
    }
}

async fn send(
    transport: &impl Transport,
    env: &TransportEnv<'_>,
    path: &str,
) -> Result<Response, FailureKind> {
    transport.send(request(env, path)).await
}

/// S58.
async fn a_request_is_sent_unchanged(transport: &impl Transport, env: &TransportEnv<'_>) {
    for sync_token in [None, Some("token-of;the=reply")] {
        let mut request = request(env, "/mirror/a%2Fb");
        request.sync_token = sync_token.map(Into::into);
        let sent = request.body.clone();
        let response = transport.send(request).await.unwrap();
        let mirror: Value = serde_json::from_slice(&response.body).unwrap();
        assert_eq!(mirror["line"], "POST /mirror/a%2Fb HTTP/1.1");
        assert_eq!(mirror["body"], *sent);
        let headers = mirror["headers"].as_object().unwrap();
        assert_eq!(headers["authorization"], TOKEN);
        assert_eq!(headers["content-type"], "application/json");
        assert_eq!(headers.get("upstash-sync-token").and_then(Value::as_str), sync_token);
        let ours = ["authorization", "content-type", "upstash-sync-token"];
        let mut added: Vec<&str> =
            headers.keys().map(String::as_str).filter(|name| !ours.contains(name)).collect();
        added.sort_unstable();
        assert_eq!(added, env.added_headers);
    }
}

async fn a_status_of_any_kind_is_a_response(transport: &impl Transport, env: &TransportEnv<'_>) {
    for status in [200, 201, 400, 401, 403, 404, 418, 429, 500, 502, 503, 599] {
        let response = send(transport, env, &format!("/status/{status}")).await.unwrap();
        assert_eq!(response.status, status);
        assert_eq!(response.body, b"body");
        assert_eq!(response.sync_token, Some(format!("after-{status}")));
    }
    let bare = send(transport, env, "/bytes/0").await.unwrap();
    assert_eq!((bare.status, bare.sync_token, bare.body.len()), (200, None, 0));
}

/// S47.
async fn retry_after_is_a_number_of_seconds_or_a_date(
    transport: &impl Transport,
    env: &TransportEnv<'_>,
) {
    // The peer's `Date` header is always ten o'clock.
    let values = [
        ("0", Some(0)),
        ("5", Some(5)),
        ("Sun, 22 Nov 2026 10:00:07 GMT", Some(7)),
        ("Sun, 22 Nov 2026 10:00:00 GMT", Some(0)),
        ("Sun, 22 Nov 2026 09:00:00 GMT", None),
        ("1e12", None),
        ("-1", None),
        ("soon", None),
        ("", None),
    ];
    for (value, seconds) in values {
        let path = format!("/retry-after/{}", value.replace(' ', "%20"));
        let response = send(transport, env, &path).await.unwrap();
        let expected = seconds.map(Duration::from_secs);
        assert_eq!((response.status, response.retry_after), (429, expected), "{value}");
        let (head, _) = transport.open(request(env, &path)).await.unwrap();
        assert_eq!((head.status, head.retry_after), (429, expected), "{value}");
    }
    let long = send(transport, env, "/retry-after/1000000000000").await.unwrap();
    assert!(long.retry_after.unwrap() >= Duration::from_secs(1_000_000_000));
    let without_header = send(transport, env, "/status/429").await.unwrap();
    assert_eq!(without_header.retry_after, None);
}

/// S53.
async fn a_body_above_the_limit_is_rejected(transport: &impl Transport, env: &TransportEnv<'_>) {
    for kind in ["bytes", "chunks"] {
        for length in [1, 1_000, Response::BODY_MAX] {
            let response = send(transport, env, &format!("/{kind}/{length}")).await.unwrap();
            assert_eq!(response.body, vec![b'x'; length], "{kind}");
        }
        for length in [Response::BODY_MAX + 1, 10_000_000] {
            let response = send(transport, env, &format!("/{kind}/{length}")).await;
            assert_eq!(response.unwrap_err(), FailureKind::TooLarge, "{kind}");
        }
    }
}

/// S54.
async fn a_redirection_is_reported_and_not_followed(
    transport: &impl Transport,
    env: &TransportEnv<'_>,
) {
    for status in [301, 302, 303, 307, 308] {
        let response = send(transport, env, &format!("/redirect/{status}")).await;
        assert_eq!(response.unwrap_err(), FailureKind::Redirected, "{status}");
    }
    assert_eq!(count(transport, env, "target").await, 0);
}

/// S18, S50, S51.
async fn a_connection_that_breaks_is_reported_as_broken(
    transport: &impl Transport,
    env: &TransportEnv<'_>,
) {
    for place in ["before", "head", "body", "chunk"] {
        let response = send(transport, env, &format!("/broken/{place}")).await;
        assert_eq!(response.unwrap_err(), FailureKind::Broken, "{place}");
        // The request arrived once: a transport does not retry.
        assert_eq!(count(transport, env, &format!("broken/{place}")).await, 1, "{place}");
    }
    reset_counts(transport, env).await;
}

/// S51.
async fn a_refused_connection_is_reported_as_not_sent(
    transport: &impl Transport,
    env: &TransportEnv<'_>,
) {
    let unreachable = Request { url: format!("{}/", env.unreachable), ..request(env, "/") };
    let expected = if env.reports_unsent { FailureKind::NotSent } else { FailureKind::Broken };
    assert_eq!(transport.send(unreachable).await.unwrap_err(), expected);
}

/// S52.
async fn a_dropped_future_aborts_its_request(transport: &impl Transport, env: &TransportEnv<'_>) {
    {
        let mut silent = pin!(send(transport, env, "/silence"));
        let mut arrived = pin!(async { while count(transport, env, "silence").await == 0 {} });
        poll_fn(|cx| {
            assert!(silent.as_mut().poll(cx).is_pending(), "the peer never responds");
            arrived.as_mut().poll(cx)
        })
        .await;
    }
    while count(transport, env, "closed").await == 0 {}
    reset_counts(transport, env).await;
}

/// The peer's counter of this name.
async fn count(transport: &impl Transport, env: &TransportEnv<'_>, counter: &str) -> u64 {
    let response = send(transport, env, &format!("/count/{counter}")).await.unwrap();
    serde_json::from_slice(&response.body).unwrap()
}

async fn reset_counts(transport: &impl Transport, env: &TransportEnv<'_>) {
    send(transport, env, "/reset-counts").await.unwrap();
}
