//! Waiters of edgelatch and Redisson in one queue, case by case.

use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::Publish;

use super::fixtures::{Fair, JAVA, JavaKeys, field_of, nth_poll};
use test_support::calls::{UNBOUND, bound};
use test_support::redis::{Content, Redis};

/// A fair lock on a Redis, for one step at a time.
struct Bench {
    redis: Redis,
    lock: Fair,
    java: JavaKeys,
}

impl Bench {
    async fn new() -> Self {
        Self::announced(Publish::Plain).await
    }

    async fn announced(publish: Publish) -> Self {
        let lock = Fair::announced("job", publish);
        Self { redis: Redis::start().await, java: lock.java(), lock }
    }

    async fn now(&self) -> i64 {
        i64::try_from(self.redis.now_ms().await).unwrap()
    }

    async fn ours(&self, owner: u32, number: u32) -> Reply {
        self.redis.run(&self.lock.acquire(nth_poll(owner, number))).await
    }

    /// Redisson's holder of this number acquires the lock or joins the queue, with this allowance
    /// in milliseconds; returns whether it acquired.
    async fn takes(&self, holder: usize, allowance: i64) -> bool {
        let now = self.now().await;
        self.java.acquire(&self.redis, JAVA[holder], allowance, now).await.is_none()
    }

    async fn unlocks(&self, holder: usize, id: &str) {
        let now = self.now().await;
        assert_eq!(self.java.unlock(&self.redis, JAVA[holder], now, id).await, Some(1));
    }

    async fn release(&self, owner: u32) -> Code {
        self.redis.run(&self.lock.release(owner)).await.code
    }

    async fn queue(&self) -> Vec<String> {
        let key = self.lock.key("redisson_lock_queue");
        self.redis.query(&["LRANGE", &key, "0", "-1"]).await
    }

    /// How far a score is ahead, in seconds, rounded to tens: the test itself may take a while.
    async fn ahead(&self, field: &str) -> i64 {
        let key = self.lock.key("redisson_lock_timeout");
        let score: f64 = self.redis.query(&["ZSCORE", &key, field]).await;
        #[expect(clippy::cast_possible_truncation, reason = "scores are whole")]
        let left = score as i64 - self.now().await;
        (left + 5_000).div_euclid(10_000) * 10
    }

    async fn age(&self, ms: u64) {
        self.lock.age(&self.redis, ms).await;
    }

    /// The waiters on whose channels a message was published since the last call.
    async fn notified(&mut self) -> Vec<String> {
        let prefix = self.lock.key("redisson_lock__channel") + ":";
        let published = self.redis.published().await;
        published.into_iter().map(|(to, _)| to.strip_prefix(&prefix).unwrap().to_owned()).collect()
    }
}

fn place(reply: &Reply) -> (Code, u64) {
    (reply.code, reply.value.split(',').next().unwrap().parse().unwrap())
}

#[tokio::test]
async fn a_queue_of_both_is_served_in_the_order_of_arrival() {
    let mut bench = Bench::new().await;
    assert!(bench.takes(0, 300_000).await);
    assert!(!bench.takes(1, 300_000).await);
    assert_eq!(place(&bench.ours(1, 1).await), (Code::No, 1));
    assert!(!bench.takes(2, 300_000).await);
    assert_eq!(place(&bench.ours(2, 1).await), (Code::No, 3));
    let scores = [
        bench.ahead(JAVA[1]).await,
        bench.ahead(&field_of(1)).await,
        bench.ahead(JAVA[2]).await,
        bench.ahead(&field_of(2)).await,
    ];
    assert_eq!(scores, [330, 360, 660, 690]);

    bench.unlocks(0, "a").await;
    assert!(bench.takes(1, 300_000).await);
    assert_eq!(bench.ahead(&field_of(1)).await, 60);
    bench.notified().await;
    bench.unlocks(1, "b").await;
    assert_eq!(bench.notified().await, [field_of(1)]);
    assert_eq!(bench.ours(1, 2).await.code, Code::Done);
    assert_eq!(bench.release(1).await, Code::Done);
    assert_eq!(bench.notified().await, [JAVA[2]]);
    assert!(bench.takes(2, 300_000).await);
    bench.unlocks(2, "c").await;
    assert_eq!(bench.notified().await, [field_of(2)]);
    assert_eq!(bench.ours(2, 2).await.code, Code::Done);
}

