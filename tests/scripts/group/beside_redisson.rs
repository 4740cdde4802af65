//! Redisson and edgelatch on one group: what each stores, and how the other interprets it.

use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::Publish;

use super::fixtures::{GROUP, Java, PAD, field, hash, values, values_of};
use test_support::calls::{UNBOUND, bound, field as text_of, lease, owner, request, token};
use test_support::redis::Redis;

const H: &str = "8743c9c0-0795-4907-87fd-6c719a6b4586:1";
const G: &str = "1f1d3b8e-5a0a-4d2f-9f0e-0a6b7c8d9e0f:7";

#[tokio::test]
async fn a_grant_leaves_what_redisson_would_and_its_lease_is_longer_there_by_the_pad() {
    let redis = Redis::start().await;
    let take = values(&["A"]).acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
    let reply = redis.run(&take).await;
    assert_eq!((reply.code, reply.ms), (Code::Done, 30_000));
    let (value, us) = (field("A"), text_of(&owner(1)));
    assert_eq!(value, "7lfauXx93omNKgwMm0g5eQ");
    let ends_at = (reply.server_ms + 30_000 + PAD).to_string();
    let wanted = [
        (value.clone(), us.clone()),
        (format!("{value}:{us}:expire_time"), ends_at),
        (format!("{value}:{us}:lock_count"), "1".into()),
    ];
    assert_eq!(hash(&redis).await, wanted.into());
    let left: u64 = redis.query(&["PTTL", GROUP]).await;
    let kept = 30_000 + 2 * PAD + 1_000;
    assert!(left > kept - 1_000 && left <= kept, "{left}");
    let keys: Vec<String> = redis.dump().await.into_keys().collect();
    let latch = format!("el:{{{GROUP}}}:{us}");
    assert_eq!(keys, [latch, "redisson_lock_token:{students}".into(), GROUP.into()]);
}

#[tokio::test]
async fn each_side_is_refused_the_values_of_the_other_and_acquires_those_beside_them() {
    let mut redis = Redis::start().await;
    let take = values(&["A", "B"]).acquire(request(1), UNBOUND, &owner(1), lease(60_000), false);
    let grant: u64 = redis.run(&take).await.value.parse().unwrap();
    let java = Java::new(&redis, H);
    let left = java.takes(&["A"], 60_000).await.unwrap();
    assert!(left > 50_000 && left <= 61_000, "{left}");
    assert!(java.sees_locked(&["C", "B"]).await && !java.sees_locked(&["C"]).await);
    assert_eq!(java.takes(&["C", "D"], 30_000).await, None);

    let both = values(&["C", "B", "E"]);
    let state = redis.run(&both.inspect(request(2), Some(owner(1)))).await;
    assert_eq!((state.code, state.value), (Code::Done, format!("{grant},1,0,2")));
    let refused = both.acquire(request(3), UNBOUND, &owner(2), lease(30_000), false);
    let refused = redis.run(&refused).await;
    assert_eq!(refused.code, Code::No);
    assert!(refused.ms > 50_000, "as long as the longest: {}", refused.ms);
    redis.published().await;

    // Each release leaves the other's values alone, and is published.
    assert_eq!(Java::new(&redis, H).unlocks(&["C", "D"], 1).await.number, Some(1));
    let release = values(&["A", "B"]).release(request(4), UNBOUND, &owner(1));
    assert_eq!(redis.run(&release).await.code, Code::Done);
    assert!(hash(&redis).await.is_empty());
    assert_eq!(redis.published().await.len(), 2);
}

#[tokio::test]
async fn a_refusal_has_the_index_of_the_first_held_value_of_the_set() {
    let redis = Redis::start().await;
    let calls = values(&["A", "B", "C", "D"]);
    let edgelatch_proto::protocol::calls::Target::Group(group) = &calls.0 else { unreachable!() };
    for value in ["A", "B", "C", "D"] {
        redis.query::<String>(&["FLUSHALL"]).await;
        assert_eq!(Java::new(&redis, H).takes(&[value], 60_000).await, None);
        let refused = calls.acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
        let number = redis.run(&refused).await.value.parse().ok();
        assert_eq!(number, group.number_of(value), "{value}");
    }
}

