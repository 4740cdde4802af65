//! The network between clients and Redis: which messages it loses, delays and duplicates. Redisson
//! programs call the model directly, since only this library's requests have to tolerate it.

use edgelatch_proto::protocol::script::ScriptCall;
use fastrand::Rng;

/// The largest number of copies of one request.
pub(crate) const MAX_COPIES: u32 = 3;

/// Probabilities are in per cent, times in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Network {
    /// The probability that a request does not arrive. Its copies may still arrive.
    pub(crate) loss_percent: u32,
    /// The probability that a reply does not arrive.
    pub(crate) reply_loss_percent: u32,
    /// The probability of the first copy of a request, and of each further one if there was one
    /// before, up to [`MAX_COPIES`].
    pub(crate) copy_percent: u32,
    /// The probability that a request or reply takes up to `max_slow_delay_ms` instead of
    /// `max_delay_ms`.
    pub(crate) slow_percent: u32,
    /// The longest delay of a usual message.
    pub(crate) max_delay_ms: u64,
    /// The longest delay of a slow message.
    pub(crate) max_slow_delay_ms: u64,
    /// The longest delay of a copy.
    pub(crate) max_copy_delay_ms: u64,
}

/// A request that a client has sent.
#[derive(Debug)]
pub(crate) struct Request {
    /// The index of the client.
    pub(crate) client: usize,
    /// The number of the request in the schedule, from 0, in the order of sending.
    pub(crate) number: usize,
    /// Redis' clock when it was sent, in milliseconds.
    pub(crate) sent_at: u64,
    pub(crate) call: ScriptCall,
}

/// Indices of the arguments that many scripts have in common: one less than their numbers in the
/// header of the script.
pub(crate) mod arg {
    pub(crate) const REQUEST_ID: usize = 0;
    pub(crate) const NOT_AFTER: usize = 1;
    /// The owner field, in scripts of one owner's hold.
    pub(crate) const OWNER: usize = 4;
    pub(crate) const LEASE_MS: usize = 5;
    /// `1` for a last try.
    pub(crate) const LAST_TRY: usize = 6;
    /// The operation, in scripts that change permits or counts.
    pub(crate) const OPERATION: usize = 5;
    pub(crate) const AMOUNT: usize = 6;
}

impl Request {
    /// The name of its script.
    pub(crate) fn script(&self) -> &'static str {
        self.call.script().name
    }
}

impl Network {
    /// Draws the delay of one message that is not a copy, in milliseconds.
    pub(super) fn delay(&self, rng: &mut Rng) -> u64 {
        let slow = rng.u32(0..100) < self.slow_percent;
        rng.u64(1..=if slow { self.max_slow_delay_ms } else { self.max_delay_ms })
    }
}
