//! Deliberate faults: a simulation that does not find them would not find real ones.

use edgelatch_proto::protocol::reply::RespValue;

use super::explore::explore;
use super::gateway::Run;
use super::plan::{Kind, Limits, Tooth};
use test_support::script_model::ScriptModel;

/// The kind of object, and the promises that each fault may break.
const TEETH: &[(Tooth, Kind, &[&str])] = &[
    (Tooth::NoLatch, Kind::Lock, &["I3", "I4", "I6"]),
    (Tooth::NoBound, Kind::Lock, &["I6"]),
    (Tooth::SharedEntropy, Kind::Lock, &["I1", "I3", "I4", "I6", "I10"]),
    (Tooth::FastServer, Kind::Lock, &["I1", "I3"]),
    (Tooth::StoppedClocks, Kind::Lock, &["I1", "I3"]),
    (Tooth::BlindGrant, Kind::Lock, &["I3"]),
    (Tooth::BlindRelease, Kind::Fenced, &["I3", "I4"]),
    (Tooth::BlindGuard, Kind::Lock, &["I2"]),
    (Tooth::BlindRenewal, Kind::Lock, &["I3"]),
    (Tooth::LazyRelease, Kind::Lock, &["I4"]),
    (Tooth::PlainCounter, Kind::Lock, &["I2"]),
    (Tooth::EndlessLease, Kind::Lock, &["I4", "I7"]),
    (Tooth::NoRecord, Kind::Latch, &["I6"]),
    (Tooth::ForgedEcho, Kind::Spin, &["I3", "I4", "I10"]),
    (Tooth::DeafTimers, Kind::Lock, &["I8"]),
];
/// The simulation must find each fault within this number of schedules.
const SCHEDULES: u64 = 100_000;

/// The faults that are visible to clients: the judge must find them from the clients' histories
/// alone.
const SEEN: &[(Tooth, Kind)] = &[
    (Tooth::NoLatch, Kind::Lock),
    (Tooth::SharedEntropy, Kind::Lock),
    (Tooth::FastServer, Kind::Lock),
    (Tooth::StoppedClocks, Kind::Lock),
    (Tooth::BlindGrant, Kind::Lock),
    (Tooth::BlindRelease, Kind::Fenced),
    (Tooth::BlindRenewal, Kind::Lock),
    (Tooth::LazyRelease, Kind::Lock),
    (Tooth::PlainCounter, Kind::Lock),
    (Tooth::NoRecord, Kind::Latch),
    (Tooth::ForgedEcho, Kind::Spin),
];

/// A deliberate fault, and how it must be found.
pub(crate) struct Bug {
    tooth: Tooth,
    kind: Kind,
    /// The promises that it may break.
    promises: &'static [&'static str],
    /// Whether only the clients' observations are judged.
    is_blind: bool,
}

/// All deliberate faults.
pub(crate) fn all() -> impl Iterator<Item = Bug> {
    let known = TEETH.iter().map(|(tooth, kind, promises)| (tooth, kind, *promises, false));
    let told = SEEN.iter().map(|(tooth, kind)| (tooth, kind, &["I"][..], true));
    known.chain(told).map(|(tooth, kind, promises, is_blind)| Bug {
        tooth: *tooth,
        kind: *kind,
        promises,
        is_blind,
    })
}

impl Bug {
    /// The name of the test that searches for it.
    pub(crate) fn title(&self) -> String {
        let judge = if self.is_blind { "without_by_histories_alone" } else { "without" };
        format!("{judge}::{}", self.tooth.name())
    }

    /// Searches for it; returns whether it broke one of its promises.
    pub(crate) fn bites(&self) -> bool {
        let limits =
            Limits { tooth: Some(self.tooth), is_blind: self.is_blind, ..Limits::default() };
        let explored = explore(self.kind, limits, 1, SCHEDULES);
        println!("{:?}, in {} schedules", explored.failed, explored.played);
        let is_reason = |what: &str| self.promises.iter().any(|promise| what.starts_with(promise));
        explored.failed.is_some_and(|(_, what)| is_reason(&what))
    }
}

impl Tooth {
    /// The rule that the model leaves out.
    pub(crate) fn rule(self) -> Option<&'static str> {
        (self == Self::PlainCounter).then_some("tokens follow the clock")
    }

    /// Changes the data before a script runs, or returns the reply in place of the script's.
    pub(crate) fn before(
        self,
        model: &mut ScriptModel,
        run: &Run<'_>,
        now: u64,
    ) -> Option<Vec<RespValue>> {
        match (self, run.script.script().name) {
            (Self::BlindGrant, "lock_acquire") | (Self::BlindRelease, "lock_release") => {
                model.delete(&run.keys[1]);
                None
            }
            (Self::BlindGuard, "guard_write") => {
                // Copies of the newest write are still recognized.
                let fence = model.text(&run.keys[0]).unwrap_or_default();
                if !fence.starts_with(&run.args[4]) {
                    model.delete(&run.keys[0]);
                }
                None
            }
            (Self::LazyRelease, "lock_release") => Some(answer(1, "0", now, run)),
            (Self::BlindRenewal, "lock_renew") => Some(answer(1, &run.args[6], now, run)),
            _ => None,
        }
    }

    /// Changes the data after a script that replied with this code.
    pub(crate) fn after(self, model: &mut ScriptModel, run: &Run<'_>, code: &RespValue, now: u64) {
        match (self, run.script.script().name) {
            (Self::EndlessLease, "lock_acquire") if *code == RespValue::Int(1) => {
                let lock = &run.keys[1];
                if let Some(entry) = model.dump(now).remove(lock) {
                    model.put(lock, entry.value, None);
                }
            }
            (Self::NoRecord, "latch_change") => drop(model.delete(&run.keys[0])),
            _ => {}
        }
    }
}

fn answer(code: i64, value: &str, now: u64, run: &Run<'_>) -> Vec<RespValue> {
    let echo = run.args[0].clone();
    [
        RespValue::Int(code),
        RespValue::Text(value.into()),
        RespValue::Int(0),
        RespValue::Int(now as i64),
        RespValue::Text(echo),
    ]
    .into()
}
