//! Checks of tokens and web origins.

use reqwest::header::AUTHORIZATION;
use reqwest::{Method, RequestBuilder};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{TOKEN, TestClient, TestEnv, answer, header};

const REFUSED: &str = r#"{"error":"WRONGPASS invalid or missing auth token"}"#;

#[tokio::test]
async fn without_the_token_nothing_happens() {
    let TestEnv { client, gateway, redis: _redis } = TestEnv::new().await;
    let wrong_token =
        TestClient::new(&format!("http://{}", gateway.address()), "the-token-of-test");
    let refused = (401, REFUSED.to_owned());
    for (path, body) in [
        ("/", r#"["SET","k","v"]"#),
        ("/pipeline", r#"[["SET","k","v"]]"#),
        ("/multi-exec", r#"[["SET","k","v"]]"#),
        ("/subscribe/ch", "[]"),
        ("/psubscribe/*", "[]"),
        ("/set/k/v", ""),
    ] {
        assert_eq!(wrong_token.post(path, body).await, refused, "{path}");
        let post = || client.bare(Method::POST, path).body(body);
        assert_eq!(answer(post()).await, refused, "{path}");
        for (before, token, after) in
            [("", TOKEN, ""), ("Basic ", TOKEN, ""), ("Bearer ", "", ""), ("Bearer ", TOKEN, "2")]
        {
            let wrong = format!("{before}{token}{after}");
            assert_eq!(answer(post().header(AUTHORIZATION, &wrong)).await, refused, "{wrong}");
        }
        let in_address = client.bare(Method::POST, &format!("{path}?_token={TOKEN}2"));
        assert_eq!(answer(in_address.body(body)).await, refused, "{path}");
    }
    assert_eq!(client.command(r#"["EXISTS","k"]"#).await.1, r#"{"result":0}"#);
    let channels = client.command(r#"["PUBSUB","CHANNELS"]"#).await;
    assert_eq!(channels.1, r#"{"result":[]}"#);
}

#[tokio::test]
async fn a_wrong_token_is_refused_before_the_body_arrives() {
    let TestEnv { gateway, client: _client, redis: _redis } = TestEnv::new().await;
    let mut stream = TcpStream::connect(gateway.address()).await.unwrap();
    let head =
        "POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer no\r\nContent-Length: 9\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 401");
}

#[tokio::test]
async fn each_of_several_tokens_opens_the_gateway() {
    let both = ["the-first-of-two", "the-second-of-two"];
    let tokens = edgelatch_gateway::Tokens::new(both).unwrap();
    let TestEnv { gateway, client, redis: _redis } =
        TestEnv::with(|config| config.tokens = tokens).await;
    let url = format!("http://{}", gateway.address());
    for token in both {
        assert_eq!(TestClient::new(&url, token).command(r#"["PING"]"#).await.0, 200);
    }
    assert_eq!(client.command(r#"["PING"]"#).await.0, 401);
}

fn preflight(client: &TestClient, origin: &str) -> RequestBuilder {
    client
        .bare(Method::OPTIONS, "/")
        .header("Origin", origin)
        .header("Access-Control-Request-Method", "POST")
        .header("Access-Control-Request-Headers", "authorization,content-type")
}

#[tokio::test]
async fn a_page_of_an_allowed_origin_may_call() {
    let origin = "https://app.example";
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::with(|config| {
        config.origins = vec![origin.parse().unwrap(), "http://localhost:1".parse().unwrap()];
    })
    .await;
    let response = preflight(&client, origin).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let headers = response.headers();
    assert_eq!(header(headers, "access-control-allow-origin"), Some(origin));
    let methods = header(headers, "access-control-allow-methods").unwrap();
    assert!(methods.contains("GET") && methods.contains("POST"), "{methods}");
    let allowed = header(headers, "access-control-allow-headers").unwrap();
    for name in ["authorization", "content-type", "upstash-sync-token", "accept", "cache-control"] {
        assert!(allowed.split(',').any(|allowed| allowed.trim() == name), "{name} in {allowed}");
    }

    let call =
        |request: RequestBuilder| request.header("Origin", origin).body(r#"["PING"]"#).send();
    let response = call(client.request(Method::POST, "/")).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(header(response.headers(), "access-control-allow-origin"), Some(origin));
    let exposed = header(response.headers(), "access-control-expose-headers");
    assert_eq!(exposed, Some("upstash-sync-token,retry-after"));
    // Without these headers on a refusal a page would only see "network error".
    let response = call(client.bare(Method::POST, "/")).await.unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(header(response.headers(), "access-control-allow-origin"), Some(origin));
}

#[tokio::test]
async fn a_page_of_another_origin_may_not() {
    let with_list = TestEnv::with(|config| {
        config.origins = vec!["https://app.example".parse().unwrap()];
    })
    .await;
    let without = TestEnv::new().await;
    for client in [&with_list.client, &without.client] {
        for origin in ["https://evil.example", "null", "https://app.example.evil.example"] {
            let response = preflight(client, origin).send().await.unwrap();
            assert!(response.status().is_success());
            assert_eq!(header(response.headers(), "access-control-allow-origin"), None);
            let request = client.request(Method::POST, "/").header("Origin", origin);
            let response = request.body(r#"["PING"]"#).send().await.unwrap();
            assert_eq!(header(response.headers(), "access-control-allow-origin"), None);
        }
    }
    let response = preflight(&without.client, "https://app.example").send().await.unwrap();
    assert!(response.headers().keys().all(|name| !name.as_str().starts_with("access-control")));
}
