//! Errors and debug output contain neither the gateway's token nor an owner, a request id or a
//! script.

use std::fmt::{Debug, Display};

use test_support::bad_responses::{indeterminate, refusals};
use test_support::fault_proxy::RecordedCall;
use test_support::faults::{Fault, FaultResponse};
use test_support::redis::TOKEN;
use test_support::test_env::TestEnv;

const LOCK: &str = "canary-lock-0123456789";

fn shown(error: &(impl Debug + Display)) -> String {
    format!("{error} {error:?} {error:#?}")
}

/// Asserts that the output contains nothing of what was sent.
fn assert_silent(env: &TestEnv, shown: &str, name: &str) {
    assert!(!shown.contains(TOKEN) && !shown.contains("Bearer"), "{name}: {shown}");
    for seen in env.proxy.calls() {
        for word in seen.words.iter().filter(|word| word.len() > 12) {
            assert!(!shown.contains(word.as_str()), "{name}: {shown}");
        }
    }
}

#[tokio::test]
async fn no_error_shows_what_was_sent() {
    let mut answers: Vec<(&str, FaultResponse)> = refusals();
    // One response of each kind of failure.
    let kinds = ["a page", "nothing", "10 MB", "503"];
    let failures = indeterminate().into_iter().filter(|(name, ..)| kinds.contains(name));
    answers.extend(failures.map(|(name, response, _)| (name, response)));
    assert_eq!(answers.len(), refusals().len() + kinds.len());
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let lock = client.lock(LOCK).unwrap();
    for (name, response) in answers {
        let fault = Fault::executed(response);
        // The first acquisition succeeds, so that there is a hold to inspect.
        let plan = move |seen: &RecordedCall| {
            let is_first = (seen.script, seen.number) == ("lock_acquire", 1);
            if is_first { Fault::none() } else { fault.clone() }
        };
        env.reset(plan).await;
        let lease = lock.acquire().await.unwrap();
        let errors = [
            shown(&env.in_virtual_time(&host, lock.try_acquire()).await.unwrap_err()),
            shown(&env.in_virtual_time(&host, lease.renew(None)).await.unwrap_err()),
            shown(&env.in_virtual_time(&host, lease.is_held()).await.unwrap_err()),
            shown(&env.in_virtual_time(&host, lock.inspect()).await.unwrap_err()),
            shown(&env.in_virtual_time(&host, lock.force_release()).await.unwrap_err()),
            shown(&env.in_virtual_time(&host, lease.release()).await.unwrap_err()),
        ];
        for error in errors {
            assert_silent(&env, &error, name);
        }
    }
}

#[tokio::test]
async fn no_error_shows_what_redis_quotes() {
    let quoting = format!(r#"{{"error":"ERR {TOKEN} {LOCK} no such thing"}}"#);
    let response = test_support::faults::json(400, &quoting);
    let env = TestEnv::with(move |_| Fault::not_executed(response.clone())).await;
    let error = env.client_with_long_attempts().lock(LOCK).unwrap().acquire().await.unwrap_err();
    let text = shown(&error);
    assert!(!text.contains(TOKEN) && !text.contains(LOCK), "{text}");
}

#[tokio::test]
async fn no_object_shows_a_token_or_an_owner() {
    let env = TestEnv::new().await;
    let client = env.client_with_long_attempts();
    let owner = client.owner();
    let lock = owner.lock("job").unwrap();
    let lease = lock.acquire().await.unwrap();
    let text = format!("{client:?} {owner:?} {lock:?} {lease:?} {:?}", env.gateway());
    assert_silent(&env, &text, "objects");
    lease.release().await.unwrap();
}
