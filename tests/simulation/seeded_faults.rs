//! Deliberate faults: a simulation that does not find them would not find real ones.

use edgelatch_proto::protocol::reply::RespValue;

use super::explore::explore;
use super::gateway::Run;
use super::plan::{Kind, Limits, SeededFault};
use test_support::script_model::ScriptModel;

/// The kind of object, and the promises that each fault may break.
const SEEDED_FAULTS: &[(SeededFault, Kind, &[&str])] = &[
    (SeededFault::NoLatch, Kind::Lock, &["I3", "I4", "I6"]),
    (SeededFault::NoBound, Kind::Lock, &["I6"]),
    (SeededFault::SharedEntropy, Kind::Lock, &["I1", "I3", "I4", "I6", "I10"]),
    (SeededFault::FastServer, Kind::Lock, &["I1", "I3"]),
    (SeededFault::StoppedClocks, Kind::Lock, &["I1", "I3"]),
    (SeededFault::BlindGrant, Kind::Lock, &["I3"]),
    (SeededFault::BlindRelease, Kind::Fenced, &["I3", "I4"]),
    (SeededFault::BlindGuard, Kind::Lock, &["I2"]),
    (SeededFault::BlindRenewal, Kind::Lock, &["I3"]),
    (SeededFault::LazyRelease, Kind::Lock, &["I4"]),
    (SeededFault::PlainCounter, Kind::Lock, &["I2"]),
    (SeededFault::EndlessLease, Kind::Lock, &["I4", "I7"]),
    (SeededFault::NoRecord, Kind::Latch, &["I6"]),
    (SeededFault::ForgedEcho, Kind::Spin, &["I3", "I4", "I10"]),
    (SeededFault::MissingTimers, Kind::Lock, &["I8"]),
];
/// The simulation must find each fault within this number of schedules.
const SCHEDULES: u64 = 100_000;

/// The faults that are visible to clients: the checker must find them from the clients' histories
/// alone.
const VISIBLE: &[(SeededFault, Kind)] = &[
    (SeededFault::NoLatch, Kind::Lock),
    (SeededFault::SharedEntropy, Kind::Lock),
    (SeededFault::FastServer, Kind::Lock),
    (SeededFault::StoppedClocks, Kind::Lock),
    (SeededFault::BlindGrant, Kind::Lock),
    (SeededFault::BlindRelease, Kind::Fenced),
    (SeededFault::BlindRenewal, Kind::Lock),
    (SeededFault::LazyRelease, Kind::Lock),
    (SeededFault::PlainCounter, Kind::Lock),
    (SeededFault::NoRecord, Kind::Latch),
    (SeededFault::ForgedEcho, Kind::Spin),
];

/// A deliberate fault, and how it must be found.
pub(crate) struct FaultSearch {
    seeded_fault: SeededFault,
    kind: Kind,
    /// The promises that it may break.
    promises: &'static [&'static str],
    /// Whether only the clients' observations are checked.
    checks_history_only: bool,
}

/// All deliberate faults.
pub(crate) fn all() -> impl Iterator<Item = FaultSearch> {
    let known = SEEDED_FAULTS
        .iter()
        .map(|(seeded_fault, kind, promises)| (seeded_fault, kind, *promises, false));
    let visible = VISIBLE.iter().map(|(seeded_fault, kind)| (seeded_fault, kind, &["I"][..], true));
    known.chain(visible).map(|(seeded_fault, kind, promises, checks_history_only)| FaultSearch {
        seeded_fault: *seeded_fault,
        kind: *kind,
        promises,
        checks_history_only,
    })
}

impl FaultSearch {
    /// The name of the test that searches for it.
    pub(crate) fn title(&self) -> String {
        let prefix =
            if self.checks_history_only { "without_by_histories_alone" } else { "without" };
        format!("{prefix}::{}", self.seeded_fault.name())
    }

    /// Searches for it; returns whether it broke one of its promises.
    pub(crate) fn is_found(&self) -> bool {
        let limits = Limits {
            seeded_fault: Some(self.seeded_fault),
            checks_history_only: self.checks_history_only,
            ..Limits::default()
        };
        let explored = explore(self.kind, limits, 1, SCHEDULES, None);
        println!("{:?}, in {} schedules", explored.failed, explored.played);
        let is_reason = |what: &str| self.promises.iter().any(|promise| what.starts_with(promise));
        explored.failed.is_some_and(|(_, what)| is_reason(&what))
    }
}

impl SeededFault {
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
