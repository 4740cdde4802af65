//! A real Redis and the model of the scripts that execute the same calls. Compares their replies,
//! everything they store, and their messages.

use std::collections::BTreeMap;
use std::mem;

use edgelatch_proto::protocol::reply::{Code, Reply, RespValue};
use edgelatch_proto::protocol::script::ScriptCall;
use redis::RedisError;

use test_support::redis::{Content, Keyspace, Redis, Stored, Watched};
use test_support::script_model::subscribers::Message;
use test_support::script_model::{Entry, Latches, ScriptModel, Value};

/// Times above this are microseconds.
const MICROS: f64 = 1e14;

/// A Redis and a model that execute the same calls.
pub(crate) struct Pair<'a> {
    pub(crate) redis: &'a Redis,
    pub(crate) model: ScriptModel,
    /// The longest time of one call: Redis reads its clock for a script's `TIME` and for its
    /// expiries one after the other.
    slowest: u64,
    /// Redis' clock in milliseconds at its last reading.
    now: u64,
    /// Whether two values of replies are equal; the third argument is the allowed difference of
    /// times.
    pub(crate) says_the_same: fn(&str, &str, u64) -> bool,
}

impl<'a> Pair<'a> {
    pub(crate) async fn new(redis: &'a Redis) -> Self {
        redis.query::<String>(&["FLUSHDB"]).await;
        let now = redis.now_ms().await;
        let mut model = ScriptModel::new(Latches::On);
        model.subscribers = redis.subscribers();
        Self { redis, now, model, slowest: 0, says_the_same: |real, model, _| real == model }
    }

    /// Redis' clock in milliseconds at its last reading.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Runs a call on both, which must reply. `what` describes the call in the message if they
    /// differ.
    pub(crate) async fn call(&mut self, call: &ScriptCall, what: &str) -> Reply {
        self.try_call(call, what).await.unwrap_or_else(|error| panic!("{what}: {error}"))
    }

    /// Runs a call on both, which must reply the same, or fail with errors that have the same first
    /// word.
    pub(crate) async fn try_call(
        &mut self,
        call: &ScriptCall,
        what: &str,
    ) -> Result<Reply, RedisError> {
        let watched = match self.redis.watch(call).await {
            Ok(watched) => watched,
            Err(error) => {
                let now = self.redis.now_ms().await;
                let modelled = self.model.run_at(call, now * 1000);
                let [RespValue::Text(text)] = &*modelled else {
                    panic!("{what}: {error}: {modelled:?}")
                };
                // An error of a command inside a transaction has no code of its own.
                let word = text.split(' ').next().unwrap();
                assert!(error.to_string().contains(word), "{what}: {error}");
                // A script may write before it fails, at a time between the last reading and now.
                let slowest = self.slowest;
                self.slowest = slowest.max(now - self.now);
                self.compare_keys(what).await;
                (self.now, self.slowest) = (now, slowest);
                return Err(error);
            }
        };
        let Watched { began, ended, cells, keys, published } = watched;
        (self.now, self.slowest) = (ended, self.slowest.max(ended - began));
        let reply = Reply::read(&cells, call.request)
            .unwrap_or_else(|| panic!("{what}: no reply: {cells:?}"));
        let modelled = self.model.run_at(call, micros(&reply, keys.get(&call.keys()[0])));
        let allowance = self.allowance() + reply.server_ms.abs_diff(began);
        assert_eq!(cells.len(), modelled.len(), "{what}");
        for (place, (real, model)) in cells.iter().zip(&modelled).enumerate() {
            match (place, real, model) {
                (1, RespValue::Text(real), RespValue::Text(model)) => {
                    let same = (self.says_the_same)(real, model, allowance);
                    assert!(same, "{what}: {real} {model}");
                }
                (2, RespValue::Int(real), RespValue::Int(model)) => {
                    assert!(real.abs_diff(*model) <= allowance, "{what}: {real} {model}");
                }
                _ => assert_eq!(real, model, "{what}: element {place}"),
            }
        }
        assert_eq!(published, self.received(), "{what}: published");
        self.compare(&keys, ended, what);
        Ok(reply)
    }

    /// The model's published messages that have a receiver.
    fn received(&mut self) -> Vec<Message> {
        let mut messages = mem::take(&mut self.model.published);
        messages.retain(|message| {
            self.model.subscribers.has_receiver_for(&message.channel, message.sharded)
        });
        messages
    }

    /// Writes a text or a hash without a script.
    pub(crate) async fn write(&mut self, key: &str, value: Value, ends_at: Option<u64>) {
        self.redis.query::<u64>(&["DEL", key]).await;
        match &value {
            Value::Text(text) => drop(self.redis.query::<String>(&["SET", key, text]).await),
            Value::Hash(fields) => {
                for (field, value) in fields {
                    self.redis.query::<u64>(&["HSET", key, field, value]).await;
                }
            }
            Value::List(elements) => {
                for element in elements {
                    self.redis.query::<u64>(&["RPUSH", key, element]).await;
                }
            }
            Value::Sorted(members) => {
                for (member, score) in members {
                    self.redis.query::<u64>(&["ZADD", key, &score.to_string(), member]).await;
                }
            }
        }
        if let Some(at) = ends_at {
            self.redis.query::<u64>(&["PEXPIREAT", key, &at.to_string()]).await;
        }
        self.model.put(key, value, ends_at);
    }

