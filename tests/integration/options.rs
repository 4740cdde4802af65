//! Invalid options: the error names each, and the client sends nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use edgelatch::client::{AcquireOptions, Client, Lock, Released};
use edgelatch::error::{AcquireError, InvalidOption, Refusal, RefusalKind, RequestError};
use edgelatch::host::TokioHost;
use edgelatch::timing::AttemptTime;
use edgelatch::transport::Reqwest;
use edgelatch::{Error, Gateway};

use test_support::fake_host::{DullHost, FakeHost};
use test_support::faults::Fault;
use test_support::redis::TOKEN;
use test_support::test_env::TestEnv;

const BAD_TIMES: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_nanos(1),
    Duration::from_micros(100_500),
    Duration::from_secs(24 * 60 * 60 + 1),
    Duration::MAX,
];

fn named(error: &InvalidOption, option: &str) {
    assert_eq!(error.option(), option);
    assert!(error.to_string().contains(option) && error.to_string().contains(error.accepted()));
}

/// S30.
#[tokio::test]
async fn an_option_of_an_acquisition_is_checked_before_anything_is_sent() {
    let env = TestEnv::new().await;
    let lock = env.client().lock("job").unwrap();
    let options = AcquireOptions::new();
    let mut bad = Vec::new();
    bad.extend(BAD_TIMES.map(|time| (options.lease(time), "lease")));
    bad.extend(BAD_TIMES.map(|time| (options.wait(time), "wait")));
    bad.extend([0, 1, 2, 10_001, u32::MAX].map(|most| (options.max_requests(most), "maxRequests")));
    for (options, name) in bad {
        let error = lock.acquire_with(options).await.unwrap_err();
        let AcquireError::InvalidOption(error) = error.kind else { panic!("{name}: {error}") };
        named(&error, name);
        if name == "lease" {
            let error = lock.try_acquire_with(options).await.unwrap_err();
            assert!(matches!(error.kind, AcquireError::InvalidOption(_)), "{error}");
        }
    }
    assert!(env.proxy.calls().is_empty());
}

#[tokio::test]
async fn the_lease_of_a_renewal_is_checked_before_anything_is_sent() {
    let env = TestEnv::new().await;
    let lease = env.client().lock("job").unwrap().acquire().await.unwrap();
    for time in BAD_TIMES {
        let error = lease.renew(Some(time)).await.unwrap_err();
        let RequestError::InvalidOption(error) = error.kind else { panic!("{error}") };
        named(&error, "lease");
    }
    assert_eq!(env.proxy.count("lock_renew"), 0);
    lease.release().await.unwrap();
}

#[tokio::test]
async fn a_name_is_checked_by_client_and_owner() {
    let env = TestEnv::new().await;
    let (client, long) = (env.client(), "n".repeat(513));
    for name in ["", &long, "a\nb", "a\0b", "a{b", "{}", "redisson_lock", "el:x"] {
        named(&client.lock(name).unwrap_err(), "name");
        named(&client.owner().lock(name).unwrap_err(), "name");
    }
}

#[test]
fn the_address_and_the_token_of_a_gateway_are_checked() {
    let token = "secret";
    for url in ["", "nowhere", "ftp://x.example", "https://user:pw@x.example", "http://x.example"] {
        named(&Gateway::upstash(url, token).unwrap_err(), "url");
    }
    let long = "t".repeat(4097);
    for token in ["", "  ", "two words", "tök", "a\r\nb: c", &long] {
        let error = Gateway::upstash("https://x.example", token).unwrap_err();
        named(&error, "token");
        assert!(token.len() < 4 || !error.to_string().contains(token));
    }
}

/// The JavaScript client passes the same list.
#[test]
fn an_address_without_tls_is_accepted_on_loopback_and_elsewhere_only_if_allowed() {
    let list = include_str!("../runtimes/cases/addresses.mjs");
    let (_, list) = list.split_once("= ").unwrap();
    let list: Vec<(String, bool)> =
        serde_json::from_str(list.trim_end().trim_end_matches(';')).unwrap();
    assert!(list.len() > 20);
    for (url, is_loopback) in list {
        for text in [url.clone(), format!(" {url}\n")] {
            Gateway::upstash_over_http(&text, "t").unwrap();
            let gateway = Gateway::upstash(&text, "t");
            assert_eq!(gateway.is_ok(), is_loopback, "{url}");
            if let Err(error) = gateway {
                named(&error, "url");
                assert!(error.accepted().contains("upstash_over_http"), "{url}: {error}");
            }
        }
    }
}

