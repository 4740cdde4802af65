//! Histories: the calls of clients and the responses that they received, with their times. The
//! checker decides afterwards whether a history is possible under the promises I1 to I6 and I10 of
//! `docs/reliability.md`. It uses only facts that a client can see.
//!
//! * `record` appends calls and responses to a history while a test runs.
//! * `holds` checks that holds exclude each other (I1), that their tokens rise (I2), that their
//!   ends are possible (I3, I4) and that re-entrant holds are counted (I5).
//! * `refusals` checks that another client explains each refusal (I10).
//! * `latches` checks that some order of the calls explains each response of a latch (I6).
//!
//! All times, deadlines too, are microseconds of the test's own clock. The clocks of the clients
//! may be wrong. So `record` shortens a remaining lease that a holder reads by the largest error of
//! its clock, and lengthens the bound of an unknown outcome by it.
//!
//! A hold certainly exists in its *certain period*: from the response that granted it, which the
//! client received after Redis had executed the call, up to the last time that an observation
//! proves. See [`Acquisition::certain_period`]. Outside of that period the hold may exist or not;
//! then the checker assumes the case that makes the history possible.

mod holds;
mod latches;
mod record;
mod refusals;

/// Microseconds of the test's clock.
pub type Time = u64;

/// The time of a response that never came. It is later than any other time.
pub const NEVER: Time = Time::MAX;

/// The calls of all clients, their responses, and the facts about the environment.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Messages of the checker name an acquisition by its index.
    pub acquisitions: Vec<Acquisition>,
    /// The calls to count-down latches.
    pub latch_calls: Vec<LatchCall>,
    pub assumptions: Assumptions,
}

/// The facts that the checker relies on. By default nothing is lost, and there are no permits.
#[derive(Clone, Debug, Default)]
pub struct Assumptions {
    /// The number of permits under each name, and the time at which they are set up. `None` if the
    /// objects have no permits.
    pub permits: Option<(u32, Time)>,
    /// The periods in which Redis may have lost confirmed data, or ended a lease early: those in
    /// which conditions C1 and C2 of `docs/reliability.md` may be violated.
    pub losses: Vec<Loss>,
    /// The time from which tokens may be older than earlier ones, such as after Redis' clock was
    /// set back and its last token was lost. `None` if I2 holds for the whole history.
    pub tokens_until: Option<Time>,
    /// Whether a waiting client may keep other clients from acquiring a free object. Then any
    /// earlier acquisition explains a refusal.
    pub queues: bool,
    /// Whether an expired hold can be released until another client has acquired the object: so
    /// with the values of a group.
    pub releasable_after_expiry: bool,
    /// Whether each acquisition needs a majority of nodes. Then a refusal may have other reasons
    /// than a hold, and refusals are not checked.
    pub needs_majority: bool,
}

/// A period in which Redis may lose data.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    pub from: Time,
    /// [`NEVER`] if the effect lasts.
    pub to: Time,
}

/// The part of an acquisition that concerns one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The number of the name in the test.
    pub name: u8,
    pub mode: Mode,
}

/// How an acquisition excludes others of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Excludes every other owner.
    Exclusive,
    /// Shared by readers; excludes writers.
    Shared,
    /// This number of permits. Together the holders have at most [`Assumptions::permits`].
    Permits(u32),
}

/// A call that acquires one or several names, and the hold that follows, up to its release.
#[derive(Clone, Debug)]
pub struct Acquisition {
    /// The owner in Redis. Acquisitions of one owner do not exclude each other: they share a hold.
    pub owner: u32,
    pub claims: Vec<Claim>,
    /// When the client began the call.
    pub invoked: Time,
    /// When the client received the response; [`NEVER`] without one.
    pub completed: Time,
    /// The requested lease, in microseconds.
    pub lease: Time,
    pub result: AcquireResult,
}

/// The response to an acquisition. With `Held` the caller holds all claims.
#[derive(Clone, Debug)]
pub enum AcquireResult {
    /// No response: the caller is gone, or the call is still pending. A hold may exist at any time.
    NoResponse,
    Held(Hold),
    /// The client reported that another client holds it. The caller holds nothing.
    Busy,
    /// The acquisition failed for another reason. The caller holds nothing.
    Failed,
    /// The outcome is unknown. A hold may exist until `ends_by`.
    Unknown {
        ends_by: Time,
    },
}

/// A hold, by the facts that its holder has.
#[derive(Clone, Debug, Default)]
pub struct Hold {
    /// The token of each claim, in the same order; `None` if the holder does not know it.
    pub tokens: Vec<Option<u64>>,
    /// The hold count in the response: the number of the owner's acquisitions that held then,
    /// including this one.
    pub count: Option<u32>,
    /// The observations that prove that it existed.
    pub observations: Vec<Observation>,
    /// When the holder first received Redis' report that it does not exist any more.
    pub gone: Option<Time>,
    /// The holder's release; `None` if it sent none.
    pub end: Option<ReleaseCall>,
}

/// A proof that a hold existed: the holder's own clocks showed a remaining lease, or Redis replied
/// that the hold exists.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// When the holder made the observation.
    pub at: Time,
    /// The hold exists until this time at least. After [`at`](Self::at) for a remaining lease;
    /// before it for a reply of Redis, which proves nothing about the time after its call was sent.
    pub until: Time,
}

/// The release of a hold.
#[derive(Clone, Copy, Debug)]
pub struct ReleaseCall {
    pub sent: Time,
    /// When the client received the response; [`NEVER`] without one.
    pub completed: Time,
    pub result: ReleaseResult,
}

