//! Calls of one turn of the event loop share a request.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use edgelatch::Error;
use edgelatch::client::{Client, Lease, Released};
use edgelatch::error::{AcquireError, RefusalKind};
use edgelatch::host::TokioHost;
use edgelatch::transport::Reqwest;
use edgelatch_proto::protocol::gateway::Request;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use test_support::faults::{Fault, FaultResponse, http, json, page};
use test_support::test_env::{NativeClient, TestEnv, until, until_in_virtual_time};

/// The result of one try; `None` if the lock is held.
type TryResult = Result<Option<Lease<Reqwest, TokioHost>>, Error<AcquireError>>;
type Tries = JoinSet<TryResult>;

/// Tries once to acquire the lock with this number.
async fn try_acquire(client: NativeClient, number: usize) -> TryResult {
    client.lock(&format!("job:{number}")).unwrap().try_acquire().await
}

/// Tries to acquire `count` locks in one turn, each in a task of its own; returns the results.
async fn try_acquire_all(client: &NativeClient, count: usize) -> Vec<TryResult> {
    let tries: Tries = (0..count).map(|number| try_acquire(client.clone(), number)).collect();
    tries.join_all().await
}

/// Asserts that all tries were granted, and releases their leases in one turn.
async fn release_all(granted: Vec<TryResult>) {
    let release = |result: TryResult| async move { result.unwrap().unwrap().release().await };
    let releases: JoinSet<_> = granted.into_iter().map(release).collect();
    assert!(releases.join_all().await.into_iter().all(|end| end == Ok(Released::Released)));
}

/// Counts only requests from here on.
fn reset_counts(env: &TestEnv) {
    env.proxy.plan(|_| Fault::none());
}

/// Polls a future once, without a waker.
fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn calls_of_one_turn_share_a_request_and_each_has_its_own_result() {
    let env = TestEnv::new().await;
    let held = env.client().lock("job:3").unwrap().acquire().await.unwrap();
    reset_counts(&env);
    let results = try_acquire_all(&env.client(), 10).await;
    assert_eq!((env.proxy.requests(), env.proxy.count("lock_acquire")), (1, 10));
    let (free, busy): (Vec<_>, _) =
        results.into_iter().partition(|result| result.as_ref().unwrap().is_some());
    assert_eq!((free.len(), busy.len()), (9, 1));
    for lease in free.iter().flatten().flatten() {
        assert_ne!(lease.name().as_str(), "job:3");
        assert_eq!(lease.is_held().await, Ok(true));
    }
    reset_counts(&env);
    release_all(free).await;
    assert_eq!((env.proxy.requests(), env.proxy.count("lock_release")), (1, 9));
    held.release().await.unwrap();
    env.assert_nothing_is_held("all").await;
}

#[tokio::test]
async fn calls_of_one_task_and_of_several_kinds_share_a_request() {
    let env = TestEnv::new().await;
    let client = env.client();
    let (lock, pool) = (client.lock("job").unwrap(), client.semaphore("pool").unwrap());
    let latch = client.count_down_latch("gate").unwrap();
    assert_eq!(latch.count().await, Ok(0));
    reset_counts(&env);
    let (lease, set, count) =
        tokio::join!(lock.acquire(), pool.try_set_permits(3, None), latch.count());
    assert_eq!((set, count), (Ok(true), Ok(0)));
    assert_eq!(env.proxy.requests(), 1);
    lease.unwrap().release().await.unwrap();
    assert_eq!(env.proxy.requests(), 2);
}

