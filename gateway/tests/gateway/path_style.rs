//! Commands and tokens in the address, as users of curl write them.

use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};

use crate::scopes::{scoped, with_scopes};
use crate::support::{TOKEN, TestClient, TestEnv, answer, header};
use edgelatch_gateway::Right;

const OK: &str = r#"{"result":"OK"}"#;

async fn get(client: &TestClient, address: &str) -> (u16, String) {
    answer(client.request(Method::GET, address)).await
}

fn ok(body: &str) -> (u16, String) {
    (200, body.to_owned())
}

#[tokio::test]
async fn the_examples_of_upstash_work() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    for (address, body) in [
        ("/set/foo/bar", OK),
        ("/set/foo/bar/EX/100", OK),
        ("/get/foo", r#"{"result":"bar"}"#),
        ("/MGET/foo/none", r#"{"result":["bar",null]}"#),
        ("/hset/employee:23381/salary/1", r#"{"result":1}"#),
        ("/hget/employee:23381/salary", r#"{"result":"1"}"#),
        ("/zadd/teams/100/team-x/90/team-y", r#"{"result":2}"#),
        ("/publish/chat/hello", r#"{"result":0}"#),
        ("/set/empty/", OK),
        ("/strlen/empty", r#"{"result":0}"#),
    ] {
        for method in [Method::POST, Method::PUT, Method::GET] {
            let (status, reply) = answer(client.request(method, address)).await;
            assert_eq!(status, 200, "{address}: {reply}");
            // A repeated command finds its field or member already there.
            let is_repeated = reply == r#"{"result":0}"#;
            assert!(reply == body || is_repeated && body.starts_with(r#"{"result":"#), "{reply}");
        }
    }
    assert_eq!(get(&client, "/get/empty").await, ok(r#"{"result":""}"#));
    let (status, error) = get(&client, "/get").await;
    assert_eq!(status, 400);
    assert!(error.starts_with(r#"{"error":"ERR wrong number of arguments"#), "{error}");
}

/// The text after `mark` in a line, up to `end`.
fn between<'a>(line: &'a str, mark: &str, end: char) -> Option<&'a str> {
    Some(line.split_once(mark)?.1.split(end).next().unwrap())
}

#[tokio::test]
async fn the_examples_of_the_readme_work() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    let readme = include_str!("../../README.md");
    let lines: Vec<&str> = readme.lines().filter(|line| line.starts_with("curl ")).collect();
    assert!(lines.len() > 5, "{lines:#?}");
    for line in lines.into_iter().filter(|line| !line.contains("/subscribe/")) {
        let (command, comment) = line.split_once(" # ").unwrap_or((line, ""));
        let address = between(command, "http://127.0.0.1:8079", ' ').unwrap();
        let address = address.trim_end_matches('"').replace("$TOKEN", TOKEN);
        let body =
            between(command, "-d '", '\'').or_else(|| between(command, "--data-binary ", ' '));
        let method = if body.is_some() { Method::POST } else { Method::GET };
        let request = if command.contains("Authorization: Bearer $TOKEN") {
            client.request(method, &address)
        } else {
            client.bare(method, &address)
        };
        let (status, reply) = answer(request.body(body.unwrap_or_default())).await;
        assert_eq!(status, 200, "{line}: {reply}");
        assert!(comment.is_empty() || reply == comment, "{line}: {reply}");
    }
}

#[tokio::test]
async fn a_body_is_the_last_argument_and_the_query_holds_options() {
    let TestEnv { client, redis, gateway: _gateway } = TestEnv::new().await;
    let value = [&b"{\"a\": [1]}\r\n\0\xff\xfe"[..], &[b'x'; 5000]].concat();
    for method in [Method::POST, Method::PUT] {
        let set = client.request(method, "/set/k?EX=100&_token=ignored").body(value.clone());
        assert_eq!(answer(set).await, ok(OK));
        let mut connection = redis.connect().await;
        let stored: Vec<u8> =
            redis::cmd("GETDEL").arg("k").query_async(&mut connection).await.unwrap();
        assert_eq!(stored, value);
    }
    assert_eq!(get(&client, "/set/k/v?NX&PX=100000").await, ok(OK));
    assert_eq!(get(&client, "/set/k/w?NX").await, ok(r#"{"result":null}"#));
    let (_, left) = get(&client, "/pttl/k").await;
    assert!(left.len() > r#"{"result":}"#.len() && !left.contains('-'), "{left}");
    assert_eq!(get(&client, "/set/a%2Fb%20c+d/v").await, ok(OK));
    assert_eq!(client.command(r#"["GET","a/b c+d"]"#).await, ok(r#"{"result":"v"}"#));
    // The body of a `GET` is not a word of the command.
    let set = client.request(Method::GET, "/set/k").body("v");
    assert_eq!(answer(set).await.0, 400);
}

#[tokio::test]
async fn the_answer_to_head_is_that_to_get_without_its_body() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    assert_eq!(answer(client.request(Method::HEAD, "/set/k/v")).await, ok(""));
    assert_eq!(get(&client, "/get/k").await, ok(r#"{"result":"v"}"#));
    assert_eq!(answer(client.request(Method::HEAD, "/lpush/k/v")).await.0, 400);
    for method in [Method::DELETE, Method::PATCH, Method::TRACE] {
        assert_eq!(answer(client.request(method, "/del/k")).await.0, 405);
    }
    assert_eq!(get(&client, "/exists/k").await, ok(r#"{"result":1}"#));
}

#[tokio::test]
async fn other_paths_keep_their_meaning() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    for (method, address, status) in [
        (Method::GET, "/", 405),
        (Method::PUT, "/", 405),
        (Method::GET, "/pipeline", 405),
        (Method::PUT, "/multi-exec", 405),
        (Method::PUT, "/subscribe/ch", 405),
        (Method::POST, "/healthz", 405),
        (Method::GET, "/healthz", 200),
        (Method::GET, "//set/k/v", 400),
        (Method::GET, "/subscribe", 400),
        (Method::GET, "/subscribe/", 400),
        (Method::GET, "/monitor", 400),
    ] {
        let (actual, body) = answer(client.request(method, address)).await;
        assert_eq!(actual, status, "{address}: {body}");
        assert!(body.starts_with('{'), "{address}: {body}");
    }
    let response = client.request(Method::GET, "/get/k").send().await.unwrap();
    assert_eq!(header(response.headers(), "cache-control"), Some("no-store"));
}

#[tokio::test]
async fn a_command_that_is_refused_in_a_body_is_refused_in_an_address() {
    let TestEnv { client, gateway: _gateway, redis: _redis } =
        TestEnv::with(|config| config.body_limit = 64).await;
    assert_eq!(get(&client, "/set/k/v").await, ok(OK));
    for address in [
        "/FlushAll",
        "/flushdb/ASYNC",
        "/script/flush",
        "/SCRIPT?FLUSH",
        "/c%6Fnfig/get/*",
        "/config%7Cget/*",
        "/blpop/k/0",
        "/xread/BLOCK/0/STREAMS/s/$",
        "/xread?BLOCK=0&STREAMS=s&$",
        "/wait/1/0",
        "/select/1",
        "/multi",
        "/subscribe?ch",
    ] {
        let (status, body) = get(&client, address).await;
        assert_eq!(status, 400, "{address}");
        assert!(body.starts_with(r#"{"error":"ERR the gateway "#), "{address}: {body}");
    }
    // The last word of the command is in the body.
    let flush = client.request(Method::POST, "/script").body("FLUSH");
    assert!(answer(flush).await.1.contains("does not allow SCRIPT FLUSH"));
    let large = client.request(Method::POST, "/set/k").body("x".repeat(65));
    assert_eq!(answer(large).await, (413, r#"{"error":"ERR max request size exceeded"}"#.into()));
    assert_eq!(get(&client, "/get/k").await, ok(r#"{"result":"v"}"#));
}

#[tokio::test]
async fn a_token_may_stand_in_the_address_where_no_header_has_one() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    let bare = |method, address: &str| client.bare(method, address);
    let get = |address: String| answer(bare(Method::GET, &address));
    assert_eq!(get(format!("/set/k/v?_token={TOKEN}&EX=100")).await, ok(OK));
    assert_eq!(get(format!("/get/k?%5Ftoken={TOKEN}")).await, ok(r#"{"result":"v"}"#));
    let body = bare(Method::POST, &format!("/?_token={TOKEN}")).body(r#"["GET","k"]"#);
    assert_eq!(answer(body).await, ok(r#"{"result":"v"}"#));
    let pipeline = bare(Method::POST, &format!("/pipeline?_token={TOKEN}")).body("[[\"PING\"]]");
    assert_eq!(answer(pipeline).await, ok(r#"[{"result":"PONG"}]"#));
    for wrong in [
        "/get/k".to_owned(),
        "/get/k?_token=".to_owned(),
        format!("/get/k?_token={TOKEN}2"),
        format!("/get/k?token={TOKEN}"),
        format!("/get/k?_TOKEN={TOKEN}"),
        format!("/get/k?_token=wrong&_token={TOKEN}"),
        format!("/get/k/_token={TOKEN}"),
    ] {
        assert_eq!(get(wrong.clone()).await.0, 401, "{wrong}");
    }
    // With an `Authorization` header, even an invalid one, `_token` is ignored.
    for wrong in ["", "Basic eA==", "Bearer wrong"] {
        let both = bare(Method::GET, &format!("/get/k?_token={TOKEN}"));
        assert_eq!(answer(both.header("Authorization", wrong)).await.0, 401, "{wrong}");
    }
}

#[tokio::test]
async fn a_scoped_token_opens_nothing_by_the_address() {
    let TestEnv { client, gateway, redis: _redis } = TestEnv::with(with_scopes).await;
    let every_right =
        [Right::Hold, Right::Count, Right::Manage, Right::Guard, Right::Force, Right::Majority];
    let token = scoped(&every_right);
    let page = TestClient::new(&format!("http://{}", gateway.address()), &token);
    for method in [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::DELETE] {
        for address in ["/set/app:a/v", "/get/app:a", "/ping", "/evalsha/x/0", "//"] {
            let response = page.request(method.clone(), address).send().await.unwrap();
            assert_eq!(response.status(), 403, "{method} {address}");
        }
    }
    let inside = format!("?_token={token}");
    for address in ["/get/app:a", "/", "/pipeline", "/subscribe/redisson_lock__channel:%7Bapp:a%7D"]
    {
        let request = page.bare(Method::POST, &format!("{address}{inside}")).body("[]");
        assert_eq!(answer(request).await.0, 401, "{address}");
    }
    assert_eq!(client.command(r#"["DBSIZE"]"#).await, ok(r#"{"result":0}"#));
}

/// Adds the headers in which a browser names the site and origin of a page, unless they are empty.
fn of_page(request: RequestBuilder, site: &str, origin: &str) -> RequestBuilder {
    let headers = [("Sec-Fetch-Site", site), ("Origin", origin)];
    let headers = headers.into_iter().filter(|(_, value)| !value.is_empty());
    headers.fold(request, |request, (name, value)| request.header(name, value))
}

#[tokio::test]
async fn a_page_on_another_origin_changes_nothing_by_a_simple_request() {
    let allowed = "https://app.example";
    let TestEnv { client, gateway: _gateway, redis: _redis } =
        TestEnv::with(|config| config.origins = vec![allowed.parse().unwrap()]).await;
    let in_address = [
        (Method::GET, format!("/set/k/v?_token={TOKEN}"), ""),
        (Method::HEAD, format!("/set/k/v?_token={TOKEN}"), ""),
        (Method::POST, format!("/set/k?_token={TOKEN}"), "v"),
        (Method::POST, format!("/?_token={TOKEN}"), r#"["SET","k","v"]"#),
        (Method::POST, format!("/pipeline?_token={TOKEN}"), r#"[["SET","k","v"]]"#),
        (Method::POST, format!("/multi-exec?_token={TOKEN}"), r#"[["SET","k","v"]]"#),
        (Method::GET, format!("/subscribe/ch?_token={TOKEN}"), ""),
    ];
    let foreign = [
        ("cross-site", ""),
        ("same-site", ""),
        ("cross-site", "https://evil.example"),
        ("same-site", "null"),
        ("", "https://evil.example"),
        ("", "null"),
    ];
    for (method, address, body) in &in_address {
        for (site, origin) in foreign {
            let request = client.bare(method.clone(), address).body(*body);
            let response = of_page(request, site, origin).send().await.unwrap();
            assert_eq!(response.status(), 403, "{method} {address} {site} {origin}");
            assert_unreadable(response.headers());
        }
    }
    // The page does not learn whether it has guessed a token either.
    let guess = client.bare(Method::GET, "/set/k/v?_token=a-guess-of-a-token");
    assert_eq!(of_page(guess, "cross-site", "").send().await.unwrap().status(), 403);
    // If a proxy adds the token, such requests need no preflight either.
    for (site, origin) in foreign {
        let request = of_page(client.request(Method::GET, "/set/k/v"), site, origin);
        let (status, body) = answer(request).await;
        assert_eq!(status, 403);
        assert!(body.starts_with(r#"{"error":"NOPERM a page "#), "{body}");
    }
    assert_eq!(client.command(r#"["DBSIZE"]"#).await, ok(r#"{"result":0}"#));
    for (site, origin) in [
        ("cross-site", allowed),
        ("", allowed),
        ("same-origin", "https://own.example"),
        ("none", ""),
    ] {
        let (method, address, body) = &in_address[2];
        let request = client.bare(method.clone(), address).body(*body);
        assert_eq!(answer(of_page(request, site, origin)).await, ok(OK), "{site} {origin}");
    }
}

fn assert_unreadable(headers: &HeaderMap) {
    assert_eq!(header(headers, "access-control-allow-origin"), None);
}
