//! Requests about an object that do not concern a hold.

use super::Client;
use super::error::{Error, Kind, Object};
use crate::error::RequestError;
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::engine::{EndpointId, Outcome};
use edgelatch_proto::error::FailureKind;
use edgelatch_proto::machine::parse_number;
use edgelatch_proto::name::{LockName, RequestId};
use edgelatch_proto::protocol::calls::IdempotentCall;
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::ScriptCall;

/// The gateway of a client.
pub(super) const ONLY: EndpointId = EndpointId(0);

impl<T: Transport, H: Host> Client<T, H> {
    /// Sends a query, which changes nothing or recognizes its own copies, and returns its reply.
    pub(super) async fn query(
        &self,
        call: impl FnOnce(RequestId) -> ScriptCall,
    ) -> Result<Reply, RequestError> {
        self.query_or_copy(call).await.map(|(reply, _)| reply)
    }

    /// Sends a query. Returns its reply, and whether an attempt before the one with the reply may
    /// have been executed.
    pub(super) async fn query_or_copy(
        &self,
        call: impl FnOnce(RequestId) -> ScriptCall,
    ) -> Result<(Reply, bool), RequestError> {
        let operation =
            self.shared().perform(|engine, scope, cx| engine.query(scope, ONLY, call, cx));
        replied(operation.await)
    }

    /// Executes an idempotent call, and returns its reply.
    pub(super) async fn once(&self, call: IdempotentCall) -> Result<Reply, RequestError> {
        let operation =
            self.shared().perform(|engine, scope, cx| engine.execute_once(scope, ONLY, call, cx));
        replied(operation.await).map(|(reply, _)| reply)
    }

    /// Executes an idempotent call about an object, and reads its reply.
    pub(super) async fn execute<R>(
        &self,
        about: About<'_>,
        call: IdempotentCall,
        read: impl FnOnce(&Reply) -> Result<R, RequestError>,
    ) -> Result<R, Error<RequestError>> {
        let reply = self.once(call).await;
        reply.and_then(|reply| read(&reply)).map_err(|kind| self.error(about, kind))
    }

    /// Sends a query about an object, and reads its reply.
    pub(super) async fn inspect<R>(
        &self,
        about: About<'_>,
        call: impl FnOnce(RequestId) -> ScriptCall,
        read: impl FnOnce(&Reply) -> Result<R, RequestError>,
    ) -> Result<R, Error<RequestError>> {
        let reply = self.query(call).await;
        reply.and_then(|reply| read(&reply)).map_err(|kind| self.error(about, kind))
    }

    /// Creates an error about an object.
    pub(super) fn error<K: Kind>(&self, (object, name): About<'_>, kind: K) -> Error<K> {
        self.shared().error(kind, object, [name.as_str()], self.redacts)
    }
}

/// The outcome of a query or of an idempotent call.
pub(super) fn replied(outcome: Option<Outcome>) -> Result<(Reply, bool), RequestError> {
    match outcome {
        Some(Outcome::Replied(reply, unsure)) => reply.map(|reply| (reply, unsure)),
        _ => Err(RequestError::Unreachable(FailureKind::NO_ANSWER)),
    }
}

/// An object, and its name.
pub(super) type About<'a> = (Object, &'a LockName);

/// Reads whether the call was done.
#[expect(clippy::unnecessary_wraps, reason = "the type of a function that reads a reply")]
pub(super) fn is_done(reply: &Reply) -> Result<bool, RequestError> {
    Ok(reply.code == Code::Done)
}

/// Reads a number that is never negative.
pub(super) fn count(reply: &Reply) -> Result<u64, RequestError> {
    Ok(u64::try_from(parse_number(reply)?).unwrap_or(0))
}