#[tokio::test]
async fn an_asynchronous_waiter_of_redisson_that_leaves_evicts_none_of_ours() {
    let bench = Bench::new().await;
    bench.takes(0, 300_000).await;
    bench.takes(1, 5_000).await;
    bench.ours(1, 1).await;
    bench.java.give_up(&bench.redis, JAVA[1], 300_000).await;
    assert_eq!(bench.ahead(&field_of(1)).await, 30);
    bench.unlocks(0, "a").await;
    assert_eq!(bench.ours(1, 2).await.code, Code::Done);
}

/// S90.
#[tokio::test]
async fn a_dead_head_of_ours_delays_the_next_waiters_by_its_life() {
    let mut bench = Bench::new().await;
    bench.takes(0, 300_000).await;
    bench.ours(1, 1).await;
    bench.ours(2, 1).await;
    bench.takes(1, 300_000).await;
    bench.unlocks(0, "a").await;
    bench.age(5_000).await;
    assert_eq!(place(&bench.ours(2, 2).await), (Code::No, 1));
    bench.age(5_000).await;
    assert_eq!(bench.ours(2, 3).await.code, Code::Done);
    bench.notified().await;
    assert_eq!(bench.release(2).await, Code::Done);
    assert_eq!(bench.notified().await, [JAVA[1]]);
    assert!(bench.takes(1, 300_000).await);
}

/// S90.
#[tokio::test]
async fn a_dead_head_of_ours_delays_redisson_s_waiters_by_life_and_skew() {
    let bench = Bench::new().await;
    bench.takes(0, 300_000).await;
    bench.ours(1, 1).await;
    bench.takes(1, 300_000).await;
    bench.unlocks(0, "a").await;
    bench.age(20_000).await;
    assert!(!bench.takes(1, 300_000).await);
    bench.age(10_000).await;
    assert!(bench.takes(1, 300_000).await);
}

#[tokio::test]
async fn a_dead_head_of_redisson_s_costs_five_seconds() {
    // No client is subscribed to the shard channels here.
    let bench = Bench::announced(Publish::Sharded).await;
    bench.takes(0, 300_000).await;
    bench.takes(1, 300_000).await;
    bench.ours(1, 1).await;
    bench.unlocks(0, "a").await;
    for number in 2..5 {
        let reply = bench.ours(1, number).await;
        assert_eq!(place(&reply), (Code::No, 1));
        assert_eq!(reply.value, "1,1000,0");
        bench.age(1_000).await;
    }
    bench.age(2_000).await;
    assert_eq!(bench.ours(1, 7).await.code, Code::Done);
}

#[tokio::test]
async fn a_head_of_redisson_s_that_listens_keeps_its_place_although_it_is_slow() {
    let mut bench = Bench::new().await;
    bench.takes(0, 300_000).await;
    bench.takes(1, 300_000).await;
    bench.ours(1, 1).await;
    bench.unlocks(0, "a").await;
    bench.notified().await;
    for number in 2..22 {
        assert_eq!(place(&bench.ours(1, number).await), (Code::No, 1));
        assert_eq!(bench.notified().await, [JAVA[1]]);
        bench.age(1_200).await;
    }
    assert!(bench.takes(1, 300_000).await);
}

/// S89.
#[tokio::test]
async fn a_head_that_queued_by_a_slow_clock_is_raised_and_keeps_its_place() {
    let bench = Bench::new().await;
    bench.takes(0, 300_000).await;
    let slow = bench.now().await - 21_600_000;
    bench.java.acquire(&bench.redis, JAVA[1], 300_000, slow).await;
    bench.ours(1, 1).await;
    assert_eq!(bench.ahead(JAVA[1]).await, 60);
    bench.unlocks(0, "a").await;
    assert!(bench.takes(1, 300_000).await);
}

/// S89.
#[tokio::test]
async fn a_waiter_evicted_by_a_fast_clock_returns_to_its_place() {
    let bench = Bench::new().await;
    bench.takes(0, 300_000).await;
    bench.ours(1, 1).await;
    bench.ours(2, 1).await;
    let fast = bench.now().await + 720_000;
    bench.java.acquire(&bench.redis, JAVA[1], 300_000, fast).await;
    assert_eq!(bench.queue().await, [JAVA[1]]);
    assert!(bench.ours(2, 2).await.value.starts_with("0,"));
    assert!(bench.ours(1, 2).await.value.ends_with(",1"), "its place is restored");
    assert_eq!(bench.queue().await, [&field_of(1), &field_of(2), JAVA[1]]);
    bench.unlocks(0, "a").await;
    assert_eq!(bench.ours(1, 3).await.code, Code::Done);
}

