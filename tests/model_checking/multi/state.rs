//! The state of the model and its actions.

use edgelatch_proto::machine::CallId;
use edgelatch_proto::protocol::script::ScriptCall;

use super::client::Client;
use crate::model_checking::hashed::Hashed;
use test_support::script_model::ScriptModel;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(super) step: u8,
    pub(super) nodes: Vec<Hashed<ScriptModel>>,
    pub(super) clients: Vec<Hashed<Client>>,
    /// How far each client's clock is ahead of the servers' clocks.
    pub(super) ahead_ms: Vec<u64>,
    pub(super) sent_requests: Vec<SentRequest>,
    pub(super) copies_left: u8,
    pub(super) losses_left: u8,
    pub(super) breaks_left: u8,
    /// The tokens of each node's grants, in their order.
    pub(super) grants: Vec<Vec<u64>>,
    /// The tokens that machines have returned to their clients, in that order, with the clients.
    pub(super) returned_tokens: Vec<(u8, u64)>,
}

/// A request on its way to Redis, or a copy of one that was executed already.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SentRequest {
    pub(super) from: u8,
    /// The index of the part that it concerns.
    pub(super) index: usize,
    pub(super) call: CallId,
    pub(super) script: Hashed<ScriptCall>,
    pub(super) executed: bool,
}

/// The possible next events; a number is an index into a list of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Begin(usize),
    /// A request is executed, and its reply arrives; or its reply is lost.
    Execute(usize),
    ExecuteAndLoseReply(usize),
    Break(usize, CallId),
    Timeout(usize),
    Cancel(usize),
    Release(usize),
    TimePasses,
}
