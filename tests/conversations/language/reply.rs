//! A machine's calls, and the replies to them.

use edgelatch_proto::error::{FailureKind, Refusal};
use edgelatch_proto::machine::{CallId, Input};
use edgelatch_proto::protocol::exchange::{Answer, Exchange, Step};
use edgelatch_proto::protocol::gateway::{Gateway, GatewayCapabilities, Response};
use edgelatch_proto::protocol::reply::{Code, Reply, RespValue};
use edgelatch_proto::protocol::script::ScriptCall;

use super::arguments::REQUEST_ID;

/// One call that a machine has made.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) id: CallId,
    /// The gateway that the call goes to.
    pub(crate) gateway: usize,
    pub(crate) script: ScriptCall,
}

impl Call {
    /// The script's name.
    pub(crate) fn name(&self) -> &'static str {
        self.script.script().name
    }

    /// An argument by its number in the script's header; empty if the call ends before it.
    pub(crate) fn arg(&self, number: usize) -> &str {
        self.script.args().get(number - 1).map_or("", String::as_str)
    }

    /// The input for this reply to the call, at this time on Redis' clock.
    pub(crate) fn reply(&self, reply: impl Into<ScriptReply>, server_ms: u64) -> Input {
        let ScriptReply { code, value, ms, acknowledged } = reply.into();
        let cells = [
            RespValue::Int(code as i64),
            RespValue::Text(value),
            RespValue::Int(ms),
            RespValue::Int(i64::try_from(server_ms).unwrap()),
            RespValue::Text(self.arg(REQUEST_ID).to_owned()),
        ];
        let reply = Reply::read(&cells, self.script.request).expect("a reply of five elements");
        Input::Reply { call: self.id, reply: Reply { acknowledged, ..reply } }
    }

    /// The input for a call without a usable reply.
    pub(crate) const fn fail(&self, kind: FailureKind) -> Input {
        Input::Failed { call: self.id, kind }
    }

    /// The input for a call that a gateway refused with `error`.
    pub(crate) fn refuse(&self, error: &str) -> Input {
        let gateway = Gateway::upstash("https://gateway.invalid", "token").unwrap();
        let mut capabilities = GatewayCapabilities::default();
        let (mut exchange, _) = Exchange::new(&gateway, self.script.clone(), &capabilities);
        let body = format!("{{\"error\":\"{error}\"}}").into_bytes();
        match exchange.answered(&gateway, Ok(Response::new(400, body)), &mut capabilities) {
            Step::Done(Answer::Refused(refusal)) => self.refused(refusal),
            other => panic!("`{error}` is not a refusal: {other:?}"),
        }
    }

    const fn refused(&self, refusal: Refusal) -> Input {
        Input::Refused { call: self.id, refusal }
    }
}

/// A script's reply: a code, a value and milliseconds; and how many replicas acknowledged its
/// writes.
#[derive(Clone, Debug)]
pub(crate) struct ScriptReply {
    code: Code,
    value: String,
    ms: i64,
    acknowledged: Option<u32>,
}

impl ScriptReply {
    pub(crate) fn new(code: Code, value: impl ToString, ms: i64) -> Self {
        Self { code, value: value.to_string(), ms, acknowledged: None }
    }

    /// Replaces the milliseconds.
    pub(crate) const fn with_ms(mut self, ms: i64) -> Self {
        self.ms = ms;
        self
    }

    /// Sets how many replicas acknowledged the writes.
    pub(crate) const fn acknowledged_by(mut self, replicas: u32) -> Self {
        self.acknowledged = Some(replicas);
        self
    }
}

/// A reply with this code, the value 0 and 0 ms.
impl From<Code> for ScriptReply {
    fn from(code: Code) -> Self {
        Self::new(code, 0, 0)
    }
}

/// The reply that grants an acquisition with this token and the default lease.
pub(crate) fn granted(token: u64) -> ScriptReply {
    ScriptReply::new(Code::Done, token, 30_000)
}

/// The reply to an acquisition whose owner holds the lock already: Redis extends the hold.
pub(crate) fn already_yours(token: u64) -> ScriptReply {
    ScriptReply::new(Code::AlreadyYours, token, 30_000)
}

/// The reply to an acquisition while another owner holds the lock for `remaining_ms`; -1 stands for
/// a hold without a known end. The value is the number of the refused lock among those of the
/// call.
pub(crate) fn busy(remaining_ms: i64) -> ScriptReply {
    ScriptReply::new(Code::No, 1, remaining_ms)
}

/// The reply of a fair lock to a queued waiter: its place, 0 for the head of the queue, and the
/// time within which it must retry. The waiter did not have to be restored to its place (the last
/// 0), and the holder has 20 s left.
pub(crate) fn queued(place: u32, retry_within_ms: u64) -> ScriptReply {
    ScriptReply::new(Code::No, format!("{place},{retry_within_ms},0"), 20_000)
}

/// The reply to a renewal that Redis has executed.
pub(crate) fn renewed() -> ScriptReply {
    ScriptReply::new(Code::Done, 0, 30_000)
}
