//! The network between clients and Redis: which messages it loses, delays and duplicates.

use edgelatch_proto::protocol::script::ScriptCall;
use fastrand::Rng;

/// The largest number of copies of one request.
pub(crate) const MAX_COPIES: u32 = 3;

/// Probabilities are in per cent, times in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Network {
    /// The probability that a request never arrives, and that a reply does not.
    pub(crate) lost: u32,
    pub(crate) reply_lost: u32,
    /// The probability that a copy of a request arrives too, and after it another one.
    pub(crate) copied: u32,
    /// The probability that a message is slow.
    pub(crate) slow: u32,
    /// The longest delay of a message: usually, when it is slow, and when it is a copy.
    pub(crate) usual_ms: u64,
    pub(crate) slow_ms: u64,
    pub(crate) copy_ms: u64,
}

/// A request that a client has sent.
#[derive(Debug)]
pub(crate) struct Request {
    /// The index of the client.
    pub(crate) client: usize,
    /// The number of the request in the schedule, from 0.
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
    /// Draws how long one message takes.
    pub(super) fn delay(&self, rng: &mut Rng) -> u64 {
        let slow = rng.u32(0..100) < self.slow;
        rng.u64(1..=if slow { self.slow_ms } else { self.usual_ms })
    }
}
