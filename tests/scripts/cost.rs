//! The cost of each script on an object at its limit: how often it runs each command. No test here
//! measures time.

use std::collections::BTreeMap;

use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::{Publish, ScriptCall};

use super::fair::fixtures::{field_of, nth_poll};
use super::group::calls as values;
use super::limits::{queue, within};
use super::read_write::fixtures::{reads, writes};
use super::semaphores_and_latch::{batch, held, permits_that_publish, semaphore_that_publishes};
use test_support::calls::{Calls, UNBOUND, lease, lock, owner, request, token};
use test_support::full_objects::{
    HOLDS, NAME, PERMITS, READERS, VALUES, WAITERS, fill_holds, fill_readers, fill_values,
};
use test_support::redis::Redis;

/// How often a call runs each command.
pub(super) struct Cost(BTreeMap<String, u64>);

impl Cost {
    async fn of(redis: &Redis, call: &ScriptCall, code: Code) -> Self {
        redis.query::<String>(&["CONFIG", "RESETSTAT"]).await;
        let reply = redis.run(call).await;
        assert_eq!(reply.code, code, "{}", call.script().name);
        Self::since_reset(redis).await
    }

    /// The commands that scripts have run since the statistics were reset.
    pub(super) async fn since_reset(redis: &Redis) -> Self {
        let info: String = redis.query(&["INFO", "commandstats"]).await;
        let line = |line: &str| {
            let (command, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            // The gateway sends a `PING` every second, and a connection announces its library.
            let others = [
                "client|setinfo",
                "config|resetstat",
                "eval",
                "evalsha",
                "info",
                "ping",
                "publish",
                "select",
            ];
            let ran = !others.contains(&command);
            ran.then(|| (command.to_owned(), rest.split(',').next().unwrap().parse().unwrap()))
        };
        Self(info.lines().filter_map(line).collect())
    }

    fn ran(&self, command: &str) -> u64 {
        self.0.get(command).copied().unwrap_or(0)
    }

    pub(super) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Fails if the call ran a command that reads or deletes a whole key, or more than `most`
    /// commands.
    fn assert_bounded(&self, most: u64) {
        for command in ["hgetall", "hkeys", "hvals", "del"] {
            assert_eq!(self.ran(command), 0, "{command}: {:?}", self.0);
        }
        assert!(self.total() <= most, "{}: {:?}", self.total(), self.0);
    }
}

fn take(calls: &Calls, who: u8) -> ScriptCall {
    calls.acquire(request(u64::from(who)), UNBOUND, &owner(who), lease(60_000), false)
}

/// H2 of an attack on the gateway: a query read all values of a group.
#[tokio::test]
async fn queries_of_a_full_group_read_a_slice() {
    let redis = Redis::start().await;
    fill_values(&redis, VALUES, redis.now_ms().await + 600_000).await;
    let state = Cost::of(&redis, &reads(NAME).inspect(request(1), None), Code::No).await;
    state.assert_bounded(10);
    let one = values(NAME, &["A"]).inspect(request(1), None);
    Cost::of(&redis, &one, Code::No).await.assert_bounded(10);
    redis.query::<String>(&["CONFIG", "RESETSTAT"]).await;
    redis.cells(&lock(NAME).inspect(request(1), None)).await.unwrap_err();
    assert_eq!((redis.ran("hvals").await, redis.ran("hlen").await), (0, 1));
}

#[tokio::test]
async fn readers_are_counted_one_by_one_up_to_a_thousand_fields() {
    let redis = Redis::start().await;
    let inspect = |calls: Calls| calls.inspect(request(1), None);
    fill_readers(&redis, 999, 2).await;
    let cost = Cost::of(&redis, &inspect(reads(NAME)), Code::Done).await;
    assert_eq!(cost.ran("hgetall"), 1);
    assert_eq!(redis.run(&inspect(reads(NAME))).await.value, "0,1998,0");
    fill_readers(&redis, READERS, 2).await;
    Cost::of(&redis, &inspect(reads(NAME)), Code::Done).await.assert_bounded(10);
    // Each reader once; beside a writer neither the writer nor the mode counts.
    assert_eq!(redis.run(&inspect(reads(NAME))).await.value, "0,10000,0");
    let holder = "8743c9c0-0795-4907-87fd-6c719a6b4586:1:write";
    redis.query::<u64>(&["HSET", NAME, "mode", "write", holder, "1"]).await;
    assert_eq!(redis.run(&inspect(reads(NAME))).await.value, "0,10000,0");
    assert_eq!(redis.run(&inspect(writes(NAME))).await.value, "0,1,0");
}

#[tokio::test]
async fn a_lock_with_the_maximum_of_readers_is_acquired_and_released_by_reading_a_slice() {
    let redis = Redis::start().await;
    fill_readers(&redis, READERS - 1, 1).await;
    let taken = Cost::of(&redis, &take(&reads(NAME), 1), Code::Done).await;
    taken.assert_bounded(65);
    Cost::of(&redis, &take(&writes(NAME), 2), Code::No).await.assert_bounded(275);
    let within = within(&redis).await;
    let release = reads(NAME).release(request(3), within, &owner(1));
    let released = Cost::of(&redis, &release, Code::Done).await;
    // The deletion is that of its own timeout key.
    assert!(released.ran("del") == 1 && released.ran("hgetall") == 0 && released.total() <= 280);
    let force = reads(NAME).force_release(request(4), within);
    let freed = Cost::of(&redis, &force, Code::Done).await;
    // The deletion is that of the request's record, which is a text.
    assert_eq!((freed.ran("unlink"), freed.ran("del")), (1, 1));
}

#[tokio::test]
async fn a_full_group_is_looked_through_in_slices() {
    let redis = Redis::start().await;
    fill_values(&redis, VALUES - 1, redis.now_ms().await + 600_000).await;
    let one = values(NAME, &["A"]);
    Cost::of(&redis, &take(&one, 1), Code::Done).await.assert_bounded(25);
    redis.query::<String>(&["CONFIG", "RESETSTAT"]).await;
    redis.cells(&take(&values(NAME, &["B"]), 2)).await.unwrap_err();
    assert_eq!(redis.ran("hscan").await, 2, "one field for the kind, one page to sweep");
    assert!(redis.ran("hget").await <= 600, "a page is some hundred fields");
    // The largest number of values in one call.
    redis.query::<String>(&["FLUSHALL"]).await;
    let names: Vec<String> = (0..1_000).map(|number| format!("value {number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let thousand = values(NAME, &names);
    let cost = Cost::of(&redis, &take(&thousand, 1), Code::Done).await;
    assert_eq!((cost.ran("hget"), cost.ran("hmget"), cost.ran("hset")), (0, 2, 10));
}

/// Low finding of an attack on the gateway: a clear read all holds.
#[tokio::test]
async fn a_full_semaphore_is_emptied_by_one_command() {
    let redis = Redis::start().await;
    redis.query::<String>(&["SET", NAME, "50000"]).await;
    fill_holds(&redis, "el:{job}:held", HOLDS - 1, redis.now_ms().await + 600_000).await;
    let calls = held(&semaphore_that_publishes(NAME, 1, Publish::Plain));
    Cost::of(&redis, &take(&calls, 1), Code::Done).await.assert_bounded(20);
    Cost::of(&redis, &calls.inspect(request(2), None), Code::Done).await.assert_bounded(10);
    let clear = calls.force_release(request(3), within(&redis).await);
    let cost = Cost::of(&redis, &clear, Code::Done).await;
    assert_eq!((cost.ran("zrange"), cost.ran("unlink")), (20, 1));
    assert!(cost.total() <= 32, "{:?}", cost.0);
    assert_eq!(redis.query::<u64>(&["GET", NAME]).await, 50_000 + HOLDS - 1);
}

#[tokio::test]
async fn a_thousand_permits_of_many_are_written_in_batches() {
    let redis = Redis::start().await;
    redis.query::<String>(&["SET", NAME, "500000"]).await;
    let now = redis.now_ms().await;
    fill_holds(&redis, "{job}:timeout", PERMITS - 1_000, now - 5_000).await;
    let calls = batch(&permits_that_publish(NAME, 1_000, 0, Publish::Plain));
    let first = Cost::of(&redis, &take(&calls, 1), Code::Done).await;
    // The script queries them one by one, since the set is Redisson's as well; it removes at most
    // 500 expired holds.
    assert_eq!((first.ran("zscore"), first.ran("zadd"), first.ran("zrem")), (1_000, 4, 1));
    assert!(first.total() <= 1_030, "{:?}", first.0);
    let again = Cost::of(&redis, &take(&calls, 1), Code::AlreadyYours).await;
    assert!(again.total() <= 1_015, "{:?}", again.0);
    let within = within(&redis).await;
    let release = calls.release(request(3), within, &owner(1));
    let released = Cost::of(&redis, &release, Code::Done).await;
    assert_eq!(released.ran("zrem"), 2);
    let clear = calls.force_release(request(4), within);
    let cleared = Cost::of(&redis, &clear, Code::Done).await;
    assert_eq!((cleared.ran("unlink"), cleared.ran("zrange")), (1, 0));
    assert_eq!(redis.query::<u64>(&["EXISTS", "{job}:timeout"]).await, 0);
}

#[tokio::test]
async fn a_poll_in_a_full_queue_looks_at_its_first_waiters_alone() {
    let (redis, fair) = queue(WAITERS - 1).await;
    let joined = Cost::of(&redis, &fair.acquire(nth_poll(1, 1)), Code::No).await;
    assert!(joined.total() <= 330, "{:?}", joined.0);
    let poll = Cost::of(&redis, &fair.acquire(nth_poll(1, 2)), Code::No).await;
    assert!(poll.total() <= 330 && poll.ran("zscore") <= 270, "{:?}", poll.0);
    // Redisson evicted it from the end of the queue: the script searches for its place in pages.
    redis.query::<u64>(&["LREM", &fair.key("redisson_lock_queue"), "0", &field_of(1)]).await;
    let back = Cost::of(&redis, &fair.acquire(nth_poll(1, 3)), Code::No).await;
    assert!(back.ran("lindex") <= 2 && back.ran("lrange") <= 17, "{:?}", back.0);
    assert!(back.total() <= 350 && back.ran("zrangebyscore") == 2, "{:?}", back.0);
    let force = fair.force_release().call(request(9), within(&redis).await);
    let freed = Cost::of(&redis, &force, Code::Done).await;
    assert!(freed.total() <= 60, "{:?}", freed.0);
    let left = Cost::of(&redis, &fair.release(1), Code::No).await;
    assert!(left.total() <= 60 && left.ran("lrem") <= 1, "{:?}", left.0);
}

/// The check of the kind costs no command on a free lock, and one on a busy lock.
#[tokio::test]
async fn a_free_lock_is_acquired_without_a_check_of_its_kind() {
    let redis = Redis::start().await;
    let free = Cost::of(&redis, &take(&lock(NAME), 1), Code::Done).await;
    assert_eq!((free.ran("hscan"), free.ran("hlen"), free.ran("type")), (0, 0, 0));
    let busy = Cost::of(&redis, &take(&lock(NAME), 2), Code::No).await;
    assert_eq!((busy.ran("hscan"), busy.total()), (1, 5), "{:?}", busy.0);
    let grant: u64 = redis.query(&["GET", "redisson_lock_token:{job}"]).await;
    let renew =
        lock(NAME).renew(request(4), within(&redis).await, &owner(1), lease(60_000), token(grant));
    assert_eq!(Cost::of(&redis, &renew, Code::Done).await.ran("hscan"), 0);
}
