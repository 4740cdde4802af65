//! Idempotent requests: Redis records the reply under the request id, so a copy is not executed
//! again.

use alloc::boxed::Box;
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use crate::name::{LockName, RequestId};
use crate::protocol::key;
use crate::protocol::script::{Bound, Publish, Script, ScriptCall, scripts};
use crate::timing::ONCE_WINDOW;

/// An idempotent request, without its id and its bound.
///
/// KEYS 1 is the record of the request, ARGV 5 the window for which it is kept beyond the bound:
/// see `scripts/parts/once.lua`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IdempotentCall {
    /// Boxed, since every machine passes calls on.
    parts: Box<Parts>,
}

/// The parts of a request.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Parts {
    script: &'static Script,
    /// A caller's script, which precedes the script's text as its function `own`.
    callers: Option<Arc<str>>,
    name: LockName,
    publish: Publish,
    keys: Vec<String>,
    args: Vec<String>,
}

/// Omits keys and arguments: they contain names.
impl core::fmt::Debug for IdempotentCall {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "IdempotentCall({})", self.parts.script.name)
    }
}

impl IdempotentCall {
    /// Creates a request about the object `name`, with the keys that follow its record.
    pub(crate) fn new(
        script: &'static Script,
        name: LockName,
        publish: Publish,
        keys: Vec<String>,
    ) -> Self {
        let parts = Parts { script, callers: None, name, publish, keys, args: Vec::new() };
        Self { parts: Box::new(parts) }
    }

    /// Puts a caller's script in front of the script.
    pub(crate) fn with_own(mut self, text: Arc<str>) -> Self {
        self.parts.callers = Some(text);
        self
    }

    /// Adds an argument, from ARGV 6 on.
    pub(crate) fn arg(mut self, arg: impl Into<String>) -> Self {
        self.parts.args.push(arg.into());
        self
    }

    /// Adds a number.
    pub(crate) fn number(self, number: u32) -> Self {
        self.arg(u64::from(number).to_string())
    }

    /// Builds the call of this request under an id and a bound.
    pub fn call(&self, request: RequestId, bound: Bound) -> ScriptCall {
        let mut keys = vec![key::record(&self.parts.name, request)];
        keys.extend_from_slice(&self.parts.keys);
        let mut call = ScriptCall::new(self.parts.script, request, bound, self.parts.publish, keys)
            .ms(ONCE_WINDOW);
        if let Some(text) = &self.parts.callers {
            call = call.with_own(Arc::clone(text));
        }
        self.parts.args.iter().fold(call, ScriptCall::arg)
    }

    /// Builds the call that cancels the request of this id, or returns its reply if it was
    /// executed. `bound` is the request's own.
    pub fn cancel(&self, request: RequestId, bound: Bound) -> ScriptCall {
        let keys = vec![key::record(&self.parts.name, request)];
        ScriptCall::new(&scripts::CANCEL, request, bound, self.parts.publish, keys).ms(ONCE_WINDOW)
    }
}
