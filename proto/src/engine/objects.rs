//! The specifications of locks of one name, by their kinds.

use super::{EndpointId, Engine, LockSpec, MemberSpec, Side};
use crate::error::InvalidOption;
use crate::machine::{Pacing, SpinBackoff};
use crate::name::LockName;
use crate::protocol::calls::{
    FairCalls, FairReadWriteCalls, FairSettings, GroupCalls, LockCalls, Member, ReadCalls, Target,
    WriteCalls,
};
use crate::protocol::script::Publish;
use crate::timing::{LeaseTime, PeerSkew, WantTime};

impl Engine {
    /// A lock that an owner can acquire again if it `reenters`.
    pub fn lock(&self, to: EndpointId, name: LockName, reenters: bool) -> LockSpec {
        let target = Target::Lock(LockCalls::new(name, self.announces(to)));
        self.one_lock(member(to, target, Pacing::Jittered), None, Side::Whole, reenters)
    }

    /// A lock whose waiters only poll, at the intervals of `backoff`.
    ///
    /// # Errors
    /// [`InvalidOption`] if a pause is out of range.
    pub fn spin_lock(
        &self,
        to: EndpointId,
        name: LockName,
        backoff: SpinBackoff,
    ) -> Result<LockSpec, InvalidOption> {
        let target = Target::Lock(LockCalls::new(name, self.announces(to)));
        let spin = member(to, target, Pacing::Spin(backoff.check()?));
        Ok(self.one_lock(spin, None, Side::Whole, true))
    }

    /// A lock whose last fencing token Redis keeps for ever.
    pub fn fenced_lock(&self, to: EndpointId, name: LockName) -> LockSpec {
        let member = Member { name, fenced: true };
        let calls = LockCalls::of_several(member, [].into(), self.announces(to));
        self.jittered(to, Target::Lock(calls))
    }

    /// A lock that serves waiters in the order of their arrival.
    pub fn fair_lock(
        &self,
        to: EndpointId,
        name: LockName,
        settings: FairSettings,
        reenters: bool,
    ) -> LockSpec {
        let target = Target::Fair(FairCalls::new(name, settings, self.announces(to)));
        self.one_lock(member(to, target, Pacing::Queue), None, Side::Whole, reenters)
    }

    /// The read side of a lock. Each request to Redis has at most the lease `lease_max`.
    pub fn read_lock(
        &self,
        to: EndpointId,
        name: LockName,
        lease_max: Option<LeaseTime>,
    ) -> LockSpec {
        let target = Target::Read(ReadCalls::new(name, self.announces(to)));
        self.one_lock(member(to, target, Pacing::Jittered), lease_max, Side::Read, true)
    }

    /// The write side of a lock. With `want`, a refused writer blocks new readers for that time.
    pub fn write_lock(&self, to: EndpointId, name: LockName, want: Option<WantTime>) -> LockSpec {
        let mut calls = WriteCalls::new(name, self.announces(to));
        if let Some(want) = want {
            calls = calls.prefers_writers(want);
        }
        let target = Target::Write(calls);
        self.one_lock(member(to, target, Pacing::Jittered), None, Side::Write, true)
    }

    /// A side of a fair read-write lock, or a steal of its exclusive side.
    pub fn fair_read_write_lock(&self, to: EndpointId, calls: FairReadWriteCalls) -> LockSpec {
        let side = if calls.is_exclusive() { Side::Exclusive } else { Side::Shared };
        let target = Target::FairReadWrite(calls);
        self.one_lock(member(to, target, Pacing::Queue), None, side, true)
    }

    /// A lock on a set of values of a group.
    ///
    /// # Errors
    /// [`InvalidOption`] unless there are 1 to 1000 values.
    pub fn group_lock<V: AsRef<[u8]>>(
        &self,
        to: EndpointId,
        group: LockName,
        values: impl IntoIterator<Item = V>,
        skew: PeerSkew,
    ) -> Result<LockSpec, InvalidOption> {
        let calls = GroupCalls::new(group, values, skew, self.announces(to))?;
        let side = Side::Values(calls.fields().to_vec());
        let group = member(to, Target::Group(calls), Pacing::Jittered);
        Ok(self.one_lock(group, None, side, true))
    }

    /// A lock, or a number of permits, whose waiters retry at jittered intervals.
    pub fn jittered(&self, to: EndpointId, target: Target) -> LockSpec {
        self.one_lock(member(to, target, Pacing::Jittered), None, Side::Whole, true)
    }

    /// How the scripts for this gateway announce releases.
    pub fn announces(&self, to: EndpointId) -> Publish {
        self.endpoint(to).map_or(Publish::Plain, |endpoint| endpoint.gateway.announces())
    }
}

const fn member(endpoint: EndpointId, target: Target, pacing: Pacing) -> MemberSpec {
    MemberSpec { endpoint, target, pacing }
}
