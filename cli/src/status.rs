//! `edgelatch status`: the state of objects, as a table or as JSON.

use std::time::{Duration, SystemTime};

use comfy_table::{Table, presets};
use edgelatch::client::{LockState, SemaphoreState};
use serde::Serialize;

use crate::args::{HeldKind, Kind, StatusArgs};
use crate::clock;
use crate::exit::{Exit, Failure};
use crate::print_line;
use crate::target::{self, Client};

/// Tokens below this one are counted by Java's `RFencedLock`; others have the time of their grant
/// in microseconds. It is the year 2001.
const TIMED_TOKENS: u64 = 1_000_000_000_000_000;

/// The state of an object, in the form that is printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Status {
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) state: State,
}

/// The state of an object by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum State {
    Lock(Lock),
    Fair(Lock),
    Semaphore(Semaphore),
    Latch(Latch),
}

/// The state of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Lock {
    pub(crate) held: bool,
    pub(crate) hold_count: u64,
    /// `None` if the lock is free or its hold has no end.
    pub(crate) remaining_ms: Option<u64>,
    /// `None` if the lock was never granted, or Redis no longer has its token.
    pub(crate) fencing_token: Option<u64>,
}

/// The state of a semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Semaphore {
    pub(crate) available: i64,
    pub(crate) held: u64,
    pub(crate) holders: u64,
}

/// The state of a latch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Latch {
    pub(crate) open: bool,
    pub(crate) count: u64,
}

impl Lock {
    /// Returns the time of the last grant, which is in its token.
    pub(crate) fn granted_at(&self) -> Option<SystemTime> {
        let micros = self.fencing_token.filter(|token| *token >= TIMED_TOKENS)?;
        Some(SystemTime::UNIX_EPOCH + Duration::from_micros(micros))
    }

    /// Returns the remaining time of the hold.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        self.remaining_ms.map(Duration::from_millis)
    }
}

impl From<LockState> for Lock {
    fn from(state: LockState) -> Self {
        let remaining = state.remaining.map(|time| u64::try_from(time.as_millis()));
        Self {
            held: state.is_locked,
            hold_count: state.hold_count,
            remaining_ms: remaining.and_then(Result::ok),
            fencing_token: Some(state.last_token).filter(|token| *token > 0),
        }
    }
}

impl From<SemaphoreState> for Semaphore {
    fn from(state: SemaphoreState) -> Self {
        Self { available: state.available, held: state.held, holders: state.leases }
    }
}

/// Prints the state of the objects.
pub(crate) async fn run(client: &Client, args: StatusArgs) -> Result<u8, Failure> {
    // Queries that begin together share a request.
    let queries = args.names.into_iter().map(|name| {
        let client = client.clone();
        tokio::spawn(async move { query(&client, args.kind, name).await })
    });
    let queries: Vec<_> = queries.collect();
    let mut all = Vec::new();
    for query in queries {
        let status =
            query.await.map_err(|error| Failure::new(Exit::Internal, error.to_string()))?;
        all.push(status?);
    }
    print_line(&if args.json { json(&all)? } else { table(args.kind, &all) })?;
    Ok(0)
}

/// Queries the state of an object.
pub(crate) async fn query(client: &Client, kind: Kind, name: String) -> Result<Status, Failure> {
    let state = match kind {
        Kind::Lock => State::Lock(lock(client, HeldKind::Lock, &name).await?),
        Kind::Fair => State::Fair(lock(client, HeldKind::Fair, &name).await?),
        Kind::Semaphore => State::Semaphore(client.semaphore(&name)?.inspect().await?.into()),
        Kind::Latch => {
            let count = client.count_down_latch(&name)?.count().await?;
            State::Latch(Latch { open: count == 0, count })
        }
    };
    Ok(Status { name, state })
}

async fn lock(client: &Client, kind: HeldKind, name: &str) -> Result<Lock, Failure> {
    Ok(target::held(client, kind, 1, name)?.inspect().await?.into())
}

/// Returns the JSON text of a value.
pub(crate) fn json<T: Serialize>(value: &T) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::new(Exit::Internal, error.to_string()))
}

fn table(kind: Kind, all: &[Status]) -> String {
    let head: &[&str] = match kind {
        Kind::Lock | Kind::Fair => {
            &["NAME", "STATE", "REMAINING", "HOLDS", "FENCING TOKEN", "LAST GRANT"]
        }
        Kind::Semaphore => &["NAME", "AVAILABLE", "HELD", "HOLDERS"],
        Kind::Latch => &["NAME", "STATE", "COUNT"],
    };
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(head);
    for status in all {
        table.add_row(row(status));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt()
}

fn row(Status { name, state }: &Status) -> Vec<String> {
    let cells = match state {
        State::Lock(lock) | State::Fair(lock) => vec![
            if lock.held { "held" } else { "free" }.to_owned(),
            remaining(lock),
            lock.hold_count.to_string(),
            lock.fencing_token.map_or_else(none, |token| token.to_string()),
            lock.granted_at().map_or_else(none, clock::text),
        ],
        State::Semaphore(state) => {
            vec![state.available.to_string(), state.held.to_string(), state.holders.to_string()]
        }
        State::Latch(latch) => {
            vec![if latch.open { "open" } else { "closed" }.to_owned(), latch.count.to_string()]
        }
    };
    [vec![name.clone()], cells].concat()
}

/// Returns the remaining time of a hold for people.
pub(crate) fn remaining(lock: &Lock) -> String {
    match lock.remaining() {
        Some(time) => clock::short(time),
        None if lock.held => "no end".to_owned(),
        None => none(),
    }
}

fn none() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: Lock = Lock {
        held: true,
        hold_count: 1,
        remaining_ms: Some(29_500),
        fencing_token: Some(1_764_118_800_000_000),
    };
    const FREE: Lock = Lock { held: false, hold_count: 0, remaining_ms: None, fencing_token: None };

    fn status(name: &str, state: State) -> Status {
        Status { name: name.to_owned(), state }
    }

    #[test]
    fn a_table_has_a_line_for_each_lock() {
        let all = [status("backup", State::Lock(HELD)), status("é", State::Lock(FREE))];
        let expected = "\
NAME    STATE  REMAINING  HOLDS  FENCING TOKEN     LAST GRANT
backup  held   29s        1      1764118800000000  2025-11-26T01:00:00Z
é       free   -          0      -                 -";
        assert_eq!(table(Kind::Lock, &all), expected);
    }

    #[test]
    fn json_has_the_kind_beside_the_state() {
        let all = [status("a", State::Fair(HELD))];
        let expected = r#"[{"name":"a","kind":"fair","held":true,"hold_count":1,"remaining_ms":29500,"fencing_token":1764118800000000}]"#;
        assert_eq!(json(&all).unwrap(), expected);
    }

    #[test]
    fn tokens_that_java_counts_have_no_time() {
        assert_eq!(Lock { fencing_token: Some(7), ..HELD }.granted_at(), None);
    }
}
