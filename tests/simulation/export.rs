//! Writes histories in a plain format, for a checker that shares no code with this project:
//! `tests/porcupine`.
//!
//! Each line is an object of JSON: one call of a client, or one fact that a holder has. The lines
//! of a history are consecutive and have the same `kind` and `history`, which is the seed of its
//! schedule. Times are microseconds since the schedule began, and `null` for a response that never
//! came. The fields of each `op` are those of `acquisition`, `proofs`, `release`, `permits` and
//! `latch_call` below.

use std::fs::File;
use std::io::{BufWriter, Result, Write as _};
use std::path::Path;
use std::sync::Mutex;

use serde_json::{Map, Value, json};

use super::engine::Sim;
use super::objects::NAMES;
use test_support::history::{
    AcquireResult, Acquisition, Hold, LatchCall, LatchOperation, Mode, NEVER, Observation,
    ReleaseCall, ReleaseResult, Time,
};

/// A file of histories, which several threads write.
pub(crate) struct Export(Mutex<BufWriter<File>>);

impl Export {
    /// Creates the file, or empties it.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        Ok(Self(Mutex::new(BufWriter::new(File::create(path)?))))
    }

    /// Writes whole histories.
    pub(crate) fn write(&self, histories: &str) {
        self.0.lock().unwrap().write_all(histories.as_bytes()).unwrap();
    }
}

impl Sim {
    /// The history as lines of JSON. A last line has the promise that the schedule broke, if any.
    pub(crate) fn export_history(&self, broken: Option<&str>) -> String {
        let history = self.history.borrow();
        let callers = self.callers.borrow();
        let mut lines =
            Lines { kind: self.plan.kind.name(), seed: self.plan.seed, text: String::new() };
        lines.extend(history.assumptions.permits.map(permits));
        for (number, acquisition) in history.acquisitions.iter().enumerate() {
            let client = client(callers[number]);
            lines.push(self::acquisition(number, &client, acquisition));
            if let AcquireResult::Held(hold) = &acquisition.result {
                lines.extend(proofs(number, &client, acquisition, hold));
                lines.extend(hold.end.map(|end| release(number, &client, end)));
            }
        }
        for (number, call) in history.latch_calls.iter().enumerate() {
            lines.extend(latch_call(&client(callers[number]), call));
        }
        lines.extend(broken.map(|what| json!({ "op": "broken", "promise": what })));
        lines.text
    }
}

/// The lines of one history.
struct Lines {
    kind: &'static str,
    seed: u64,
    text: String,
}

impl Lines {
    /// Appends a line with the fields of `line` after those that all lines have.
    fn push(&mut self, line: Value) {
        let mut fields = Map::new();
        fields.insert("history".into(), self.seed.into());
        fields.insert("kind".into(), self.kind.into());
        if let Value::Object(line) = line {
            fields.extend(line);
        }
        self.text.push_str(&Value::Object(fields).to_string());
        self.text.push('\n');
    }

    fn extend(&mut self, lines: impl IntoIterator<Item = Value>) {
        lines.into_iter().for_each(|line| self.push(line));
    }
}

fn client(host: Option<usize>) -> String {
    host.map_or_else(|| "redisson".into(), |host| format!("host {host}"))
}

fn name(number: u8) -> &'static str {
    NAMES[usize::from(number)]
}

/// `null` if the response never came.
fn time(at: Time) -> Value {
    if at == NEVER { Value::Null } else { at.into() }
}

/// Redis has had this number of permits since some time before `return`.
fn permits((permits, since): (u32, Time)) -> Value {
    json!({
        "op": "set_permits", "names": [name(0)], "permits": permits, "call": 0,
        "return": time(since),
    })
}

