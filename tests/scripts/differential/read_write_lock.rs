//! Random calls of both sides of a read-write lock, by edgelatch and Redisson, on a real Redis and
//! on the model, compared after each.

use std::collections::BTreeMap;

use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{ReadCalls, Target, WriteCalls};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::ScriptCall;
use proptest::collection::vec;

use super::coverage::{ONCE, RENEWED, TAKEN, TOLD, run_all};
use super::pair::Pair;
use super::steps::read_write_lock::{Call, HOLDERS, Java, Side, Step, WANT_KEYS, step};
use super::steps::{Aloud, LOCKS, TOKEN_KEYS};
use crate::scripts::read_write::fixtures::{
    Java as Peer, UNLOCK_LATCH_MS, channel, timeouts, unlock_latch, want,
};
use test_support::calls::{Calls, lease, owner, request, token};
use test_support::script_model::{Value, java_read_write::JavaRw};

/// All codes of the scripts.
const VERDICTS: [(&str, &[Code]); 8] = [
    ("read_acquire", TAKEN),
    ("read_renew", RENEWED),
    ("read_release", TOLD),
    ("write_acquire", TAKEN),
    ("lock_renew", RENEWED),
    ("write_release", TOLD),
    ("rw_force_release", ONCE),
    ("rw_inspect", TOLD),
];

#[test]
fn random_calls_on_both_sides_do_to_redis_what_they_do_to_the_model() {
    let given = (Aloud::any(), vec(step(), 1..40));
    run_all(&VERDICTS, &[channel(LOCKS[0])], &given, async |redis, (aloud, steps), replies| {
        let mut world = World { pair: Pair::new(redis).await, aloud, tokens: BTreeMap::new() };
        for step in &steps {
            replies.extend(world.take(step).await);
        }
    });
}

/// The objects of the steps.
struct World<'a> {
    pair: Pair<'a>,
    aloud: Aloud,
    /// The newest token of each owner on each lock.
    tokens: BTreeMap<(usize, u8), u64>,
}

