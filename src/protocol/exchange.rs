//! One call, brought to an answer: the same script by its hash, as a whole, or without the
//! key-locking line.
//!
//! No attempt of an exchange is a repetition that the script could notice: an error that asks for
//! another form says that nothing was run. Repeating after a failure is the machine's business.

use crate::error::{FailureKind, Refusal, RefusalKind};
use crate::protocol::gateway::{Decoded, Form, Gateway, Memory, Request, Response};
use crate::protocol::reply::Reply;
use crate::protocol::script::ScriptCall;

/// How a call ended: the three outcomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The script ran and said this.
    Reply(Reply),
    /// A clear no: it did not run.
    Refused(Refusal),
    /// Nothing tells whether it ran.
    Failed(FailureKind),
}

/// What to do next.
#[derive(Debug)]
pub enum Step {
    /// Send this, and say what came of it.
    Send(Request),
    /// The call has ended.
    Done(Answer),
}

/// A call on its way.
#[derive(Debug)]
pub struct Exchange<'a> {
    gateway: &'a Gateway,
    call: &'a ScriptCall,
    form: Form,
    /// Whether an earlier form of it has left. It was not run, but a copy of it may be, once Redis
    /// knows the script.
    has_left: bool,
}

impl<'a> Exchange<'a> {
    /// Begins: the request to send first, or a refusal of what the gateway has no words for.
    pub fn new(gateway: &'a Gateway, call: &'a ScriptCall, memory: &Memory) -> (Self, Step) {
        let exchange = Self { gateway, call, form: memory.form(gateway), has_left: false };
        let step = if gateway.can_send(call) {
            Step::Send(exchange.request(memory))
        } else {
            Step::Done(Answer::Refused(Refusal::new(RefusalKind::Unsupported, "")))
        };
        (exchange, step)
    }

    /// Goes on with what came of the last request.
    ///
    /// Ends after three requests at the most: each further one is in a form that has not been sent
    /// before.
    pub fn answered(&mut self, result: Result<Response, FailureKind>, memory: &mut Memory) -> Step {
        let response = match result {
            Ok(response) => response,
            Err(FailureKind::NotSent) if self.has_left => {
                return Step::Done(Answer::Failed(FailureKind::Broken));
            }
            Err(kind) => return Step::Done(Answer::Failed(kind)),
        };
        memory.note(&response);
        let status = response.status;
        let garbled = Answer::Failed(FailureKind::Garbled { status });
        match self.gateway.decode(self.call, self.form, &response) {
            // An earlier response was a gateway's, so this one stands in place of a gateway's.
            decoded if self.has_left && decoded.denies_gateway() => Step::Done(garbled),
            Decoded::Cells { cells, acknowledged } => {
                let reply = Reply::read(&cells, self.call.request);
                let with = |reply| Answer::Reply(Reply { acknowledged, ..reply });
                Step::Done(reply.map_or(garbled, with))
            }
            Decoded::UnknownHash if !self.form.whole => {
                self.again(Form { whole: true, ..self.form }, memory)
            }
            // Told that it does not know a script by a hash that it was not sent.
            Decoded::UnknownHash => Step::Done(garbled),
            Decoded::HashesRefused(_) if !self.form.whole => {
                memory.refuses_hashes();
                self.again(Form { whole: true, ..self.form }, memory)
            }
            Decoded::KeyLockingRefused(_)
                if self.form.key_locking && self.gateway.may_drop_key_locking() =>
            {
                memory.refuses_key_locking();
                self.again(Form { key_locking: false, ..self.form }, memory)
            }
            // The project's own scripts compile, so the caller's does not.
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

    fn again(&mut self, form: Form, memory: &Memory) -> Step {
        (self.form, self.has_left) = (form, true);
        Step::Send(self.request(memory))
    }

    fn request(&self, memory: &Memory) -> Request {
        self.gateway.encode(self.call, self.form, memory.sync_token())
    }
}