/// The arrival record lasts as long as the wait, not only as long as a request is remembered.
#[tokio::test]
async fn a_waiter_evicted_after_a_long_wait_returns_to_its_place() {
    let bench = Bench::new().await;
    bench.takes(0, 300_000).await;
    bench.ours(1, 1).await;
    bench.ours(2, 1).await;
    let polls_while_remembered = u32::try_from(UNBOUND.keep.as_secs() / 8).unwrap();
    for number in 2..polls_while_remembered + 4 {
        bench.age(8_000).await;
        // The holder enters again, which extends its hold.
        assert!(bench.takes(0, 300_000).await);
        bench.ours(1, number).await;
        bench.ours(2, number).await;
    }
    let fast = bench.now().await + 720_000;
    bench.java.acquire(&bench.redis, JAVA[1], 300_000, fast).await;
    assert_eq!(bench.queue().await, [JAVA[1]]);
    bench.ours(2, 100).await;
    bench.ours(1, 100).await;
    assert_eq!(bench.queue().await, [&field_of(1), &field_of(2), JAVA[1]]);
}

#[tokio::test]
async fn a_head_that_leaves_a_free_lock_notifies_the_next_one() {
    let mut bench = Bench::new().await;
    bench.takes(0, 300_000).await;
    bench.ours(1, 1).await;
    bench.takes(1, 300_000).await;
    bench.unlocks(0, "a").await;
    bench.notified().await;
    assert_eq!(bench.release(1).await, Code::No);
    assert_eq!(bench.notified().await, [JAVA[1]]);
    assert_eq!(bench.ours(1, 2).await.code, Code::Gone);
    assert_eq!(bench.queue().await, [JAVA[1]]);
}

#[tokio::test]
async fn a_forced_release_frees_the_lock_once_and_notifies_the_head() {
    let mut bench = Bench::new().await;
    let grant: u64 = bench.ours(1, 1).await.value.parse().unwrap();
    bench.takes(1, 300_000).await;
    bench.notified().await;
    let within = bound(bench.redis.now_ms().await + 60_000, 90_000);
    let force = bench.lock.force_release();
    let call = force.call(test_support::calls::request(5), within);
    assert_eq!(bench.redis.run(&call).await.code, Code::Done);
    assert_eq!(bench.notified().await, [JAVA[1]]);
    assert!(bench.takes(1, 300_000).await);
    assert_eq!(bench.redis.run(&call).await.code, Code::Done);
    assert!(!bench.takes(2, 300_000).await, "the copy has evicted no waiter");
    assert_eq!(bench.redis.run(&bench.lock.renew(1, 30_000, grant)).await.code, Code::Lost);
    assert_eq!(bench.ours(1, 1).await.code, Code::Lost);
}

#[tokio::test]
async fn a_redisson_waiter_s_score_below_its_predecessor_s_is_raised_by_a_later_waiter() {
    let bench = Bench::new().await;
    bench.takes(0, 300_000).await;
    bench.takes(1, 5_000).await;
    bench.takes(2, 5_000).await;
    bench.ours(1, 1).await;
    bench.java.give_up(&bench.redis, JAVA[1], 300_000).await;
    assert!(bench.ahead(JAVA[2]).await < 0, "pure Redisson would evict it");
    bench.ours(2, 1).await;
    assert_eq!(bench.ahead(JAVA[2]).await, 60);
    bench.unlocks(0, "a").await;
    assert!(bench.takes(2, 5_000).await);
}

#[tokio::test]
async fn inspecting_a_fair_lock_shows_a_lock() {
    let bench = Bench::new().await;
    let grant = bench.ours(1, 1).await.value;
    let reply = bench.redis.run(&bench.lock.inspect(Some(1))).await;
    assert_eq!((reply.code, reply.value), (Code::Done, format!("{grant},1,1")));
    let renew = bench.lock.renew(1, 60_000, grant.parse().unwrap());
    assert_eq!(bench.redis.run(&renew).await.code, Code::Done);
    bench.takes(1, 300_000).await;
    bench.ours(2, 1).await;
    let reply = bench.redis.run(&bench.lock.inspect_queue(Some(2))).await;
    let numbers: Vec<u64> = reply.value.split(',').map(|number| number.parse().unwrap()).collect();
    assert_eq!((numbers.len(), &numbers[..3], numbers[4]), (6, &[2, 2, 0][..], 1));
    assert!(numbers[5] <= 10_000 && reply.ms > 50_000);
    let Content::Hash(hash) = &bench.redis.dump().await["job"].value else { panic!("a hash") };
    assert_eq!(hash.iter().collect::<Vec<_>>(), [(&field_of(1), &"1".to_owned())]);
}
