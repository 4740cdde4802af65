//! What is learned about a gateway on the way.

use alloc::string::String;

use super::pipeline::Pipeline;
use super::{Gateway, KeyLocking, Response};

/// What a client has learned about its gateway. Data only: safe to share between the requests of a
/// Worker.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    whole_only: bool,
    no_key_locking: bool,
    sync_token: Option<String>,
    pub(super) pipeline: Pipeline,
}

impl Memory {
    /// How the next call is to be sent.
    pub(crate) fn form(&self, gateway: &Gateway) -> Form {
        let key_locking = match gateway.key_locking {
            KeyLocking::Auto => gateway.upstash_host && !self.no_key_locking,
            KeyLocking::On => true,
            KeyLocking::Off => false,
        };
        Form { whole: self.whole_only, key_locking }
    }

    /// The gateway refuses `EVALSHA` as such.
    pub(crate) const fn refuses_hashes(&mut self) {
        self.whole_only = true;
    }

    /// The gateway refuses the key-locking line.
    pub(crate) const fn refuses_key_locking(&mut self) {
        self.no_key_locking = true;
    }

    /// What the next request carries so that it reads what the last one wrote.
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

/// In which form a call is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// `EVAL` with the text, not `EVALSHA` with its hash.
    pub whole: bool,
    /// With the key-locking line.
    pub key_locking: bool,
}
