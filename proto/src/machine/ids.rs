//! The values that a machine draws from its entropy: owners, request ids, jitter.

use core::fmt;
use core::time::Duration;

use uuid::Uuid;

use super::CallId;
use crate::name::{OwnerId, RequestId};
use crate::time::millis;

/// 256 bits from the host, drawn afresh for each machine. Not shown by `Debug`.
#[derive(Clone)]
pub struct Entropy([u8; 32]);

impl Entropy {
    /// Wraps bytes of a cryptographic source; anything weaker makes owners guessable.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A seed for jitter.
    pub(crate) fn seed(&self) -> u64 {
        self.0.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy(..)")
    }
}

/// The generator of a machine's ids and random times. It is deterministic: equal machines draw
/// equal values, so a model checker can compare them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Ids {
    /// The random part of every owner of the machine.
    owner: [u8; 16],
    /// The last request id.
    request: u64,
    /// The number of calls created.
    calls: u32,
    /// State of the jitter's generator.
    jitter: u64,
}

/// Omits the ids: an owner is enough to release its hold.
impl fmt::Debug for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ids(..)")
    }
}

impl Ids {
    pub(super) fn new(Entropy(bytes): Entropy) -> Self {
        let (owner, rest) = bytes.split_first_chunk::<16>().unwrap_or((&[0; 16], &[]));
        let (request, rest) = rest.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
        let (seed, _) = rest.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
        Self {
            owner: *owner,
            request: u64::from_le_bytes(*request),
            calls: 0,
            jitter: u64::from_le_bytes(*seed),
        }
    }

    /// Creates the ids of a request that ends the hold of `owner`. They are the same each time,
    /// since an owner ends only once. Half of the owner's bits stay hidden from a reader of the
    /// request id.
    pub(super) fn of(owner: OwnerId) -> Self {
        let (high, low) = Uuid::from_bytes(owner.entropy()).as_u64_pair();
        let mixed = high ^ low;
        Self { owner: owner.entropy(), request: mixed, calls: 0, jitter: mixed }
    }

    /// The owner of the round with this number.
    pub(super) fn owner(&self, round: u32) -> OwnerId {
        OwnerId::new(self.owner, round)
    }

    /// A request id that this machine has not used.
    pub(super) const fn request(&mut self) -> RequestId {
        self.request = self.request.wrapping_add(1);
        RequestId::new(self.request)
    }

    /// A call id that this machine has not used.
    pub(super) const fn call(&mut self) -> CallId {
        self.calls = self.calls.wrapping_add(1);
        CallId(self.calls)
    }

    /// The number of calls created.
    pub(super) const fn calls(&self) -> u32 {
        self.calls
    }

    /// Full jitter: returns a random time between zero and `step`.
    pub(super) fn jitter(&mut self, step: Duration) -> Duration {
        let mut jitter = fastrand::Rng::with_seed(self.jitter);
        let pause = Duration::from_millis(jitter.u64(..=millis(step)));
        self.jitter = jitter.get_seed();
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_ends_a_hold_depends_on_every_bit_of_its_owner() {
        let request = |entropy| Ids::of(OwnerId::new(entropy, 1)).request().to_text();
        for base in [[0; 16], [0xff; 16], [0x5a; 16]] {
            for bit in 0..128 {
                let mut other = base;
                other[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(request(other), request(base), "{base:?} {bit}");
            }
        }
    }
}
