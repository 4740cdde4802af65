//! Shared by the tests of the read-write lock: its two sides, and Redisson's scripts.

use edgelatch_proto::name::{LockName, OwnerId};
use edgelatch_proto::protocol::calls::{ReadCalls, Target, WriteCalls};
use edgelatch_proto::protocol::script::Publish;
use edgelatch_proto::timing::WantTime;
use redis::Value;
use std::time::Duration;

use test_support::calls::Calls;
use test_support::redis::Redis;

/// Redisson's scripts, re-implemented.
pub(crate) const JAVA: [(&str, &str); 7] = [
    ("renew", include_str!("../java/renew.lua")),
    ("rw_force_unlock", include_str!("../java/rw_force_unlock.lua")),
    ("rw_read_acquire", include_str!("../java/rw_read_acquire.lua")),
    ("rw_read_renew", include_str!("../java/rw_read_renew.lua")),
    ("rw_read_unlock", include_str!("../java/rw_read_unlock.lua")),
    ("rw_write_acquire", include_str!("../java/rw_write_acquire.lua")),
    ("rw_write_unlock", include_str!("../java/rw_write_unlock.lua")),
];

fn name(name: &str) -> LockName {
    LockName::parse(name).unwrap()
}

pub(crate) fn read_calls(lock: &str) -> ReadCalls {
    ReadCalls::new(name(lock), Publish::Plain)
}

pub(crate) fn write_calls(lock: &str) -> WriteCalls {
    WriteCalls::new(name(lock), Publish::Plain)
}

/// The read side of the lock of this name.
pub(crate) fn reads(lock: &str) -> Calls {
    Calls(Target::Read(read_calls(lock)))
}

/// The read side inside the write hold of `parent`.
pub(crate) fn reads_inside(lock: &str, parent: OwnerId) -> Calls {
    Calls(Target::Read(read_calls(lock).nested_in_write(parent)))
}

/// The write side of the lock of this name.
pub(crate) fn writes(lock: &str) -> Calls {
    Calls(Target::Write(write_calls(lock)))
}

/// The write side with a read of `inner` inside.
pub(crate) fn writes_around(lock: &str, inner: OwnerId) -> Calls {
    Calls(Target::Write(write_calls(lock).with_nested_read(inner)))
}

/// The write side that keeps readers out for `want_ms` milliseconds.
pub(crate) fn eager_writes(lock: &str, want_ms: u64) -> Calls {
    Calls(Target::Write(write_calls(lock).prefers_writers(want(want_ms))))
}

pub(crate) fn want(ms: u64) -> WantTime {
    WantTime::new(Duration::from_millis(ms)).unwrap()
}

/// A Java holder.
#[derive(Clone, Copy)]
pub(crate) struct Java<'a> {
    pub(crate) redis: &'a Redis,
    pub(crate) lock: &'a str,
    pub(crate) holder: &'a str,
}

/// How Redisson derives the prefix of its timeout keys from a name.
pub(crate) fn timeouts(lock: &str) -> String {
    if lock.contains('{') { lock.to_owned() } else { format!("{{{lock}}}") }
}

pub(crate) fn unlock_latch(lock: &str, id: u64) -> String {
    format!("redisson_unlock_latch:{}:{id:032x}", timeouts(lock))
}

pub(crate) fn channel(lock: &str) -> String {
    format!("redisson_rwlock:{}", timeouts(lock))
}

pub(crate) const UNLOCK_LATCH_MS: u64 = 60_000;

impl Java<'_> {
    /// Acquires the read side. Returns `None` if it holds it now; else the remaining time of the
    /// hold that excludes it.
    pub(crate) async fn reads(&self, lease: u64) -> Option<i64> {
        let inside = format!("{}:write", self.holder);
        let keys = [self.lock, &self.own_timeouts()].map(ToOwned::to_owned);
        let args = [lease.to_string(), self.holder.to_owned(), inside];
        self.run("rw_read_acquire", &keys, &args).await.0
    }

    /// Ends one read entry. `Some(1)`: the lock is free; `Some(0)`: a hold remains; `None`: it held
    /// nothing.
    pub(crate) async fn ends_read(&self, id: u64) -> Option<i64> {
        let latch = unlock_latch(self.lock, id);
        let keys =
            [self.lock, &channel(self.lock), &self.own_timeouts(), &timeouts(self.lock), &latch]
                .map(ToOwned::to_owned);
        let args =
            ["0", self.holder, "PUBLISH", &UNLOCK_LATCH_MS.to_string()].map(ToOwned::to_owned);
        self.run("rw_read_unlock", &keys, &args).await.0
    }

    pub(crate) async fn renews_read(&self, lease: u64) {
        let keys = [self.lock.to_owned(), timeouts(self.lock)];
        let args = [lease.to_string(), "1".to_owned(), self.holder.to_owned()];
        self.run("rw_read_renew", &keys, &args).await;
    }

    /// Acquires the write side. Returns `None` if it holds it now; else the remaining time of the
    /// hold that excludes it.
    pub(crate) async fn writes(&self, lease: u64) -> Option<i64> {
        let args = [lease.to_string(), format!("{}:write", self.holder)];
        self.run("rw_write_acquire", &[self.lock.to_owned()], &args).await.0
    }

    pub(crate) async fn ends_write(&self, id: u64) -> Option<i64> {
        let latch = unlock_latch(self.lock, id);
        let keys = [self.lock, &channel(self.lock), &latch].map(ToOwned::to_owned);
        let field = format!("{}:write", self.holder);
        let args = ["1", "30000", &field, "PUBLISH", &UNLOCK_LATCH_MS.to_string()];
        self.run("rw_write_unlock", &keys, &args.map(ToOwned::to_owned)).await.0
    }

    fn own_timeouts(&self) -> String {
        format!("{}:{}:rwlock_timeout", timeouts(self.lock), self.holder)
    }

    /// Runs a script of Redisson's; returns its result, and Redis' clock just before.
    pub(crate) async fn run(
        &self,
        script: &str,
        keys: &[String],
        args: &[String],
    ) -> (Option<i64>, u64) {
        let (_, source) = JAVA.iter().find(|(java, _)| *java == script).unwrap();
        let timed = format!(
            "local function java()\n{source}\nend\nlocal t=redis.call('TIME')\n\
             return {{t[1]*1000+math.floor(t[2]/1000),java()}}"
        );
        let count = keys.len().to_string();
        let mut words = vec!["EVAL", &timed, &count];
        words.extend(keys.iter().chain(args).map(String::as_str));
        let answer: Vec<Value> = self.redis.query(&words).await;
        let number = match answer.get(1) {
            Some(Value::Int(number)) => Some(*number),
            _ => None,
        };
        (number, redis::from_redis_value(answer[0].clone()).unwrap())
    }
}
