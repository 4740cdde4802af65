//! Several commands in one request, and the answer of each.
//!
//! Each command is on its own: others may be executed in between, one that fails stops none, and
//! each has its own verdict. So calls that have nothing to do with each other may travel together,
//! and what is not known of the request is not known of any.

use alloc::vec::Vec;

use super::body::Body;
use super::verdict::{failure, is_page, is_unknown_command};
use super::{Dialect, Gateway, Memory, Request, Response};
use crate::error::FailureKind;
use crate::protocol::script::ScriptCall;

/// How many calls are sent singly after a pipeline of which nothing is known, before the next is
/// tried.
const SINGLY: u32 = 64;

/// Whether the gateway is known to take several commands in one request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pipeline {
    works: bool,
    doubted: bool,
    /// How many calls are still to be sent singly; `u32::MAX` for all.
    singly: u32,
}

/// What came of several commands in one request.
#[derive(Clone, Debug)]
pub enum Answers {
    /// An answer for each, in their order, as it would have come to each alone.
    Each(Vec<Response>),
    /// The same for each.
    All(Result<Response, FailureKind>),
    /// The gateway has no such path, so nothing was done: send each by itself.
    NotTaken,
}

impl Gateway {
    /// Whether a call may share a request with others.
    ///
    /// Not one that waits for replicas: all that come behind it would wait as well. Not a caller's
    /// own script: nobody knows how long it runs, and its answer may be as large as a response may
    /// be.
    pub fn may_share(&self, call: &ScriptCall) -> bool {
        self.dialect == Dialect::Upstash && call.replicas().is_none() && call.sha1(false).is_some()
    }
}

impl Request {
    /// The most commands in one request. They are executed one after the other, and the first is
    /// answered with the last; when the answer is lost, all of them are asked again.
    pub const SEVERAL_MAX: usize = 64;

    /// The most bytes of their commands together: 64 calls have a third of it, but for scripts that
    /// are sent whole.
    pub const SEVERAL_BYTES_MAX: usize = 64 * 1024;

    /// One request for the commands of several, which must be of one gateway and [may
    /// share](Gateway::may_share) one.
    pub fn several<'a>(first: &Self, others: impl Iterator<Item = &'a Self>) -> Self {
        let mut body = ["[", &first.body].concat();
        let mut sync_token = &first.sync_token;
        for other in others {
            body.push(',');
            body.push_str(&other.body);
            // The newest is the last.
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

impl Memory {
    /// Whether the next call is to share a request if it [may](Gateway::may_share).
    pub const fn shares(&mut self) -> bool {
        let shares = self.pipeline.singly == 0;
        if !shares && self.pipeline.singly < u32::MAX {
            self.pipeline.singly -= 1;
        }
        shares
    }

    /// What the answer to so many commands in one request says of each.
    pub fn answers(&mut self, result: Result<Response, FailureKind>, count: usize) -> Answers {
        let response = match result {
            Ok(response) => response,
            Err(kind) => {
                // What did not leave tells nothing of the gateway; a smaller answer may fit.
                if kind == FailureKind::TooLarge
                    || kind != FailureKind::NotSent && !self.pipeline.works
                {
                    self.pipeline.doubt();
                }
                return Answers::All(Err(kind));
            }
        };
        let Response { status, sync_token, retry_after, body } = &response;
        if let Some(bodies) = Body::elements(body).filter(|bodies| bodies.len() == count) {
            self.pipeline = Pipeline { works: true, ..Pipeline::default() };
            let answer = |body: &[u8]| {
                let (sync_token, body) = (sync_token.clone(), body.to_vec());
                Response { status: *status, sync_token, retry_after: *retry_after, body }
            };
            return Answers::Each(bodies.into_iter().map(answer).collect());
        }
        if *status == 401 {
            return Answers::All(Ok(response));
        }
        // No such path, or one that is taken for a command.
        let is_command =
            |body| matches!(Body::read(body), Some(Body::Error(text)) if is_unknown_command(&text));
        if matches!(status, 404 | 405 | 501) || is_command(body) {
            self.pipeline = Pipeline { singly: u32::MAX, ..Pipeline::default() };
            return Answers::NotTaken;
        }
        if is_page(*status, body) {
            self.pipeline.doubt();
            return Answers::All(Ok(response));
        }
        // An error that is nobody's in particular: whoever said it may have executed some of them
        // before.
        let kind = response.told_of(failure(*status));
        if !self.pipeline.works || matches!(kind, FailureKind::Garbled { .. }) {
            self.pipeline.doubt();
        }
        Answers::All(Err(kind))
    }

    /// Somebody has waited in vain for the answer to several commands in one request.
    pub const fn unanswered(&mut self) {
        if !self.pipeline.works {
            self.pipeline.doubt();
        }
    }
}

impl Pipeline {
    /// Once more later, and then never again unless it works.
    const fn doubt(&mut self) {
        if self.singly == 0 {
            self.singly = if self.doubted { u32::MAX } else { SINGLY };
            self.doubted = true;
        }
    }
}
