//! Reads the outcomes of calls.

use core::time::Duration;

use super::calls::Read;
use super::error::{self, Failure};
use super::numbers::snapshot;
use super::objects::stray;
use super::records::Value;
use crate::error::{AcquireError, InvalidOption, LossReason, RequestError};
use edgelatch_proto::engine::{Context, Engine, Outcome};
use edgelatch_proto::machine::{
    FairReadWriteState, LeaseState, LockState, PermitsState, Released, SemaphoreState,
    newest_token, parse_number, write_result,
};
use edgelatch_proto::protocol::reply::{Code, Reply};

/// Reads the outcome of a call that was no acquired hold.
pub(super) fn result(
    engine: &mut Engine,
    read: Read,
    outcome: Outcome,
    cx: &mut Context<'_>,
) -> Result<Value, Failure> {
    match (outcome, read) {
        (Outcome::Acquired(Err(error)) | Outcome::Opened(Err(error)), read) => {
            let Read::Acquisition { once, busy } = read else { return Err(stray().into()) };
            match error {
                AcquireError::Busy { .. } if once => Ok(Value::Nothing),
                error => Err(error::acquire(&error, busy)),
            }
        }
        (Outcome::Replied(reply, unsure), Read::Write) => {
            let reply = reply.map_err(|error| error::request(&error))?;
            write_result(&reply, unsure).map_err(|error| error::guard(&error))?;
            Ok(Value::Absent)
        }
        (Outcome::Replied(reply, _), Read::Script(hold)) => {
            let reply = reply.map_err(Into::into);
            let result = reply.and_then(|reply| engine.script_result(hold, reply, cx));
            result.map(Value::Text).map_err(|error| error::eval(&error))
        }
        (Outcome::Replied(reply, _), Read::Reply(read)) => {
            reply.and_then(|reply| read(&reply)).map_err(|error| error::request(&error))
        }
        (Outcome::Renewed(renewed), _) => match renewed {
            Ok(()) => Ok(Value::Absent),
            Err(RequestError::InvalidOption(bad)) => {
                Err(InvalidOption::new("leaseMs", bad.accepted()).into())
            }
            Err(error) => Err(error::request(&error)),
        },
        (Outcome::IsHeld(held), _) => held.map(Value::Flag).map_err(|error| error::request(&error)),
        (Outcome::Released(released), Read::End { hold, lasted }) => match released {
            // Without a reply the release is unconfirmed, but the lease lasted until here, and
            // Redis ends the hold by itself.
            Ok(Released::Released) | Err(_) if lasted => Ok(Value::Absent),
            _ => Err(error::lost(match engine.hold_state(hold, cx) {
                LeaseState::Lost(reason) => reason,
                _ => LossReason::Gone,
            })),
        },
        (Outcome::Released(released), _) => match released {
            Ok(Released::Released) => Ok("released".into()),
            Ok(Released::WasLost) => Ok("lost".into()),
            Err(error) => Err(error::release(&error)),
        },
        _ => Ok(Value::Absent),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the type of a function that reads a reply")]
pub(super) const fn nothing(_: &Reply) -> Result<Value, RequestError> {
    Ok(Value::Absent)
}

#[expect(clippy::unnecessary_wraps, reason = "the type of a function that reads a reply")]
pub(super) fn done(reply: &Reply) -> Result<Value, RequestError> {
    Ok((reply.code == Code::Done).into())
}

pub(super) fn figure(reply: &Reply) -> Result<Value, RequestError> {
    parse_number(reply).map(Into::into)
}

#[expect(clippy::unnecessary_wraps, reason = "the type of a function that reads a reply")]
pub(super) fn newest(reply: &Reply) -> Result<Value, RequestError> {
    Ok(Value::or_nothing(newest_token(reply)))
}

/// Reads the number of available permits.
pub(super) fn available(reply: &Reply) -> Result<Value, RequestError> {
    Ok(SemaphoreState::read(reply)?.available.into())
}

pub(super) fn semaphore_state(reply: &Reply) -> Result<Value, RequestError> {
    let SemaphoreState { available, leases, held, .. } = SemaphoreState::read(reply)?;
    let fields = [snapshot::SEMAPHORE.into(), available.into(), leases.into(), held.into()];
    Ok(Value::List(fields.into()))
}

pub(super) fn permits_state(reply: &Reply) -> Result<Value, RequestError> {
    let state = PermitsState::read(reply)?;
    let fields = [
        snapshot::PERMITS.into(),
        state.available.into(),
        state.acquired.into(),
        state.total.into(),
        remaining(state.remaining),
        state.are_held.into(),
    ];
    Ok(Value::List(fields.into()))
}

/// Reads the state of a lock.
pub(super) fn lock_state(reply: &Reply) -> Result<Value, RequestError> {
    let state = LockState::read(reply)?;
    let fields = [
        snapshot::LOCK.into(),
        state.is_locked.into(),
        state.hold_count.into(),
        remaining(state.remaining),
        state.last_token.into(),
    ];
    Ok(Value::List(fields.into()))
}

/// Reads the state of a fair read-write lock.
pub(super) fn fair_read_write_state(reply: &Reply) -> Result<Value, RequestError> {
    let state = FairReadWriteState::read(reply)?;
    let is_locked = state.holders > 0;
    let fields = [
        snapshot::FAIR_READ_WRITE.into(),
        is_locked.into(),
        state.holders.into(),
        remaining(state.remaining),
        state.last_token.into(),
        match (is_locked, state.is_exclusive) {
            (false, _) => Value::Nothing,
            (true, true) => "exclusive".into(),
            (true, false) => "shared".into(),
        },
        state.waiters.into(),
        state.exclusive_waiters.into(),
    ];
    Ok(Value::List(fields.into()))
}

#[expect(clippy::unnecessary_wraps, reason = "the type of a function that reads a reply")]
pub(super) fn text(reply: &Reply) -> Result<Value, RequestError> {
    Ok(reply.value.as_str().into())
}

fn remaining(time: Option<Duration>) -> Value {
    time.map_or(Value::Nothing, error::as_ms)
}
