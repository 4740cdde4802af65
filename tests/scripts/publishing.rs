//! How the end of a hold is announced.

use edgelatch::name::LockName;
use edgelatch::protocol::reply::Code;
use edgelatch::protocol::script::{LockCalls, Publish};

use crate::support::calls::{UNBOUND, lease, owner, request};
use crate::support::redis::Redis;

/// How often Redis has run a command since its statistics were emptied.
async fn count(redis: &Redis, command: &str) -> u64 {
    let info: String = redis.ask(&["INFO", "commandstats"]).await;
    let line =
        info.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    line.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
}

#[tokio::test]
async fn a_release_says_zero_in_the_way_that_was_asked_for() {
    let mut redis = Redis::start().await;
    for (publish, plain, sharded) in
        [(Publish::Plain, 1, 0), (Publish::Sharded, 0, 1), (Publish::Both, 1, 1)]
    {
        redis.ask::<String>(&["FLUSHALL"]).await;
        let job = LockCalls { name: LockName::parse("job").unwrap(), publish };
        let take = job.acquire(request(1), UNBOUND, &owner(1), lease(30_000), true);
        assert_eq!(redis.run(&take).await.code, Code::Done);
        redis.published().await;
        redis.ask::<String>(&["CONFIG", "RESETSTAT"]).await;
        redis.run(&job.release(request(2), UNBOUND, &owner(1))).await;
        assert_eq!(count(&redis, "publish").await, plain, "{publish:?}");
        assert_eq!(count(&redis, "spublish").await, sharded, "{publish:?}");
        let heard =
            vec![("redisson_lock__channel:{job}".to_owned(), "0".to_owned()); plain as usize];
        assert_eq!(redis.published().await, heard, "{publish:?}");
    }
}

#[tokio::test]
async fn what_ends_no_hold_says_nothing() {
    let mut redis = Redis::start().await;
    let job = crate::support::calls::lock("job");
    redis.run(&job.release(request(1), UNBOUND, &owner(1))).await;
    redis.run(&job.inspect(request(2), None)).await;
    redis.run(&job.acquire(request(3), UNBOUND, &owner(2), lease(30_000), true)).await;
    redis.run(&job.acquire(request(4), UNBOUND, &owner(3), lease(30_000), true)).await;
    redis.run(&job.release(request(5), UNBOUND, &owner(3))).await;
    assert_eq!(redis.published().await, []);
}
