//! The gateway in front of a master that Sentinels monitor.

use edgelatch_gateway::Gateway;
use reqwest::Method;

use crate::support::{Stream, TOKEN, TestClient, answer, gateway, until};
use test_support::servers::Sentinels;

async fn in_front_of(sentinels: &Sentinels) -> (Gateway, TestClient) {
    let gateway = gateway(sentinels.url(), |_| ()).await;
    let client = TestClient::new(&format!("http://{}", gateway.address()), TOKEN);
    (gateway, client)
}

/// Sends a `SET` until the new master executes it. Every other response must be one that cannot be
/// taken for a success.
async fn set(client: &TestClient, value: usize) {
    until(async || {
        let (status, body) = client.command(&format!(r#"["SET","k","{value}"]"#)).await;
        match status {
            200 => Some(()),
            400 => {
                // An old master that becomes a replica refuses commands before it runs them.
                let refused = ["READONLY ", "LOADING ", "MASTERDOWN "];
                assert!(refused.iter().any(|code| body.contains(code)), "{body}");
                None
            }
            _ => {
                assert!(status == 502 || status == 504, "{status}: {body}");
                None
            }
        }
    })
    .await;
}

#[tokio::test]
async fn commands_go_to_the_master_before_and_after_a_failover() {
    let mut sentinels = Sentinels::start();
    let (_gateway, client) = in_front_of(&sentinels).await;
    set(&client, 0).await;
    assert_eq!(client.command(r#"["ROLE"]"#).await.0, 400);
    let (status, body) = client.post("/multi-exec", r#"[["INCR","n"],["INCR","n"]]"#).await;
    assert_eq!((status, body.as_str()), (200, r#"[{"result":1},{"result":2}]"#));
    let mut stream = Stream::open(client.request(Method::POST, "/subscribe/ch")).await;
    stream.reach("data: subscribe,ch,1\n\n").await;

    // A failover that the Sentinels order.
    let former = sentinels.master();
    sentinels.fail_over();
    stream.end().await;
    set(&client, 1).await;
    let master = sentinels.master();
    assert_ne!(master, former);
    let there: String = sentinels.server(master).query(&["GET", "k"]).unwrap();
    assert_eq!(there, "1");

    // A failover after the master's end, while the Sentinel that the gateway asks first does not
    // reply either.
    sentinels.sentinel(0).hang();
    sentinels.server(master).kill();
    set(&client, 2).await;
    sentinels.sentinel(0).go_on();
    let next = sentinels.master();
    assert_ne!(next, master);
    let there: String = sentinels.server(next).query(&["GET", "k"]).unwrap();
    assert_eq!(there, "2");
    assert_eq!(answer(client.bare(Method::GET, "/healthz")).await.0, 200);

    // The old master restarts as a master. The gateway must not use it.
    sentinels.server(master).restart();
    for value in 3..50 {
        set(&client, value).await;
    }
    let there: String = sentinels.server(next).query(&["GET", "k"]).unwrap();
    assert_eq!(there, "49");
}

#[tokio::test]
async fn a_master_that_hangs_is_left_when_the_sentinels_name_another() {
    let mut sentinels = Sentinels::start();
    let (_gateway, client) = in_front_of(&sentinels).await;
    set(&client, 0).await;
    let mut stream = Stream::open(client.request(Method::POST, "/subscribe/ch")).await;
    stream.reach("data: subscribe,ch,1\n\n").await;
    let master = sentinels.master();
    sentinels.server(master).hang();
    until(async || (sentinels.master() != master).then_some(())).await;
    set(&client, 1).await;
    // The stream's connection is still open, but would receive nothing more.
    stream.end().await;
    let next = sentinels.master();
    let there: String = sentinels.server(next).query(&["GET", "k"]).unwrap();
    assert_eq!(there, "1");
    sentinels.server(master).go_on();
}
