//! Checks mutual exclusion inside of Redis: holders append entries to a list there, by scripts that
//! do so only while their hold exists.
//!
//! The list has the order in which Redis itself ran the scripts, which depends on no clock. A crash
//! or a failover loses entries only together with their holds, so the remaining entries must be
//! consistent: between two entries of one holder there is none of another holder that it excludes,
//! and tokens rise.

use std::time::Duration;

use edgelatch::Error;
use edgelatch::Lease;
use edgelatch::client::UserScript;
use edgelatch::error::{EvalError, FailureKind, LossReason, RequestError};
use edgelatch::host::Host;
use edgelatch::transport::Transport;
use serde_json::{Value, json};

use super::gateway_process::TOKEN;
use super::object::{Object, PERMITS};
use test_support::history::{
    AcquireResult, Acquisition, Assumptions, Claim, History, Hold, Mode, Observation, Time,
};
use test_support::servers::Server;

/// Appends the number of an acquisition.
const WRITE: &str = "return redis.call('RPUSH', KEYS[1], ARGV[1])";

/// Appends the number of an acquisition if its permit is held. The library has no such script,
/// since a permit does not exclude other holders.
const WRITE_WITH_PERMIT: &str = "
    local id = ARGV[2]:gsub('..', function(digits) return string.char(tonumber(digits, 16)) end)
    if not redis.call('ZSCORE', KEYS[2], id) then return 0 end
    return redis.call('RPUSH', KEYS[1], ARGV[1])";

/// The list of entries of the holders of one object.
#[derive(Clone, Debug)]
pub(crate) struct HolderLog {
    object: Object,
    list: String,
    permits: String,
    url: String,
    http: reqwest::Client,
}

impl HolderLog {
    pub(crate) fn new(object: Object, tag: &str, url: String) -> Self {
        let name = object.name(tag);
        let (list, permits) = (format!("{{{name}}}:proofs"), format!("{{{name}}}:timeout"));
        Self { object, list, permits, url, http: reqwest::Client::new() }
    }

    /// Appends an entry for an acquisition, if it still holds the object.
    pub(crate) async fn add<T: Transport, H: Host>(
        &self,
        acquisition: usize,
        lease: &Lease<T, H>,
    ) -> Result<(), EvalError> {
        if self.object == Object::Permits {
            return self.add_with_permit(acquisition, lease).await;
        }
        let script = UserScript::new(WRITE, vec![self.list.clone()], vec![acquisition.to_string()]);
        let result = lease.eval(&script.unwrap().repeatable()).await;
        result.map(drop).map_err(Error::into_kind)
    }

    async fn add_with_permit<T: Transport, H: Host>(
        &self,
        acquisition: usize,
        lease: &Lease<T, H>,
    ) -> Result<(), EvalError> {
        if lease.remaining().is_zero() {
            return Err(RequestError::Lost(LossReason::Expired).into());
        }
        let (acquisition, id) = (acquisition.to_string(), lease.permit_ids()[0].to_text());
        let command =
            json!(["EVAL", WRITE_WITH_PERMIT, 2, self.list, self.permits, acquisition, id]);
        let request = self.http.post(&self.url).timeout(lease.remaining()).bearer_auth(TOKEN);
        let unanswered = || RequestError::Unreachable(FailureKind::Broken);
        let answer = request.body(command.to_string()).send().await.map_err(|_| unanswered())?;
        let text = answer.text().await.map_err(|_| unanswered())?;
        let answer: Value = serde_json::from_str(&text).map_err(|_| unanswered())?;
        match (answer["result"].as_u64(), answer["error"].as_str()) {
            (Some(0), _) => Err(RequestError::Lost(LossReason::Gone).into()),
            (Some(_), _) => Ok(()),
            (_, Some(error)) if is_full(error) => Err(EvalError::ScriptFailed(error.into())),
            _ => Err(unanswered().into()),
        }
    }

    /// Checks that the entries are consistent with the history; returns their number.
    pub(crate) fn check(&self, redis: &Server, seen: &History) -> Result<usize, String> {
        let list: Vec<usize> = redis.query(&["LRANGE", &self.list, "0", "-1"]).unwrap();
        check(&list, seen).map_err(|what| format!("{what}\n{} is {list:?}", self.list))?;
        Ok(list.len())
    }
}