/// A call that acquires all of `names`. Only a `granted` one has `tokens`, one for each name, and
/// the hold count of its owner. The hold of an `unknown` one may exist until `ends_by`.
fn acquisition(number: usize, client: &str, acquisition: &Acquisition) -> Value {
    let Acquisition { owner, claims, invoked, completed, lease, result } = acquisition;
    let names: Vec<_> = claims.iter().map(|claim| name(claim.name)).collect();
    let (mode, permits) = match claims[0].mode {
        Mode::Exclusive => ("exclusive", 0),
        Mode::Shared => ("shared", 0),
        Mode::Permits(permits) => ("permits", permits),
    };
    let mut line = json!({
        "op": "acquire", "id": number, "client": client, "owner": owner, "names": names,
        "mode": mode, "permits": permits, "lease": lease, "call": invoked,
        "return": time(*completed),
    });
    line["result"] = match result {
        AcquireResult::NoResponse => "none",
        AcquireResult::Held(_) => "granted",
        AcquireResult::Busy => "busy",
        AcquireResult::Failed => "failed",
        AcquireResult::Unknown { .. } => "unknown",
    }
    .into();
    match result {
        AcquireResult::Held(hold) => {
            line["tokens"] = json!(hold.tokens);
            line["count"] = json!(hold.count);
        }
        AcquireResult::Unknown { ends_by } => line["ends_by"] = time(*ends_by),
        _ => {}
    }
    line
}

/// The facts that the holder of acquisition `number` has about its hold. A `lease` is valid by the
/// holder's own clocks: the hold exists until `until` at least. A `check` is the reply of Redis
/// that it has the hold (`held`) or not (`gone`).
fn proofs(number: usize, client: &str, acquisition: &Acquisition, hold: &Hold) -> Vec<Value> {
    // A reply is about the time at which its request was sent.
    let proof = |Observation { at, until }: &Observation| {
        if until < at {
            json!({
                "op": "check", "of": number, "client": client, "call": until, "return": at,
                "result": "held",
            })
        } else {
            json!({
                "op": "lease", "of": number, "client": client, "call": at, "return": at,
                "until": until,
            })
        }
    };
    let mut lines: Vec<_> = hold.observations.iter().map(proof).collect();
    // The history does not have the time at which the holder sent the request for this reply.
    lines.extend(hold.gone.map(|gone| {
        json!({
            "op": "check", "of": number, "client": client, "call": acquisition.completed,
            "return": gone, "result": "gone",
        })
    }));
    lines
}

/// The release of acquisition `number`. The hold of an `unknown` one may exist until `ends_by`.
fn release(number: usize, client: &str, end: ReleaseCall) -> Value {
    let ReleaseCall { sent, completed, result } = end;
    let text = match result {
        ReleaseResult::Released => "released",
        ReleaseResult::WasLost => "lost",
        ReleaseResult::Unknown { .. } => "unknown",
        ReleaseResult::StillHeld => "still_held",
        ReleaseResult::NoResponse => "none",
    };
    let mut line = json!({
        "op": "release", "of": number, "client": client, "call": sent, "return": time(completed),
        "result": text,
    });
    if let ReleaseResult::Unknown { ends_by } = result {
        line["ends_by"] = time(ends_by);
    }
    line
}

/// A call to a latch: `set_count` (with `set`, `not_set` or `unknown`), `count_down` and
/// `read_count` (with the count that remains, or `null` if it is unknown), or `wait` for the latch
/// (which is `closed`). A wait for a latch that is open reads the count 0. `None` if the call was
/// not executed.
fn latch_call(client: &str, call: &LatchCall) -> Option<Value> {
    let unconfirmed = Value::Null;
    let (op, count, result) = match call.operation {
        LatchOperation::Set(count, is_set) => {
            ("set_count", count.into(), if is_set { "set" } else { "not_set" })
        }
        LatchOperation::UnconfirmedSet(count) => ("set_count", count.into(), "unknown"),
        LatchOperation::CountDown(count) => ("count_down", count.into(), "done"),
        LatchOperation::UnconfirmedCountDown => ("count_down", unconfirmed, "unknown"),
        LatchOperation::Read(count) => ("read_count", count.into(), "done"),
        LatchOperation::Closed => ("wait", unconfirmed, "closed"),
        LatchOperation::Ignored => return None,
    };
    // A call with an unknown outcome may be executed at any later time.
    let returned = if result == "unknown" { NEVER } else { call.completed };
    Some(json!({
        "op": op, "client": client, "names": [name(call.name)], "count": count,
        "call": call.invoked, "return": time(returned), "result": result,
    }))
}
