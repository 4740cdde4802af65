//! The network between clients and Redis: which messages it loses, delays and duplicates.

use edgelatch::protocol::script::ScriptCall;
use fastrand::Rng;

/// How many copies of one request there are at most.
pub(crate) const MAX_COPIES: u32 = 3;

/// Chances are in per cent, times in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Network {
    /// That a request never arrives, or a reply.
    pub(crate) lost: u32,
    pub(crate) reply_lost: u32,
    /// That a copy of a request arrives too, and after it another one.
    pub(crate) copied: u32,
    /// That a message is slow.
    pub(crate) slow: u32,
    /// The longest that a message takes: usually, when it is slow, and when it is a copy.
    pub(crate) usual_ms: u64,
    pub(crate) slow_ms: u64,
    pub(crate) copy_ms: u64,
}

/// A request that a client has sent.
#[derive(Debug)]
pub(crate) struct Request {
    /// The index of the client.
    pub(crate) client: usize,
    /// Counts the requests of the schedule, from 0.
    pub(crate) number: usize,
    /// Redis' clock when it was sent, in milliseconds.
    pub(crate) sent_at: u64,
    pub(crate) call: ScriptCall,
}

impl Request {
    pub(crate) fn script(&self) -> &'static str {
        self.call.script().name
    }
}

impl Network {
    /// How long one message takes.
    pub(super) fn delay(&self, rng: &mut Rng) -> u64 {
        let slow = rng.u32(0..100) < self.slow;
        rng.u64(1..=if slow { self.slow_ms } else { self.usual_ms })
    }
}
