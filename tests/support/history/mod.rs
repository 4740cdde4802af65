//! What clients did and what they were told, and whether that can have been: judged afterwards, by
//! nothing that a client cannot see.
//!
//! Time is that of one clock that is always right, in microseconds, and so is every deadline here:
//! whoever keeps a history turns what a holder's own clocks say into the least time that this can
//! mean.

mod counts;
mod holds;
mod record;
mod refusals;

/// Microseconds by the test's one clock.
pub type Time = u64;

/// Nobody has heard of it.
pub const NEVER: Time = Time::MAX;

/// All that clients did, and what is known of the ground that they did it on.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub takes: Vec<Take>,
    pub counts: Vec<Count>,
    pub ground: Ground,
}

/// What may be relied on.
#[derive(Clone, Debug, Default)]
pub struct Ground {
    /// How many permits there are under each name, and from when on that is certain.
    pub permits: Option<(u32, Time)>,
    /// When Redis may have lost what it had confirmed, or ended a lease early (C1 and C2).
    pub losses: Vec<Loss>,
    /// From when on not even tokens are promised: Redis' clock went back, and what it had stored is
    /// lost.
    pub tokens_until: Option<Time>,
    /// Those who wait keep others away.
    pub queues: bool,
    /// What has run out can be given back for as long as nobody else has come.
    pub lingers: bool,
    /// Each takes a majority of nodes: a refusal may have other reasons than a hold of somebody.
    pub partial: bool,
}

/// A time in which things get lost.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    pub from: Time,
    pub to: Time,
}

/// What of a name is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub name: u8,
    pub share: Share,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// All of it.
    Alone,
    /// Beside others who read.
    Beside,
    /// So many permits.
    Some(u32),
}

/// An acquisition, and its hold to the end.
#[derive(Clone, Debug)]
pub struct Take {
    /// Acquisitions of one owner are one hold.
    pub owner: u32,
    pub claims: Vec<Claim>,
    pub invoked: Time,
    pub completed: Time,
    /// For how long it asked.
    pub lease: Time,
    pub told: Told,
}

/// How an acquisition ended.
#[derive(Clone, Debug)]
pub enum Told {
    /// Nobody has heard: its caller is gone, or it is still under way.
    Nothing,
    Held(Hold),
    /// Somebody else has it; nothing is held.
    Busy,
    /// Nothing is held.
    Not,
    /// A hold may be there, until then.
    Unknown {
        over: Time,
    },
}

/// A hold, as its holder knows it.
#[derive(Clone, Debug, Default)]
pub struct Hold {
    /// Of each claim.
    pub tokens: Vec<Option<u64>>,
    /// How many acquisitions of its owner shared it when this one was told.
    pub count: Option<u32>,
    /// What its holder saw of it.
    pub looks: Vec<Look>,
    /// When Redis said that it is not there any more.
    pub gone: Option<Time>,
    pub end: Option<End>,
}

/// A look at a hold: at the holder's own clocks, or into Redis.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// When it was known.
    pub at: Time,
    /// Until when it is good, at the least.
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
    /// It was there, and is no more.
    Released,
    /// It was not there any more.
    WasLost,
    /// It may be there, until then.
    Unknown { over: Time },
    /// Others of the same owner go on holding it.
    Left,
    /// Nobody has heard.
    Nothing,
}

/// Something about a latch.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    pub name: u8,
    pub invoked: Time,
    pub completed: Time,
    pub act: Act,
}

/// What was asked of a latch, and the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// To close it with a count, and whether it was.
    Set(u64, bool),
    /// To count down, and what was left.
    Down(u64),
    /// What is left.
    Read(u64),
    /// It was found closed.
    Closed,
    /// To close it with a count: whether that was done is not known.
    PerhapsSet(u64),
    /// To count down: whether that was done is not known.
    PerhapsDown,
    /// Nothing was done.
    Nothing,
}

impl History {
    /// What cannot have been, by the number of the promise that it breaks.
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
    /// Its holder sees it valid now, for so long at the least.
    pub fn sees(&mut self, now: Time, left: Time) {
        self.looks.push(Look { at: now, until: now + left });
    }

    /// Redis says now that it was there when it was asked.
    pub fn stood(&mut self, now: Time, asked: Time) {
        self.looks.push(Look { at: now, until: asked });
    }

    /// Until when it is good, by what was known then.
    fn good(&self, then: Time) -> Time {
        let looks = self.looks.iter().filter(|look| look.at <= then);
        looks.map(|look| look.until).max().unwrap_or(0)
    }

    /// The same, with what was known at any time.
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
    /// From when to when Redis has had it for certain: nothing where that is no time at all.
    pub fn certain(&self, ground: &Ground) -> Option<(Time, Time)> {
        let Told::Held(hold) = &self.told else { return None };
        // What is known after a loss says nothing of the time before: what was gone may have come
        // back.
        let losses = ground.losses.iter().filter(|loss| loss.to >= self.invoked);
        let last = losses.map(|loss| loss.from).min().unwrap_or(NEVER);
        let good = hold.good(last);
        let end = match hold.end {
            // What was released had been there until then, whatever its holder thought.
            Some(End { asked, told, verdict: Verdict::Released }) if told <= last => asked,
            Some(End { asked, .. }) => good.min(asked),
            None => good,
        };
        let end = end.min(last);
        (end > self.completed).then_some((self.completed, end))
    }

    /// After this nothing of it can be there.
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
