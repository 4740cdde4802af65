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
use edgelatch::error::{EvalError, FailureKind, LossReason, RequestError};
use edgelatch::host::Host;
use edgelatch::protocol::calls::OwnScript;
use edgelatch::transport::Transport;
use serde_json::{Value, json};

use super::door::TOKEN;
use super::object::{Object, PERMITS};
use test_support::history::{Claim, Ground, History, Hold, Look, Share, Take, Time, Told};
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
pub(crate) struct Proofs {
    object: Object,
    list: String,
    permits: String,
    url: String,
    http: reqwest::Client,
}

impl Proofs {
    pub(crate) fn new(object: Object, tag: &str, url: String) -> Self {
        let name = object.name(tag);
        let (list, permits) = (format!("{{{name}}}:proofs"), format!("{{{name}}}:timeout"));
        Self { object, list, permits, url, http: reqwest::Client::new() }
    }

    /// Appends an entry for an acquisition, if it still holds the object.
    pub(crate) async fn add<T: Transport, H: Host>(
        &self,
        take: usize,
        lease: &Lease<T, H>,
    ) -> Result<(), EvalError> {
        if self.object == Object::Permits {
            return self.add_with_permit(take, lease).await;
        }
        let script = OwnScript::new(WRITE, vec![self.list.clone()], vec![take.to_string()]);
        let result = lease.eval(&script.unwrap().repeatable()).await;
        result.map(drop).map_err(Error::into_kind)
    }

    async fn add_with_permit<T: Transport, H: Host>(
        &self,
        take: usize,
        lease: &Lease<T, H>,
    ) -> Result<(), EvalError> {
        if lease.remaining().is_zero() {
            return Err(RequestError::Lost(LossReason::Expired).into());
        }
        let (take, id) = (take.to_string(), lease.permit_ids()[0].to_text());
        let command = json!(["EVAL", WRITE_WITH_PERMIT, 2, self.list, self.permits, take, id]);
        let request = self.http.post(&self.url).timeout(lease.remaining()).bearer_auth(TOKEN);
        let unheard = || RequestError::Unreachable(FailureKind::Broken);
        let answer = request.body(command.to_string()).send().await.map_err(|_| unheard())?;
        let text = answer.text().await.map_err(|_| unheard())?;
        let answer: Value = serde_json::from_str(&text).map_err(|_| unheard())?;
        match (answer["result"].as_u64(), answer["error"].as_str()) {
            (Some(0), _) => Err(RequestError::Lost(LossReason::Gone).into()),
            (Some(_), _) => Ok(()),
            (_, Some(error)) if is_full(error) => Err(EvalError::ScriptFailed(error.into())),
            _ => Err(unheard().into()),
        }
    }

    /// Checks that the entries are consistent with the history; returns their number.
    pub(crate) fn judge(&self, redis: &Server, seen: &History) -> Result<usize, String> {
        let list: Vec<usize> = redis.ask(&["LRANGE", &self.list, "0", "-1"]).unwrap();
        judge(&list, seen).map_err(|what| format!("{what}\n{} is {list:?}", self.list))?;
        Ok(list.len())
    }
}

/// Checks the entries as a history whose clock counts them.
fn judge(list: &[usize], seen: &History) -> Result<(), String> {
    let permits = seen.ground.permits.map(|_| (PERMITS, 0));
    let ground = Ground { permits, ..Ground::default() };
    let mut inside = History { ground, ..History::default() };
    let mut numbers: Vec<usize> = Vec::new();
    for (place, number) in (1..).zip(list) {
        let now = 2 * place;
        let known = numbers.iter().position(|other| other == number);
        let take = known.unwrap_or(numbers.len());
        if known.is_none() {
            inside.takes.push(granted(&seen.takes[*number], now)?);
            numbers.push(*number);
        }
        // One unit later, so that each entry covers some time.
        inside.hold(take).unwrap().looks.push(Look { at: now, until: now + 1 });
    }
    let told = |(line, number): (String, &usize)| format!("{number} of all, {line}");
    let lines = || inside.lines().zip(&numbers).map(told).collect::<Vec<_>>().join("\n");
    inside.judge().map_err(|what| format!("{what}, by its entries in Redis:\n{}", lines()))
}

/// Whether Redis refused a write because its memory is full.
pub(crate) fn is_full(error: &str) -> bool {
    error.starts_with("OOM ")
}

/// Returns a copy of an acquisition whose first entry is at `now`.
fn granted(take: &Take, now: Time) -> Result<Take, String> {
    let Told::Held(Hold { tokens, .. }) = &take.told else {
        return Err(format!("I10: Redis has an entry of {take:?}"));
    };
    let hold = Hold { tokens: tokens.clone(), ..Hold::default() };
    // The list does not show when before `now` it was granted.
    Ok(Take { invoked: 0, completed: now, told: Told::Held(hold), ..take.clone() })
}

/// Returns a history with these grants, each with its token.
fn seen(ground: Ground, grants: &[(Share, u64)]) -> History {
    let mut seen = History { ground, ..History::default() };
    for (share, token) in grants {
        let take = seen.invokes(0, &[Claim { name: 0, share: *share }], Duration::from_secs(1));
        let hold = Hold { tokens: vec![Some(*token)], ..Hold::default() };
        seen.is_told(1, take, Told::Held(hold));
    }
    seen
}

#[test]
fn entries_of_one_between_those_of_another_are_refused_unless_both_read() {
    for share in [Share::Alone, Share::Beside] {
        let seen = seen(Ground::default(), &[(share, 1), (share, 1)]);
        assert!(judge(&[0, 0, 1, 1], &seen).is_ok() || share == Share::Alone);
        assert_eq!(judge(&[0, 1, 0], &seen).is_ok(), share == Share::Beside);
    }
    let seen = seen(Ground::default(), &[(Share::Alone, 1), (Share::Beside, 2)]);
    assert_eq!(judge(&[0, 0, 1], &seen), Ok(()));
    assert!(judge(&[0, 1, 0], &seen).unwrap_err().starts_with("I1 "));
}

#[test]
fn entries_with_tokens_that_fall_are_refused() {
    let seen = seen(Ground::default(), &[(Share::Alone, 7), (Share::Alone, 8)]);
    assert_eq!(judge(&[0, 1], &seen), Ok(()));
    assert!(judge(&[1, 0], &seen).is_err());
}

#[test]
fn entries_of_more_than_there_are_permits_are_refused() {
    let ground = Object::Permits.ground();
    let seen = seen(ground, &[(Share::Some(1), 1), (Share::Some(1), 2), (Share::Some(1), 3)]);
    assert_eq!(judge(&[0, 1, 0, 1, 2, 2], &seen), Ok(()));
    assert!(judge(&[0, 1, 2, 0, 1], &seen).unwrap_err().starts_with("I1 "));
}

#[test]
fn an_entry_of_whom_nothing_was_granted_is_refused() {
    let mut seen = seen(Ground::default(), &[(Share::Alone, 1)]);
    seen.takes[0].told = Told::Not;
    assert!(judge(&[0], &seen).unwrap_err().starts_with("I10"));
}
