//! The shutdown of a gateway.

use reqwest::Method;
use tokio::net::TcpStream;

use crate::support::{Stream, TestEnv, until_blocked};

#[tokio::test]
async fn a_running_request_ends_and_streams_are_closed() {
    let TestEnv { client, gateway, redis } = TestEnv::new().await;
    let address = gateway.address();
    let mut stream = Stream::open(client.request(Method::POST, "/subscribe/ch")).await;
    stream.reach("data: subscribe,ch,1\n\n").await;
    let running = tokio::spawn(async move { client.command(r#"["WAIT",1,1000]"#).await });
    until_blocked(&mut redis.connect().await).await;
    gateway.shutdown().await;
    assert_eq!(running.await.unwrap(), (200, r#"{"result":0}"#.to_owned()));
    stream.end().await;
    assert!(TcpStream::connect(address).await.is_err());
}
