//! The access log: a line of JSON for each request, without secrets.

use edgelatch_gateway::Right;
use reqwest::Method;
use serde_json::{Value, json};

use crate::metrics::Scrape;
use crate::program::{Running, program};
use crate::scopes::{KEY, scoped};
use crate::support::{Stream, TOKEN, answer};

async fn start() -> Running {
    let args = ["--dev", "--token", TOKEN, "--access-log", "--metrics-listen", "127.0.0.1:0"];
    let mut command = program(&args);
    command.env("EDGELATCH_SCOPE_KEYS", KEY).env("EDGELATCH_LOG", "warn");
    Running::start(command).await
}

/// Returns the lines, each without the time and the duration, which differ from run to run.
fn lines(output: &str) -> Vec<Value> {
    let parse = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        let fields = line.as_object_mut().unwrap();
        assert!(fields.remove("durationMs").unwrap().as_f64().unwrap() >= 0.0);
        let time = fields.remove("time").unwrap();
        let time = time.as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
        assert_eq!(fields.remove("address").unwrap(), "127.0.0.1");
        line
    };
    output.lines().map(parse).collect()
}

#[tokio::test]
async fn each_request_has_a_line_with_what_it_was_and_how_it_ended() {
    let running = start().await;
    let metrics = running.line("metrics ").unwrap().strip_suffix("/metrics").unwrap();
    assert_eq!(Scrape::at(metrics).await.get("requests_in_flight"), 0.0);
    let client = running.client(TOKEN);
    assert_eq!(client.command(r#"["SET","secret","v"]"#).await.0, 200);
    assert_eq!(client.post("/get/secret", "").await.0, 200);
    assert_eq!(client.command(r#"["BLPOP","secret",0]"#).await.0, 400);
    assert_eq!(answer(client.bare(Method::GET, "/get/secret?_token=secret")).await.0, 401);
    let page = running.client(&scoped(&Right::ALL));
    assert_eq!(page.command(r#"["SET","secret","v"]"#).await.0, 403);
    let mut stream = Stream::open(client.request(Method::POST, "/subscribe/secret")).await;
    stream.reach("data: subscribe,secret,1\n\n").await;
    let output = running.terminate().await;
    assert!(!output.contains("secret") && !output.contains(TOKEN), "{output}");
    let line = |route: &str, method: &str, status: u16, sizes: [Option<u64>; 2]| {
        let mut line = json!({ "route": route, "method": method, "status": status });
        for (name, size) in ["requestBytes", "responseBytes"].into_iter().zip(sizes) {
            if let Some(size) = size {
                line[name] = json!(size);
            }
        }
        line
    };
    let with = |mut line: Value, fields: &[(&str, &str)]| {
        for (name, value) in fields {
            line[*name] = json!(value);
        }
        line
    };
    let size = |body: &str| u64::try_from(body.len()).ok();
    let refused = r#"{"error":"ERR the gateway does not allow BLPOP"}"#;
    let unknown = r#"{"error":"WRONGPASS invalid or missing auth token"}"#;
    let forbidden = r#"{"error":"NOPERM a scoped token runs nothing but edgelatch's own scripts"}"#;
    let (set, blocking) = (r#"["SET","secret","v"]"#, r#"["BLPOP","secret",0]"#);
    let full = ("token", "full");
    let expected = [
        with(line("command", "POST", 200, [size(set), size(r#"{"result":"OK"}"#)]), &[full]),
        with(line("path", "POST", 200, [Some(0), size(r#"{"result":"v"}"#)]), &[full]),
        with(
            line("command", "POST", 400, [size(blocking), size(refused)]),
            &[full, ("error", "refused")],
        ),
        with(line("path", "GET", 401, [Some(0), size(unknown)]), &[("error", "token-unknown")]),
        with(
            line("command", "POST", 403, [size(set), size(forbidden)]),
            &[("token", "scoped"), ("error", "scope"), ("rule", "command")],
        ),
        with(line("subscribe", "POST", 200, [Some(0), None]), &[full]),
    ];
    assert_eq!(lines(&output), expected);
}

#[tokio::test]
async fn without_the_option_there_is_no_line() {
    let running = Running::start(program(&["--dev", "--token", TOKEN])).await;
    assert_eq!(running.line("metrics "), None);
    assert_eq!(running.client(TOKEN).command(r#"["PING"]"#).await.0, 200);
    assert!(!running.terminate().await.contains("\"route\""));
}
