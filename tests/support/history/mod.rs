//! Records what clients did and which responses they received, and checks afterwards whether that
//! is possible. It uses nothing that a client cannot see.
//!
//! All times, deadlines too, are microseconds of one clock that is always right: the recorder
//! converts what a holder's own clocks show to the least time that this can mean.

mod counts;
mod holds;
mod record;
mod refusals;

/// Microseconds by the test's one clock.
pub type Time = u64;

/// The time of a response that never came.
pub const NEVER: Time = Time::MAX;

/// All that clients did, and what is known of their environment.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub takes: Vec<Take>,
    pub counts: Vec<Count>,
    pub ground: Ground,
}

/// The facts that the check may rely on.
#[derive(Clone, Debug, Default)]
pub struct Ground {
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
    pub lingers: bool,
    /// Each acquisition needs a majority of nodes, so a refusal may have other reasons than a hold.
    pub partial: bool,
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
    pub share: Share,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Exclusive use.
    Alone,
    /// Use shared with other readers.
    Beside,
    /// This number of permits.
    Some(u32),
}

/// An acquisition, and its hold to the end.
#[derive(Clone, Debug)]
pub struct Take {
    /// Acquisitions of one owner share one hold.
    pub owner: u32,
    pub claims: Vec<Claim>,
    pub invoked: Time,
    pub completed: Time,
    /// The requested lease.
    pub lease: Time,
    pub told: Told,
}

/// How an acquisition ended.
#[derive(Clone, Debug)]
pub enum Told {
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
    pub looks: Vec<Look>,
    /// When Redis reported that it does not exist any more.
    pub gone: Option<Time>,
    pub end: Option<End>,
}

/// An observation of a hold: by the holder's own clocks, or in Redis.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The time of the observation.
    pub at: Time,
    /// The hold is valid until this time at least.
    pub until: Time,
}

/// Its release.
#[derive(Clone, Copy, Debug)]
pub struct End {
    pub asked: Time,
    pub told: Time,
    pub verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
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
pub struct Count {
    pub name: u8,
    pub invoked: Time,
    pub completed: Time,
    pub act: Act,
}

/// An operation on a latch, and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
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
    pub fn judge(&self) -> Result<(), String> {
        self.judge_holds()?;
        self.judge_refusals()?;
        self.judge_counts()
    }

    /// The hold of an acquisition.
    pub fn hold(&mut self, take: usize) -> Option<&mut Hold> {
        match &mut self.takes[take].told {
            Told::Held(hold) => Some(hold),
            _ => None,
        }
    }
}

impl Hold {
    /// Records that the holder sees it valid now, for `left` at least.
    pub fn sees(&mut self, now: Time, left: Time) {
        self.looks.push(Look { at: now, until: now + left });
    }

    /// Records that Redis reports now that it existed at `asked`.
    pub fn stood(&mut self, now: Time, asked: Time) {
        self.looks.push(Look { at: now, until: asked });
    }

    /// The time until which it is valid, by the observations up to `then`.
    fn good(&self, then: Time) -> Time {
        let looks = self.looks.iter().filter(|look| look.at <= then);
        looks.map(|look| look.until).max().unwrap_or(0)
    }

    /// The time until which it is valid, by all observations.
    pub(super) fn until(&self) -> Time {
        self.good(NEVER)
    }
}

impl Claim {
    pub fn clashes(&self, other: &Self) -> bool {
        let alone = self.share == Share::Alone || other.share == Share::Alone;
        self.name == other.name && alone
    }

    pub const fn permits(&self) -> u32 {
        match self.share {
            Share::Some(permits) => permits,
            Share::Alone | Share::Beside => 0,
        }
    }
}

impl Take {
    /// The period in which Redis certainly had it; `None` if there is no such period.
    pub fn certain(&self, ground: &Ground) -> Option<(Time, Time)> {
        let Told::Held(hold) = &self.told else { return None };
        // An observation after a loss proves nothing about the time before: a vanished hold may
        // have come back.
        let losses = ground.losses.iter().filter(|loss| loss.to >= self.invoked);
        let last = losses.map(|loss| loss.from).min().unwrap_or(NEVER);
        let good = hold.good(last);
        let end = match hold.end {
            // A hold that was released existed until then, even if its holder believed it expired.
            Some(End { asked, told, verdict: Verdict::Released }) if told <= last => asked,
            Some(End { asked, .. }) => good.min(asked),
            None => good,
        };
        let end = end.min(last);
        (end > self.completed).then_some((self.completed, end))
    }

    /// The time after which nothing of it can exist.
    pub fn over(&self) -> Time {
        let Told::Held(hold) = &self.told else {
            return match self.told {
                Told::Unknown { over } => over,
                Told::Nothing | Told::Held(_) => NEVER,
                Told::Busy | Told::Not => self.completed,
            };
        };
        match hold.end {
            Some(End { verdict: Verdict::Released | Verdict::WasLost, told, .. }) => told,
            Some(End { verdict: Verdict::Unknown { over }, .. }) => over,
            _ => hold.gone.unwrap_or(NEVER),
        }
    }
}
