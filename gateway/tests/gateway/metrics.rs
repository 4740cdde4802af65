//! The metrics, read as a collector reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use edgelatch_gateway::{Config, Right};
use reqwest::Method;

use crate::scopes::{scoped, with_scopes};
use crate::support::{Stream, TestClient, TestEnv, answer, header, until};

fn with_metrics(config: &mut Config) {
    config.metrics = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
}

/// One scrape: the samples by name and labels, such as `requests_total{route="path"}`.
pub(crate) struct Scrape {
    text: String,
    samples: BTreeMap<String, f64>,
}

impl Scrape {
    pub(crate) async fn of(env: &TestEnv) -> Self {
        let url = format!("http://{}", env.gateway.metrics_address().unwrap());
        Self::at(&url).await
    }

    pub(crate) async fn at(url: &str) -> Self {
        let client = TestClient::new(url, "no-token-is-needed");
        let response = client.bare(Method::GET, "/metrics").send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(
            header(response.headers(), "content-type"),
            Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
        );
        Self::parse(response.text().await.unwrap())
    }

    /// Parses OpenMetrics' text format. Fails for a sample without the description of its metric,
    /// and without the mark of the end.
    fn parse(text: String) -> Self {
        let (lines, end) = text.trim_end_matches('\n').rsplit_once('\n').unwrap();
        assert_eq!(end, "# EOF");
        let (mut samples, mut family) = (BTreeMap::new(), String::new());
        for line in lines.lines() {
            if let Some(description) = line.strip_prefix("# HELP ") {
                let (name, help) = description.split_once(' ').unwrap();
                assert!(help.ends_with('.') && help.len() > 10, "{line}");
                family = name.to_owned();
            } else if !line.starts_with("# ") {
                let (series, value) = line.rsplit_once(' ').unwrap();
                assert!(!family.is_empty() && series.starts_with(&family), "{line}");
                let series = series.strip_prefix("edgelatch_gateway_").unwrap();
                let before = samples.insert(series.to_owned(), value.parse().unwrap());
                assert_eq!(before, None, "{line}");
            }
        }
        Self { text, samples }
    }

    /// Returns the value of a sample; 0 if there is none.
    pub(crate) fn get(&self, series: &str) -> f64 {
        self.samples.get(series).copied().unwrap_or(0.0)
    }

    /// Returns the labels of each metric, with their values.
    pub(crate) fn labels(&self) -> BTreeMap<&str, BTreeMap<&str, BTreeSet<&str>>> {
        let mut all: BTreeMap<&str, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
        for series in self.samples.keys() {
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            let of_metric = all.entry(name).or_default();
            let labels = labels.strip_suffix('}').unwrap();
            for label in labels.split(',').filter(|label| !label.is_empty()) {
                let (label, value) = label.split_once('=').unwrap();
                of_metric.entry(label).or_default().insert(value.trim_matches('"'));
            }
        }
        all
    }
}

