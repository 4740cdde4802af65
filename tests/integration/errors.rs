//! Errors name the object and the gateway's host, unless the client redacts names.

use std::error::Error as _;
use std::fmt::{Debug, Display};
use std::net::TcpListener;
use std::time::Duration;

use edgelatch::client::{AcquireOptions, Client, RunError};
use edgelatch::client::{GuardedWrite, UserScript};
use edgelatch::error::{AcquireError, FailureKind, RefusalKind};
use edgelatch::timing::{GuardMemory, PeerSkew};
use edgelatch::{Error, Gateway};

use test_support::fault_proxy::RecordedCall;
use test_support::faults::{Fault, http, json, page};
use test_support::redis::TOKEN;
use test_support::test_env::{NativeClient, TestEnv, VirtualClient};

/// The message, the name of the lock, the key and the host of an error.
type Named = (String, Option<String>, Option<String>, Option<String>);

fn named<K: Display>(error: &Error<K>) -> Named {
    let own = |text: Option<&str>| text.map(str::to_owned);
    (error.to_string(), own(error.lock()), own(error.key()), own(error.host()))
}

fn host(env: &TestEnv) -> String {
    env.proxy.url().replace("http://", "")
}

/// Options of a wait that ends soon, in virtual time.
fn briefly() -> AcquireOptions {
    AcquireOptions::new().wait(Duration::from_millis(50))
}

#[tokio::test]
async fn a_wait_that_times_out_has_the_last_failure_in_its_error() {
    let env = TestEnv::new().await;
    let (client, time) = env.virtual_client();
    let lock = client.lock("job").unwrap();
    let _held = lock.acquire().await.unwrap();
    let [pool, permits] = ["pool", "permits"].map(str::to_owned);
    let semaphore = client.semaphore(&pool).unwrap();
    let missing = semaphore.acquire(1).await.unwrap_err();
    semaphore.try_set_permits(0, None).await.unwrap();
    let expirable = client.permit_expirable_semaphore(&permits, PeerSkew::DEFAULT).unwrap();
    expirable.try_set_permits(0).await.unwrap();
    let latch = client.count_down_latch("done").unwrap();
    latch.try_set_count(1).await.unwrap();

    let host = host(&env);
    let busy = env.in_virtual_time(&time, lock.acquire_with(briefly())).await.unwrap_err();
    let text =
        format!("another client held the lock for the whole wait (lock \"job\", gateway {host})");
    assert_eq!(named(&busy), (text, Some("job".to_owned()), None, Some(host.clone())));
    for (lock, name) in [(semaphore.permits(1), pool), (expirable.permits(1), permits)] {
        let acquired = lock.unwrap();
        let few = env.in_virtual_time(&time, acquired.acquire_with(briefly())).await.unwrap_err();
        let text = format!(
            "too few permits were available for the whole wait (semaphore \"{name}\", gateway {host})"
        );
        assert_eq!(named(&few), (text, Some(name), None, Some(host.clone())));
    }
    let closed = env.in_virtual_time(&time, latch.wait_with(briefly())).await.unwrap_err();
    let text = format!("the latch was closed for the whole wait (latch \"done\", gateway {host})");
    assert_eq!(named(&closed), (text, Some("done".to_owned()), None, Some(host.clone())));
    let text = format!(
        "the semaphore does not exist; create it with try_set_permits (semaphore \"pool\", gateway {host})"
    );
    assert_eq!(named(&missing), (text, Some("pool".to_owned()), None, Some(host)));
}

#[tokio::test]
async fn several_locks_are_all_named_in_an_error_and_the_first_by_the_lease() {
    let env = TestEnv::new().await;
    let (client, time) = env.virtual_client();
    let locks = ["b", "a"].map(|name| client.lock(name).unwrap());
    let _held = locks[0].acquire().await.unwrap();
    let both = client.multi_lock(locks).unwrap();
    assert_eq!(both.name().as_str(), "a", "the first in the order of all clients");
    let busy = env.in_virtual_time(&time, both.acquire_with(briefly())).await.unwrap_err();
    assert_eq!(busy.lock(), Some("a, b"));
    env.redis.query::<u64>(&["DEL", "b"]).await;
    let lease = both.acquire().await.unwrap();
    assert_eq!(lease.name().as_str(), "a");
    assert_eq!(lease.token_of("a"), Some(lease.token()));
    env.redis.query::<u64>(&["DEL", "a", "b"]).await;
    assert_eq!(lease.renew(None).await.unwrap_err().lock(), Some("a, b"));
}

