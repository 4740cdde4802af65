//! Records what clients observe for the judge of histories, and nothing else.

use std::time::Duration;

use edgelatch::Lease;
use edgelatch::client::Released;
use edgelatch::error::{AcquireError, ReleaseError, RequestError};

use super::engine::Sim;
use super::faults::Fault;
use super::host::Place;
use super::objects::NAMES;
use super::plan::Kind;
use super::wire::Wire;
use test_support::history::{Act, Claim, Count, Ground, Hold, Loss, NEVER, Share, Take, Told};

/// The numbers of Redisson's owners start here.
const JAVA: u32 = 1 << 20;

impl Sim {
    /// Sets the assumptions before the first fault.
    pub(crate) fn lays_ground(&self) {
        let counts = matches!(self.plan.kind, Kind::Semaphore | Kind::Permits);
        let drifts = self.plan.has(Fault::Drift);
        self.history.borrow_mut().ground = Ground {
            permits: counts.then_some((self.plan.permits, NEVER)),
            losses: drifts.then_some(Loss { from: 0, to: NEVER }).into_iter().collect(),
            tokens_until: None,
            queues: matches!(self.plan.kind, Kind::Fair | Kind::ReadWrite),
            lingers: self.plan.kind == Kind::Group,
            partial: self.plan.kind == Kind::Red,
        };
    }

    /// Redis may have lost data. Without `tokens`, tokens may not rise any more from now on.
    pub(crate) fn loses(&self, tokens: bool) {
        let (now, ground) = (self.now(), &mut self.history.borrow_mut().ground);
        // Permits that a client sets up again exceed the number at the start once earlier holders
        // return theirs.
        let to = if ground.permits.is_some() { NEVER } else { now };
        ground.losses.push(Loss { from: now, to });
        if !tokens {
            ground.tokens_until.get_or_insert(now);
        }
    }

    /// The permits are set up now.
    pub(crate) fn has_permits(&self) {
        let (now, ground) = (self.now(), &mut self.history.borrow_mut().ground);
        ground.permits = ground.permits.map(|(permits, since)| (permits, since.min(now)));
    }

    /// A client starts an acquisition; returns its number.
    pub(crate) fn invokes(&self, claims: &[Claim], lease: Duration) -> usize {
        self.history.borrow_mut().invokes(self.now(), claims, lease)
    }

    /// A Redisson client acquires a lock, for `time` microseconds at most.
    pub(crate) fn java_may_hold(&self, time: u64) {
        let takes = &mut self.history.borrow_mut().takes;
        takes.push(Take {
            owner: JAVA + takes.len() as u32,
            claims: [Claim { name: 0, share: Share::Alone }].into(),
            invoked: self.now(),
            completed: NEVER,
            lease: time,
            told: Told::Unknown { over: self.now() + time + 2_000 },
        });
    }

    pub(crate) fn is_told_held(&self, take: usize, lease: &Lease<Wire, Place>) {
        let several = self.plan.kind == Kind::Multi;
        let token = |claim: &Claim| match several {
            true => Some(lease.token_of(NAMES[usize::from(claim.name)])?.as_u64()),
            false => Some(lease.token().as_u64()),
        };
        let tokens = self.history.borrow().takes[take].claims.iter().map(token).collect();
        let count = Some(lease.hold_count());
        let hold = Hold { tokens, count, ..Hold::default() };
        self.history.borrow_mut().is_told(self.now(), take, Told::Held(hold));
        self.sees(take, lease);
    }

    pub(crate) fn is_told_no(&self, take: usize, error: &AcquireError) {
        self.history.borrow_mut().is_told_no(self.now(), take, error);
    }

    /// A holder reads its remaining lease.
    pub(crate) fn sees(&self, take: usize, lease: &Lease<Wire, Place>) {
        self.history.borrow_mut().sees(self.now(), take, lease.remaining());
    }

    /// Redis has confirmed that a hold existed at some time since `after`.
    pub(crate) fn stood(&self, take: usize, after: u64) {
        self.history.borrow_mut().stood(self.now(), take, after);
    }

    /// Redis has reported that a hold does not exist any more.
    pub(crate) fn is_gone(&self, take: usize) {
        self.history.borrow_mut().is_gone(self.now(), take);
    }

    pub(crate) fn asks_to_release(&self, take: usize) {
        self.history.borrow_mut().asks_to_release(self.now(), take);
    }

    pub(crate) fn is_told_of_release(&self, take: usize, answer: &Result<Released, ReleaseError>) {
        self.history.borrow_mut().is_told_of_release(self.now(), take, answer);
    }

    /// A client starts a call to a latch, which may be executed even if its result stays unknown.
    /// Returns its number.
    pub(crate) fn counts(&self, act: Act) -> usize {
        let counts = &mut self.history.borrow_mut().counts;
        counts.push(Count { name: 0, invoked: self.now(), completed: NEVER, act });
        counts.len() - 1
    }

    pub(crate) fn has_counted<T>(
        &self,
        count: usize,
        answer: Result<T, RequestError>,
        act: impl FnOnce(T) -> Act,
    ) {
        let history = &mut self.history.borrow_mut();
        let has_lost = !history.ground.losses.is_empty();
        let count = &mut history.counts[count];
        count.completed = self.now();
        match answer {
            Ok(answer) => count.act = act(answer),
            Err(RequestError::NotExecuted(_) | RequestError::Refused(_)) if !has_lost => {
                count.act = Act::Nothing;
            }
            // Redis may have lost the record of the call together with other data.
            Err(_) => {}
        }
    }

    /// The judge's verdict on the history.
    pub(crate) fn judge(&self) -> Option<String> {
        self.history.borrow().judge().err().map(|what| format!("{what} (by its history)"))
    }
}
