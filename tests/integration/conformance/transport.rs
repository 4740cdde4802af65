//! The conformance suite for transports. It needs no operating system: it uses a peer whose paths
//! select its behaviour.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use edgelatch::error::FailureKind;
use edgelatch::transport::{ByteStream as _, Request, Response, Transport};
use serde_json::Value;

/// The servers of the checks, and the headers that the runtime adds to requests.
pub(crate) struct Surroundings<'a> {
    /// The address of the peer.
    pub(crate) peer: &'a str,
    /// An address without a listener.
    pub(crate) unreachable: &'a str,
    /// Whether the runtime distinguishes a request that did not leave from one that may have.
    pub(crate) reports_unsent: bool,
    /// Headers that the runtime adds, sorted; the client itself sends only two or three.
    pub(crate) adds: &'a [&'a str],
}

const TOKEN: &str = "Bearer a-token_=+/.-~:";

/// Checks a transport.
pub(crate) async fn check(transport: &impl Transport, around: &Surroundings<'_>) {
    the_request_is_sent_as_it_is(transport, around).await;
    a_status_of_any_kind_is_a_response(transport, around).await;
    a_gateway_says_for_how_long_it_wants_to_be_left_alone(transport, around).await;
    a_body_has_a_limit(transport, around).await;
    a_redirection_is_reported_and_not_followed(transport, around).await;
    a_connection_that_breaks_is_broken(transport, around).await;
    a_refused_connection_is_reported_as_not_sent(transport, around).await;
    a_dropped_future_abandons_the_request(transport, around).await;
    a_stream_is_asked_for_as_one_and_comes_to_its_end(transport, around).await;
    a_stream_that_is_redirected_or_refused_says_so(transport, around).await;
    a_dropped_stream_is_closed(transport, around).await;
}

async fn a_stream_is_asked_for_as_one_and_comes_to_its_end(
    transport: &impl Transport,
    around: &Surroundings<'_>,
) {
    let (head, mut stream) = transport.open(request(around, "/mirror")).await.unwrap();
    let mut body = Vec::new();
    while let Some(piece) = poll_fn(|cx| stream.poll_next(cx)).await {
        body.extend(piece.unwrap());
    }
    let mirror: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((head.status, &mirror["headers"]["accept"]), (200, &"text/event-stream".into()));
    assert_eq!(mirror["headers"]["authorization"], TOKEN);
}

async fn a_stream_that_is_redirected_or_refused_says_so(
    transport: &impl Transport,
    around: &Surroundings<'_>,
) {
    for status in [400, 404, 503] {
        let opened = transport.open(request(around, &format!("/says/{status}"))).await;
        assert_eq!(opened.map(|(head, _)| head.status), Ok(status));
    }
    let mut nowhere = request(around, "/mirror");
    nowhere.url = around.unreachable.into();
    assert!(transport.open(nowhere).await.is_err());
}

async fn a_dropped_stream_is_closed(transport: &impl Transport, around: &Surroundings<'_>) {
    let (_, mut stream) = transport.open(request(around, "/stream")).await.unwrap();
    let piece = poll_fn(|cx| stream.poll_next(cx)).await;
    assert_eq!(piece, Some(Ok(b"first".to_vec())));
    poll_fn(|cx| {
        assert!(stream.poll_next(cx).is_pending(), "nothing else was said");
        Poll::Ready(())
    })
    .await;
    assert_eq!(count(transport, around, "given-up").await, 0);
    drop(stream);
    while count(transport, around, "given-up").await == 0 {}
    forget(transport, around).await;
}

fn request(around: &Surroundings<'_>, path: &str) -> Request {
    Request {
        url: format!("{}{path}", around.peer),
        authorization: Some(TOKEN.into()),
        sync_token: None,
        content_type: "application/json",
        body: r#"["EVALSHA","é \" \\ \u0000"]"#.into(),
    }
}

async fn send(
    transport: &impl Transport,
    around: &Surroundings<'_>,
    path: &str,
) -> Result<Response, FailureKind> {
    transport.send(request(around, path)).await
}

/// S58.
async fn the_request_is_sent_as_it_is(transport: &impl Transport, around: &Surroundings<'_>) {
    for sync_token in [None, Some("token-of;the=reply")] {
        let mut request = request(around, "/mirror/a%2Fb");
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
        let mut others: Vec<&str> =
            headers.keys().map(String::as_str).filter(|name| !ours.contains(name)).collect();
        others.sort_unstable();
        assert_eq!(others, around.adds);
    }
}

