//! How the end of a hold is published.

use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{
    BatchSize, LockCalls, Member, PermitCalls, PermitCount, SemaphoreCalls, Target, Try, WriteCalls,
};
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::Publish;
use edgelatch_proto::timing::PeerSkew;

use test_support::calls::{UNBOUND, announced_lock, lease, owner, request};
use test_support::redis::{Redis, run_on};

#[tokio::test]
async fn a_release_publishes_zero_in_the_requested_way() {
    let mut redis = Redis::start().await;
    for (publish, plain, sharded) in
        [(Publish::Plain, 1, 0), (Publish::Sharded, 0, 1), (Publish::Both, 1, 1)]
    {
        redis.query::<String>(&["FLUSHALL"]).await;
        let job = announced_lock("job", publish);
        let take = job.acquire(request(1), UNBOUND, &owner(1), lease(30_000), true);
        assert_eq!(redis.run(&take).await.code, Code::Done);
        redis.published().await;
        redis.query::<String>(&["CONFIG", "RESETSTAT"]).await;
        redis.run(&job.release(request(2), UNBOUND, &owner(1))).await;
        assert_eq!(redis.ran("publish").await, plain, "{publish:?}");
        assert_eq!(redis.ran("spublish").await, sharded, "{publish:?}");
        let expected = vec![("redisson_lock__channel:{job}".to_owned(), "0".to_owned()); plain];
        assert_eq!(redis.published().await, expected, "{publish:?}");
    }
}

#[tokio::test]
async fn a_call_that_ends_no_hold_publishes_nothing() {
    let mut redis = Redis::start().await;
    let job = test_support::calls::lock("job");
    redis.run(&job.release(request(1), UNBOUND, &owner(1))).await;
    redis.run(&job.inspect(request(2), None)).await;
    redis.run(&job.acquire(request(3), UNBOUND, &owner(2), lease(30_000), true)).await;
    redis.run(&job.acquire(request(4), UNBOUND, &owner(3), lease(30_000), true)).await;
    redis.run(&job.release(request(5), UNBOUND, &owner(3))).await;
    assert_eq!(redis.published().await, []);
}

#[tokio::test]
async fn a_release_of_several_locks_publishes_on_each_channel() {
    let mut redis = Redis::start().await;
    let member = |name: &str| Member { name: LockName::parse(name).unwrap(), fenced: false };
    let both = LockCalls::of_several(member("a"), [member("b")].into(), Publish::Plain);
    let (request, owner, lease) = (request(1), owner(1), lease(30_000));
    let (bound, last, previous, announces) = (UNBOUND, false, None, true);
    let take = Target::Lock(both).acquire(&Try {
        request,
        bound,
        owner,
        lease,
        last,
        number: 2,
        previous,
        announces,
    });
    assert_eq!(redis.run(&take).await.code, Code::Done);
    let expected = ["a", "b"]
        .map(|name| (format!("redisson_lock__channel:{{{name}}}"), "30000000".to_owned()));
    assert_eq!(redis.published().await, expected);
}

#[tokio::test]
async fn a_grant_of_the_last_permit_is_published_to_all_listeners() {
    let mut redis = Redis::start().await;
    redis.query::<String>(&["SET", "pool", "2"]).await;
    let name = LockName::parse("pool").unwrap();
    let one = PermitCount::new(1).unwrap();
    let pool = Target::Semaphore(SemaphoreCalls::new(name, Publish::Plain, one));
    let take = |number: u8| {
        let (request, owner, lease) = (request(number.into()), owner(number), lease(30_000));
        let (bound, last, previous, announces) = (UNBOUND, false, None, true);
        pool.acquire(&Try { request, bound, owner, lease, last, number: 1, previous, announces })
    };
    assert_eq!(redis.run(&take(1)).await.code, Code::Done);
    assert_eq!(redis.published().await, []);
    let mut listeners = [redis.connect().await, redis.connect().await];
    for listener in &mut listeners {
        listener.subscribe("redisson_sc:{pool}").await.unwrap();
    }
    assert_eq!(redis.run(&take(2)).await.code, Code::Done);
    assert_eq!(redis.published().await, [("redisson_sc:{pool}".to_owned(), "00".to_owned())]);
}

#[tokio::test]
async fn a_published_grant_sends_one_message_and_its_copy_none() {
    let mut redis = Redis::start().await;
    let user = redis.user(&["~*", "&*", "+@all", "-pubsub"].map(str::to_owned)).await;
    for (publish, plain, sharded) in
        [(Publish::Plain, 1, 0), (Publish::Sharded, 0, 1), (Publish::Both, 1, 1)]
    {
        let name = LockName::parse("job").unwrap();
        let (taken, none_left) = ("30000000", "0");
        let one = PermitCount::new(1).unwrap();
        let pool = SemaphoreCalls::new(name.clone(), publish, one);
        let batch = BatchSize::new(1).unwrap();
        let leased = PermitCalls::new(name.clone(), publish, batch, PeerSkew::DEFAULT);
        for (target, channel, message) in [
            (announced_lock("job", publish).0, "redisson_lock__channel:{job}", taken),
            (Target::Write(WriteCalls::new(name, publish)), "redisson_rwlock:{job}", taken),
            (Target::Semaphore(pool), "redisson_sc:{job}", none_left),
            (Target::Permits(leased), "redisson_sc:{job}", none_left),
        ] {
            let take = target.acquire(&Try {
                request: request(1),
                bound: UNBOUND,
                owner: owner(1),
                lease: lease(30_000),
                last: false,
                number: 2,
                previous: None,
                announces: true,
            });
            for may_count in [true, false] {
                redis.query::<String>(&["FLUSHALL"]).await;
                if message == none_left {
                    redis.query::<String>(&["SET", "job", "1"]).await;
                }
                redis.published().await;
                redis.query::<String>(&["CONFIG", "RESETSTAT"]).await;
                for wanted in [Code::Done, Code::AlreadyYours] {
                    let code = if may_count {
                        redis.run(&take).await.code
                    } else {
                        let cells = run_on(&mut user.clone(), &take).await.unwrap();
                        Reply::read(&cells, take.request).unwrap().code
                    };
                    assert_eq!(code, wanted);
                }
                let expected = (redis.ran("publish").await, redis.ran("spublish").await);
                assert_eq!(expected, (plain, sharded), "{publish:?}");
                // Only this test is subscribed, with a pattern.
                let message = (channel.to_owned(), message.to_owned());
                assert_eq!(redis.published().await, vec![message; plain], "{publish:?}");
            }
        }
    }
}
