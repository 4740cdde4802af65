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

/// The endpoint of a [`Client`], which has one gateway. Only the engines of multi-locks and
/// redLocks have several.
pub(super) const ONLY_ENDPOINT: EndpointId = EndpointId(0);

impl<T: Transport, H: Host> Client<T, H> {
    /// Sends a query, which changes nothing or recognizes its own copies, and returns its reply.
    pub(super) async fn query(
        &self,
        call: impl FnOnce(RequestId) -> ScriptCall,
    ) -> Result<Reply, RequestError> {
        self.query_with_history(call).await.map(|(reply, _)| reply)
    }

    /// Sends a query. Returns its reply, and whether an earlier attempt of the query may have been
    /// executed too, with another reply.
    pub(super) async fn query_with_history(
        &self,
        call: impl FnOnce(RequestId) -> ScriptCall,
    ) -> Result<(Reply, bool), RequestError> {
        let operation =
            self.shared().perform(|engine, scope, cx| engine.query(scope, ONLY_ENDPOINT, call, cx));
        replied(operation.await)
    }

    /// Executes an idempotent call, and returns its reply.
    pub(super) async fn execute_once(&self, call: IdempotentCall) -> Result<Reply, RequestError> {
        let operation = self
            .shared()
            .perform(|engine, scope, cx| engine.execute_once(scope, ONLY_ENDPOINT, call, cx));
        replied(operation.await).map(|(reply, _)| reply)
    }

    /// Executes an idempotent call about an object, and reads its reply.
    pub(super) async fn execute_about<R>(
        &self,
        object: NamedObject<'_>,
        call: IdempotentCall,
        read: impl FnOnce(&Reply) -> Result<R, RequestError>,
    ) -> Result<R, Error<RequestError>> {
        let reply = self.execute_once(call).await;
        reply.and_then(|reply| read(&reply)).map_err(|kind| self.error(object, kind))
    }

    /// Sends a query about an object, and reads its reply.
    pub(super) async fn query_about<R>(
        &self,
        object: NamedObject<'_>,
        call: impl FnOnce(RequestId) -> ScriptCall,
        read: impl FnOnce(&Reply) -> Result<R, RequestError>,
    ) -> Result<R, Error<RequestError>> {
        let reply = self.query(call).await;
        reply.and_then(|reply| read(&reply)).map_err(|kind| self.error(object, kind))
    }

    /// Creates an error about an object.
    pub(super) fn error<K: Kind>(&self, (object, name): NamedObject<'_>, kind: K) -> Error<K> {
        self.shared().error(kind, object, [name.as_str()], self.redacts)
    }
}

/// Returns the reply of a query or of an idempotent call, and whether an earlier attempt may have
/// been executed with another reply; always false for an idempotent call, whose reply is recorded.
pub(super) fn replied(outcome: Option<Outcome>) -> Result<(Reply, bool), RequestError> {
    match outcome {
        Some(Outcome::Replied(reply, unsure)) => reply.map(|reply| (reply, unsure)),
        _ => Err(RequestError::Unreachable(FailureKind::NO_ANSWER)),
    }
}

/// The object of a request: its kind and its name.
pub(super) type NamedObject<'a> = (Object, &'a LockName);

/// Reads whether the script has done what was requested.
#[expect(clippy::unnecessary_wraps, reason = "the type of a function that reads a reply")]
pub(super) fn is_done(reply: &Reply) -> Result<bool, RequestError> {
    Ok(reply.code == Code::Done)
}

/// Reads a number that is never negative.
pub(super) fn count(reply: &Reply) -> Result<u64, RequestError> {
    Ok(u64::try_from(parse_number(reply)?).unwrap_or(0))
}
