//! Many clients at the same time.

use edgelatch::client::AcquireOptions;
use tokio::task::JoinSet;

use test_support::test_env::TestEnv;

/// S78.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_tasks_count_to_fifty_with_rising_tokens() {
    let env = TestEnv::new().await;
    env.redis.query::<String>(&["SET", "counter", "0"]).await;
    let client = env.client();
    let mut tasks = JoinSet::new();
    for _ in 0..50 {
        let lock = client.lock("job").unwrap();
        let mut redis = env.redis.connect().await;
        tasks.spawn(async move {
            let options = AcquireOptions::new().wait_until_cancelled();
            let lease = lock.acquire_with(options).await.unwrap();
            // Reads, yields, writes: without the lock most increments would be lost.
            let counter: u64 =
                redis::cmd("GET").arg("counter").query_async(&mut redis).await.unwrap();
            tokio::task::yield_now().await;
            let mut write = redis::cmd("SET");
            write.arg("counter").arg(counter + 1);
            let () = write.query_async(&mut redis).await.unwrap();
            lease.release().await.unwrap();
            (counter, lease.token())
        });
    }
    let mut turns = tasks.join_all().await;
    assert_eq!(env.redis.query::<u64>(&["GET", "counter"]).await, 50);
    // In the order of the counter the tokens rise.
    turns.sort_unstable();
    assert!(turns.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
    env.redis.query::<u64>(&["DEL", "counter"]).await;
    env.assert_nothing_is_held("contention").await;
}
