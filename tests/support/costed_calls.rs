//! The calls whose cost is counted and measured: every call in every state of its object, and calls
//! with as many arguments as they may have.

use edgelatch_proto::name::{ClientId, FencingToken, GuardKey, LockName, OwnerId, PermitId};
use edgelatch_proto::protocol::calls::{
    BatchSize, Extension, FairCalls, FairMode, FairReadWriteCalls, FairReadWriteQuery,
    FairReadWriteSettings, FairSettings, GroupCalls, GuardCalls, GuardedWrite, LockCalls, Member,
    PermitCalls, PermitCount, ReadCalls, SemaphoreCalls, Stamp, Target, Try, UserScript,
    WriteCalls,
};
use edgelatch_proto::protocol::script::{Bound, Publish, ScriptCall, scripts};
use edgelatch_proto::timing::{GuardMemory, PeerSkew};

use crate::calls::{bound, lease, owner, request, token};
use crate::every_call::{Known, every_call};
use crate::full_objects::{
    FAIR_RW_WAITERS, HOLDS, NAME, PERMITS, READERS, VALUES, WAITERS, World, fill,
    fill_fair_rw_names, fill_fair_rw_queue, fill_holds, fill_queue_until, fill_readers,
    fill_values,
};
use crate::redis::Redis;
use crate::work::EditableCall;

/// The largest number of locks of one call with a scoped token.
pub const LOCKS_MAX: usize = 100;
/// The largest number of permits in one call.
pub const PERMITS_MAX: u16 = 1_000;
/// The largest value of a guarded key with a scoped token, in bytes.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;

/// Ends the holds of all values of a group.
const END_VALUES_LUA: &str = "for _,f in ipairs(redis.call('HKEYS',KEYS[1])) do \
     if f:sub(-12)==':expire_time' then redis.call('HSET',KEYS[1],f,ARGV[2]) end end";
/// Reads as large a result as a caller's script may return.
const LARGE_RESULT: &str = "return string.rep('x', 29998)";

/// Runs every call of the library in every state of its object, which is restored before the next.
pub async fn in_every_world(redis: &Redis, mut run: impl AsyncFnMut(&Redis, &EditableCall, World)) {
    let (here, saved) = (redis.beside(0), redis.beside(1));
    let calls = every_call(NAME, "other", Publish::Both);
    for world in World::ALL {
        redis.query::<String>(&["FLUSHALL"]).await;
        world.fill(&here).await;
        let keys: Vec<String> = here.query(&["KEYS", "*"]).await;
        for key in &keys {
            here.query::<u64>(&["COPY", key, key, "DB", "1"]).await;
        }
        let is_of = |known: &&Known| world.kind().is_none() || known.kind == world.kind();
        // Calls that are remembered for ten minutes have no bound: an idempotent call without one
        // is refused.
        let has_bound = |known: &&Known| known.call.args()[2] != "600000";
        for known in calls.iter().filter(is_of).filter(has_bound) {
            let mut call = EditableCall::from(known);
            if !call.args[1].is_empty() {
                call = call.not_after(here.now_ms().await + 60_000);
            }
            run(&here, &call, world).await;
            here.query::<String>(&["FLUSHDB"]).await;
            for key in &keys {
                saved.query::<u64>(&["COPY", key, key, "DB", "0"]).await;
            }
        }
    }
}

/// An object, and what other clients have stored under its name.
struct Scene {
    target: Target,
    /// Runs before the first call.
    before: Before,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Filled(World),
    /// Each of the call's values has an ended hold.
    EndedValues,
    LiveValues,
    Holds,
    EndedPermits,
    LiveReaders,
}

fn name(text: &str) -> LockName {
    LockName::parse(text).unwrap()
}