/// The response to a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseResult {
    /// The hold existed and was released.
    Released,
    /// The hold did not exist any more when Redis executed the release.
    WasLost,
    /// The outcome is unknown. The hold may exist until `ends_by`.
    Unknown { ends_by: Time },
    /// The hold count was reduced: other acquisitions of the same owner still hold it.
    StillHeld,
    /// No response, or an error without a bound. The hold may exist at any time.
    NoResponse,
}

/// One call to a count-down latch.
#[derive(Clone, Copy, Debug)]
pub struct LatchCall {
    pub name: u8,
    pub invoked: Time,
    pub completed: Time,
    pub operation: LatchOperation,
}

/// An operation on a count-down latch, and its response. A latch with a count of 0 is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatchOperation {
    /// Sets the count of an open latch; `false` if the latch was closed, so the count was not set.
    Set(u64, bool),
    /// Counts down by one; the response has the remaining count.
    CountDown(u64),
    /// Reads the count, which the response has. A wait that ended at an open latch is a read of 0.
    Read(u64),
    /// A wait ended because the latch was still closed: its count was above 0.
    Closed,
    /// Sets the count, with an unknown outcome: it may take effect at any later time, or never.
    UnconfirmedSet(u64),
    /// Counts down, with an unknown outcome: it may take effect at any later time, or never.
    UnconfirmedCountDown,
    /// The client reported that the call was not executed, or its response proves nothing.
    Ignored,
}

impl History {
    /// Checks the history.
    ///
    /// # Errors
    /// The first violation: the promise, such as I1, and the numbers of the acquisitions, or the
    /// time and the call of a latch.
    pub fn check(&self) -> Result<(), String> {
        self.check_holds()?;
        self.check_refusals()?;
        self.check_latches()
    }

    /// The hold of an acquisition; `None` if it was not granted. Panics without this acquisition.
    pub fn hold(&mut self, acquisition: usize) -> Option<&mut Hold> {
        match &mut self.acquisitions[acquisition].result {
            AcquireResult::Held(hold) => Some(hold),
            _ => None,
        }
    }
}

impl Hold {
    /// Records that the holder's own clocks show a lease that lasts for `left` more at least.
    pub fn record_lease(&mut self, now: Time, left: Time) {
        self.observations.push(Observation { at: now, until: now + left });
    }

    /// Records a reply of Redis, received now, that the hold exists. The call was sent at `sent`,
    /// before Redis executed it, so the hold existed until then.
    pub fn record_held(&mut self, now: Time, sent: Time) {
        self.observations.push(Observation { at: now, until: sent });
    }

    /// The time until which it existed at least, by the observations made up to `then`.
    fn valid_until(&self, then: Time) -> Time {
        let observations = self.observations.iter().filter(|look| look.at <= then);
        observations.map(|look| look.until).max().unwrap_or(0)
    }

    /// The time until which it existed at least, by all observations.
    pub(super) fn until(&self) -> Time {
        self.valid_until(NEVER)
    }
}

impl Claim {
    /// Whether two owners cannot have both claims at once. Permits conflict by their sum, which the
    /// caller has to compare.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let alone = self.mode == Mode::Exclusive || other.mode == Mode::Exclusive;
        self.name == other.name && alone
    }

    /// The number of permits; 0 for a lock.
    pub const fn permits(&self) -> u32 {
        match self.mode {
            Mode::Permits(permits) => permits,
            Mode::Exclusive | Mode::Shared => 0,
        }
    }
}

impl Acquisition {
    /// The period in which its hold certainly existed in Redis; `None` if there is none.
    ///
    /// It begins with the response, since the call was executed before. It ends with the last time
    /// that an observation proves, with the sending of the release, or with the first possible loss
    /// of data, whichever is first.
    pub fn certain_period(&self, assumptions: &Assumptions) -> Option<(Time, Time)> {
        let AcquireResult::Held(hold) = &self.result else { return None };
        // Only observations before the first loss count. A later one proves nothing about the time
        // between: the hold may have vanished, and a replica that stored it may have taken over.
        let losses = assumptions.losses.iter().filter(|loss| loss.to >= self.invoked);
        let last = losses.map(|loss| loss.from).min().unwrap_or(NEVER);
        let good = hold.valid_until(last);
        let end = match hold.end {
            // Redis found the hold when it executed the release, so it existed when the release was
            // sent, even if its lease was over by the holder's clocks.
            Some(ReleaseCall { sent, completed, result: ReleaseResult::Released })
                if completed <= last =>
            {
                sent
            }
            Some(ReleaseCall { sent, .. }) => good.min(sent),
            None => good,
        };
        let end = end.min(last);
        (end > self.completed).then_some((self.completed, end))
    }

    /// The last time at which a hold by this acquisition may exist in Redis; [`NEVER`] if nothing
    /// bounds it. The lease is no bound, since the history does not have its renewals.
    pub fn latest_end(&self) -> Time {
        let AcquireResult::Held(hold) = &self.result else {
            return match self.result {
                AcquireResult::Unknown { ends_by } => ends_by,
                AcquireResult::NoResponse | AcquireResult::Held(_) => NEVER,
                AcquireResult::Busy | AcquireResult::Failed => self.completed,
            };
        };
        match hold.end {
            Some(ReleaseCall {
                result: ReleaseResult::Released | ReleaseResult::WasLost,
                completed,
                ..
            }) => completed,
            Some(ReleaseCall { result: ReleaseResult::Unknown { ends_by }, .. }) => ends_by,
            _ => hold.gone.unwrap_or(NEVER),
        }
    }
}