#[test]
fn the_time_for_a_request_is_checked() {
    for time in BAD_TIMES {
        named(&AttemptTime::new(time).unwrap_err(), "requestTimeout");
    }
}

/// S43.
#[tokio::test]
async fn a_copy_of_a_client_draws_ids_of_its_own() {
    let env = TestEnv::new().await;
    let copies = [env.virtual_client(), env.virtual_client()];
    // The copies have the same state: they have drawn the same ids so far.
    let mut drawn = Vec::new();
    for (number, (client, _)) in copies.iter().enumerate() {
        env.proxy.plan(|_| Fault::none());
        used(&client.lock(&format!("before-{number}")).unwrap()).await;
        drawn.push(ids(&env));
    }
    assert_eq!(drawn[0], drawn[1]);
    // From here on the hosts return different entropy.
    copies[1].1.draw_from(1_000);
    let mut drawn = BTreeSet::new();
    for (client, _) in &copies {
        for _ in 0..2 {
            env.proxy.plan(|_| Fault::none());
            used(&client.lock("job").unwrap()).await;
            for id in ids(&env) {
                assert!(drawn.insert(id.clone()), "{id}");
            }
        }
    }
    // One owner and two request ids per acquisition.
    assert_eq!(drawn.len(), 4 * 3);
}

/// Acquires, renews and releases the lock.
async fn used(lock: &Lock<Reqwest, FakeHost>) {
    let lease = lock.acquire().await.unwrap();
    assert_eq!(lease.renew(None).await, Ok(()));
    assert_eq!(lease.release().await, Ok(Released::Released));
}

/// The owners and request ids of the calls so far; the id of a release is derived from its owner.
fn ids(env: &TestEnv) -> BTreeSet<String> {
    let drawn = env.proxy.calls().into_iter().filter(|seen| seen.script != "lock_release");
    let ids = drawn.flat_map(|seen| {
        let arguments = 3 + seen.words[2].parse::<usize>().unwrap();
        [seen.words[arguments].clone(), seen.words[arguments + 4].clone()]
    });
    ids.collect()
}

/// S43.
#[tokio::test]
async fn without_entropy_nothing_is_sent() {
    let env = TestEnv::new().await;
    let client = Client::new(env.gateway(), Reqwest::new(), DullHost(TokioHost::new()));
    let lock = client.lock("job").unwrap();
    assert_eq!(lock.acquire().await.unwrap_err(), AcquireError::NoEntropy);
    assert_eq!(lock.try_acquire().await.unwrap_err(), AcquireError::NoEntropy);
    assert_eq!(lock.inspect().await.unwrap_err(), RequestError::NoEntropy);
    assert_eq!(lock.force_release().await.unwrap_err(), RequestError::NoEntropy);
    assert!(env.proxy.calls().is_empty());
}

/// A gateway treats an unknown path as a command.
#[tokio::test]
async fn a_wrong_path_is_distinguished_from_a_refusal_of_redis() {
    let env = TestEnv::new().await;
    let address = format!("http://{}/wrong", env.redis.address());
    let gateway = || Gateway::upstash(&address, TOKEN).unwrap();
    let client = Client::connect(gateway());
    let lock = client.lock("job").unwrap();
    let is_wrong_path = |refusal: &Refusal| {
        assert_eq!(refusal.kind(), RefusalKind::NotAGateway);
        assert!(refusal.to_string().contains("check the URL and its path"), "{refusal}");
    };
    let refused = |error: Error<RequestError>| match error.kind {
        RequestError::Refused(refusal) => is_wrong_path(&refusal),
        other => panic!("{other:?}"),
    };
    let replicated = AcquireOptions::new().replicas(1);
    for error in [
        lock.try_acquire().await.unwrap_err(),
        lock.try_acquire_with(replicated).await.unwrap_err(),
    ] {
        let AcquireError::Refused(refusal) = error.kind else { panic!("{error:?}") };
        is_wrong_path(&refusal);
    }
    // Two calls share one request to a path below the wrong one.
    let shared = Client::connect(gateway()).lock("job").unwrap();
    let (first, second) = tokio::join!(shared.inspect(), shared.inspect());
    refused(first.unwrap_err());
    refused(second.unwrap_err());
    assert_eq!(env.redis.query::<u64>(&["DBSIZE"]).await, 0);
}

#[test]
fn an_address_with_the_path_of_a_command_is_refused() {
    for path in ["/set/foo", "/pipeline", "/GET/foo/"] {
        let address = ["https://gateway.example", path].concat();
        named(&Gateway::upstash(&address, "token").unwrap_err(), "url");
        // Webdis reads its commands only from the body.
        assert!(Gateway::webdis(&address, "").is_ok());
    }
}
