//! Decides when the commands of a request go to Redis.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use redis::{RedisResult, Value, parse_redis_value};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use crate::auth::Access;
use crate::backend::timed_out;
use crate::clock::now;
use crate::failure::Failure;
use crate::limits::{Admitted, Exceeded, RETRY_SOON};
use crate::observe::{Metrics, Operation};
use crate::policy::ConnectionKind;
use crate::scoped::Rejection;

/// How long a portion may hold its client's send permit. Redis takes milliseconds; if it does not
/// reply, the client's other requests must not wait until the deadline of the first one.
const MAX_PERMIT_HOLD: Duration = Duration::from_secs(1);

/// Sends the commands of one request to Redis, one portion at a time, fairly among clients.
///
/// A client with a scoped token has one send permit: at most one command or portion of all its
/// requests is in flight on the shared connections. So the commands of another client wait for one
/// portion of each active client, however many requests that client sends. A command on a dedicated
/// connection (`WAIT`) needs no send permit: the number of such connections is limited, and the
/// command would hold the permit for the whole wait.
pub(crate) struct Dispatcher {
    deadline: Instant,
    /// When the scoped token expires; `None` for a full token.
    token_expiry: Option<SystemTime>,
    /// The one send permit of the client; `None` for a full token.
    send_permit: Option<Arc<Semaphore>>,
    metrics: Arc<Metrics>,
    operation: Operation,
}

/// The reason why commands were not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotSent {
    /// The scoped token has expired since the request was admitted.
    TokenExpired,
    /// The deadline of the request passed before it got the send permit.
    DeadlinePassed,
}

impl Dispatcher {
    pub(crate) fn new(
        access: &Access,
        admitted: &Admitted,
        deadline: Instant,
        metrics: &Arc<Metrics>,
        operation: Operation,
    ) -> Self {
        let token_expiry = match access {
            Access::Full => None,
            Access::Scoped(scope) => Some(scope.expires_at()),
        };
        let (send_permit, metrics) = (admitted.send_permit(), Arc::clone(metrics));
        Self { deadline, token_expiry, send_permit, metrics, operation }
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Fails if the token has expired.
    pub(crate) fn check(&self) -> Result<(), NotSent> {
        let has_expired = self.token_expiry.is_some_and(|expiry| expiry <= now());
        if has_expired { Err(NotSent::TokenExpired) } else { Ok(()) }
    }

    /// Waits for the send permit, then runs `sending`.
    ///
    /// The permit is held until Redis has replied, for [`MAX_PERMIT_HOLD`] at most, even if the
    /// client disconnects before the reply.
    pub(crate) async fn send<T: Send + 'static>(
        &self,
        connection: ConnectionKind,
        sending: impl Future<Output = RedisResult<T>> + Send + 'static,
    ) -> Result<RedisResult<T>, NotSent> {
        let deadline = self.deadline;
        let operation = match connection {
            ConnectionKind::Dedicated => Operation::Wait,
            ConnectionKind::Shared => self.operation,
        };
        let sending = self.metrics.time_redis(operation, sending);
        let semaphore = self.send_permit.clone().filter(|_| connection == ConnectionKind::Shared);
        let Some(semaphore) = semaphore else {
            self.check()?;
            return Ok(timeout_at(deadline, sending).await.unwrap_or_else(|_| Err(timed_out())));
        };
        let acquired = timeout_at(deadline, semaphore.acquire_owned()).await;
        let Ok(Ok(permit)) = acquired else { return Err(NotSent::DeadlinePassed) };
        self.check()?;
        let sent = tokio::spawn(timeout_at(deadline, async move {
            let mut sending = pin!(sending);
            if let Ok(done) = timeout(MAX_PERMIT_HOLD, &mut sending).await {
                return done;
            }
            drop(permit);
            sending.await
        }));
        Ok(sent.await.ok().and_then(Result::ok).unwrap_or_else(|| Err(timed_out())))
    }
}

impl NotSent {
    /// Returns the reply in the place of a command that was not sent.
    pub(crate) fn reply(self) -> RedisResult<Value> {
        match self {
            Self::TokenExpired => {
                parse_redis_value(format!("-{}\r\n", Rejection::Expired.text()).as_bytes())
            }
            Self::DeadlinePassed => Err(timed_out()),
        }
    }
}

impl From<NotSent> for Failure {
    fn from(reason: NotSent) -> Self {
        match reason {
            NotSent::TokenExpired => Self::Unauthorized(Rejection::Expired),
            NotSent::DeadlinePassed => Self::Exceeded(Exceeded::Gateway(RETRY_SOON)),
        }
    }
}
