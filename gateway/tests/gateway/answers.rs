//! Requests count against the limits until their responses are read.

use std::num::NonZeroU32;

use edgelatch_gateway::Config;
use reqwest::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio::time::timeout;

use crate::client_limits::{assert_retry_after, of_user};
use crate::scopes::with_scopes;
use crate::support::{TIME_LIMIT, TestClient, TestEnv, until};

/// Allows one request of a client at a time, with a response larger than the buffers of a socket.
fn large_pipelines(config: &mut Config) {
    with_scopes(config);
    config.client_concurrency = 1;
    config.pipeline_limit = 250_000;
    config.client_commands = NonZeroU32::new(10_000_000).unwrap();
}

/// A fixed bug: unread responses used memory that no limit counted.
#[tokio::test]
async fn a_request_is_under_way_until_its_answer_has_been_read() {
    let env = TestEnv::with(large_pipelines).await;
    let token = of_user("one");
    let client = TestClient::new(&format!("http://{}", env.gateway.address()), &token);
    // Its response has nine megabytes.
    let body = format!("[{}[0]]", "[0],".repeat(120_000));
    let head = format!(
        "POST /pipeline HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(env.gateway.address()).await.unwrap();
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut start = [0; 12];
    timeout(TIME_LIMIT, stream.read_exact(&mut start)).await.unwrap().unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
    let send = || client.request(Method::POST, "/").body(r#"["PING"]"#).send();
    assert_retry_after(&send().await.unwrap(), 429);
    assert_eq!(env.client.command(r#"["PING"]"#).await.0, 200);
    drop(stream);
    until(async || (send().await.unwrap().status() == 403).then_some(())).await;
}