fn scenes() -> Vec<Scene> {
    let publish = Publish::Both;
    let locks = |fenced| {
        // As long as a name may be.
        let members = (0..LOCKS_MAX).map(|number| format!("{number:0>512}"));
        let members = members.map(|text| Member { name: name(&text), fenced });
        Target::Lock(LockCalls::of_set(members, publish).unwrap())
    };
    let values = || {
        let values = (0..GroupCalls::VALUES_MAX).map(|number| number.to_string());
        Target::Group(GroupCalls::new(name(NAME), values, PeerSkew::DEFAULT, publish).unwrap())
    };
    let semaphore = SemaphoreCalls::new(name(NAME), publish, PermitCount::new(50_000).unwrap());
    let permits = PermitCalls::new(
        name(NAME),
        publish,
        BatchSize::new(PERMITS_MAX).unwrap(),
        PeerSkew::DEFAULT,
    );
    let scene = |target, before| Scene { target, before };
    let fair = |mode| {
        let client = ClientId::parse(&"c".repeat(ClientId::BYTES_MAX)).unwrap();
        let settings = FairReadWriteSettings::default();
        let calls = FairReadWriteCalls::new(name(NAME), mode, settings, client, publish);
        Target::FairReadWrite(calls)
    };
    vec![
        scene(locks(false), Before::Nothing),
        scene(locks(true), Before::Nothing),
        scene(
            Target::Fair(FairCalls::new(name(NAME), FairSettings::default(), publish)),
            Before::Nothing,
        ),
        scene(fair(FairMode::Exclusive), Before::Nothing),
        scene(fair(FairMode::Shared), Before::Nothing),
        scene(fair(FairMode::Steal), Before::Filled(World::FairRwHolders)),
        scene(values(), Before::Nothing),
        scene(values(), Before::EndedValues),
        scene(values(), Before::LiveValues),
        scene(Target::Semaphore(semaphore), Before::Holds),
        scene(Target::Permits(permits.clone()), Before::EndedPermits),
        scene(Target::Permits(permits), Before::Filled(World::Permits)),
        scene(Target::Read(ReadCalls::new(name(NAME), publish)), Before::LiveReaders),
        scene(Target::Write(WriteCalls::new(name(NAME), publish)), Before::Nothing),
    ]
}

/// Runs the calls of objects that are at their limits, each in the order of a hold's life, with as
/// many arguments as a call may have. `run` returns the texts of the reply.
pub async fn with_most_arguments(
    redis: &Redis,
    mut run: impl AsyncFnMut(&Redis, &EditableCall) -> Vec<String>,
) {
    for scene in scenes() {
        redis.query::<String>(&["FLUSHALL"]).await;
        scene.before.fill(redis, &scene.target).await;
        life_of(redis, &scene.target, &mut run).await;
    }
    redis.query::<String>(&["FLUSHALL"]).await;
    guarded(redis, &mut run).await;
}

impl Before {
    async fn fill(self, redis: &Redis, target: &Target) {
        let now = redis.now_ms().await;
        let (over, later) = (now - 600_000, now + 600_000);
        match self {
            Self::Nothing => {}
            Self::Filled(world) => world.fill(redis).await,
            Self::EndedValues => {
                redis.run(&attempt(target, within(redis).await, 9, 300_000, false)).await;
                fill(redis, END_VALUES_LUA, &[NAME], 0, over).await;
                fill_values(redis, VALUES - 2_000, later).await;
            }
            Self::LiveValues => fill_values(redis, VALUES - 1_000, later).await,
            Self::Holds => {
                redis.query::<String>(&["SET", NAME, "100000"]).await;
                fill_holds(redis, "el:{job}:held", HOLDS - 1, later).await;
            }
            Self::EndedPermits => {
                redis.query::<String>(&["SET", NAME, "500000"]).await;
                fill_holds(redis, "{job}:timeout", PERMITS - 1_000, over).await;
            }
            Self::LiveReaders => fill_readers(redis, READERS - 1, 1).await,
        }
    }
}

/// A bound that is not reached, however long it takes to fill the objects.
async fn within(redis: &Redis) -> Bound {
    bound(redis.now_ms().await + 600_000, 90_000)
}

fn attempt(target: &Target, bound: Bound, who: u8, lease_ms: u64, last: bool) -> ScriptCall {
    let number = u32::try_from(lease_ms / 1_000).unwrap();
    target.acquire(&Try {
        request: request(u64::from(who) * 1_000 + u64::from(number)),
        bound,
        owner: owner(who),
        lease: lease(lease_ms),
        last,
        number,
        previous: None,
        announces: true,
    })
}

