//! Requests with one command.

use reqwest::Method;

use crate::support::{TestClient, TestEnv, answer, header};

#[tokio::test]
async fn a_command_and_its_result() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    for (command, result) in [
        (r#"["SET","k","v","EX",100]"#, r#"{"result":"OK"}"#),
        (r#"["get","k"]"#, r#"{"result":"v"}"#),
        (r#"["GET","nothing"]"#, r#"{"result":null}"#),
        (r#"["PING"]"#, r#"{"result":"PONG"}"#),
        (r#"["RPUSH","list",true,null,1.5,100,"é\n\"x"]"#, r#"{"result":5}"#),
        (r#"["LRANGE","list",0,-1]"#, r#"{"result":["true","null","1.5","100","é\n\"x"]}"#),
        (r#"["HSET","h","f","v"]"#, r#"{"result":1}"#),
        (r#"["HGETALL","h"]"#, r#"{"result":["f","v"]}"#),
        (r#"["DEL","k","list","h"]"#, r#"{"result":3}"#),
    ] {
        assert_eq!(client.command(command).await, (200, result.to_owned()), "{command}");
    }
}

#[tokio::test]
async fn the_content_type_and_the_sync_token_make_no_difference() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    for kind in ["text/plain", "application/json; charset=utf-8", "nonsense"] {
        let request = client
            .request(Method::POST, "/")
            .header("Content-Type", kind)
            .header("upstash-sync-token", "opaque");
        let answer = answer(request.body(r#"["ECHO","here"]"#)).await;
        assert_eq!(answer, (200, r#"{"result":"here"}"#.to_owned()));
    }
}

#[tokio::test]
async fn integers_of_64_bits_stay_exact_both_ways() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    let (_, result) = client.command(r#"["INCRBY","n",9007199254740993]"#).await;
    assert_eq!(result, r#"{"result":9007199254740993}"#);
    let (_, result) = client.command(r#"["INCRBY","m","9223372036854775807"]"#).await;
    assert_eq!(result, r#"{"result":9223372036854775807}"#);
    let (_, result) = client.command(r#"["ECHO",12345678901234567890123]"#).await;
    assert_eq!(result, r#"{"result":"12345678901234567890123"}"#);
}

#[tokio::test]
async fn an_error_of_redis_keeps_its_whole_text() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    for (command, error) in [
        (r#"["EVAL","return redis.error_reply('LOCKED held  by me')",0]"#, "LOCKED held  by me"),
        (r#"["SET","k"]"#, "ERR wrong number of arguments for 'set' command"),
        (r#"["NOSUCH"]"#, "ERR unknown command 'NOSUCH', with args beginning with: "),
    ] {
        let expected = (400, format!(r#"{{"error":"{error}"}}"#));
        assert_eq!(client.command(command).await, expected);
        assert_eq!(client.base64("/", command).await, expected);
    }
    // Redis adds "Please use EVAL.", Valkey does not.
    let unknown = r#"["EVALSHA","e0e1f9fabfc9d4800c877a703b823ac0578ff8db",0]"#;
    let (status, body) = client.command(unknown).await;
    assert!(
        status == 400 && body.starts_with(r#"{"error":"NOSCRIPT No matching script."#),
        "{body}"
    );
    assert_eq!(client.base64("/", unknown).await, (status, body));
}

#[tokio::test]
async fn a_shebang_for_upstash_reaches_redis_unchanged() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    let script = r##"["EVAL","#!lua flags=allow-key-locking\nreturn 1",0]"##;
    let (status, body) = client.command(script).await;
    assert_eq!(status, 400);
    assert!(body.contains("allow-key-locking"), "{body}");
}

#[tokio::test]
async fn a_scripts_reply_keeps_its_shape_in_both_encodings() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    let mixed = r#"["EVAL","return {1,'a',false,{2,'x'},redis.status_reply('OK')}",0]"#;
    assert_eq!(
        client.command(mixed).await,
        (200, r#"{"result":[1,"a",null,[2,"x"],"OK"]}"#.to_owned())
    );
    assert_eq!(
        client.base64("/", mixed).await,
        (200, r#"{"result":[1,"YQ==",null,[2,"eA=="],"OK"]}"#.to_owned())
    );
    let failing = r#"["EVAL","return {redis.pcall('NOSUCH'),1}",0]"#;
    let (status, body) = client.command(failing).await;
    assert_eq!(status, 200);
    assert!(body.starts_with(r#"{"result":[{"error":"ERR "#) && body.ends_with("},1]}"), "{body}");
}

#[tokio::test]
async fn bytes_that_are_no_text_survive_in_base64_only() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    let bytes = r#"["EVAL","return '\\255\\254'",0]"#;
    assert_eq!(client.command(bytes).await, (200, "{\"result\":\"\u{fffd}\u{fffd}\"}".to_owned()));
    assert_eq!(client.base64("/", bytes).await, (200, r#"{"result":"//4="}"#.to_owned()));
    assert_eq!(
        client.base64("/", r#"["SET","k","OK"]"#).await,
        (200, r#"{"result":"OK"}"#.to_owned())
    );
    // Only the status `OK` is not encoded, unlike a value with the same text.
    assert_eq!(
        client.base64("/", r#"["GET","k"]"#).await,
        (200, r#"{"result":"T0s="}"#.to_owned())
    );
}

#[tokio::test]
async fn a_command_with_effects_on_other_requests_is_refused() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    for command in [
        r#"["BLPOP","k",0]"#,
        r#"["subscribe","ch"]"#,
        r#"["SSUBSCRIBE","ch"]"#,
        r#"["MULTI"]"#,
        r#"["EXEC"]"#,
        r#"["WATCH","k"]"#,
        r#"["AUTH","x"]"#,
        r#"["SELECT",1]"#,
        r#"["HELLO",3]"#,
        r#"["CLIENT","REPLY","OFF"]"#,
        r#"["RESET"]"#,
        r#"["QUIT"]"#,
        r#"["MONITOR"]"#,
        r#"["XREAD","BLOCK",0,"STREAMS","s","$"]"#,
        r#"["WAIT",1,0]"#,
        r#"["WAIT",1,999999999]"#,
        r#"["DEBUG","SLEEP",1]"#,
        r#"["SHUTDOWN"]"#,
        r#"["CONFIG","GET","*"]"#,
        r#"["SCRIPT","DEBUG","YES"]"#,
    ] {
        let (status, body) = client.command(command).await;
        assert_eq!(status, 400, "{command}");
        assert!(body.starts_with(r#"{"error":"ERR the gateway "#), "{command}: {body}");
        let after = client.command(r#"["PING"]"#).await;
        assert_eq!(after, (200, r#"{"result":"PONG"}"#.to_owned()), "after {command}");
    }
    assert_eq!(client.command(r#"["WAIT",1,1]"#).await, (200, r#"{"result":0}"#.to_owned()));
}

#[tokio::test]
async fn a_body_that_is_no_command_is_refused_and_not_repeated() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    for body in ["", "{}", "null", "[]", "[\"SET\",\"secret\"", "[[\"PING\"]]", "[{\"secret\":1}]"]
    {
        let (status, answer) = client.command(body).await;
        assert_eq!(status, 400, "{body}");
        assert!(answer.starts_with(r#"{"error":"ERR "#) && !answer.contains("secret"), "{answer}");
    }
    let not_utf8 = client.request(Method::POST, "/").body(vec![b'[', b'"', 0xff, b'"', b']']);
    assert_eq!(answer(not_utf8).await.0, 400);
}

/// Returns the status and body of a response that is RESP2, or JSON if it is an error.
async fn resp2(client: &TestClient, path: &str, body: &str) -> (u16, String) {
    let request = client.request(Method::POST, path).header("Upstash-Response-Format", "resp2");
    let response = request.body(body.to_owned()).send().await.unwrap();
    let kind = header(response.headers(), "content-type").unwrap().to_owned();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let is_json = text.starts_with(['{', '[']);
    assert_eq!(kind, if is_json { "application/json" } else { "application/octet-stream" });
    (status, text)
}

#[tokio::test]
async fn a_resp2_response_has_the_bytes_of_redis_over_tcp() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    for (command, status, text) in [
        (r#"["SET","k","v"]"#, 200, "+OK\r\n"),
        (r#"["GET","k"]"#, 200, "$1\r\nv\r\n"),
        (r#"["GET","none"]"#, 200, "$-1\r\n"),
        (r#"["EVAL","return {1,'a',{}}",0]"#, 200, "*3\r\n:1\r\n$1\r\na\r\n*0\r\n"),
        (r#"["EVAL","return redis.error_reply('HELD by me')",0]"#, 400, "-HELD by me\r\n"),
    ] {
        assert_eq!(resp2(&client, "/", command).await, (status, text.to_owned()), "{command}");
    }
    let many = r#"[["GET","k"],["CONFIG"],["INCR","n"]]"#;
    let refusal = "-ERR the gateway does not allow CONFIG\r\n";
    let expected = (200, format!("$1\r\nv\r\n{refusal}:1\r\n"));
    assert_eq!(resp2(&client, "/pipeline", many).await, expected);
    // The gateway's own errors and transactions are JSON.
    let (status, error) = resp2(&client, "/", r#"["CONFIG"]"#).await;
    assert_eq!(status, 400);
    assert!(error.starts_with(r#"{"error":"ERR "#), "{error}");
    let done = (200, r#"[{"result":2}]"#.to_owned());
    assert_eq!(resp2(&client, "/multi-exec", r#"[["INCR","n"]]"#).await, done);
    let get = client.request(Method::GET, "/get/k").header("Upstash-Response-Format", "RESP2");
    assert_eq!(answer(get).await, (200, "$1\r\nv\r\n".to_owned()));
}

#[tokio::test]
async fn a_format_that_is_none_is_refused() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    for (format, encoding, expected) in
        [("resp3", "", 400), ("resp2", "base64", 400), ("json", "base64", 200)]
    {
        let request = client.request(Method::POST, "/").body(r#"["INCR","n"]"#);
        let request = request.header("Upstash-Response-Format", format);
        let (status, body) = answer(request.header("Upstash-Encoding", encoding)).await;
        assert_eq!(status, expected, "{format} {encoding}: {body}");
        assert!(body.starts_with('{'), "{body}");
    }
    assert_eq!(client.command(r#"["GET","n"]"#).await.1, r#"{"result":"1"}"#);
}

#[tokio::test]
async fn each_answer_of_redis_has_a_sync_token_of_its_own() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    let mut seen = std::collections::BTreeSet::new();
    let requests = [
        (Method::POST, "/", r#"["SET","k","v"]"#),
        (Method::POST, "/pipeline", r#"[["SET","k","v"]]"#),
        (Method::POST, "/multi-exec", r#"[["SET","k","v"]]"#),
        (Method::GET, "/set/k/v", ""),
        // A script may write before it fails.
        (Method::POST, "/", r#"["EVAL","redis.call('set','k','w') return {err='ERR x'}",0]"#),
    ];
    for (method, path, body) in requests.clone().into_iter().chain(requests) {
        let sent = seen.last().cloned().unwrap_or_default();
        let request = client.request(method, path).header("upstash-sync-token", sent);
        let response = request.body(body).send().await.unwrap();
        let token = header(response.headers(), "upstash-sync-token").unwrap().to_owned();
        assert!(!token.is_empty() && seen.insert(token), "{path}");
    }
    let response = client.request(Method::POST, "/").body("[]").send().await.unwrap();
    assert_eq!(header(response.headers(), "upstash-sync-token"), None);
}

#[tokio::test]
async fn other_methods_are_answered_in_json() {
    let TestEnv { client, gateway: _gateway, redis: _redis } = TestEnv::new().await;
    let wrong = (405, r#"{"error":"ERR the gateway does not know this method here"}"#.to_owned());
    assert_eq!(answer(client.request(Method::GET, "/pipeline")).await, wrong);
    let health = (200, r#"{"ok":true}"#.to_owned());
    assert_eq!(answer(client.bare(Method::GET, "/healthz")).await, health);
}
