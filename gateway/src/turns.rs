//! Decides when the commands of a request go to Redis.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use redis::{RedisResult, Value, parse_redis_value};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use crate::auth::Access;
use crate::clock::now;
use crate::failure::Failure;
use crate::limits::{Admitted, Exceeded, NO_ROOM};
use crate::link::too_late;
use crate::policy::Lane;
use crate::scoped::Rejection;

/// How long a portion may hold its client's turn. Redis takes milliseconds; if it does not reply,
/// the client's other requests must not wait until the deadline of the first one.
const TURN_MAX: Duration = Duration::from_secs(1);

/// The turn that the commands of one request, or a portion of them, wait for before they are sent.
///
/// A client with a scoped token has one turn: at most one command or portion of all its requests is
/// in flight on the shared connections. So the commands of another client wait for one portion of
/// each active client, however many requests that client sends. A command on a connection of its
/// own (`WAIT`) needs no turn: the number of such connections is limited, and the command would
/// hold the turn for the whole wait.
pub(crate) struct Turns {
    deadline: Instant,
    /// When the scoped token expires; `None` for a full token.
    ends: Option<SystemTime>,
    turn: Option<Arc<Semaphore>>,
}

/// The reason why commands were not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotSent {
    /// The scoped token has expired since the request was admitted.
    Expired,
    /// The deadline of the request passed before it had its turn.
    Late,
}

impl Turns {
    pub(crate) fn new(access: &Access, admitted: &Admitted, deadline: Instant) -> Self {
        let ends = match access {
            Access::Full => None,
            Access::Scoped(scope) => Some(scope.ends()),
        };
        Self { deadline, ends, turn: admitted.turn() }
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Fails if the token has expired.
    pub(crate) fn check(&self) -> Result<(), NotSent> {
        let has_ended = self.ends.is_some_and(|ends| ends <= now());
        if has_ended { Err(NotSent::Expired) } else { Ok(()) }
    }

    /// Waits for the turn, then runs `sending`.
    ///
    /// The turn is held until Redis has replied, for [`TURN_MAX`] at most, even if the client
    /// disconnects before the reply.
    pub(crate) async fn send<T: Send + 'static>(
        &self,
        lane: Lane,
        sending: impl Future<Output = RedisResult<T>> + Send + 'static,
    ) -> Result<RedisResult<T>, NotSent> {
        let deadline = self.deadline;
        let turn = self.turn.clone().filter(|_| lane == Lane::Shared);
        let Some(turn) = turn else {
            self.check()?;
            return Ok(timeout_at(deadline, sending).await.unwrap_or_else(|_| Err(too_late())));
        };
        let acquired = timeout_at(deadline, turn.acquire_owned()).await;
        let Ok(Ok(permit)) = acquired else { return Err(NotSent::Late) };
        self.check()?;
        let sent = tokio::spawn(timeout_at(deadline, async move {
            let mut sending = pin!(sending);
            if let Ok(done) = timeout(TURN_MAX, &mut sending).await {
                return done;
            }
            drop(permit);
            sending.await
        }));
        Ok(sent.await.ok().and_then(Result::ok).unwrap_or_else(|| Err(too_late())))
    }
}

impl NotSent {
    /// Returns the reply in the place of a command that was not sent.
    pub(crate) fn reply(self) -> RedisResult<Value> {
        match self {
            Self::Expired => {
                parse_redis_value(format!("-{}\r\n", Rejection::Expired.text()).as_bytes())
            }
            Self::Late => Err(too_late()),
        }
    }
}

impl From<NotSent> for Failure {
    fn from(reason: NotSent) -> Self {
        match reason {
            NotSent::Expired => Self::Unauthorized(Rejection::Expired),
            NotSent::Late => Self::Exceeded(Exceeded::Gateway(NO_ROOM)),
        }
    }
}