/// Acquires, acquires again, renews, inspects, runs a caller's script, refuses another owner,
/// releases, acquires for another owner, and ends that hold by force.
async fn life_of(
    redis: &Redis,
    target: &Target,
    run: &mut impl AsyncFnMut(&Redis, &EditableCall) -> Vec<String>,
) {
    let (me, bound) = (owner(1), within(redis).await);
    let reply = run(redis, &(&attempt(target, bound, 1, 200_000, false)).into()).await;
    assert_eq!(reply[0], "1", "{target:?} is granted");
    let grant = token(reply[1].parse().unwrap());
    if matches!(target, Target::Write(_)) {
        fill_readers(redis, READERS - 1, 1).await;
        redis.query::<u64>(&["HSET", NAME, "mode", "write"]).await;
    }
    if matches!(target, Target::Fair(_)) {
        fill_queue_until(redis, WAITERS, redis.now_ms().await - 1).await;
    }
    if matches!(target, Target::FairReadWrite(_)) {
        let now = redis.now_ms().await;
        fill_fair_rw_queue(redis, FAIR_RW_WAITERS, now - 1).await;
        fill_fair_rw_names(redis, 100, now + 600_000).await;
        let query = FairReadWriteQuery::new(name(NAME), Publish::Both);
        run(redis, &(&query.slice(request(20), "")).into()).await;
    }
    let mut calls = vec![
        attempt(target, bound, 1, 300_000, false),
        target.renew(&Extension {
            request: request(10),
            bound,
            owner: me,
            lease: lease(400_000),
            token: grant,
        }),
        target.inspect(request(11), Some(me)),
    ];
    calls.extend(eval(target, me, grant, bound));
    if let Target::Permits(permits) = target {
        let ids: Vec<PermitId> = target.permit_ids(me);
        calls.push(permits.inspect_ids(request(12), &ids));
        calls.push(permits.update_lease(&ids, lease(500_000)).call(request(13), bound));
    }
    for call in &calls {
        run(redis, &call.into()).await;
    }
    if matches!(target, Target::Lock(_)) {
        let call = raise(&attempt(target, bound, 1, 200_000, false), grant);
        assert_eq!(run(redis, &call).await[0], "1");
    }
    let other = attempt(target, bound, 2, 200_000, true);
    run(redis, &(&other).into()).await;
    let released = run(redis, &(&target.release(request(14), bound, me)).into()).await;
    let is_stolen = other.args().get(5).is_some_and(|kind| kind == "steal");
    assert_eq!(released[0], if is_stolen { "0" } else { "1" }, "{target:?} is released");
    let reply = run(redis, &(&attempt(target, bound, 3, 200_000, false)).into()).await;
    if let Target::Permits(permits) = target {
        assert_eq!(reply[0], "1");
        let ids = target.permit_ids(owner(3));
        run(redis, &(&permits.release_ids(&ids).call(request(15), bound)).into()).await;
    }
    run(redis, &(&target.force_release().call(request(16), bound)).into()).await;
}

/// The caller's script with as many words, and as large a result, as it may have.
fn eval(target: &Target, me: OwnerId, grant: FencingToken, bound: Bound) -> Option<ScriptCall> {
    let words = vec![String::from("word"); UserScript::WORDS_MAX];
    let script = UserScript::new(LARGE_RESULT, Vec::new(), words).unwrap();
    let call = target.eval(me, grant, &script).ok()?;
    Some(call.call(request(17), bound))
}

/// The call that raises the token of a hold; only a machine makes it, from the words of this
/// acquisition.
fn raise(acquire: &ScriptCall, grant: FencingToken) -> EditableCall {
    let script = &scripts::LOCK_RAISE;
    let mut call = EditableCall { script, source: script.source(false), ..acquire.into() };
    let kept = call.args[7].clone();
    call.args.truncate(5);
    call.args.extend([(grant.as_u64() + 1).to_string(), kept]);
    call
}

/// The calls about a guarded key with the largest value.
async fn guarded(redis: &Redis, run: &mut impl AsyncFnMut(&Redis, &EditableCall) -> Vec<String>) {
    let key = GuardKey::parse(NAME).unwrap();
    let calls = GuardCalls::new(key, GuardMemory::DEFAULT);
    let (value, bound) = ("x".repeat(VALUE_BYTES_MAX), within(redis).await);
    let grant = token(redis.now_ms().await * 1_000);
    let writes = [GuardedWrite::set(value, None), GuardedWrite::claim(), GuardedWrite::delete()];
    for (number, write) in (1..).zip(&writes) {
        let stamp = Stamp { token: grant, owner: owner(1), number };
        let call = calls.write(request(18), bound, stamp, write);
        assert_eq!(run(redis, &(&call).into()).await[0], "1");
    }
    run(redis, &(&calls.newest(request(19))).into()).await;
}