#[tokio::test]
async fn java_s_hold_counts_are_read_and_what_it_holds_for_too_long_ends_with_the_group() {
    let redis = Redis::start().await;
    let java = Java { ahead: 3_600_000, ..Java::new(&redis, H) };
    assert_eq!(java.takes(&["A"], 30_000).await, None);
    assert_eq!(java.takes(&["A"], 30_000).await, None);
    let state = redis.run(&values(&["A", "B"]).inspect(request(1), None)).await;
    assert_eq!((state.code, state.value.as_str()), (Code::Done, "0,2,0,1"));
    // By Java's own clock it has an hour more; Redis expires the whole group before that.
    assert!(state.ms > 20_000 && state.ms <= 30_000, "{}", state.ms);
}

/// Redisson does not extend a group in its last millisecond, and believes that it holds values that
/// are gone in the next one.
#[tokio::test]
async fn java_keeps_a_group_that_it_acquires_as_our_hold_ends() {
    let redis = Redis::start().await;
    let calls = values_of(GROUP, &["A"], 100, Publish::Plain);
    for (renewed, ahead) in [(false, 0), (true, 0), (false, -100), (true, 100)] {
        redis.query::<String>(&["FLUSHALL"]).await;
        let take = calls.acquire(request(1), UNBOUND, &owner(1), lease(100), false);
        let grant = redis.run(&take).await.value.parse().unwrap();
        if renewed {
            let renew = calls.renew(request(2), UNBOUND, &owner(1), lease(150), token(grant));
            assert_eq!(redis.run(&renew).await.code, Code::Done);
        }
        // Like Redisson's waiters, which retry as soon as the hold ends.
        let java = Java { ahead, ..Java::new(&redis, H) };
        while java.takes(&["A"], 30_000).await.is_some() {}
        let left: i64 = redis.query(&["PTTL", GROUP]).await;
        assert!(left > 20_000, "renewed: {renewed}, ahead: {ahead}");
    }
}

#[tokio::test]
async fn an_expired_value_is_granted_only_when_it_has_expired_by_any_clock_of_java_s() {
    let redis = Redis::start().await;
    // The hold has ended by Redis' clock for this long; Java's clock may be behind by the pad.
    for (passed, code) in [(500, Code::No), (1_500, Code::Done)] {
        redis.query::<String>(&["FLUSHALL"]).await;
        let java = Java { ahead: -30_000 - passed, ..Java::new(&redis, H) };
        assert_eq!(java.takes(&["A"], 30_000).await, None);
        redis.query::<u64>(&["PEXPIRE", GROUP, "60000"]).await;
        let take = values(&["A"]).acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
        assert_eq!(redis.run(&take).await.code, code, "{passed}");
    }
    // An edgelatch hold has ended when Redis' clock says so.
    redis.query::<String>(&["FLUSHALL"]).await;
    let take = values(&["A"]).acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
    redis.run(&take).await;
    let at = (redis.now_ms().await - 1).to_string();
    let ends = format!("{}:{}:expire_time", field("A"), text_of(&owner(1)));
    redis.query::<u64>(&["HSET", GROUP, &ends, &at]).await;
    let next = values(&["A"]).acquire(request(2), UNBOUND, &owner(2), lease(30_000), false);
    assert_eq!(redis.run(&next).await.code, Code::Done);
    assert_eq!(hash(&redis).await.len(), 3, "nothing of the last owner is left");
}

#[tokio::test]
async fn java_s_late_unlock_does_not_release_our_value() {
    // H's lease has ended by Redis' clock, but not by its own. The next owner is edgelatch.
    let redis = Redis::start().await;
    let java = Java { ahead: -32_000, ..Java::new(&redis, H) };
    assert_eq!(java.takes(&["A"], 30_000).await, None);
    redis.query::<u64>(&["PEXPIRE", GROUP, "60000"]).await;
    let take = values(&["A"]).acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
    let grant = redis.run(&take).await.value.parse().unwrap();
    assert_eq!(java.unlocks(&["A"], 1).await.number, None);
    let renew = values(&["A"]).renew(request(2), UNBOUND, &owner(1), lease(30_000), token(grant));
    assert_eq!(redis.run(&renew).await.code, Code::Done);
}