    /// Removes one key, or its expiry.
    pub(crate) async fn touch(&mut self, of: usize, away: bool) {
        let keys = self.model.dump(self.redis.now_ms().await);
        let Some((key, entry)) = keys.iter().nth(of % keys.len().max(1)) else { return };
        if away {
            self.redis.query::<u64>(&["DEL", key]).await;
            self.model.delete(key);
        } else {
            self.redis.query::<u64>(&["PERSIST", key]).await;
            self.model.put(key, entry.value.clone(), None);
        }
    }

    /// Compares both after an operation other than a call, which started at `before` by Redis'
    /// clock.
    pub(crate) async fn took(&mut self, before: u64, what: &str) {
        let (real, now) = self.redis.look().await;
        (self.now, self.slowest) = (now, self.slowest.max(now - before));
        self.compare(&real, now, what);
    }

    fn allowance(&self) -> u64 {
        self.slowest + 2
    }

    /// Compares everything that is stored.
    pub(crate) async fn compare_keys(&mut self, what: &str) {
        let (real, now) = self.redis.look().await;
        self.compare(&real, now, what);
    }

    fn compare(&mut self, real: &Keyspace, now: u64, what: &str) {
        let model = self.model.dump(now);
        assert!(real.keys().eq(model.keys()), "{what}: {real:?} {model:?}");
        for ((key, stored), entry) in real.iter().zip(model.values()) {
            assert!(self.alike(&stored.value, &entry.value), "{what}: {key}: {stored:?} {entry:?}");
            assert!(self.ends_alike(stored, entry), "{what}: {key}: {stored:?} {entry:?}");
        }
        for ((key, stored), entry) in real.iter().zip(model.into_values()) {
            self.adopt_times(key, stored, entry);
        }
    }

    /// Gives the model the times that Redis has stored, after they were compared. Otherwise the
    /// milliseconds between the two would add up on a busy machine, until a script and its model
    /// are on different sides of a deadline.
    #[expect(clippy::cast_possible_truncation, reason = "scores are whole numbers below 2^53")]
    fn adopt_times(&mut self, key: &str, stored: &Stored, entry: Entry) {
        let expires_at = entry.expires_at.and_then(|_| u64::try_from(stored.ends_at).ok());
        let value = match &stored.value {
            Content::Sorted(real) => Value::Sorted(
                real.iter().map(|(member, score)| (member.clone(), *score as i64)).collect(),
            ),
            Content::Text(_) | Content::Hash(_) | Content::List(_) => entry.value,
        };
        self.model.put(key, value, expires_at);
    }

    #[expect(clippy::cast_precision_loss, reason = "scores are below 2^53")]
    fn alike(&self, real: &Content, model: &Value) -> bool {
        match (real, model) {
            (Content::Text(real), Value::Text(model)) => real == model,
            (Content::Hash(real), Value::Hash(model)) => real == model,
            (Content::List(real), Value::List(model)) => real.iter().eq(model),
            (Content::Sorted(real), Value::Sorted(model)) => {
                let model: BTreeMap<&String, f64> =
                    model.iter().map(|(member, score)| (member, *score as f64)).collect();
                real.keys().eq(model.keys().copied())
                    && real.values().zip(model.values()).all(|(real, model)| {
                        let unit = if *real > MICROS { 1000.0 } else { 1.0 };
                        (real - model).abs() <= self.allowance() as f64 * unit
                    })
            }
            _ => false,
        }
    }

    fn ends_alike(&self, stored: &Stored, entry: &Entry) -> bool {
        match (u64::try_from(stored.ends_at).ok(), entry.expires_at) {
            (None, None) => true,
            (Some(real), Some(model)) => real.abs_diff(model) <= self.allowance(),
            _ => false,
        }
    }
}

/// Redis' clock in microseconds, as far as the reply and the latch show it: a fresh token is that
/// clock, and so are a fresh ticket in the latch of a waiter and the newest acceptable token.
fn micros(reply: &Reply, latch: Option<&Stored>) -> u64 {
    let ahead = if reply.code == Code::TokenAhead { 60_000_000 } else { 0 };
    let token = reply.value.split(',').next().and_then(|token| token.parse::<u64>().ok());
    let token = token.and_then(|token| token.checked_sub(ahead));
    let ticket = match latch.map(|stored| &stored.value) {
        Some(Content::Text(text)) => text.rsplit_once(',').and_then(|(_, text)| text.parse().ok()),
        _ => None,
    };
    let is_now = |time: &u64| time / 1000 == reply.server_ms;
    token.filter(is_now).or_else(|| ticket.filter(is_now)).unwrap_or(reply.server_ms * 1000)
}