async fn a_status_of_any_kind_is_a_response(transport: &impl Transport, around: &Surroundings<'_>) {
    for status in [200, 201, 400, 401, 403, 404, 418, 429, 500, 502, 503, 599] {
        let response = send(transport, around, &format!("/says/{status}")).await.unwrap();
        assert_eq!(response.status, status);
        assert_eq!(response.body, b"said");
        assert_eq!(response.sync_token, Some(format!("after-{status}")));
    }
    let bare = send(transport, around, "/bytes/0").await.unwrap();
    assert_eq!((bare.status, bare.sync_token, bare.body.len()), (200, None, 0));
}

/// S47.
async fn a_gateway_says_for_how_long_it_wants_to_be_left_alone(
    transport: &impl Transport,
    around: &Surroundings<'_>,
) {
    // The peer's own clock shows ten o'clock, whatever the time of the test.
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
        let path = format!("/rests/{}", value.replace(' ', "%20"));
        let response = send(transport, around, &path).await.unwrap();
        let wanted = seconds.map(Duration::from_secs);
        assert_eq!((response.status, response.retry_after), (429, wanted), "{value}");
        let (head, _) = transport.open(request(around, &path)).await.unwrap();
        assert_eq!((head.status, head.retry_after), (429, wanted), "{value}");
    }
    let for_ever = send(transport, around, "/rests/1000000000000").await.unwrap();
    assert!(for_ever.retry_after.unwrap() >= Duration::from_secs(1_000_000_000));
    let undated = send(transport, around, "/says/429").await.unwrap();
    assert_eq!(undated.retry_after, None);
}

/// S53.
async fn a_body_has_a_limit(transport: &impl Transport, around: &Surroundings<'_>) {
    for kind in ["bytes", "chunks"] {
        for length in [1, 1_000, Response::BODY_MAX] {
            let response = send(transport, around, &format!("/{kind}/{length}")).await.unwrap();
            assert_eq!(response.body, vec![b'x'; length], "{kind}");
        }
        for length in [Response::BODY_MAX + 1, 10_000_000] {
            let response = send(transport, around, &format!("/{kind}/{length}")).await;
            assert_eq!(response.unwrap_err(), FailureKind::TooLarge, "{kind}");
        }
    }
}

/// S54.
async fn a_redirection_is_reported_and_not_followed(
    transport: &impl Transport,
    around: &Surroundings<'_>,
) {
    for status in [301, 302, 303, 307, 308] {
        let response = send(transport, around, &format!("/redirect/{status}")).await;
        assert_eq!(response.unwrap_err(), FailureKind::Redirected, "{status}");
    }
    assert_eq!(count(transport, around, "target").await, 0);
}

/// S18, S50, S51.
async fn a_connection_that_breaks_is_broken(transport: &impl Transport, around: &Surroundings<'_>) {
    for place in ["before", "head", "body", "chunk"] {
        let response = send(transport, around, &format!("/broken/{place}")).await;
        assert_eq!(response.unwrap_err(), FailureKind::Broken, "{place}");
        // The request arrived once: a transport does not retry.
        assert_eq!(count(transport, around, &format!("broken/{place}")).await, 1, "{place}");
    }
    forget(transport, around).await;
}

/// S51.
async fn a_refused_connection_is_reported_as_not_sent(
    transport: &impl Transport,
    around: &Surroundings<'_>,
) {
    let nowhere = Request { url: format!("{}/", around.unreachable), ..request(around, "/") };
    let wanted = if around.reports_unsent { FailureKind::NotSent } else { FailureKind::Broken };
    assert_eq!(transport.send(nowhere).await.unwrap_err(), wanted);
}

/// S52.
async fn a_dropped_future_abandons_the_request(
    transport: &impl Transport,
    around: &Surroundings<'_>,
) {
    {
        let mut silent = pin!(send(transport, around, "/silence"));
        let mut arrived = pin!(async { while count(transport, around, "silence").await == 0 {} });
        poll_fn(|cx| {
            assert!(silent.as_mut().poll(cx).is_pending(), "silence was broken");
            arrived.as_mut().poll(cx)
        })
        .await;
    }
    while count(transport, around, "given-up").await == 0 {}
    forget(transport, around).await;
}

/// The peer's counter of this name.
async fn count(transport: &impl Transport, around: &Surroundings<'_>, what: &str) -> u64 {
    let response = send(transport, around, &format!("/count/{what}")).await.unwrap();
    serde_json::from_slice(&response.body).unwrap()
}

async fn forget(transport: &impl Transport, around: &Surroundings<'_>) {
    send(transport, around, "/forget").await.unwrap();
}
