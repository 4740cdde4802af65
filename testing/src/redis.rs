//! The Redis behind the gateway: the scripts' model, and which objects clients have used.

use std::collections::BTreeSet;
use std::mem;
use std::time::Duration;

use edgelatch_proto::protocol::reply::RespValue;
use edgelatch_proto::protocol::scope::{ObjectKind, Touched, touched};
use edgelatch_proto::protocol::script::{Script, scripts};

use crate::command::CommandResult;
use crate::kind::Kind;
use crate::script_model::subscribers::{Message, Subscribers};
use crate::script_model::{Latches, ScriptModel, Value};

/// A Redis in memory.
#[derive(Debug)]
pub(crate) struct Redis {
    pub(crate) model: ScriptModel,
    /// The objects that were acquired.
    pub(crate) objects: BTreeSet<(String, Kind)>,
    /// The number of owners that are other clients.
    pub(crate) last_owner: u32,
}

impl Redis {
    pub(crate) const fn new() -> Self {
        Self { model: ScriptModel::new(Latches::On), objects: BTreeSet::new(), last_owner: 0 }
    }

    /// Sets the channels that have subscribers.
    pub(crate) fn set_subscribed(&mut self, channels: Vec<String>) {
        self.model.subscribers = Subscribers::Channels(channels);
    }

    /// Takes the messages that the last script published.
    pub(crate) fn take_published(&mut self) -> Vec<Message> {
        mem::take(&mut self.model.published)
    }

    /// Runs a script of this library; a call that no client of it makes is refused.
    pub(crate) fn run(
        &mut self,
        script: &Script,
        keys: &[String],
        args: &[String],
        now: Duration,
    ) -> CommandResult {
        let keys_read: Vec<&str> = keys.iter().map(String::as_str).collect();
        let args_read: Vec<&str> = args.iter().map(String::as_str).collect();
        let touched = touched(script, &keys_read, &args_read);
        // A query of a namespace touches names that its keys do not determine.
        if touched.is_none() && !is_query(script, keys, args) {
            return Err("ERR not a call of this library".into());
        }
        let touched = touched.as_ref();
        // The keys of a fair read-write lock are its own, and none has the bare name.
        if let Some(touched) = touched.filter(|_| !script.name.starts_with("fair_rw_")) {
            self.check_types(touched, now_millis(now))?;
        }
        let not_after = touched.and_then(|touched| touched.not_after);
        let values = self.model.run_script(script.name, keys, args, not_after, micros(now));
        match values.as_slice() {
            // An error of the script itself.
            [RespValue::Text(error)] => return Err(error.clone()),
            [RespValue::Int(1 | 2), ..] => {
                touched.into_iter().for_each(|touched| self.remember(script.name, touched));
            }
            _ => {}
        }
        Ok(values)
    }

    /// Refuses a call about an object of one kind where Redis stores one of another kind.
    fn check_types(&self, touched: &Touched, now_ms: u64) -> Result<(), String> {
        const WRONG_TYPE: &str =
            "WRONGTYPE Operation against a key holding the wrong kind of value";
        for name in touched.names() {
            let value = self.model.value(name, now_ms);
            let fits = match (touched.kind, value) {
                (None, _) | (_, None) => true,
                (Some(ObjectKind::Lock), Some(value)) => matches!(value, Value::Hash(_)),
                (Some(ObjectKind::Guard), Some(value)) => matches!(value, Value::Text(_)),
                (Some(_), Some(Value::Text(text))) => text.parse::<i64>().is_ok(),
                (Some(_), Some(_)) => false,
            };
            if !fits {
                return Err(WRONG_TYPE.into());
            }
        }
        Ok(())
    }

    /// Remembers the objects that a script has acquired.
    fn remember(&mut self, script: &str, touched: &Touched) {
        for kind in Kind::acquired_by(script) {
            for name in touched.names() {
                self.objects.retain(|(other, known)| other != name || known.can_be_beside(kind));
                self.objects.insert((name.to_owned(), kind));
            }
        }
    }
}

/// Whether a call is the query of a namespace, in the form of this library.
fn is_query(script: &Script, keys: &[String], args: &[String]) -> bool {
    let keep = args.get(2).map(|keep| keep.parse::<u64>());
    *script == scripts::FAIR_RW_QUERY && keys.len() == 2 && matches!(keep, Some(Ok(_)))
}

/// The time of Redis' clock in microseconds. At least a millisecond: a token, which follows this
/// clock, is not 0.
pub(crate) fn micros(now: Duration) -> u64 {
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX).max(1000)
}

pub(crate) fn now_millis(now: Duration) -> u64 {
    micros(now) / 1000
}