/// Every operation of a client on its objects `secret-lock` and `secret-key`, each with an error
/// that is not about an option.
async fn every_error(env: &TestEnv, client: &NativeClient) -> Vec<(String, Named)> {
    let mut errors = Vec::new();
    let mut note = |operation: &str, named: Named, debug: &dyn Debug| {
        errors.push((format!("{operation} {debug:?}"), named));
    };
    let lock = client.lock("secret-lock").unwrap();
    let guard = client.guard("secret-key", GuardMemory::DEFAULT).unwrap();
    let lease = lock.acquire().await.unwrap();
    let run = lock.run_with(briefly(), async |_| ()).await.unwrap_err();
    let RunError::Acquire(error) = &run else { panic!("{run:?}") };
    assert_eq!(run.to_string(), error.to_string());
    note("run", named(error), error);
    env.redis.query::<u64>(&["DEL", "secret-lock"]).await;
    let newer = lock.acquire().await.unwrap();
    guard.write(&newer, None, &GuardedWrite::claim()).await.unwrap();
    let error = guard.write(&lease, None, &GuardedWrite::claim()).await.unwrap_err();
    note("write", named(&error), &error);
    newer.release().await.unwrap();
    let error =
        lease.eval(&UserScript::new("return 1", vec![], vec![]).unwrap()).await.unwrap_err();
    note("eval", named(&error), &error);
    let error = lease.renew(None).await.unwrap_err();
    note("renew", named(&error), &error);
    let lost = lock.run(async |lease| {
        env.redis.query::<u64>(&["DEL", "secret-lock"]).await;
        lease.is_held().await.unwrap()
    });
    let run = lost.await.unwrap_err();
    let RunError::Lost { result: false, error } = &run else { panic!("{run:?}") };
    assert!(run.to_string().starts_with("the lease is gone: "), "{run}");
    note("lost", named(error), error);

    let last = lock.acquire().await.unwrap();
    env.proxy.plan(|_| Fault::not_executed(json(401, r#"{"error":"WRONGPASS no"}"#)));
    let error = lock.acquire().await.unwrap_err();
    note("acquire", named(&error), &error);
    let error = lock.try_acquire().await.unwrap_err();
    note("try_acquire", named(&error), &error);
    let error = lock.inspect().await.unwrap_err();
    note("inspect", named(&error), &error);
    let error = lock.force_release().await.unwrap_err();
    note("force_release", named(&error), &error);
    let error = last.is_held().await.unwrap_err();
    note("is_held", named(&error), &error);
    let error = last.release().await.unwrap_err();
    note("release", named(&error), &error);
    let error = guard.newest().await.unwrap_err();
    note("newest", named(&error), &error);
    errors
}

#[tokio::test]
async fn the_errors_of_all_operations_name_lock_or_key_and_host() {
    let env = TestEnv::new().await;
    let host = host(&env);
    let errors = every_error(&env, &env.client_with_long_attempts()).await;
    assert_eq!(errors.len(), 12);
    for (operation, (message, lock, key, at)) in errors {
        let is_guard = operation.starts_with("write ") || operation.starts_with("newest ");
        let (noun, name) = if is_guard { ("key", "secret-key") } else { ("lock", "secret-lock") };
        let end = format!(" ({noun} \"{name}\", gateway {host})");
        assert!(message.ends_with(&end), "{operation}: {message}");
        let expected = (Some("secret-lock".to_owned()), None);
        let of_guard = (None, Some("secret-key".to_owned()));
        assert_eq!((lock, key), if is_guard { of_guard } else { expected }, "{operation}");
        assert_eq!(at.as_deref(), Some(host.as_str()), "{operation}");
    }
}

#[tokio::test]
async fn a_client_that_redacts_names_leaves_them_out_of_every_error() {
    let env = TestEnv::new().await;
    let host = host(&env);
    let client = env.client_with_long_attempts().redact_names();
    let errors = every_error(&env, &client).await;
    assert_eq!(errors.len(), 12);
    for (operation, (message, lock, key, at)) in errors {
        assert!(message.ends_with(&format!(", gateway {host})")), "{operation}: {message}");
        assert!(!message.contains("secret-") && !operation.contains("secret-"), "{operation}");
        assert_eq!((lock, key, at), (None, None, Some(host.clone())), "{operation}");
    }
    // An owner of the client, and permits of its semaphores.
    env.proxy.plan(|_| Fault::not_executed(json(401, r#"{"error":"WRONGPASS no"}"#)));
    let owned = client.owner().lock("secret-lock").unwrap().acquire().await.unwrap_err();
    let permits = client.semaphore("secret-lock").unwrap().acquire(1).await.unwrap_err();
    assert_eq!((owned.lock(), permits.lock()), (None, None));
}

#[tokio::test]
async fn a_guard_that_redacts_names_does_not_name_the_locks_of_a_foreign_lease() {
    let env = TestEnv::new().await;
    let client = env.client().redact_names();
    let foreign = client.lock("secret-lock").unwrap().acquire().await.unwrap();
    let guard = client.guard("total", GuardMemory::DEFAULT).unwrap().of_lock("secret-own").unwrap();
    let error = guard.write(&foreign, None, &GuardedWrite::claim()).await.unwrap_err();
    assert!(error.to_string().contains("`lease`"), "{error}");
    assert!(!format!("{error} {error:?}").contains("secret-"), "{error}");
}

#[tokio::test]
async fn an_invalid_option_names_the_option_alone() {
    let env = TestEnv::new().await;
    let lock = env.client().lock("job").unwrap();
    let options = AcquireOptions::new().wait(Duration::ZERO);
    let error = lock.acquire_with(options).await.unwrap_err();
    assert!(error.to_string().starts_with("`wait` is not acceptable"), "{error}");
    assert_eq!((error.lock(), error.host()), (None, None));
}

#[tokio::test]
async fn a_refused_connection_is_the_source_of_the_error() {
    let address = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let client = Client::connect(Gateway::upstash(&format!("http://{address}/x"), TOKEN).unwrap());
    let error = client.lock("job").unwrap().try_acquire().await.unwrap_err();
    assert_eq!(error, AcquireError::Unreachable(FailureKind::NotSent));
    let text = format!(
        "the gateway could not be reached; nothing is held (lock \"job\", gateway {address})"
    );
    assert_eq!(error.to_string(), text);
    let mut causes = vec![];
    let mut source = error.source();
    while let Some(cause) = source {
        causes.push(cause.to_string());
        source = cause.source();
    }
    assert!(causes.last().is_some_and(|cause| cause.contains("refused")), "{causes:?}");
    assert!(!causes.concat().contains("/x"), "{causes:?}");
}

async fn refused(client: &VirtualClient) -> Error<AcquireError> {
    client.lock("job").unwrap().try_acquire().await.unwrap_err()
}

#[tokio::test]
async fn a_refusal_has_the_status_of_the_response() {
    let env = TestEnv::new().await;
    let (client, _) = env.virtual_client();
    let unauthorized = r#"{"error":"WRONGPASS no"}"#;
    for (response, kind, status) in [
        (json(401, unauthorized), RefusalKind::Unauthorized, Some(401)),
        (json(400, r#"{"error":"OOM full"}"#), RefusalKind::OutOfMemory, Some(400)),
        (json(200, unauthorized), RefusalKind::Unauthorized, None),
        (page(404), RefusalKind::NotAGateway, Some(404)),
        (http(405, "", ""), RefusalKind::NotAGateway, Some(405)),
    ] {
        let plan = move |seen: &RecordedCall| match seen.script {
            "lock_acquire" => Fault::not_executed(response.clone()),
            _ => Fault::none(),
        };
        env.reset(plan).await;
        let error = refused(&client).await;
        assert!(error.source().is_none(), "{error:?}");
        assert!(error.to_string().contains("; nothing is held ("), "{error}");
        let AcquireError::Refused(refusal) = error.kind else { panic!("{error}") };
        assert_eq!((refusal.kind(), refusal.status()), (kind, status));
    }
}
