//! Records what clients did and which responses they received, and checks afterwards whether that
//! is possible. It uses nothing that a client cannot see.
//!
//! All times, deadlines too, are microseconds of one clock that is always right: the recorder
//! converts what a holder's own clocks show to the least time that this can mean.

mod holds;
mod latches;
mod record;
mod refusals;

/// Microseconds by the test's one clock.
pub type Time = u64;

/// The time of a response that never came.
pub const NEVER: Time = Time::MAX;

/// All that clients did, and what is known of their environment.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub acquisitions: Vec<Acquisition>,
    pub counts: Vec<LatchCall>,
    pub assumptions: Assumptions,
}

/// The facts that the check may rely on.
#[derive(Clone, Debug, Default)]
pub struct Assumptions {
    /// The number of permits under each name, and the time from which it is certain.
    pub permits: Option<(u32, Time)>,
    /// When Redis may have lost confirmed data, or ended a lease early (C1 and C2).
    pub losses: Vec<Loss>,
    /// The time from which not even rising tokens are promised: Redis' clock went back, and its
    /// data is lost.
    pub tokens_until: Option<Time>,
    /// Waiting clients keep other clients from acquiring.
    pub queues: bool,
    /// An expired hold can be released until another client has acquired the object.
    pub releasable_after_expiry: bool,
    /// Each acquisition needs a majority of nodes, so a refusal may have other reasons than a hold.
    pub needs_majority: bool,
}

/// A period in which data may get lost.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    pub from: Time,
    pub to: Time,
}

/// The part of an acquisition that concerns one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub name: u8,
    pub mode: Mode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Exclusive use.
    Exclusive,
    /// Use shared with other readers.
    Shared,
    /// This number of permits.
    Permits(u32),
}

/// An acquisition, and its hold to the end.
#[derive(Clone, Debug)]
pub struct Acquisition {
    /// Acquisitions of one owner share one hold.
    pub owner: u32,
    pub claims: Vec<Claim>,
    pub invoked: Time,
    pub completed: Time,
    /// The requested lease.
    pub lease: Time,
    pub result: AcquireResult,
}

/// How an acquisition ended.
#[derive(Clone, Debug)]
pub enum AcquireResult {
    /// No response: the caller is gone, or the call is still pending.
    Nothing,
    Held(Hold),
    /// Another client holds it; this caller holds nothing.
    Busy,
    /// The caller holds nothing.
    Not,
    /// A hold may exist until `over`.
    Unknown {
        over: Time,
    },
}

/// A hold, as its holder knows it.
#[derive(Clone, Debug, Default)]
pub struct Hold {
    /// The token of each claim.
    pub tokens: Vec<Option<u64>>,
    /// How many acquisitions of its owner shared it when this one was granted.
    pub count: Option<u32>,
    /// The holder's observations of it.
    pub observations: Vec<Observation>,
    /// When Redis reported that it does not exist any more.
    pub gone: Option<Time>,
    pub end: Option<ReleaseCall>,
}

/// An observation of a hold: by the holder's own clocks, or in Redis.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// The time of the observation.
    pub at: Time,
    /// The hold is valid until this time at least.
    pub until: Time,
}

/// Its release.
#[derive(Clone, Copy, Debug)]
pub struct ReleaseCall {
    pub sent: Time,
    pub completed: Time,
    pub result: ReleaseResult,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseResult {
    /// The hold existed and was released.
    Released,
    /// The hold did not exist any more.
    WasLost,
    /// The hold may exist until `over`.
    Unknown { over: Time },
    /// Other acquisitions of the same owner still hold it.
    Left,
    /// No response.
    Nothing,
}

/// One operation on a latch.
#[derive(Clone, Copy, Debug)]
pub struct LatchCall {
    pub name: u8,
    pub invoked: Time,
    pub completed: Time,
    pub operation: LatchOperation,
}

/// An operation on a latch, and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatchOperation {
    /// Sets the count; whether it was set.
    Set(u64, bool),
    /// Counts down; the remaining count.
    Down(u64),
    /// Reads the count.
    Read(u64),
    /// The latch was found closed.
    Closed,
    /// Sets the count, with an unknown outcome.
    PerhapsSet(u64),
    /// Counts down, with an unknown outcome.
    PerhapsDown,
    /// Nothing was done.
    Nothing,
}

impl History {
    /// Checks the history. An error names the broken promise and the impossible event.
    pub fn check(&self) -> Result<(), String> {
        self.check_holds()?;
        self.check_refusals()?;
        self.check_latches()
    }

    /// The hold of an acquisition.
    pub fn hold(&mut self, acquisition: usize) -> Option<&mut Hold> {
        match &mut self.acquisitions[acquisition].result {
            AcquireResult::Held(hold) => Some(hold),
            _ => None,
        }
    }
}

impl Hold {
    /// Records that the holder sees it valid now, for `left` at least.
    pub fn record_lease(&mut self, now: Time, left: Time) {
        self.observations.push(Observation { at: now, until: now + left });
    }

    /// Records that Redis reports now that it existed at `sent`.
    pub fn record_held(&mut self, now: Time, sent: Time) {
        self.observations.push(Observation { at: now, until: sent });
    }

    /// The time until which it is valid, by the observations up to `then`.
    fn valid_until(&self, then: Time) -> Time {
        let observations = self.observations.iter().filter(|look| look.at <= then);
        observations.map(|look| look.until).max().unwrap_or(0)
    }

    /// The time until which it is valid, by all observations.
    pub(super) fn until(&self) -> Time {
        self.valid_until(NEVER)
    }
}

impl Claim {
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let alone = self.mode == Mode::Exclusive || other.mode == Mode::Exclusive;
        self.name == other.name && alone
    }

    pub const fn permits(&self) -> u32 {
        match self.mode {
            Mode::Permits(permits) => permits,
            Mode::Exclusive | Mode::Shared => 0,
        }
    }
}

impl Acquisition {
    /// The period in which Redis certainly had it; `None` if there is no such period.
    pub fn certain_period(&self, assumptions: &Assumptions) -> Option<(Time, Time)> {
        let AcquireResult::Held(hold) = &self.result else { return None };
        // An observation after a loss proves nothing about the time before: a vanished hold may
        // have come back.
        let losses = assumptions.losses.iter().filter(|loss| loss.to >= self.invoked);
        let last = losses.map(|loss| loss.from).min().unwrap_or(NEVER);
        let good = hold.valid_until(last);
        let end = match hold.end {
            // A hold that was released existed until then, even if its holder believed it expired.
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

    /// The time after which nothing of it can exist.
    pub fn latest_end(&self) -> Time {
        let AcquireResult::Held(hold) = &self.result else {
            return match self.result {
                AcquireResult::Unknown { over } => over,
                AcquireResult::Nothing | AcquireResult::Held(_) => NEVER,
                AcquireResult::Busy | AcquireResult::Not => self.completed,
            };
        };
        match hold.end {
            Some(ReleaseCall {
                result: ReleaseResult::Released | ReleaseResult::WasLost,
                completed,
                ..
            }) => completed,
            Some(ReleaseCall { result: ReleaseResult::Unknown { over }, .. }) => over,
            _ => hold.gone.unwrap_or(NEVER),
        }
    }
}
