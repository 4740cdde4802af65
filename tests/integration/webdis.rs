//! The client on a real Webdis: it uses the same locks through another dialect.

use std::time::Duration;

use edgelatch::client::{AcquireOptions, GuardedWrite, Released, UserScript};
use edgelatch::error::{AcquireError, EvalError, RefusalKind, RequestError};
use edgelatch::timing::{GuardMemory, PeerSkew};

use test_support::test_env::{NativeClient, TestEnv};
use test_support::webdis::Webdis;

/// A Webdis in front of the environment's Redis, and a client that uses it.
async fn webdis() -> (TestEnv, Webdis, NativeClient) {
    let env = TestEnv::new().await;
    let webdis = Webdis::start(&env.redis).await;
    let client = NativeClient::connect(webdis.gateway());
    (env, webdis, client)
}

#[tokio::test]
async fn both_dialects_exclude_each_other() {
    let (env, _webdis, client) = webdis().await;
    for name in ["job", "a/b.raw?c+d%2Fe é", "{tag}:x", "[\"quoted\"]", "~_-.", "<&>"] {
        let (here, there) = (client.lock(name).unwrap(), env.client().lock(name).unwrap());
        let lease = here.acquire().await.unwrap();
        assert!(there.try_acquire().await.unwrap().is_none(), "{name}");
        assert!(env.redis.dump().await.contains_key(name), "{name}");
        assert_eq!(lease.release().await, Ok(Released::Released), "{name}");
        let next = there.acquire().await.unwrap();
        assert!(next.token() > lease.token(), "{name}");
        assert!(here.try_acquire().await.unwrap().is_none(), "{name}");
        next.release().await.unwrap();
    }
}

#[tokio::test]
async fn scripts_that_redis_has_forgotten_cost_one_request_more() {
    let (env, _webdis, client) = webdis().await;
    let lock = client.lock("job").unwrap();
    for _ in 0..2 {
        env.redis.query::<String>(&["SCRIPT", "FLUSH"]).await;
        env.redis.query::<String>(&["CONFIG", "RESETSTAT"]).await;
        lock.acquire().await.unwrap().release().await.unwrap();
        assert_eq!((env.redis.ran("evalsha").await, env.redis.ran("eval").await), (1, 2));
    }
}

#[tokio::test]
async fn semaphores_latches_guards_and_scripts_work() {
    let (_env, _webdis, client) = webdis().await;
    let pool = client.permit_expirable_semaphore("pool", PeerSkew::DEFAULT).unwrap();
    assert!(pool.try_set_permits(3.try_into().unwrap()).await.unwrap());
    let two = pool.acquire(2).await.unwrap();
    assert_eq!(pool.inspect(&[]).await.unwrap().available, 1);
    assert_eq!(pool.release(&two.permit_ids()).await, Ok(2));

    let latch = client.count_down_latch("latch").unwrap();
    assert!(latch.try_set_count(1.try_into().unwrap()).await.unwrap());
    latch.count_down().await.unwrap();
    latch.wait().await.unwrap();

    let lease = client.lock("job").unwrap().acquire().await.unwrap();
    let guard = client.guard("total", GuardMemory::DEFAULT).unwrap();
    guard.write(&lease, None, &GuardedWrite::set("a/b.c?d", None)).await.unwrap();
    let own = UserScript::new("return {ARGV[1], 7}", vec![], vec!["x/y é".into()]).unwrap();
    assert_eq!(lease.eval(&own).await.unwrap().to_string(), r#"["x/y é",7]"#);
    let zero = UserScript::new("return ARGV[1]", vec![], vec!["a\0b".into()]).unwrap();
    let refused = lease.eval(&zero).await.unwrap_err();
    let EvalError::Request(RequestError::Refused(refusal)) = refused.kind else {
        panic!("{refused:?}")
    };
    assert_eq!(refusal.kind(), RefusalKind::Unsupported);
    lease.release().await.unwrap();
}

#[tokio::test]
async fn an_operation_that_a_gateway_lacks_is_refused_and_nothing_is_held() {
    let (env, webdis, client) = webdis().await;
    let lock = client.lock("job").unwrap();
    let replicated = AcquireOptions::new().replicas(1);
    let refused = lock.acquire_with(replicated).await.unwrap_err();
    let AcquireError::Refused(refusal) = refused.kind else { panic!("{refused:?}") };
    assert_eq!(refusal.kind(), RefusalKind::Unsupported);
    for credentials in ["", "edge:wrong", "other:s3cret:word"] {
        let unauthorized = NativeClient::connect(webdis.gateway_of(credentials));
        let wait = AcquireOptions::new().wait(Duration::from_secs(20));
        let refused = unauthorized.lock("job").unwrap().acquire_with(wait).await.unwrap_err();
        let AcquireError::Refused(refusal) = refused.kind else { panic!("{refused:?}") };
        assert_eq!(refusal.kind(), RefusalKind::Unauthorized);
    }
    env.assert_nothing_is_held("job").await;
}
