//! Shared by the tests of groups: sets of values, and Redisson's scripts.

use std::collections::BTreeMap;
use std::time::Duration;

use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{GroupCalls, Target};
use edgelatch_proto::protocol::script::Publish;
use edgelatch_proto::timing::PeerSkew;
use redis::Value;

use test_support::calls::Calls;
use test_support::redis::{Content, Redis};

/// Redisson's scripts, re-implemented.
pub(crate) const JAVA: [(&str, &str); 6] = [
    ("group_acquire", include_str!("../java/group_acquire.lua")),
    ("group_renew", include_str!("../java/group_renew.lua")),
    ("group_unlock", include_str!("../java/group_unlock.lua")),
    ("group_force_unlock", include_str!("../java/group_force_unlock.lua")),
    ("group_is_locked", include_str!("../java/group_is_locked.lua")),
    ("group_is_held", include_str!("../java/group_is_held.lua")),
];

/// The group of all tests that name none.
pub(crate) const GROUP: &str = "students";
/// The largest difference of a Java clock, in milliseconds.
pub(crate) const PAD: u64 = 1_000;

/// Some values of the group.
pub(crate) fn values(values: &[&str]) -> Calls {
    values_of(GROUP, values, PAD, Publish::Plain)
}

pub(crate) fn values_of(group: &str, values: &[&str], pad: u64, publish: Publish) -> Calls {
    let (group, pad) = (LockName::parse(group).unwrap(), Duration::from_millis(pad));
    let pad = PeerSkew::new(pad).unwrap();
    Calls(Target::Group(GroupCalls::new(group, values, pad, publish).unwrap()))
}

/// The field of one value.
pub(crate) fn field(value: &str) -> String {
    let call = values(&[value]).inspect(test_support::calls::request(1), None);
    call.args()[6].clone()
}

/// The group's hash, empty when there is none.
pub(crate) async fn hash(redis: &Redis) -> BTreeMap<String, String> {
    match redis.dump().await.remove(GROUP).map(|stored| stored.value) {
        Some(Content::Hash(fields)) => fields,
        _ => BTreeMap::new(),
    }
}

/// A Java holder on a machine of its own.
#[derive(Clone, Copy)]
pub(crate) struct Java<'a> {
    pub(crate) redis: &'a Redis,
    pub(crate) group: &'a str,
    pub(crate) holder: &'a str,
    /// How far its clock is ahead of Redis', in milliseconds.
    pub(crate) ahead: i64,
}

/// The result of a script of Redisson's, and both clocks when it ran.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said {
    pub(crate) number: Option<i64>,
    pub(crate) server: u64,
    pub(crate) clock: u64,
}

impl<'a> Java<'a> {
    /// A holder whose clock shows Redis' time.
    pub(crate) const fn new(redis: &'a Redis, holder: &'a str) -> Self {
        Self { redis, group: GROUP, holder, ahead: 0 }
    }

    /// Acquires values. Returns `None` if it holds them now; else the remaining time of the hold
    /// that excludes it.
    pub(crate) async fn takes(&self, values: &[&str], lease: u64) -> Option<i64> {
        self.acquires(values, lease).await.number
    }

    pub(crate) async fn acquires(&self, values: &[&str], lease: u64) -> Said {
        let args = [lease.to_string(), "$clock".into(), self.holder.into()];
        self.run("group_acquire", &[], &args, values).await
    }

    pub(crate) async fn renews(&self, values: &[&str], lease: u64) -> Said {
        let args = [lease.to_string(), "$clock".into(), self.holder.into()];
        self.run("group_renew", &[], &args, values).await
    }

    pub(crate) async fn unlocks(&self, values: &[&str], id: u64) -> Said {
        let keys = [self.channel(), format!("redisson_unlock_latch:{}:{id:032x}", self.tag())];
        let args = [self.holder, "0", "60000", "PUBLISH", "60000", "$clock"].map(ToOwned::to_owned);
        self.run("group_unlock", &keys, &args, values).await
    }

    pub(crate) async fn frees(&self, values: &[&str]) -> Said {
        let args = ["0", "PUBLISH"].map(ToOwned::to_owned);
        self.run("group_force_unlock", &[self.channel()], &args, values).await
    }

    pub(crate) async fn sees_locked(&self, values: &[&str]) -> bool {
        self.run("group_is_locked", &[], &["$clock".into()], values).await.number == Some(1)
    }

    fn channel(&self) -> String {
        format!("redisson_lock__channel:{}", self.tag())
    }

    fn tag(&self) -> String {
        if self.group.contains('{') { self.group.into() } else { format!("{{{}}}", self.group) }
    }

    /// `$clock` among the arguments is the time of the holder's clock, in the millisecond in which
    /// the script runs.
    async fn run(&self, script: &str, keys: &[String], args: &[String], values: &[&str]) -> Said {
        let (_, source) = JAVA.iter().find(|(java, _)| *java == script).unwrap();
        let timed = format!(
            "local function java()\n{source}\nend\nlocal t=redis.call('TIME')\n\
             local now=t[1]*1000+math.floor(t[2]/1000)\n\
             for i,v in ipairs(ARGV) do if v=='$clock' then ARGV[i]=now+{} end end\n\
             return {{now,java()}}",
            self.ahead
        );
        let count = (keys.len() + 1).to_string();
        let fields: Vec<String> = values.iter().map(|value| field(value)).collect();
        let mut words = vec!["EVAL", &timed, &count, self.group];
        words.extend(keys.iter().chain(args).chain(&fields).map(String::as_str));
        let answer: Vec<Value> = self.redis.query(&words).await;
        let number = match answer.get(1) {
            Some(Value::Int(number)) => Some(*number),
            _ => None,
        };
        let server: u64 = redis::from_redis_value(answer[0].clone()).unwrap();
        Said { number, server, clock: server.saturating_add_signed(self.ahead) }
    }
}
