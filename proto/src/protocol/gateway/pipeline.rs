//! Several commands in one request, and the reply of each.
//!
//! Each command is on its own: commands of other clients may be executed in between, one that fails
//! stops none, and each has its own verdict. So unrelated calls may share a request, and if its
//! outcome is unknown, that of each call is.

use alloc::vec::Vec;

use super::body::Body;
use super::verdict::{failure, is_page, is_unknown_command};
use super::{Dialect, Gateway, GatewayCapabilities, Request, Response};
use crate::error::FailureKind;
use crate::protocol::script::ScriptCall;

/// The number of calls that are sent singly after a pipeline with an unknown outcome, before the
/// next pipeline.
const SINGLY: u32 = 64;

/// Whether the gateway is known to accept several commands in one request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pipeline {
    works: bool,
    doubted: bool,
    /// The number of calls that are still to be sent singly; `u32::MAX` for all.
    singly: u32,
}

/// The outcome of several commands in one request.
#[derive(Clone, Debug)]
pub enum PipelineOutcome {
    /// A response for each command, in their order, as a single request would have returned it.
    Each(Vec<Response>),
    /// One outcome for all commands.
    All(Result<Response, FailureKind>),
    /// The gateway has no such path, so no command was executed: send each call by itself.
    Unsupported,
}

impl Gateway {
    /// Whether a call may share a request with other calls.
    ///
    /// Excludes calls that wait for replicas, since all calls behind them would wait as well, and
    /// callers' own scripts: their duration is unknown, and their replies may be as large as a
    /// response may be.
    pub fn may_share(&self, call: &ScriptCall) -> bool {
        self.dialect == Dialect::Upstash && call.replicas().is_none() && call.sha1(false).is_some()
    }
}

impl Request {
    /// The largest number of commands in one request. They are executed one after the other, the
    /// first reply arrives with the last, and a lost response makes the client retry all of them.
    pub const SEVERAL_MAX: usize = 64;

    /// The largest total size of their commands, in bytes. 64 calls need a third of it, unless
    /// scripts are sent whole.
    pub const SEVERAL_BYTES_MAX: usize = 64 * 1024;

    /// Creates one request for the commands of several, which must be of one gateway and [may
    /// share](Gateway::may_share) one.
    pub fn several<'a>(first: &Self, others: impl Iterator<Item = &'a Self>) -> Self {
        let mut body = ["[", &first.body].concat();
        let mut sync_token = &first.sync_token;
        for other in others {
            body.push(',');
            body.push_str(&other.body);
            // The newest token is the last one.
            sync_token = &other.sync_token;
        }
        body.push(']');
        Self {
            url: [&first.url, "pipeline"].concat(),
            authorization: first.authorization.clone(),
            sync_token: sync_token.clone(),
            content_type: first.content_type,
            body,
        }
    }
}

impl GatewayCapabilities {
    /// Whether the next call is to share a request, if it [may](Gateway::may_share). Counts down
    /// the calls that are sent singly.
    pub const fn shares(&mut self) -> bool {
        let shares = self.pipeline.singly == 0;
        if !shares && self.pipeline.singly < u32::MAX {
            self.pipeline.singly -= 1;
        }
        shares
    }

    /// Splits the response to `count` commands in one request.
    pub fn pipeline_outcome(
        &mut self,
        result: Result<Response, FailureKind>,
        count: usize,
    ) -> PipelineOutcome {
        let response = match result {
            Ok(response) => response,
            Err(kind) => {
                // A request that was not sent proves nothing about the gateway. A response to fewer
                // calls may be small enough.
                if kind == FailureKind::TooLarge
                    || kind != FailureKind::NotSent && !self.pipeline.works
                {
                    self.pipeline.doubt();
                }
                return PipelineOutcome::All(Err(kind));
            }
        };
        let Response { status, sync_token, retry_after, body } = &response;
        if let Some(bodies) = Body::elements(body).filter(|bodies| bodies.len() == count) {
            self.pipeline = Pipeline { works: true, ..Pipeline::default() };
            let answer = |body: &[u8]| {
                let (sync_token, body) = (sync_token.clone(), body.to_vec());
                Response { status: *status, sync_token, retry_after: *retry_after, body }
            };
            return PipelineOutcome::Each(bodies.into_iter().map(answer).collect());
        }
        if *status == 401 {
            return PipelineOutcome::All(Ok(response));
        }
        // The gateway has no such path, or parses the path as a command.
        let is_command =
            |body| matches!(Body::read(body), Some(Body::Error(text)) if is_unknown_command(&text));
        if matches!(status, 404 | 405 | 501) || is_command(body) {
            self.pipeline = Pipeline { singly: u32::MAX, ..Pipeline::default() };
            return PipelineOutcome::Unsupported;
        }
        if is_page(*status, body) {
            self.pipeline.doubt();
            return PipelineOutcome::All(Ok(response));
        }
        // An error without a command: the gateway may have executed some of them before.
        let kind = response.told_of(failure(*status));
        if !self.pipeline.works || matches!(kind, FailureKind::Garbled { .. }) {
            self.pipeline.doubt();
        }
        PipelineOutcome::All(Err(kind))
    }

    /// Records that a caller has stopped waiting for the response to several commands.
    pub const fn unanswered(&mut self) {
        if !self.pipeline.works {
            self.pipeline.doubt();
        }
    }
}

impl Pipeline {
    /// Sends the next calls singly, then tries one more pipeline; after a second doubt, sends all
    /// calls singly.
    const fn doubt(&mut self) {
        if self.singly == 0 {
            self.singly = if self.doubted { u32::MAX } else { SINGLY };
            self.doubted = true;
        }
    }
}
