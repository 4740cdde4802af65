//! Counts the results of calls, so that a run fails if an expected result never occurred.

use std::collections::BTreeMap;
use std::fmt;

use edgelatch_proto::protocol::scope::Right;
use edgelatch_proto::protocol::script::scripts;
use serde_json::Value;

use super::messages::Purpose;

/// The numbers of results of one script's calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallCounts {
    /// The script ran.
    pub(crate) accepted: u64,
    /// The script reported success.
    pub(crate) done: u64,
    /// The gateway refused the call.
    pub(crate) refused: u64,
}

/// The results of the calls of a run.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) calls: u64,
    pub(crate) requests: u64,
    scripts: BTreeMap<&'static str, CallCounts>,
    /// For each right, the number of allowed calls that need it, and of calls refused for lack of
    /// it.
    rights: BTreeMap<Right, [u64; 2]>,
    /// The number of refusals by reason.
    reasons: BTreeMap<String, u64>,
    /// The number of messages by the purpose of their channel.
    messages: BTreeMap<Purpose, u64>,
    /// The number of acquisitions that were refused because of another holder.
    busy: u64,
}

impl Tally {
    /// Counts the answer to a call of this script.
    pub(crate) fn note(&mut self, script: &'static str, right: Option<Right>, answer: &Value) {
        self.calls += 1;
        let counts = self.scripts.entry(script).or_default();
        let error = answer["error"].as_str();
        let is_refused =
            error.is_some_and(|error| error.starts_with("NOPERM") && !error.contains("user"));
        self.busy += u64::from(script.ends_with("_acquire") && answer["result"][0] == 0);
        if answer.get("result").is_some() {
            counts.accepted += 1;
            counts.done += u64::from(answer["result"][0] == 1);
            right.into_iter().for_each(|right| self.rights.entry(right).or_default()[0] += 1);
        }
        if let Some(error) = error.filter(|_| is_refused) {
            counts.refused += 1;
            *self.reasons.entry(error.to_owned()).or_default() += 1;
            let lacks = right
                .filter(|right| error.contains(&format!("lacks the right `{}`", right.name())));
            lacks.into_iter().for_each(|right| self.rights.entry(right).or_default()[1] += 1);
        }
    }

    /// Counts a message on a channel with this purpose.
    pub(crate) fn count_message(&mut self, purpose: Purpose) {
        *self.messages.entry(purpose).or_default() += 1;
    }

    /// Returns a purpose of channels on which no message was published; `None` if there is none.
    pub(crate) fn silent(&self) -> Option<Purpose> {
        Purpose::ALL.into_iter().find(|purpose| !self.messages.contains_key(purpose))
    }

    /// Returns the number of acquisitions that were refused because of another holder.
    pub(crate) fn busy(&self) -> u64 {
        self.busy
    }

    /// Returns the scripts that have run less than `min` times, or have never succeeded or been
    /// refused.
    pub(crate) fn rare(&self, min: u64) -> Vec<&'static str> {
        let is_rare = |name: &&str| {
            let CallCounts { accepted, done, refused } =
                self.scripts.get(name).cloned().unwrap_or_default();
            // These two are always refused.
            let is_allowed = !["eval", "fair_rw_query"].contains(name);
            refused == 0 || is_allowed && (accepted < min || done == 0)
        };
        scripts::ALL.into_iter().map(|script| script.name).filter(is_rare).collect()
    }

    /// Returns a result that a run of `calls` calls still lacks; `None` if it lacks none.
    pub(crate) fn missing(&self, calls: u64) -> Option<String> {
        let rare = self.rare(calls / 200);
        let never = Right::ALL.into_iter().find(|right| {
            self.rights.get(right).is_none_or(|[passed, refused]| *passed == 0 || *refused == 0)
        });
        let reason = REASONS
            .into_iter()
            .find(|reason| !self.reasons.keys().any(|seen| seen.contains(reason)));
        let is_short = self.calls < calls;
        let is_missing = is_short || !rare.is_empty() || never.is_some() || reason.is_some();
        is_missing.then(|| format!("{rare:?}, {never:?}, {reason:?}: {self}"))
    }
}

/// Parts of the gateway's reasons for refusals. Each must occur.
const REASONS: [&str; 10] = [
    "too far into the future",
    "only such calls as edgelatch makes",
    "nothing but edgelatch's own scripts",
    "`lasting`",
    "lease is longer",
    "does not begin with",
    "`hold`",
    "default settings",
    "65536 bytes",
    "`peerSkewMs`",
];

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} calls in {} requests", self.calls, self.requests)?;
        self.scripts.iter().try_for_each(|(script, counts)| {
            writeln!(
                f,
                "{script}: ran {}, done {}, refused {}",
                counts.accepted, counts.done, counts.refused
            )
        })?;
        self.rights.iter().try_for_each(|(right, [passed, refused])| {
            writeln!(f, "right {}: passed {passed}, refused {refused}", right.name())
        })?;
        writeln!(f, "{} acquisitions were busy; messages: {:?}", self.busy, self.messages)?;
        self.reasons.iter().try_for_each(|(reason, times)| writeln!(f, "{times} times: {reason}"))
    }
}