#[tokio::test]
async fn no_request_has_more_than_the_maximum_of_calls() {
    // Two full requests, and one with the last two calls.
    const CALLS: usize = 2 * Request::SEVERAL_MAX + 2;
    let env = TestEnv::new().await;
    let results = try_acquire_all(&env.client(), CALLS).await;
    assert_eq!((env.proxy.requests(), env.proxy.count("lock_acquire")), (3, CALLS));
    release_all(results).await;
    assert_eq!((env.proxy.requests(), env.proxy.count("lock_release")), (3 + 3, CALLS));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_call_of_several_threads_is_lost() {
    let env = TestEnv::new().await;
    let client = env.client();
    let tasks = (0..30).map(|number| {
        let client = client.clone();
        async move {
            for _ in 0..10 {
                release_all(vec![try_acquire(client.clone(), number).await]).await;
            }
        }
    });
    tasks.collect::<JoinSet<_>>().join_all().await;
    let calls = env.proxy.calls().len();
    // Each of 30 tasks acquires and releases ten times.
    assert_eq!(calls, 30 * 10 * 2);
    assert!(env.proxy.requests() <= calls);
    env.assert_nothing_is_held("threads").await;
}

/// S61.
#[tokio::test]
async fn calls_whose_script_redis_does_not_know_are_sent_again_together_with_the_script() {
    let env = TestEnv::new().await;
    env.redis.query::<String>(&["SCRIPT", "FLUSH"]).await;
    let results = try_acquire_all(&env.client(), 10).await;
    // Ten calls by the script's hash, and the ten again with its source.
    assert_eq!((env.proxy.requests(), env.proxy.count("lock_acquire")), (2, 10 + 10));
    release_all(results).await;
    // Calls whose scripts have more than 64 kB in total are split into several requests.
    env.redis.query::<String>(&["SCRIPT", "FLUSH"]).await;
    let before = env.proxy.requests();
    release_all(try_acquire_all(&env.client(), 60).await).await;
    let requests = env.proxy.requests() - before;
    assert!((6..20).contains(&requests), "{requests}");
}

#[tokio::test]
async fn a_call_cancelled_before_its_batch_is_sent_is_left_out() {
    let env = TestEnv::new().await;
    let client = env.client();
    let [first, second, third] = [0, 1, 2].map(|number| try_acquire(client.clone(), number));
    let (mut first, mut second, mut third) = (Box::pin(first), Box::pin(second), Box::pin(third));
    assert!(poll_once(first.as_mut()).is_pending());
    assert!(poll_once(second.as_mut()).is_pending());
    assert!(poll_once(third.as_mut()).is_pending());
    drop(first);
    let (second, third) = tokio::join!(second, third);
    assert_eq!((env.proxy.requests(), env.proxy.count("lock_acquire")), (1, 2));
    release_all(vec![second, third]).await;
    // A batch that has only one caller left is sent as a single call.
    let mut gone = Box::pin(try_acquire(client.clone(), 3));
    assert!(poll_once(gone.as_mut()).is_pending());
    drop(gone);
    release_all(vec![try_acquire(client, 4).await]).await;
    assert_eq!((env.proxy.requests(), env.proxy.count("lock_acquire")), (4, 3));
    env.assert_nothing_is_held("left out").await;
}

#[tokio::test]
async fn a_call_that_is_not_polled_delays_no_other_and_finds_its_reply() {
    let env = TestEnv::new().await;
    let client = env.client();
    let mut slow = Box::pin(try_acquire(client.clone(), 0));
    assert!(poll_once(slow.as_mut()).is_pending());
    let quick = try_acquire(client, 1).await;
    assert_eq!((env.proxy.requests(), env.proxy.count("lock_acquire")), (1, 2));
    let slow = slow.await;
    assert_eq!(env.proxy.requests(), 1);
    release_all(vec![slow, quick]).await;
}

#[tokio::test]
async fn a_call_cancelled_during_its_request_leaves_the_other_calls_intact() {
    let reply_now = Arc::new(Notify::new());
    let delay = Arc::clone(&reply_now);
    let env = TestEnv::with(move |seen| match seen.script {
        "lock_acquire" => Fault::executed(FaultResponse::Delayed(Arc::clone(&delay))),
        _ => Fault::none(),
    })
    .await;
    let client = env.client();
    let mut tries: Vec<_> =
        (0..5).map(|number| tokio::spawn(try_acquire(client.clone(), number))).collect();
    until(async || env.proxy.count("lock_acquire") == 5).await;
    for index in [3, 0] {
        let cancelled = tries.remove(index);
        cancelled.abort();
        assert!(cancelled.await.unwrap_err().is_cancelled());
    }
    reply_now.notify_one();
    let mut results = Vec::new();
    for remaining in tries {
        results.push(remaining.await.unwrap());
    }
    // The other calls are not sent again. The engine releases the locks of the cancelled ones.
    assert_eq!(env.proxy.count("lock_acquire"), 5);
    release_all(results).await;
    until(async || env.redis.query::<Vec<String>>(&["KEYS", "job:*"]).await.is_empty()).await;
}

#[tokio::test]
async fn a_batch_does_not_wait_for_the_one_before_it() {
    let reply_now = Arc::new(Notify::new());
    let delay = Arc::clone(&reply_now);
    let env = TestEnv::with(move |seen| match (seen.script, seen.number) {
        ("lock_acquire", 1..=3) => Fault::executed(FaultResponse::Delayed(Arc::clone(&delay))),
        _ => Fault::none(),
    })
    .await;
    let client = env.client();
    let first: Tries = (0..3).map(|number| try_acquire(client.clone(), number)).collect();
    until(async || env.proxy.count("lock_acquire") == 3).await;
    let second: Tries = (3..6).map(|number| try_acquire(client.clone(), number)).collect();
    release_all(second.join_all().await).await;
    reply_now.notify_one();
    release_all(first.join_all().await).await;
    assert_eq!(env.proxy.requests(), 4);
}

/// S17.
#[tokio::test]
async fn calls_without_a_response_are_retried_and_granted_once() {
    for response in [
        FaultResponse::Bytes(Vec::new()),
        FaultResponse::Truncated,
        json(200, "[]"),
        json(200, r#"[{"result":[1]}]"#),
        json(200, r#"{"result":1}"#),
        json(400, r#"{"error":"ERR one of them is bad"}"#),
        json(
            200,
            r#"[{"error":"NOSCRIPT"},{"error":"NOSCRIPT"},{"error":"NOSCRIPT"},{"error":"NOSCRIPT"}]"#,
        ),
        http(200, "", b"\xff\xff"),
        page(200),
        page(502),
    ] {
        let env = TestEnv::with(move |seen| match (seen.script, seen.number) {
            ("lock_acquire", 1) => Fault::executed(response.clone()),
            _ => Fault::none(),
        })
        .await;
        let results = try_acquire_all(&env.client(), 3).await;
        // Each of the three calls is sent twice.
        assert_eq!(env.proxy.count("lock_acquire"), 3 + 3);
        for number in 0..3 {
            let name = format!("job:{number}");
            assert_eq!(env.redis.query::<Vec<String>>(&["HVALS", &name]).await, ["1"]);
        }
        release_all(results).await;
        // The client does not know yet whether the gateway has pipelines, so that it sends each
        // retry and each release as a single request after the pipeline.
        assert_eq!(env.proxy.requests(), 1 + 3 + 3);
        env.assert_nothing_is_held("lost").await;
    }
}

/// S17.
#[tokio::test]
async fn each_call_of_a_partly_executed_batch_is_granted_once() {
    for (count, response) in [1, 2].into_iter().flat_map(|count| {
        [FaultResponse::Bytes(Vec::new()), FaultResponse::Truncated, FaultResponse::Real]
            .map(|response| (count, response))
    }) {
        let env = TestEnv::with(move |seen| match (seen.script, seen.number) {
            ("lock_acquire", 1) => Fault::partly_executed(count, response.clone()),
            _ => Fault::none(),
        })
        .await;
        let results = try_acquire_all(&env.client(), 3).await;
        // Each of the three calls is sent twice.
        assert_eq!(env.proxy.count("lock_acquire"), 3 + 3);
        for result in &results {
            let lease = result.as_ref().unwrap().as_ref().unwrap();
            let name = lease.name().as_str();
            assert_eq!(env.redis.query::<Vec<String>>(&["HVALS", name]).await, ["1"]);
            let key = format!("redisson_lock_token:{{{name}}}");
            let token: String = env.redis.query(&["GET", &key]).await;
            assert_eq!(token, lease.token().to_string());
        }
        release_all(results).await;
        env.assert_nothing_is_held("in part").await;
    }
}

#[tokio::test]
async fn a_lost_response_does_not_disable_pipelines_that_have_worked() {
    let env = TestEnv::with(|seen| match (seen.script, seen.number) {
        ("lock_acquire", 4) => Fault::executed(FaultResponse::Bytes(Vec::new())),
        _ => Fault::none(),
    })
    .await;
    let client = env.client();
    release_all(try_acquire_all(&client, 3).await).await;
    release_all(try_acquire_all(&client, 3).await).await;
    let before = env.proxy.requests();
    release_all(try_acquire_all(&client, 3).await).await;
    // One request for the acquisitions, one for the releases.
    assert_eq!(env.proxy.requests(), before + 2);
}

// Slow: each of six gateways gets 211 real requests, each on a connection of its own.
#[tokio::test]
async fn a_gateway_without_pipelines_is_detected_once() {
    for response in [
        page(404),
        json(404, r#"{"error":"SRH: Endpoint not found."}"#),
        http(405, "", ""),
        page(501),
        json(400, r#"{"error":"ERR unknown command 'PIPELINE'"}"#),
        json(200, r#"{"error":"ERR unknown command '[[\"EVALSHA\"'"}"#),
    ] {
        let env = TestEnv::new().await;
        env.proxy.refuse_pipelines(response);
        let client = env.client();
        let results = try_acquire_all(&client, 5).await;
        // The pipeline was not executed, so the client sends each of its calls at once.
        assert_eq!((env.proxy.requests(), env.proxy.count("lock_acquire")), (6, 5));
        release_all(results).await;
        assert_eq!(env.proxy.requests(), 6 + 5);
        for _ in 0..20 {
            release_all(try_acquire_all(&client, 5).await).await;
        }
        assert_eq!(env.proxy.requests(), 6 + 5 + 20 * (5 + 5));
    }
}

#[tokio::test]
async fn a_gateway_that_rejects_the_token_rejects_every_call_of_a_batch() {
    let env = TestEnv::new().await;
    env.proxy.refuse_pipelines(json(401, r#"{"error":"WRONGPASS invalid or missing auth token"}"#));
    for result in try_acquire_all(&env.client(), 5).await {
        let Err(Error { kind: AcquireError::Refused(refusal), .. }) = result else {
            panic!("{result:?}")
        };
        assert_eq!(refusal.kind(), RefusalKind::Unauthorized);
    }
    assert_eq!((env.proxy.requests(), env.proxy.count("lock_acquire")), (1, 0));
}

#[tokio::test]
async fn a_gateway_that_hangs_on_pipelines_gets_single_requests_after_one_attempt() {
    let env = TestEnv::new().await;
    env.proxy.refuse_pipelines(FaultResponse::Silence);
    let (client, host) = env.virtual_client();
    let try_acquire = |number: usize| {
        let client: Client<_, _> = client.clone();
        let name = format!("job:{number}");
        async move { client.lock(&name).unwrap().try_acquire().await }
    };
    let tries: JoinSet<_> = (0..3).map(try_acquire).collect();
    until(async || env.proxy.requests() == 1).await;
    // The attempt times out.
    host.pass(Duration::from_secs(5));
    // The pauses before the retries.
    let pause = Duration::from_millis(10);
    until_in_virtual_time(&env, &host, pause, || env.proxy.count("lock_acquire") == 3).await;
    for lease in tries.join_all().await {
        assert_eq!(lease.unwrap().unwrap().release().await, Ok(Released::Released));
    }
    // The pipeline, and a request for each acquisition and each release.
    assert_eq!(env.proxy.requests(), 1 + 3 + 3);
}
