//! Requests that arrive twice, late, or after the time until which Redis may execute them.

use std::pin::Pin;
use std::time::Duration;

use edgelatch::client::{AcquireOptions, Client, Released};
use edgelatch::error::{AcquireError, FailureKind};
use edgelatch::host::TokioHost;
use edgelatch::transport::{
    Request, Reqwest, ReqwestStream, Response, StreamHead, StreamLimits, Transport,
};

use test_support::faults::{Fault, FaultResponse, no_script};
use test_support::test_env::TestEnv;

/// S4, S18.
#[tokio::test]
async fn a_request_that_arrives_twice_is_executed_once() {
    let env = TestEnv::with(|_| Fault::twice()).await;
    let lock = env.client_with_long_attempts().lock("job").unwrap();
    for _ in 0..3 {
        let lease = lock.acquire().await.unwrap();
        assert_eq!(env.redis.query::<Vec<String>>(&["HVALS", "job"]).await, ["1"]);
        lease.renew(Some(Duration::from_secs(60))).await.unwrap();
        assert_eq!(lease.is_held().await, Ok(true));
        assert_eq!(lock.inspect().await.unwrap().hold_count, 1);
        assert!(lock.try_acquire().await.unwrap().is_none());
        assert_eq!(lease.release().await, Ok(Released::Released));
        env.assert_nothing_is_held("twice").await;
    }
    let lease = lock.acquire().await.unwrap();
    assert_eq!(lock.force_release().await, Ok(true));
    assert_eq!(lease.release().await, Ok(Released::WasLost));
}

/// S18.
#[tokio::test]
async fn fifteen_executions_of_one_acquisition_are_one_grant() {
    for fault in [FaultResponse::Bytes(Vec::new()), FaultResponse::Truncated].map(Fault::executed) {
        let env = TestEnv::with(move |seen| match (seen.script, seen.number) {
            ("lock_acquire", 1..=2) => Fault { executions: 5, ..fault.clone() },
            ("lock_acquire", _) => Fault { executions: 5, ..Fault::none() },
            _ => Fault::none(),
        })
        .await;
        let (client, host) = env.virtual_client();
        let lock = client.lock("job").unwrap();
        let lease = env.in_virtual_time(&host, lock.acquire()).await.unwrap();
        assert_eq!(env.proxy.count("lock_acquire"), 3);
        assert_eq!(env.redis.query::<Vec<String>>(&["HVALS", "job"]).await, ["1"]);
        let token: String = env.redis.query(&["GET", "redisson_lock_token:{job}"]).await;
        assert_eq!(token, lease.token().to_string());
        assert_eq!(lease.release().await, Ok(Released::Released));
        env.assert_nothing_is_held("fifteen").await;
    }
}

/// S5, S11.
#[tokio::test]
async fn copies_that_come_after_the_release_change_nothing() {
    let env = TestEnv::with(|_| Fault::none().copied()).await;
    let lock = env.client_with_long_attempts().lock("job").unwrap();
    let lease = lock.acquire().await.unwrap();
    lease.renew(None).await.unwrap();
    assert_eq!(lease.release().await, Ok(Released::Released));
    assert_eq!(env.proxy.deliver_copies().await, 3);
    env.assert_nothing_is_held("copies").await;
}

/// S7, S13.
#[tokio::test]
async fn copies_do_not_end_the_hold_of_the_next_holder() {
    let env = TestEnv::with(|_| Fault::none().copied()).await;
    let lock = env.client_with_long_attempts().lock("job").unwrap();
    let lease = lock.acquire().await.unwrap();
    assert_eq!(lock.force_release().await, Ok(true));
    assert_eq!(lease.release().await, Ok(Released::WasLost));
    let next = lock.acquire().await.unwrap();
    assert!(env.proxy.deliver_copies().await >= 4);
    assert_eq!(next.is_held().await, Ok(true));
    assert_eq!(env.redis.query::<Vec<String>>(&["HVALS", "job"]).await, ["1"]);
    assert_eq!(next.release().await, Ok(Released::Released));
}