impl World<'_> {
    /// Runs a step on both, and compares everything visible.
    async fn take(&mut self, step: &Step) -> Option<(&'static str, Code)> {
        let now = self.pair.now();
        match step {
            Step::Ours { lock, call, .. } => {
                let script = self.make(step, now);
                let reply = self.pair.call(&script, &format!("{step:?}")).await;
                let granted = matches!(reply.code, Code::Done | Code::AlreadyYours);
                if let Call::Read { owner, .. } | Call::Write { owner, .. } = call
                    && granted
                {
                    self.tokens.insert((*lock, *owner), reply.value.parse().unwrap());
                }
                self.keep_want(*lock, now).await;
                return Some((script.script().name, reply.code));
            }
            Step::Java { lock, holder, act } => {
                let before = self.pair.redis.now_ms().await;
                self.java(LOCKS[*lock], HOLDERS[*holder], act).await;
                self.pair.took(before, &format!("{step:?}")).await;
            }
            Step::Token { lock, value, ends_in } => {
                let value = Value::Text(value.to_string());
                self.pair.write(TOKEN_KEYS[*lock], value, ends_in.map(|ms| now + ms)).await;
            }
            Step::Loss { of } | Step::Persist { of } => {
                self.pair.touch(*of, matches!(step, Step::Loss { .. })).await;
            }
        }
        self.pair.compare_keys(&format!("{step:?}")).await;
        None
    }

    /// A want is so short that it might expire between two comparisons.
    async fn keep_want(&mut self, lock: usize, now: u64) {
        let want = self.pair.model.dump(now).remove(WANT_KEYS[lock]);
        if let Some(want) = want {
            self.pair.write(WANT_KEYS[lock], want.value, Some(now + 600_000)).await;
        }
    }

    fn make(&self, step: &Step, now: u64) -> ScriptCall {
        let Step::Ours { lock: number, call, limit, keep, request: id } = step else {
            unreachable!("only calls of ours are made")
        };
        let bound = limit.bound(now, *keep);
        let (name, id) = (LockName::parse(LOCKS[*number]).unwrap(), request(*id));
        let Aloud { publish, grants } = self.aloud;
        let (reads, writes) =
            (ReadCalls::new(name.clone(), publish), WriteCalls::new(name, publish));
        let (read, write) =
            (|calls| Calls(Target::Read(calls)), |calls| Calls(Target::Write(calls)));
        let grant = |owner: u8| token(self.tokens.get(&(*number, owner)).copied().unwrap_or(9));
        let of = |side: &Side| {
            if *side == Side::Read { read(reads.clone()) } else { write(writes.clone()) }
        };
        let take = |side: Calls, who: u8, ms: u64, last: bool| {
            side.acquire_aloud(id, bound, &owner(who), lease(ms), last, grants)
        };
        match call {
            Call::Read { owner: who, parent, lease, last } => {
                let inside = |parent| reads.clone().nested_in_write(owner(parent));
                let side = parent.map_or_else(|| reads.clone(), inside);
                take(read(side), *who, *lease, *last)
            }
            Call::RenewRead { owner: who, lease: ms } => {
                of(&Side::Read).renew(id, bound, &owner(*who), lease(*ms), grant(*who))
            }
            Call::EndRead { owner: who } => of(&Side::Read).release(id, bound, &owner(*who)),
            Call::Write { owner: who, wants, lease, last } => {
                let side =
                    if *wants { writes.prefers_writers(want(5_000)) } else { writes.clone() };
                take(write(side), *who, *lease, *last)
            }
            Call::RenewWrite { owner: who, lease: ms } => {
                of(&Side::Write).renew(id, bound, &owner(*who), lease(*ms), grant(*who))
            }
            Call::EndWrite { owner: who, inner } => {
                let around = |inner| writes.clone().with_nested_read(owner(inner));
                write(inner.map_or_else(|| writes.clone(), around)).release(id, bound, &owner(*who))
            }
            Call::Force { side } => of(side).force_release(id, bound),
            Call::Cancel { side } => of(side).0.force_release().cancel(id, bound),
            Call::Inspect { side, owner: who } => of(side).inspect(id, Some(owner(*who))),
        }
    }

    /// Runs Redisson's script and its model; both must return the same.
    async fn java(&mut self, lock: &str, holder: &str, act: &Java) {
        let peer = Peer { redis: self.pair.redis, lock, holder };
        let write = format!("{holder}:write");
        let own = format!("{}:{holder}:rwlock_timeout", timeouts(lock));
        let all = timeouts(lock);
        let (channel, life) = (channel(lock), UNLOCK_LATCH_MS.to_string());
        let latch = |id: &u64| unlock_latch(lock, *id);
        let (script, keys, args): (_, Vec<String>, Vec<String>) = match act {
            Java::Read { lease } => (
                "rw_read_acquire",
                vec![lock.into(), own],
                vec![lease.to_string(), holder.into(), write],
            ),
            Java::EndRead { id } => (
                "rw_read_unlock",
                vec![lock.into(), channel, own, all, latch(id)],
                vec!["0".into(), holder.into(), "PUBLISH".into(), life],
            ),
            Java::RenewRead => (
                "rw_read_renew",
                vec![lock.into(), all],
                vec!["60000".into(), "1".into(), holder.into()],
            ),
            Java::Write { lease } => {
                ("rw_write_acquire", vec![lock.into()], vec![lease.to_string(), write])
            }
            Java::EndWrite { id } => (
                "rw_write_unlock",
                vec![lock.into(), channel, latch(id)],
                vec!["1".into(), "60000".into(), write, "PUBLISH".into(), life],
            ),
            Java::RenewWrite => ("renew", vec![lock.into()], vec!["60000".into(), write]),
            Java::Force { side } => {
                let side = if *side == Side::Read { "read" } else { "write" };
                let args = vec!["1".into(), "PUBLISH".into(), side.into()];
                ("rw_force_unlock", vec![lock.into(), channel], args)
            }
        };
        let (reply, now) = peer.run(script, &keys, &args).await;
        self.java_on_the_model(lock, holder, act, reply, now);
    }

    fn java_on_the_model(
        &mut self,
        lock: &str,
        holder: &str,
        act: &Java,
        reply: Option<i64>,
        now: u64,
    ) {
        let prefix = timeouts(lock);
        let run = JavaRw { name: lock, prefix: &prefix, holder };
        let model = &mut self.pair.model;
        let latch = |id: &u64| unlock_latch(lock, *id);
        let alike = match act {
            Java::Read { lease } => model.java_read_acquire(&run, *lease, now) == reply.is_none(),
            Java::EndRead { id } => {
                model.java_read_unlock(&run, (&latch(id), UNLOCK_LATCH_MS), now) == reply
            }
            Java::Write { lease } => model.java_write_acquire(&run, *lease, now) == reply.is_none(),
            Java::EndWrite { id } => {
                let latch = (&*latch(id), UNLOCK_LATCH_MS);
                model.java_write_unlock(&run, 60_000, latch, now) == reply
            }
            // These two return a list; the comparison of the keys covers it.
            Java::RenewRead => model.java_read_renew(&run, 60_000, now) || reply.is_none(),
            Java::RenewWrite => model.java_write_renew(&run, 60_000, now) || reply.is_none(),
            Java::Force { side } => {
                let side = if *side == Side::Read { "read" } else { "write" };
                model.java_rw_force_unlock(lock, side, now) == (reply == Some(1))
            }
        };
        assert!(alike, "{act:?}: Redis said {reply:?}");
    }
}