/// Checks the entries as a history whose clock counts them.
fn check(list: &[usize], seen: &History) -> Result<(), String> {
    let permits = seen.assumptions.permits.map(|_| (PERMITS, 0));
    let assumptions = Assumptions { permits, ..Assumptions::default() };
    let mut inside = History { assumptions, ..History::default() };
    let mut numbers: Vec<usize> = Vec::new();
    for (place, number) in (1..).zip(list) {
        let now = 2 * place;
        let known = numbers.iter().position(|other| other == number);
        let acquisition = known.unwrap_or(numbers.len());
        if known.is_none() {
            inside.acquisitions.push(granted(&seen.acquisitions[*number], now)?);
            numbers.push(*number);
        }
        // One unit later, so that each entry covers some time.
        inside
            .hold(acquisition)
            .unwrap()
            .observations
            .push(Observation { at: now, until: now + 1 });
    }
    let told = |(line, number): (String, &usize)| format!("{number} of all, {line}");
    let lines = || inside.lines().zip(&numbers).map(told).collect::<Vec<_>>().join("\n");
    inside.check().map_err(|what| format!("{what}, by its entries in Redis:\n{}", lines()))
}

/// Whether Redis refused a write because its memory is full.
pub(crate) fn is_full(error: &str) -> bool {
    error.starts_with("OOM ")
}

/// Returns a copy of an acquisition whose first entry is at `now`.
fn granted(acquisition: &Acquisition, now: Time) -> Result<Acquisition, String> {
    let AcquireResult::Held(Hold { tokens, .. }) = &acquisition.result else {
        return Err(format!("I10: Redis has an entry of {acquisition:?}"));
    };
    let hold = Hold { tokens: tokens.clone(), ..Hold::default() };
    // The list does not show when before `now` it was granted.
    Ok(Acquisition {
        invoked: 0,
        completed: now,
        result: AcquireResult::Held(hold),
        ..acquisition.clone()
    })
}

/// Returns a history with these grants, each with its token.
fn seen(assumptions: Assumptions, grants: &[(Mode, u64)]) -> History {
    let mut seen = History { assumptions, ..History::default() };
    for (share, token) in grants {
        let acquisition =
            seen.record_call(0, &[Claim { name: 0, mode: *share }], Duration::from_secs(1));
        let hold = Hold { tokens: vec![Some(*token)], ..Hold::default() };
        seen.record_result(1, acquisition, AcquireResult::Held(hold));
    }
    seen
}

#[test]
fn entries_of_one_between_those_of_another_are_refused_unless_both_read() {
    for share in [Mode::Exclusive, Mode::Shared] {
        let seen = seen(Assumptions::default(), &[(share, 1), (share, 1)]);
        assert!(check(&[0, 0, 1, 1], &seen).is_ok() || share == Mode::Exclusive);
        assert_eq!(check(&[0, 1, 0], &seen).is_ok(), share == Mode::Shared);
    }
    let seen = seen(Assumptions::default(), &[(Mode::Exclusive, 1), (Mode::Shared, 2)]);
    assert_eq!(check(&[0, 0, 1], &seen), Ok(()));
    assert!(check(&[0, 1, 0], &seen).unwrap_err().starts_with("I1 "));
}

#[test]
fn entries_with_tokens_that_fall_are_refused() {
    let seen = seen(Assumptions::default(), &[(Mode::Exclusive, 7), (Mode::Exclusive, 8)]);
    assert_eq!(check(&[0, 1], &seen), Ok(()));
    assert!(check(&[1, 0], &seen).is_err());
}

#[test]
fn entries_of_more_than_there_are_permits_are_refused() {
    let assumptions = Object::Permits.assumptions();
    let seen =
        seen(assumptions, &[(Mode::Permits(1), 1), (Mode::Permits(1), 2), (Mode::Permits(1), 3)]);
    assert_eq!(check(&[0, 1, 0, 1, 2, 2], &seen), Ok(()));
    assert!(check(&[0, 1, 2, 0, 1], &seen).unwrap_err().starts_with("I1 "));
}

#[test]
fn an_entry_of_a_client_without_a_grant_is_rejected() {
    let mut seen = seen(Assumptions::default(), &[(Mode::Exclusive, 1)]);
    seen.acquisitions[0].result = AcquireResult::Failed;
    assert!(check(&[0], &seen).unwrap_err().starts_with("I10"));
}