/// S56.
#[tokio::test]
async fn a_request_that_arrives_after_it_was_given_up_is_not_granted() {
    let env = TestEnv::with(|seen| match seen.script {
        "lock_acquire" => Fault::not_executed(FaultResponse::Bytes(Vec::new())).copied(),
        _ => Fault::none(),
    })
    .await;
    let error =
        env.client_with_long_attempts().lock("job").unwrap().try_acquire().await.unwrap_err();
    assert_eq!(error, AcquireError::Unreachable(FailureKind::Broken));
    assert_eq!(env.proxy.deliver_copies().await, 3);
    env.assert_nothing_is_held("late").await;
}

/// S8.
#[tokio::test]
async fn a_request_that_arrives_after_the_wait_was_cancelled_is_not_granted() {
    let env = TestEnv::with(|seen| match seen.script {
        "lock_acquire" => Fault::not_executed(FaultResponse::Silence).copied(),
        _ => Fault::none(),
    })
    .await;
    let lock = env.client_with_long_attempts().lock("job").unwrap();
    let was_sent = async {
        while env.proxy.count("lock_acquire") == 0 {
            tokio::task::yield_now().await;
        }
    };
    let error = lock.acquire_cancellable(AcquireOptions::new(), was_sent).await.unwrap_err();
    assert_eq!(error, AcquireError::Cancelled { held_at_most: None });
    assert_eq!(env.proxy.deliver_copies().await, 1);
    env.assert_nothing_is_held("cancelled").await;
}

/// S8.
#[tokio::test]
async fn a_last_try_that_arrives_after_the_lock_was_freed_is_not_granted() {
    let env = TestEnv::with(|_| Fault::none().copied()).await;
    let holder = env.client_with_long_attempts().lock("job").unwrap().acquire().await.unwrap();
    assert!(
        env.client_with_long_attempts().lock("job").unwrap().try_acquire().await.unwrap().is_none()
    );
    assert_eq!(holder.release().await, Ok(Released::Released));
    env.proxy.deliver_copies().await;
    env.assert_nothing_is_held("last try").await;
}

/// A transport that sends `EVALSHA`, but not the `EVAL` with the source that follows it if Redis
/// does not know the script.
#[derive(Debug, Default)]
struct EvalshaOnly(Reqwest);

impl Transport for EvalshaOnly {
    type Sending = Pin<Box<dyn Future<Output = Result<Response, FailureKind>> + Send>>;
    type Stream = ReqwestStream;

    fn send(&self, request: Request) -> Self::Sending {
        match request.body.contains("\"EVALSHA\"") {
            true => Box::pin(self.0.send(request)),
            false => Box::pin(async { Err(FailureKind::NotSent) }),
        }
    }

    async fn open(&self, request: Request) -> Result<(StreamHead, ReqwestStream), FailureKind> {
        self.0.open(request).await
    }

    fn streams(&self) -> StreamLimits {
        self.0.streams()
    }
}

/// S61.
#[tokio::test]
async fn an_evalsha_whose_eval_was_not_sent_has_an_unknown_outcome() {
    let mut env = TestEnv::with(|seen| match seen.script {
        "lock_acquire" => Fault::not_executed(no_script()).copied(),
        _ => Fault::not_executed(no_script()),
    })
    .await;
    let client =
        Client::new(env.gateway_with_long_attempts(), EvalshaOnly::default(), TokioHost::new());
    let error = client.lock("job").unwrap().try_acquire().await.unwrap_err();
    // Another client loads the script; then the network delivers a copy of the `EVALSHA`.
    env.redis.load_scripts().await;
    env.proxy.deliver_copies().await;
    assert_eq!(env.redis.query::<Vec<String>>(&["HVALS", "job"]).await, ["1"]);
    // The client has not seen Redis' clock, so the request has no bound: Redis may grant it for ten
    // minutes, and the hold then lasts for a lease.
    let AcquireError::Unknown { held_at_most, cause: FailureKind::NotSent } = error.kind else {
        panic!("{error:?}")
    };
    assert!(held_at_most >= Duration::from_secs(600 + 30));
}