#[tokio::test]
async fn leftovers_of_earlier_owners_are_removed_from_a_small_group() {
    let redis = Redis::start().await;
    for (others, swept) in [(10, true), (600, false)] {
        redis.query::<String>(&["FLUSHALL"]).await;
        // H acquires, then G, whose clock is ahead; then G unlocks. H's helper fields are left, and
        // H still believes in its hold.
        assert_eq!(Java::new(&redis, H).takes(&["A"], 30_000).await, None);
        let ahead = Java { ahead: 40_000, ..Java::new(&redis, G) };
        assert_eq!(ahead.takes(&["A"], 30_000).await, None);
        assert_eq!(ahead.unlocks(&["A"], 1).await.number, Some(1));
        let names: Vec<String> = (0..others).map(|number| format!("other {number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(ahead.takes(&names, 30_000).await, None);
        let take = values(&["A"]).acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
        assert_eq!(redis.run(&take).await.code, Code::Done);
        let unlocked = Java::new(&redis, H).unlocks(&["A"], 2).await.number;
        assert_eq!(unlocked, if swept { None } else { Some(1) });
        assert_eq!(hash(&redis).await.contains_key(&field("A")), swept);
    }
}

#[tokio::test]
async fn a_loss_to_java_is_reported_by_its_index_and_nothing_is_extended() {
    let redis = Redis::start().await;
    let calls = values(&["A", "B"]);
    let take = calls.acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
    let grant = redis.run(&take).await.value.parse().unwrap();
    // A clock that is ahead by more than the pad.
    let thief = Java { ahead: 40_000, ..Java::new(&redis, H) };
    assert_eq!(thief.takes(&["B"], 30_000).await, None);
    let before = hash(&redis).await;
    let renew = calls.renew(request(2), UNBOUND, &owner(1), lease(90_000), token(grant));
    let lost = redis.run(&renew).await;
    let edgelatch_proto::protocol::calls::Target::Group(group) = &calls.0 else { unreachable!() };
    assert_eq!((lost.code, lost.value.parse().ok()), (Code::Lost, group.number_of("B")));
    assert_eq!(redis.run(&take).await.code, Code::Lost);
    assert_eq!(hash(&redis).await, before);
    let release = calls.release(request(3), UNBOUND, &owner(1));
    assert_eq!(redis.run(&release).await.code, Code::No);
    let left = hash(&redis).await;
    assert_eq!(left.get(&field("B")).map(String::as_str), Some(H));
    assert_eq!(left.len(), 3, "only the thief's: {left:?}");
}

#[tokio::test]
async fn a_forced_release_frees_values_of_any_owner_and_ignores_free_ones() {
    let mut redis = Redis::start().await;
    let take = values(&["A"]).acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
    redis.run(&take).await;
    assert_eq!(Java::new(&redis, H).takes(&["B", "D"], 30_000).await, None);
    redis.published().await;
    let within = bound(redis.now_ms().await + 60_000, 90_000);
    let force = values(&["A", "B", "C"]).force_release(request(2), within);
    let reply = redis.run(&force).await;
    assert_eq!((reply.code, reply.value.as_str()), (Code::Done, "2"));
    assert_eq!(redis.published().await.len(), 1);
    assert_eq!(hash(&redis).await.len(), 3, "D is left");
    let again = redis.run(&values(&["A", "C"]).force_release(request(3), within)).await;
    assert_eq!((again.code, again.value.as_str()), (Code::No, "0"));
    assert_eq!(redis.published().await, []);
    // Java's own forced release fails at the first free value, after it has removed those before
    // it.
    assert_eq!(Java::new(&redis, H).frees(&["D"]).await.number, Some(1));
}

#[tokio::test]
async fn a_group_without_an_end_keeps_having_none_and_one_of_ours_always_has_one() {
    let redis = Redis::start().await;
    redis.query::<u64>(&["HSET", GROUP, "another", "value"]).await;
    let calls = values(&["A"]);
    let take = calls.acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
    let grant = redis.run(&take).await.value.parse().unwrap();
    let renew = calls.renew(request(2), UNBOUND, &owner(1), lease(60_000), token(grant));
    assert_eq!(redis.run(&renew).await.ms, 60_000);
    assert_eq!(redis.query::<i64>(&["PTTL", GROUP]).await, -1);
    redis.run(&calls.release(request(3), UNBOUND, &owner(1))).await;
    assert_eq!(hash(&redis).await.len(), 1);

    redis.query::<String>(&["FLUSHALL"]).await;
    // The group has only entries of earlier owners: the script removes them, and the group with
    // them, but must set the expiry.
    let helper = format!("{}:{H}:expire_time", field("A"));
    redis.query::<u64>(&["HSET", GROUP, &field("A"), H, &helper, "1"]).await;
    redis.query::<u64>(&["PEXPIRE", GROUP, "5000"]).await;
    let take = calls.acquire(request(4), UNBOUND, &owner(2), lease(30_000), false);
    assert_eq!(redis.run(&take).await.code, Code::Done);
    assert!(redis.query::<i64>(&["PTTL", GROUP]).await > 5_000);
    assert_eq!(hash(&redis).await.len(), 3);
}
