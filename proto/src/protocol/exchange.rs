//! The exchange of one call: sends the script by its hash, as a whole, or without the key-locking
//! line, until one form is answered.
//!
//! An exchange never runs the script twice: an error that requires another form proves that nothing
//! was executed. Retries after a failure are up to the machine.

use crate::error::{FailureKind, Refusal, RefusalKind};
use crate::protocol::gateway::{Decoded, Form, Gateway, GatewayCapabilities, Request, Response};
use crate::protocol::reply::Reply;
use crate::protocol::script::ScriptCall;

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The script ran and returned this reply.
    Reply(Reply),
    /// The script did not run.
    Refused(Refusal),
    /// It is not known whether the script ran.
    Failed(FailureKind),
}

/// The next action of the caller.
#[derive(Debug)]
pub enum Step {
    /// Send this request, and pass its outcome to [`Exchange::answered`].
    Send(Request),
    /// The call has ended.
    Done(Answer),
}

/// A call in progress.
#[derive(Clone, Debug)]
pub struct Exchange {
    call: ScriptCall,
    form: Form,
    /// Whether an earlier form of the call was sent. Redis did not run it, but may run a copy of it
    /// once it knows the script.
    has_left: bool,
}

impl Exchange {
    /// Starts a call: returns the first request, or a refusal if the dialect cannot express the
    /// call.
    pub fn new(
        gateway: &Gateway,
        call: ScriptCall,
        capabilities: &GatewayCapabilities,
    ) -> (Self, Step) {
        let form = capabilities.form(gateway, call.script());
        let exchange = Self { call, form, has_left: false };
        let step = if gateway.can_send(&exchange.call) {
            Step::Send(exchange.request(gateway, capabilities))
        } else {
            Step::Done(Answer::Refused(Refusal::new(RefusalKind::Unsupported, "")))
        };
        (exchange, step)
    }

    /// Whether the call [may share](Gateway::may_share) a request with other calls.
    pub fn may_share(&self, gateway: &Gateway) -> bool {
        gateway.may_share(&self.call)
    }

    /// Continues with the outcome of the last request.
    ///
    /// Ends after at most three requests: each is in a form that was not sent before.
    pub fn answered(
        &mut self,
        gateway: &Gateway,
        result: Result<Response, FailureKind>,
        capabilities: &mut GatewayCapabilities,
    ) -> Step {
        let response = match result {
            Ok(response) => response,
            Err(FailureKind::NotSent) if self.has_left => {
                return Step::Done(Answer::Failed(FailureKind::Broken));
            }
            Err(kind) => return Step::Done(Answer::Failed(kind)),
        };
        capabilities.note(&response);
        if self.form.whole {
            capabilities.received_whole(self.call.script());
        }
        let status = response.status;
        let garbled = Answer::Failed(FailureKind::Garbled { status });
        match gateway.decode(&self.call, self.form, &response) {
            // An earlier response came from a gateway, so this page or error has replaced a
            // gateway's response.
            decoded if self.has_left && decoded.denies_gateway() => Step::Done(garbled),
            Decoded::Cells { cells, acknowledged } => {
                let reply = Reply::read(&cells, self.call.request);
                let with = |reply| Answer::Reply(Reply { acknowledged, ..reply });
                Step::Done(reply.map_or(garbled, with))
            }
            Decoded::UnknownHash if !self.form.whole => {
                capabilities.lacks_script();
                self.again(Form { whole: true, ..self.form }, gateway, capabilities)
            }
            // The request contained no hash.
            Decoded::UnknownHash => Step::Done(garbled),
            Decoded::HashesRefused(_) if !self.form.whole => {
                capabilities.refuses_hashes();
                self.again(Form { whole: true, ..self.form }, gateway, capabilities)
            }
            Decoded::KeyLockingRefused(_)
                if self.form.key_locking && gateway.may_drop_key_locking() =>
            {
                capabilities.refuses_key_locking();
                self.again(Form { key_locking: false, ..self.form }, gateway, capabilities)
            }
            // The project's own scripts compile, so the error is in the caller's.
            Decoded::CompileError(_, diagnostic) if self.call.is_callers() => {
                Step::Done(Answer::Refused(Refusal::of_script(diagnostic)))
            }
            Decoded::KeyLockingRefused(_) if !self.form.key_locking && self.call.is_callers() => {
                Step::Done(Answer::Refused(Refusal::of_script("unexpected symbol near '#'".into())))
            }
            Decoded::CompileError(refusal, _)
            | Decoded::HashesRefused(refusal)
            | Decoded::KeyLockingRefused(refusal)
            | Decoded::Refused(refusal) => Step::Done(Answer::Refused(refusal)),
            Decoded::Indeterminate(kind) => Step::Done(Answer::Failed(kind)),
        }
    }

    fn again(&mut self, form: Form, gateway: &Gateway, capabilities: &GatewayCapabilities) -> Step {
        (self.form, self.has_left) = (form, true);
        Step::Send(self.request(gateway, capabilities))
    }

    fn request(&self, gateway: &Gateway, capabilities: &GatewayCapabilities) -> Request {
        gateway.encode(&self.call, self.form, capabilities.sync_token())
    }
}
