//! Errors and debug output contain neither the gateway's token nor an owner, a request id or a
//! script, and the name of the lock only unless the client redacts names.

use std::fmt::{Debug, Display};

use test_support::bad_responses::{indeterminate, refusals};
use test_support::fault_proxy::RecordedCall;
use test_support::faults::{Fault, FaultResponse};
use test_support::redis::TOKEN;
use test_support::test_env::TestEnv;

const LOCK: &str = "canary-lock-0123456789";

/// Checks the text of an error; the arguments are the text and the name of the response that has
/// caused the error.
type Check = fn(&TestEnv, &str, &str);

fn shown(error: &(impl Debug + Display)) -> String {
    format!("{error} {error:?} {error:#?}")
}

/// Asserts that the output contains the name of the lock, and otherwise no part of a request.
fn assert_shows_only_names(env: &TestEnv, shown: &str, name: &str) {
    assert!(shown.contains(LOCK), "{name}: {shown}");
    assert_shows_no_secret(env, &shown.replace(LOCK, ""), name);
}

/// Asserts that the output contains no secret: no part of a request.
fn assert_shows_no_secret(env: &TestEnv, shown: &str, name: &str) {
    assert!(!shown.contains(TOKEN) && !shown.contains("Bearer"), "{name}: {shown}");
    for seen in env.proxy.calls() {
        for word in seen.words.iter().filter(|word| word.len() > 12) {
            assert!(!shown.contains(word.as_str()), "{name}: {shown}");
        }
    }
}

#[tokio::test]
async fn no_error_shows_what_was_sent() {
    let mut responses: Vec<(&str, FaultResponse)> = refusals();
    // One response of each kind of failure.
    let kinds = ["a page", "nothing", "10 MB", "503"];
    let failures = indeterminate().into_iter().filter(|(name, ..)| kinds.contains(name));
    responses.extend(failures.map(|(name, response, _)| (name, response)));
    assert_eq!(responses.len(), refusals().len() + kinds.len());
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let open = client.lock(LOCK).unwrap();
    let redacting = client.redact_names().lock(LOCK).unwrap();
    let checks: [(_, Check); 2] =
        [(open, assert_shows_only_names), (redacting, assert_shows_no_secret)];
    for ((name, response), (lock, check)) in
        responses.iter().flat_map(|response| checks.each_ref().map(|check| (response, check)))
    {
        let fault = Fault::executed(response.clone());
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
            check(&env, &error, name);
        }
    }
}

#[tokio::test]
async fn no_error_shows_what_redis_quotes() {
    let quoting = format!(r#"{{"error":"ERR {TOKEN} {LOCK} no such thing"}}"#);
    let response = test_support::faults::json(400, &quoting);
    let env = TestEnv::with(move |_| Fault::not_executed(response.clone())).await;
    let client = env.client_with_long_attempts().redact_names();
    let error = client.lock(LOCK).unwrap().acquire().await.unwrap_err();
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
    assert_shows_no_secret(&env, &text, "objects");
    lease.release().await.unwrap();
}
