//! The capabilities of a gateway, as learned from its responses.

use alloc::string::String;

use super::pipeline::Pipeline;
use super::{Gateway, KeyLocking, Response};
use crate::protocol::script::{Script, ScriptSet};

/// The learned capabilities of a gateway. Contains only data, so the requests of a Worker may share
/// it.
#[derive(Clone, Debug, Default)]
pub struct GatewayCapabilities {
    whole_only: bool,
    /// The scripts that were sent whole since Redis lacked one; `None` if it has lacked none.
    sent_whole: Option<ScriptSet>,
    no_key_locking: bool,
    sync_token: Option<String>,
    pub(super) pipeline: Pipeline,
}

impl GatewayCapabilities {
    /// The form of the next call of `script`.
    ///
    /// Redis forgets all scripts at once. So once it has lacked one, each of the others is sent
    /// whole with the next call that needs it.
    pub(crate) fn form(&self, gateway: &Gateway, script: &Script) -> Form {
        let key_locking = match gateway.key_locking {
            KeyLocking::Auto => gateway.upstash_host && !self.no_key_locking,
            KeyLocking::On => true,
            KeyLocking::Off => false,
        };
        let lacks = self.sent_whole.is_some_and(|sent| !sent.contains(script));
        Form { whole: self.whole_only || lacks, key_locking }
    }

    /// Records that Redis lacks a script.
    pub(crate) const fn lacks_script(&mut self) {
        self.sent_whole = Some(ScriptSet::EMPTY);
    }

    /// Records a response to a whole script.
    pub(crate) const fn received_whole(&mut self, script: &Script) {
        if let Some(sent) = &mut self.sent_whole {
            sent.insert(script);
        }
    }

    /// Records that the gateway refuses `EVALSHA`.
    pub(crate) const fn refuses_hashes(&mut self) {
        self.whole_only = true;
    }

    /// Records that the gateway refuses the key-locking line.
    pub(crate) const fn refuses_key_locking(&mut self) {
        self.no_key_locking = true;
    }

    /// The token of the next request, which then reads the writes of the last one.
    pub(crate) fn sync_token(&self) -> Option<String> {
        self.sync_token.clone()
    }

    /// Keeps the newest sync token.
    pub(crate) fn note(&mut self, response: &Response) {
        if response.sync_token.is_some() {
            self.sync_token.clone_from(&response.sync_token);
        }
    }
}

/// The form in which a call is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Sends `EVAL` with the text, not `EVALSHA` with its hash.
    pub whole: bool,
    /// Includes the key-locking line.
    pub key_locking: bool,
}
