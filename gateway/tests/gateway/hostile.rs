//! Hostile JSON.

use reqwest::Method;

use crate::support::{TestEnv, answer};

#[tokio::test]
async fn no_json_breaks_the_gateway_or_does_anything_by_half() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    let deep =
        |open: &str, close: &str| format!("{}{}", open.repeat(100_000), close.repeat(100_000));
    let surrogate = r#"["SET","\ud800\ud800","v"]"#;
    for body in [
        &deep("[", "]"),
        &"[".repeat(1_000_000),
        &format!(r#"["SET","k",{}]"#, deep("[", "]")),
        &format!(r#"["SET","k",{}]"#, deep(r#"{"a":"#, "").replace("}", "")),
        &format!(r#"["SET","k",{}1{}]"#, r#"{"a":"#.repeat(50_000), "}".repeat(50_000)),
        r#"{"0":"SET","0":"GET","1":"k"}"#,
        r#"["SET","k",{"a":1,"a":2}]"#,
        surrogate,
        r#"["SET","\udc00","v"]"#,
        r#"["SET","k","\x"]"#,
        "[\"SET\",\"k\",\"a\nb\"]",
        r#"["SET","k","v",]"#,
        r#"["SET","k",01]"#,
        r#"["SET","k",+1]"#,
        r#"["SET","k",NaN]"#,
        r#"["SET","k",Infinity]"#,
        r#"["SET","k",1.]"#,
        r#"["SET","k",tru]"#,
        r#"["SET","k",'v']"#,
        r#"["SET","k","v"]["SET","k","v"]"#,
        r#"[["SET","k","v"]]"#,
        r#"[0]"#,
        "\u{feff}[\"SET\",\"k\",\"v\"]",
    ] {
        let start = &body[..body.len().min(60)];
        for path in ["/", "/pipeline", "/multi-exec"] {
            // The other paths expect a list of commands.
            let body = if path == "/" { body.to_owned() } else { format!("[{body}]") };
            if path != "/" && start.starts_with("[[\"SET\"") {
                continue;
            }
            let (status, answer) = client.post(path, &body).await;
            let refused = status == 400 || status == 200 && answer.starts_with(r#"[{"error":"#);
            assert!(refused, "{path} {start}: {status} {answer}");
        }
    }
    assert_eq!(client.command(r#"["DBSIZE"]"#).await.1, r#"{"result":0}"#);
}

#[tokio::test]
async fn numbers_and_zero_bytes_arrive_as_they_are() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    let digits = "9".repeat(10_000);
    assert_eq!(client.command(&format!(r#"["SET","k",{digits}]"#)).await.0, 200);
    assert_eq!(client.command(r#"["GET","k"]"#).await.1, format!(r#"{{"result":"{digits}"}}"#));
    assert_eq!(client.command(r#"["SET","k",1e999999]"#).await.0, 200);
    assert_eq!(client.command(r#"["GET","k"]"#).await.1, r#"{"result":"1e999999"}"#);
    // A zero byte ends neither a key nor the gateway's check of a command's name.
    assert_eq!(client.command(r#"["SET","a\u0000b","v"]"#).await.0, 200);
    assert_eq!(client.command(r#"["EXISTS","a"]"#).await.1, r#"{"result":0}"#);
    assert_eq!(client.command(r#"["EXISTS","a\u0000b"]"#).await.1, r#"{"result":1}"#);
    // Redis may take it for the command, if both names have the same hash.
    let ended = client.command(r#"["CONFIG\u0000","GET","*"]"#).await;
    assert_eq!(ended.1, r#"{"error":"ERR the gateway does not allow CONFIG"}"#);
    let ended = client.command(r#"["XREAD","BLOCK\u0000","0","STREAMS","s","$"]"#).await;
    assert_eq!(ended.1, r#"{"error":"ERR the gateway does not allow XREAD BLOCK"}"#);
    let escaped = client.command(r#"["\u0043ONFIG","GET","*"]"#).await;
    assert_eq!(escaped.1, r#"{"error":"ERR the gateway does not allow CONFIG"}"#);
    let not_utf8 = client.request(Method::POST, "/pipeline").body(vec![b'[', 0xc0, 0x80, b']']);
    assert_eq!(answer(not_utf8).await.0, 400);
}