/// Sends one request of each kind, so that every metric has a series.
pub(crate) async fn traffic(env: &TestEnv) -> Stream {
    assert_eq!(env.client.command(r#"["SET","secret-key","secret-value"]"#).await.0, 200);
    assert_eq!(env.client.command(r#"["LPUSH","secret-key","v"]"#).await.0, 400);
    assert_eq!(env.client.command(r#"["BLPOP","secret-key",0]"#).await.0, 400);
    let pipeline = r#"[["GET","secret-key"],["EVALSHA","00",0],["SCRIPT","DEBUG","YES"]]"#;
    assert_eq!(env.client.post("/pipeline", pipeline).await.0, 200);
    assert_eq!(env.client.post("/multi-exec", r#"[["GET","secret-key"]]"#).await.0, 200);
    assert_eq!(env.client.post("/get/secret-key", "").await.0, 200);
    assert_eq!(env.client.command(r#"["WAIT",0,1]"#).await.0, 200);
    assert_eq!(answer(env.client.bare(Method::POST, "/")).await.0, 401);
    assert_eq!(answer(env.client.bare(Method::GET, "/healthz")).await.0, 200);
    let url = format!("http://{}", env.gateway.address());
    let page = TestClient::new(&url, &scoped(&Right::ALL));
    assert_eq!(page.command(r#"["SET","secret-key","v"]"#).await.0, 403);
    assert_eq!(page.post("/pipeline", r#"[["GET","secret-key"]]"#).await.0, 200);
    let mut stream = Stream::open(env.client.request(Method::POST, "/subscribe/secret")).await;
    stream.reach("data: subscribe,secret,1\n\n").await;
    stream
}

pub(crate) async fn start() -> TestEnv {
    TestEnv::with(|config| {
        with_scopes(config);
        with_metrics(config);
    })
    .await
}

#[tokio::test]
async fn requests_failures_and_streams_are_counted() {
    let env = start().await;
    let stream = traffic(&env).await;
    let scrape = Scrape::of(&env).await;
    for (series, number) in [
        (r#"requests_total{route="command",status="200"}"#, 2.0),
        (r#"requests_total{route="command",status="400"}"#, 2.0),
        (r#"requests_total{route="command",status="401"}"#, 1.0),
        (r#"requests_total{route="command",status="403"}"#, 1.0),
        (r#"requests_total{route="healthz",status="200"}"#, 1.0),
        (r#"requests_total{route="multi-exec",status="200"}"#, 1.0),
        (r#"requests_total{route="path",status="200"}"#, 1.0),
        (r#"requests_total{route="pipeline",status="200"}"#, 2.0),
        (r#"requests_total{route="subscribe",status="200"}"#, 1.0),
        (r#"request_duration_seconds_count{route="command"}"#, 6.0),
        (r#"request_duration_seconds_bucket{le="+Inf",route="command"}"#, 6.0),
        ("requests_in_flight", 0.0),
        (r#"errors_total{kind="token-unknown"}"#, 1.0),
        (r#"errors_total{kind="refused"}"#, 1.0),
        (r#"errors_total{kind="scope"}"#, 1.0),
        (r#"errors_total{kind="redis-timeout"}"#, 0.0),
        (r#"scope_refusals_total{rule="command"}"#, 2.0),
        (r#"scope_refusals_total{rule="lease"}"#, 0.0),
        // SET, LPUSH, two of the pipeline, GET in the transaction, GET in the path, WAIT.
        ("commands_total", 7.0),
        (r#"error_replies_total{code="WRONGTYPE"}"#, 1.0),
        (r#"error_replies_total{code="NOSCRIPT"}"#, 1.0),
        (r#"redis_duration_seconds_count{operation="command"}"#, 3.0),
        (r#"redis_duration_seconds_count{operation="pipeline"}"#, 1.0),
        (r#"redis_duration_seconds_count{operation="transaction"}"#, 1.0),
        (r#"redis_duration_seconds_count{operation="subscribe"}"#, 1.0),
        (r#"redis_duration_seconds_count{operation="wait"}"#, 1.0),
        ("streams", 1.0),
        ("stream_limit", 1000.0),
        ("connection_limit", 4000.0),
        ("connections_refused_total", 0.0),
        ("log_lines_dropped_total", 0.0),
        (concat!("build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"}"), 1.0),
    ] {
        assert_eq!(scrape.get(series), number, "{series}\n{}", scrape.text);
    }
    // Connections of the scrapes do not count, those of the clients do.
    assert!(scrape.get("connections") >= 1.0);
    assert!(scrape.get("connections_accepted_total") >= scrape.get("connections"));
    drop(stream);
    until(async || {
        let scrape = Scrape::of(&env).await;
        let ended = scrape.get(r#"stream_ends_total{reason="client"}"#);
        (scrape.get("streams") == 0.0 && ended == 1.0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_outage_of_redis_shows_and_ends() {
    let mut env = start().await;
    let up = async |env: &TestEnv, number| {
        until(async || (Scrape::of(env).await.get("redis_up") == number).then_some(())).await;
    };
    up(&env, 1.0).await;
    let mut stream = Stream::open(env.client.request(Method::POST, "/subscribe/a")).await;
    stream.reach("data: subscribe,a,1\n\n").await;
    env.redis.kill().await;
    stream.end().await;
    until(async || (env.client.command(r#"["GET","a"]"#).await.0 == 502).then_some(())).await;
    let scrape = Scrape::of(&env).await;
    assert!(scrape.get(r#"errors_total{kind="redis-unreachable"}"#) >= 1.0, "{}", scrape.text);
    assert_eq!(scrape.get(r#"stream_ends_total{reason="redis"}"#), 1.0, "{}", scrape.text);
    up(&env, 0.0).await;
    env.redis.restart().await;
    up(&env, 1.0).await;
}

#[tokio::test]
async fn a_client_that_leaves_counts_with_a_status_of_its_own() {
    let env = start().await;
    let mut redis = env.redis.connect().await;
    let request = env.client.request(Method::POST, "/").body(r#"["WAIT",1,9000]"#);
    let waiting = tokio::spawn(request.send());
    crate::support::until_blocked(&mut redis).await;
    assert_eq!(Scrape::of(&env).await.get("requests_in_flight"), 1.0);
    waiting.abort();
    until(async || {
        let scrape = Scrape::of(&env).await;
        let left = scrape.get(r#"requests_total{route="command",status="499"}"#);
        (left == 1.0 && scrape.get("requests_in_flight") == 0.0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_public_address_has_no_metrics_and_the_other_nothing_else() {
    let env = start().await;
    let path = answer(env.client.request(Method::GET, "/metrics")).await;
    assert_eq!((path.0, path.1.contains("unknown command")), (400, true), "{path:?}");
    assert_eq!(answer(env.client.bare(Method::GET, "/metrics")).await.0, 401);
    let url = format!("http://{}", env.gateway.metrics_address().unwrap());
    let metrics = TestClient::new(&url, crate::support::TOKEN);
    assert_eq!(metrics.command(r#"["PING"]"#).await.0, 404);
    assert_eq!(answer(metrics.request(Method::GET, "/get/a")).await.0, 404);
    assert_eq!(metrics.post("/metrics", "").await.0, 405);
    let without = TestEnv::new().await;
    assert_eq!(without.gateway.metrics_address(), None);
}

#[tokio::test]
async fn metrics_contain_no_names_and_few_series() {
    let env = start().await;
    drop(traffic(&env).await);
    let first = Scrape::of(&env).await;
    assert!(!first.text.contains("secret") && !first.text.contains(crate::support::TOKEN));
    // More names, channels, paths and codes of errors do not add series.
    for number in 0..20 {
        env.client.command(&format!(r#"["SET","{number}","v"]"#)).await;
        env.client.post(&format!("/get/{number}"), "").await;
        let code = format!(r#"["EVAL","return redis.error_reply('CODE{number} text')",0]"#);
        assert_eq!(env.client.command(&code).await.0, 400);
        env.client.request(Method::from_bytes(b"ODD").unwrap(), "/").send().await.unwrap();
    }
    let second = Scrape::of(&env).await;
    assert_eq!(second.get(r#"error_replies_total{code="other"}"#), 20.0);
    let added: Vec<_> =
        second.samples.keys().filter(|series| !first.samples.contains_key(*series)).collect();
    assert_eq!(added, [r#"requests_total{route="command",status="405"}"#]);
}
