//! What an observer has seen: of one run, as a part of its state; and of all runs together.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use edgelatch::protocol::reply::Cell;
use edgelatch::protocol::script::ScriptCall;

use super::client::{Client, Told, owner_prefix};
use super::world::verdict;

/// What has happened in one run so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Seen {
    /// Owner field and token of each grant, in order.
    pub(crate) grants: Vec<(Arc<str>, u64)>,
    /// The owner fields whose end was executed: by a release, an abandon, or a last try.
    pub(crate) ended: BTreeSet<Arc<str>>,
}

/// What must happen in some run of a model, or the model shows nothing.
#[derive(Debug, Default)]
pub(crate) struct Sights {
    pub(crate) both_granted: AtomicBool,
    pub(crate) busy: AtomicBool,
    pub(crate) abandoned: AtomicBool,
    pub(crate) renewed: AtomicBool,
    pub(crate) lost: AtomicBool,
    pub(crate) unknown: AtomicBool,
    pub(crate) refused_as_late: AtomicBool,
    pub(crate) refused_as_gone: AtomicBool,
    pub(crate) refused_as_lost: AtomicBool,
}

impl Seen {
    /// A script was executed and answered.
    pub(crate) fn executed(&mut self, script: &ScriptCall, cells: &[Cell]) {
        let owner: Arc<str> = script.args()[4].as_str().into();
        let (code, value) = verdict(cells);
        match (script.script().name, code) {
            ("lock_acquire", 1) => self.grants.push((owner, value.parse().unwrap())),
            // Without a bound a later attempt of the same last try may outlive the tombstone: then it is the abandon that ends it.
            ("lock_acquire", 0) if script.args()[6] == "1" && !script.args()[1].is_empty() => {
                self.ended.insert(owner);
            }
            ("lock_release", _) => {
                self.ended.insert(owner);
            }
            _ => {}
        }
    }

    fn has_granted(&self, number: u8) -> bool {
        let prefix = owner_prefix(number);
        self.grants.iter().any(|(owner, _)| owner.starts_with(&prefix))
    }
}

impl Sights {
    /// A script was executed and answered; `seen` has it already.
    pub(crate) fn executed(&self, script: &ScriptCall, cells: &[Cell], seen: &Seen) {
        let (code, _) = verdict(cells);
        let owner = script.args()[4].as_str();
        match (script.script().name, code) {
            ("lock_acquire", 1) if seen.has_granted(0) && seen.has_granted(1) => {
                note(&self.both_granted)
            }
            ("lock_acquire", -1) => note(&self.refused_as_late),
            ("lock_acquire", -2) => note(&self.refused_as_gone),
            ("lock_acquire", -3) => note(&self.refused_as_lost),
            ("lock_release", 0) if seen.grants.iter().all(|(granted, _)| **granted != *owner) => {
                note(&self.abandoned)
            }
            _ => {}
        }
    }

    /// A client did something.
    pub(crate) fn client(&self, client: &Client) {
        if client.was_renewed() {
            note(&self.renewed);
        }
        if client.has_lost() {
            note(&self.lost);
        }
        match client.told() {
            Some(Told::Busy) => note(&self.busy),
            Some(Told::NothingAfter(_)) => note(&self.unknown),
            Some(Told::Nothing | Told::Refused) | None => {}
        }
    }
}

fn note(sight: &AtomicBool) {
    sight.store(true, Ordering::Relaxed);
}
