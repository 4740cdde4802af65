//! Requests about an object that do not concern a hold.

use super::Client;
use super::drive::drive;
use crate::error::RequestError;
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::machine::{Once, Query};
use edgelatch_proto::name::RequestId;
use edgelatch_proto::protocol::calls::IdempotentCall;
use edgelatch_proto::protocol::reply::Reply;
use edgelatch_proto::protocol::script::ScriptCall;

impl<T: Transport, H: Host> Client<T, H> {
    /// Creates a query that changes nothing, or that recognizes its own copies; `None` without
    /// entropy. Every query has this one type, so that the program contains one future for all of
    /// them.
    pub(crate) fn query(&self, call: impl FnOnce(RequestId) -> ScriptCall) -> Option<Query> {
        self.entropy().map(|entropy| Query::new(call, self.attempt(), entropy))
    }

    /// Sends a query, and returns its reply.
    pub(crate) async fn question(&self, query: Option<Query>) -> Result<Reply, RequestError> {
        self.question_or_copy(query).await.map(|(reply, _)| reply)
    }

    /// Sends a query. Returns its reply, and whether an attempt before the one with the reply may
    /// have been executed.
    pub(crate) async fn question_or_copy(
        &self,
        query: Option<Query>,
    ) -> Result<(Reply, bool), RequestError> {
        let mut machine = query.ok_or(RequestError::NoEntropy)?;
        let reply = drive(&mut machine, self.link(), self.host()).await?;
        Ok((reply, machine.is_unsure()))
    }

    /// Executes an idempotent call, and returns its reply.
    pub(crate) async fn once(&self, call: IdempotentCall) -> Result<Reply, RequestError> {
        let entropy = self.entropy().ok_or(RequestError::NoEntropy)?;
        let (attempt, clock, now) = (self.attempt(), self.link().clock(), self.host().now());
        let mut machine = Once::new(call, attempt, entropy, clock, now);
        drive(&mut machine, self.link(), self.host()).await
    }
}
