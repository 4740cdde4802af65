//! The spans, lines and metrics of a client with the features `tracing` and `metrics`.

use std::collections::BTreeSet;
use std::time::Duration;

use edgelatch::client::{AcquireOptions, GuardedWrite, LeaseEnd, Released, UserScript};
use edgelatch::error::{AcquireError, LossReason};
use edgelatch::timing::{AttemptTime, GuardMemory, PeerSkew};
use edgelatch::{Client, Gateway};

use test_support::fake_host::FakeHost;
use test_support::faults::{Fault, FaultResponse};
use test_support::observer::{Fields, Observer, SeenSpan};
use test_support::redis::TOKEN;
use test_support::test_env::{LONG_ATTEMPT, TestEnv, until, until_in_virtual_time, virtual_client};

const THIRD: Duration = Duration::from_secs(10);
/// The name of the observed lock, which a line quotes.
const NAME: &str = r#"job "42""#;

fn span(spans: &[SeenSpan], name: &str) -> Fields {
    let all: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
    let [one] = all.as_slice() else { panic!("{name}: {spans:?}") };
    one.fields.clone()
}

fn address(env: &TestEnv) -> String {
    env.proxy.url().replace("http://", "")
}

#[tokio::test]
async fn a_life_of_a_lock_has_three_spans_and_a_line_for_each_step() {
    let observer = Observer::default();
    let _spans = observer.spans();
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let lease = client.lock(NAME).unwrap().acquire().await.unwrap();
    let kept = tokio::spawn(lease.keep());
    host.pass(THIRD);
    until(async || observer.lines().iter().any(|line| line.contains("renewed"))).await;
    let token = lease.token().as_u64();
    assert_eq!(lease.release().await, Ok(Released::Released));
    assert_eq!(kept.await.unwrap(), LeaseEnd::Released);

    let lock = format!(r#"lock "job \"42\"" at {}"#, address(&env));
    let lines = observer.lines();
    let steps: Vec<&String> = lines.iter().filter(|line| !line.starts_with("TRACE")).collect();
    assert_eq!(
        steps,
        [
            &format!("DEBUG acquire {lock}"),
            &format!("DEBUG acquired {lock} after 0 ms, token {token}"),
            &format!("DEBUG renewed {lock}"),
            &format!("DEBUG release {lock}"),
            &format!("DEBUG released {lock} after 0 ms"),
            &format!("DEBUG end of {lock} after 10000 ms: released"),
        ]
    );
    let spans = observer.ended_spans();
    assert_eq!(spans.len(), 3, "{spans:?}");
    let common = |fields: &Fields| {
        let (host, port) =
            address(&env).rsplit_once(':').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        for (name, value) in [
            ("otel.kind", "client"),
            ("db.system.name", "redis"),
            ("server.address", &host),
            ("server.port", &port),
            ("edgelatch.object.kind", "lock"),
            ("edgelatch.object.name", NAME),
        ] {
            assert_eq!(fields[name], value, "{fields:?}");
        }
        assert!(!fields.contains_key("error.type"), "{fields:?}");
    };
    let [acquire, hold, release] =
        ["edgelatch.acquire", "edgelatch.hold", "edgelatch.release"].map(|name| span(&spans, name));
    for fields in [&acquire, &hold, &release] {
        common(fields);
    }
    assert_eq!(acquire["edgelatch.contended"], "false");
    assert_eq!(acquire["edgelatch.fencing_token"], token.to_string());
    assert_eq!(hold["edgelatch.fencing_token"], token.to_string());
    assert_eq!(hold["edgelatch.outcome"], "released");
}

#[tokio::test]
async fn metrics_have_the_names_units_and_labels_of_the_documentation() {
    let observer = Observer::default();
    let _metrics = observer.metrics();
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let lease = client.lock(NAME).unwrap().acquire().await.unwrap();
    let kept = tokio::spawn(lease.keep());
    for renewals in [1.0, 2.0] {
        host.pass(THIRD);
        until(async || observer.count("edgelatch.renewals") == renewals).await;
    }
    lease.release().await.unwrap();
    kept.await.unwrap();

    let [(labels, waited)] = &*observer.values("edgelatch.wait.duration") else { panic!() };
    assert_eq!(*waited, 0.0);
    let names: Vec<&str> = labels.keys().map(String::as_str).collect();
    assert_eq!(names, ["db.system.name", "edgelatch.object.kind", "server.address", "server.port"]);
    let [(labels, held)] = &*observer.values("edgelatch.hold.duration") else { panic!() };
    assert_eq!((labels["edgelatch.outcome"].as_str(), *held), ("released", 20.0));
    assert_eq!(observer.count("edgelatch.contended"), 0.0);
    assert_eq!(observer.count("edgelatch.requests"), 4.0);
    assert!(
        observer
            .values("edgelatch.requests")
            .iter()
            .all(|(labels, _)| !labels.contains_key("error.type"))
    );

    let page = std::fs::read_to_string("../docs/observability.md").unwrap();
    for (name, unit) in observer.units() {
        let unit = unit.map_or("", |unit| unit.as_canonical_label());
        assert!(page.contains(&format!("| `{name}` | ")), "{name}");
        assert_eq!(unit == "s", name.ends_with(".duration"), "{name}");
    }
    assert_eq!(observer.units().len(), 7);
}

#[tokio::test]
async fn a_wait_and_a_refused_try_are_contended() {
    let observer = Observer::default();
    let _metrics = observer.metrics();
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let lock = client.lock(NAME).unwrap();
    let held = lock.acquire().await.unwrap();
    assert!(lock.try_acquire().await.unwrap().is_none());
    assert_eq!(observer.count("edgelatch.contended"), 1.0);

    let waiting = tokio::spawn({
        let lock = lock.clone();
        async move { lock.acquire().await.unwrap() }
    });
    until(async || env.proxy.count("lock_acquire") >= 3 && env.proxy.is_quiet()).await;
    held.release().await.unwrap();
    until_in_virtual_time(&env, &host, Duration::from_millis(100), || waiting.is_finished()).await;
    waiting.await.unwrap().release().await.unwrap();
    assert_eq!(observer.count("edgelatch.contended"), 2.0);
    let waits = observer.values("edgelatch.wait.duration");
    let errors: Vec<_> = waits.iter().filter_map(|(labels, _)| labels.get("error.type")).collect();
    assert_eq!(errors, ["wait-timeout"]);
    assert_eq!(waits.len(), 3);
}

#[tokio::test]
async fn a_lost_lease_is_reported_once_however_it_is_noticed() {
    let observer = Observer::default();
    let (_spans, _metrics) = (observer.spans(), observer.metrics());
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let lease = client.lock(NAME).unwrap().acquire().await.unwrap();
    let lost = tokio::spawn(lease.lost());
    env.redis.query::<u64>(&["DEL", NAME]).await;
    host.pass(THIRD);
    assert_eq!(lease.keep().await, LeaseEnd::Lost(LossReason::Gone));
    assert_eq!(lost.await.unwrap(), LossReason::Gone);
    assert_eq!(lease.release().await, Ok(Released::WasLost));
    drop(lease);
    let losses = observer.values("edgelatch.losses");
    let [(labels, _)] = losses.as_slice() else { panic!("{losses:?}") };
    assert_eq!(labels["edgelatch.loss.reason"], "gone");
    let hold = span(&observer.ended_spans(), "edgelatch.hold");
    let fields = ["error.type", "edgelatch.loss.reason", "edgelatch.outcome"];
    assert_eq!(fields.map(|field| hold[field].as_str()), ["lease-lost", "gone", "lost"]);
    let warnings = observer.lines().into_iter().filter(|line| line.starts_with("WARN"));
    let lock = format!(r#"lock "job \"42\"" at {}"#, address(&env));
    assert_eq!(warnings.collect::<Vec<_>>(), [format!("WARN lost {lock}: gone")]);
}

#[tokio::test]
async fn a_dropped_acquisition_is_cancelled_and_a_dropped_lease_is_dropped() {
    let observer = Observer::default();
    let (_spans, _metrics) = (observer.spans(), observer.metrics());
    let env = TestEnv::with(|_| Fault::executed(FaultResponse::Silence)).await;
    let lock = env.client_with_long_attempts().lock(NAME).unwrap();
    let waiting = tokio::spawn(async move { lock.acquire().await });
    until(async || env.proxy.count("lock_acquire") == 1).await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    let acquire = span(&observer.ended_spans(), "edgelatch.acquire");
    assert_eq!(acquire["error.type"], "cancelled");

    let env = TestEnv::new().await;
    drop(env.client().lock(NAME).unwrap().acquire().await.unwrap());
    let hold = span(&observer.ended_spans(), "edgelatch.hold");
    assert_eq!(hold["edgelatch.outcome"], "dropped");
    let [(labels, _)] = &*observer.values("edgelatch.hold.duration") else { panic!() };
    assert_eq!(labels["edgelatch.outcome"], "dropped");
}

#[tokio::test]
async fn failed_requests_and_waits_without_streams_are_counted() {
    let observer = Observer::default();
    let (_spans, _metrics) = (observer.spans(), observer.metrics());
    let env = TestEnv::new().await;
    let host = FakeHost::new();
    let lock = virtual_client(env.gateway().wakeups(false), &host).lock(NAME).unwrap();
    let held = lock.acquire().await.unwrap();
    let briefly = AcquireOptions::new().wait(Duration::from_millis(500));
    let refused = env.in_virtual_time(&host, lock.acquire_with(briefly)).await.unwrap_err();
    assert!(matches!(refused.kind, AcquireError::Busy { .. }), "{refused:?}");
    held.release().await.unwrap();
    assert_eq!(observer.count("edgelatch.polling.fallbacks"), 1.0);
    let line = format!("INFO waiters at {} learn of releases by polling", address(&env));
    assert!(observer.lines().contains(&line), "{:?}", observer.lines());

    let wrong = Gateway::upstash(&env.proxy.url(), "wrong-token-0123456789").unwrap();
    Client::connect(wrong).lock(NAME).unwrap().acquire().await.unwrap_err();
    let nowhere = Gateway::upstash("http://127.0.0.1:1", TOKEN).unwrap();
    let nowhere = nowhere.request_timeout(AttemptTime::new(LONG_ATTEMPT).unwrap());
    Client::connect(nowhere).lock(NAME).unwrap().try_acquire().await.unwrap_err();
    let values = observer.values("edgelatch.requests");
    let errors: BTreeSet<&str> = values
        .iter()
        .filter_map(|(labels, _)| labels.get("error.type"))
        .map(String::as_str)
        .collect();
    assert_eq!(errors, BTreeSet::from(["401", "not-sent"]));
}

/// The words of the requests that no report may contain: the token, owners, request ids, scripts.
fn secrets(env: &TestEnv) -> BTreeSet<String> {
    let mut secrets = BTreeSet::from([TOKEN.to_owned(), "wrong-token".to_owned()]);
    for call in env.proxy.calls() {
        let is_secret =
            |word: &&String| word.len() >= 16 && !word.bytes().all(|byte| byte.is_ascii_digit());
        secrets.extend(call.words.iter().filter(is_secret).cloned());
    }
    secrets
}

#[tokio::test]
async fn no_span_line_or_label_contains_a_secret() {
    let observer = Observer::default();
    let (_spans, _metrics) = (observer.spans(), observer.metrics());
    let env = TestEnv::new().await;
    let client = env.client();
    let lease = client.lock("a").unwrap().acquire().await.unwrap();
    lease.renew(None).await.unwrap();
    lease.is_held().await.unwrap();
    let (keys, arguments) = (vec!["{a}-key-of-a-script".into()], vec!["an-argument".into()]);
    let script = UserScript::new("return redis.call('GET', KEYS[1]) or ARGV[1]", keys, arguments);
    lease.eval(&script.unwrap()).await.unwrap();
    let guard = client.guard("a-guarded-key", GuardMemory::DEFAULT).unwrap();
    guard.write(&lease, None, &GuardedWrite::set("a-guarded-value", None)).await.unwrap();
    lease.release().await.unwrap();
    let semaphore = client.permit_expirable_semaphore("p", PeerSkew::DEFAULT).unwrap();
    semaphore.try_set_permits(2).await.unwrap();
    semaphore.acquire(1).await.unwrap().release().await.unwrap();
    client
        .owner()
        .fair_lock("f", Default::default())
        .unwrap()
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    let wrong = Gateway::upstash(&env.proxy.url(), "wrong-token-0123456789").unwrap();
    Client::connect(wrong).lock("a").unwrap().acquire().await.unwrap_err();
    client
        .redact_names()
        .lock("secret-name")
        .unwrap()
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();

    let reported = observer.everything();
    let secrets = secrets(&env);
    assert!(secrets.len() > 10 && reported.contains("acquired lock"), "{secrets:?}");
    for secret in secrets.iter().map(String::as_str).chain(["secret-name", "an-argument"]) {
        assert!(!reported.contains(secret), "{secret} in {reported}");
    }
}
