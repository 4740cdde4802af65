//! Lost replies: the gateway sends no command again, for each kind of Redis behind it.

use std::time::Duration;

use crate::peer::{Action, Peer};
use crate::support::{TOKEN, TestClient, gateway, until};

/// Whether an error reports an unknown result: without a code of Redis, and without a word of the
/// command.
fn is_unknown_outcome(body: &str) -> bool {
    body.contains(r#"{"error":"no reply from Redis"#) && !body.contains("secret")
}

/// Starts a peer for each kind of URL: a single Redis, a cluster, and Sentinels. Returns each with
/// its URL.
pub(crate) async fn peers() -> [(Peer, String); 3] {
    let one = Peer::start().await;
    let url = format!("redis://127.0.0.1:{}", one.port());
    let node = Peer::start().await;
    node.serve_cluster(&[]);
    let cluster = format!("redis+cluster://127.0.0.1:{}", node.port());
    let (master, sentinel) = (Peer::start().await, Peer::start().await);
    sentinel.monitor(&master);
    let sentinels = format!("redis+sentinel://127.0.0.1:{}/main", sentinel.port());
    [(one, url), (node, cluster), (master, sentinels)]
}

#[tokio::test]
async fn a_command_whose_reply_is_lost_is_never_sent_again() {
    for (peer, url) in peers().await {
        let gateway = gateway(url.clone(), |_| ()).await;
        let client = TestClient::new(&format!("http://{}", gateway.address()), TOKEN);
        for (sent, (path, body)) in [
            ("/", r#"["DROP","secret"]"#),
            ("/pipeline", r#"[["SET","a","b"],["DROP","secret"]]"#),
            ("/pipeline", r#"[["DROP","secret"],["WAIT",1,1]]"#),
            ("/multi-exec", r#"[["DROP","secret"]]"#),
        ]
        .into_iter()
        .enumerate()
        {
            client.connected().await;
            let (status, answer) = client.post(path, body).await;
            assert_eq!(status, 502, "{url}: {body}: {answer}");
            assert!(is_unknown_outcome(&answer), "{url}: {answer}");
            // When other commands have replies again, the peer would have received a repeated one.
            client.connected().await;
            assert_eq!(peer.seen("DROP"), sent + 1, "{url}: {body}");
        }
    }
}

/// S56.
#[tokio::test]
async fn a_connection_that_falls_silent_is_replaced() {
    for (peer, url) in peers().await {
        let gateway =
            gateway(url.clone(), |config| config.request_time = Duration::from_millis(300)).await;
        let client = TestClient::new(&format!("http://{}", gateway.address()), TOKEN);
        client.connected().await;
        // On a slow machine the request may time out before the command is sent. Then the test
        // tries another command, with a name of its own.
        let mut sent = 0;
        until(async || {
            let name = format!("STALL{sent}");
            sent += 1;
            let (status, body) = client.command(&format!(r#"["{name}","secret"]"#)).await;
            // The check of the connections may have found the silent one already.
            assert!(
                matches!(status, 502 | 504) && is_unknown_outcome(&body),
                "{url}: {status} {body}"
            );
            (status == 504 && peer.seen(&name) == 1).then_some(())
        })
        .await;
        client.connected().await;
        for number in 0..sent {
            assert!(peer.seen(&format!("STALL{number}")) <= 1, "{url}");
        }
    }
}

/// S56.
#[tokio::test]
async fn a_connection_without_a_reply_to_the_gateway_s_own_query_is_replaced() {
    for (peer, url) in peers().await {
        peer.on_command("INFO", Action::Stall);
        let gateway =
            gateway(url.clone(), |config| config.request_time = Duration::from_millis(300)).await;
        let client = TestClient::new(&format!("http://{}", gateway.address()), TOKEN);
        until(async || (peer.seen("INFO") == 1).then_some(())).await;
        client.connected().await;
        assert_eq!(peer.seen("INFO"), 1, "{url}");
    }
}

#[tokio::test]
async fn a_command_that_is_lost_behind_a_redirection_is_not_sent_again_either() {
    let (first, second) = (Peer::start().await, Peer::start().await);
    first.serve_cluster(&[&second]);
    let url = format!("redis+cluster://127.0.0.1:{}", first.port());
    let gateway = gateway(url, |_| ()).await;
    let client = TestClient::new(&format!("http://{}", gateway.address()), TOKEN);
    // The slot of `k` is 7629.
    first.reply_to("DROP", &format!("-MOVED 7629 127.0.0.1:{}", second.port()));
    client.connected().await;
    let (status, body) = client.command(r#"["DROP","k"]"#).await;
    assert_eq!(status, 502, "{body}");
    client.connected().await;
    assert_eq!((first.seen("DROP"), second.seen("DROP")), (1, 1));
}

#[tokio::test]
async fn after_a_failure_the_sentinels_are_queried_before_the_next_command() {
    for (cause, status) in [(r#"["DROP","k"]"#, 502), (r#"["SET","k","v"]"#, 400)] {
        let [former, next, sentinel] =
            [Peer::start().await, Peer::start().await, Peer::start().await];
        former.reply_to("SET", "-READONLY You can't write against a read only replica.");
        sentinel.monitor(&former);
        let url = format!("redis+sentinel://127.0.0.1:{}/main", sentinel.port());
        let gateway = gateway(url, |_| ()).await;
        let client = TestClient::new(&format!("http://{}", gateway.address()), TOKEN);
        assert_eq!(client.command(r#"["PING"]"#).await.0, 200);
        assert_eq!(client.command(cause).await.0, status, "{cause}");
        sentinel.monitor(&next);
        assert_eq!(client.command(r#"["GET","k"]"#).await.0, 200, "{cause}");
        assert_eq!((former.seen("GET"), next.seen("GET")), (0, 1), "{cause}");
    }
}

#[tokio::test]
async fn after_a_failure_the_cluster_is_queried_before_the_next_command() {
    let (former, next) = (Peer::start().await, Peer::start().await);
    former.serve_cluster(&[&next]);
    let gateway = gateway(format!("redis+cluster://127.0.0.1:{}", former.port()), |_| ()).await;
    let client = TestClient::new(&format!("http://{}", gateway.address()), TOKEN);
    assert_eq!(client.command(r#"["PING"]"#).await.0, 200);
    assert_eq!(client.command(r#"["DROP","k"]"#).await.0, 502);
    next.serve_cluster(&[&former]);
    assert_eq!(client.command(r#"["GET","k"]"#).await.0, 200);
    assert_eq!((former.seen("GET"), next.seen("GET")), (0, 1));
}
