//! An observer of all scripts: records the grants and ends of owners, and checks the promises about
//! them.

use edgelatch_proto::protocol::reply::RespValue;

use super::coverage::CoverPoint;
use super::engine::Sim;
use super::gateway::Run;
use super::guards::Writes;
use super::hold::StoredHold;
use super::lease_checker::TrustedLease;
use super::redis::Node;

/// The observer's record of a schedule, independent of the clients.
pub(crate) struct Checker {
    /// The first promise that was broken.
    pub(crate) violation: Option<String>,
    /// The current operation of each task.
    pub(crate) operations: Vec<u32>,
    operations_begun: u32,
    /// The operation that drew each piece of entropy, and the bytes.
    drawn: Vec<(u32, [u8; 32])>,
    pub(crate) owners: Vec<Owner>,
    /// For each Redis and name, the newest token and whether a reader has it.
    newest: Vec<(usize, String, u64, bool)>,
    /// The requests that changed a number.
    changes: Vec<String>,
    pub(crate) writes: Writes,
    /// The leases on which clients rely.
    pub(crate) trusted_leases: Vec<TrustedLease>,
    /// Whether the conditions under which holds exclude each other still hold (C1 to C3).
    pub(crate) can_exclude: bool,
}

/// The state of one owner field on one Redis.
pub(crate) struct Owner {
    pub(crate) node: usize,
    pub(crate) latch: String,
    pub(crate) operation: u32,
    pub(crate) grants: u32,
    /// The tokens in the replies to it.
    pub(crate) tokens: Vec<u64>,
    pub(crate) hold: StoredHold,
    /// Whether a client has a lease under this owner.
    pub(crate) held: bool,
    /// Whether a release has ended its hold.
    pub(crate) released: bool,
    /// When nothing of the owner may exist any more, by the result that its caller received.
    pub(crate) over_at: Option<u64>,
}

impl Checker {
    pub(crate) fn new() -> Self {
        Self {
            violation: None,
            operations: Vec::new(),
            operations_begun: 0,
            drawn: Vec::new(),
            owners: Vec::new(),
            newest: Vec::new(),
            changes: Vec::new(),
            writes: Writes::default(),
            trusted_leases: Vec::new(),
            can_exclude: true,
        }
    }

    /// A task starts an operation; returns its number.
    pub(crate) fn begin_operation(&mut self, task: usize) -> u32 {
        self.operations_begun += 1;
        self.operations[task] = self.operations_begun;
        self.operations_begun
    }

    /// A task draws entropy; returns the entropy's number. Equal bytes have one number, wherever
    /// they were drawn.
    pub(crate) fn record_entropy(&mut self, task: usize, bytes: &[u8; 32]) -> u32 {
        let known = self.drawn.iter().position(|(_, drawn)| drawn == bytes);
        let number = known.unwrap_or_else(|| {
            self.drawn.push((self.operations[task], *bytes));
            self.drawn.len() - 1
        });
        number as u32
    }

    /// The owners of an operation's requests.
    pub(crate) fn owners_of(
        &mut self,
        operation: u32,
    ) -> impl DoubleEndedIterator<Item = &mut Owner> {
        self.owners.iter_mut().filter(move |owner| owner.operation == operation)
    }

    /// The operation that has created an owner, by the name of its latch. A virtual host writes the
    /// number of the entropy into the first eight digits of the owner's UUID.
    fn operation_of(&self, latch: &str) -> u32 {
        let mut parts = latch.rsplit(':');
        let uuid = parts.nth(1).unwrap_or_default();
        let number = uuid.get(..8).and_then(|digits| usize::from_str_radix(digits, 16).ok());
        number.and_then(|number| self.drawn.get(number)).map_or(0, |(operation, _)| *operation)
    }

    /// The index of an owner, by its Redis and the name of its latch.
    fn find_owner(&self, node: usize, latch: &str) -> Option<usize> {
        self.owners.iter().rposition(|owner| owner.node == node && owner.latch == latch)
    }

    /// Records whether the owner's hold exists before one of its scripts runs.
    pub(crate) fn state_before(
        &mut self,
        place: usize,
        node: &mut Node,
        run: &Run<'_>,
        now: u64,
    ) -> StateBefore {
        node.model.expire(node.millis(now));
        let name = run.script.script().name;
        if name.ends_with("_change") {
            return StateBefore { existed: false, number: node.model.number(&run.keys[1]) };
        }
        let latch = match name {
            "eval" => run.keys.get(1),
            _ if name.ends_with("_release") || name.ends_with("_renew") => run.keys.first(),
            _ => None,
        };
        let owner = latch.and_then(|latch| self.find_owner(place, latch));
        let existed = owner.is_some_and(|owner| self.owners[owner].hold.exists(node, now));
        StateBefore { existed, number: None }
    }

    /// Checks a script's execution and reply.
    pub(crate) fn on_executed(
        &mut self,
        sim: &Sim,
        place: usize,
        node: &mut Node,
        run: &Run<'_>,
        cells: &[RespValue],
        before: StateBefore,
    ) {
        let (Some(RespValue::Int(code)), Some(RespValue::Text(value))) =
            (cells.first(), cells.get(1))
        else {
            return;
        };
        match code {
            -1 => sim.coverage.count(CoverPoint::LateAnswers, 1),
            -2 => sim.coverage.count(CoverPoint::Tombstones, 1),
            _ => 0,
        };
        let name = run.script.script().name;
        let broken = if name.ends_with("_acquire") {
            self.on_acquire(sim, place, node, run, *code, value)
        } else if name.ends_with("_release") && !name.contains("force") {
            self.on_release(place, run, *code, &before)
        } else if name.ends_with("_renew") {
            self.on_renew(sim, run, *code, &before)
        } else if name.ends_with("_change") {
            self.on_change(node, run, &before)
        } else if name == "guard_write" {
            self.writes.on_guard_write(sim, node, run, *code)
        } else if name == "eval" {
            self.writes.on_eval(sim, node, run, cells, before.existed)
        } else {
            None
        };
        if let Some(what) = broken.filter(|_| self.violation.is_none()) {
            sim.trace(|| format!("BROKEN  {what}"));
            self.violation = Some(what);
        }
    }

    fn on_acquire(
        &mut self,
        sim: &Sim,
        place: usize,
        node: &Node,
        run: &Run<'_>,
        code: i64,
        value: &str,
    ) -> Option<String> {
        let owner = self.find_owner(place, &run.keys[0]).unwrap_or_else(|| {
            let (latch, hold) = (run.keys[0].clone(), StoredHold::of(run));
            let operation = self.operation_of(&latch);
            self.owners.push(Owner {
                node: place,
                latch,
                operation,
                grants: 0,
                tokens: Vec::new(),
                hold,
                held: false,
                released: false,
                over_at: None,
            });
            self.owners.len() - 1
        });
        let owner = &mut self.owners[owner];
        let is_over = owner.over_at.is_some_and(|over_at| over_at <= sim.now());
        if is_over || owner.released {
            sim.coverage.count(CoverPoint::LateCopies, 1);
        }
        if !matches!(code, 1 | 2) {
            return None;
        }
        let token = value.parse().unwrap_or(0);
        owner.tokens.push(token);
        if code == 2 {
            sim.coverage.count(CoverPoint::Extended, 1);
            return None;
        }
        sim.coverage.count(CoverPoint::Grants, 1);
        owner.grants += 1;
        let (latch, twice) = (&owner.latch, owner.grants > 1);
        // A Redis that has lost data, or whose clock was set, may have lost latches and tombstones.
        let keeps_records = !node.has_lost && !node.was_set;
        if keeps_records && (is_over || owner.released) {
            return Some(format!("I6 {latch} is granted after its end"));
        }
        if keeps_records && twice {
            return Some(format!("I6 {latch} is granted twice"));
        }
        let (names, shared) = (owner.hold.names(run), is_shared(run));
        // A reader that joins others gets their token. After a failover these may be earlier
        // readers, with an older token.
        let excused = node.has_lost && (node.went_back || sim.plan.nodes > 1 || shared);
        names.iter().find_map(|name| self.check_token(place, name, token, shared, excused))
    }

    /// I2: tokens rise; readers share a token, above those of all earlier writers.
    fn check_token(
        &mut self,
        node: usize,
        name: &str,
        token: u64,
        shared: bool,
        excused: bool,
    ) -> Option<String> {
        let known = self.newest.iter_mut().find(|known| known.0 == node && known.1 == name);
        let Some((.., newest, was_shared)) = known else {
            self.newest.push((node, name.into(), token, shared));
            return None;
        };
        let rises = token > *newest || shared && *was_shared && token == *newest;
        let last = std::mem::replace(newest, token.max(*newest));
        *was_shared = shared;
        (!rises && !excused).then(|| format!("I2 the token of {name} is {token} after {last}"))
    }

    fn on_release(
        &mut self,
        node: usize,
        run: &Run<'_>,
        code: i64,
        before: &StateBefore,
    ) -> Option<String> {
        let place = self.find_owner(node, &run.keys[0])?;
        let owner = &mut self.owners[place];
        owner.released |= before.existed && code == 1;
        None
    }

    fn on_renew(
        &self,
        sim: &Sim,
        run: &Run<'_>,
        code: i64,
        before: &StateBefore,
    ) -> Option<String> {
        if code == 1 {
            sim.coverage.count(CoverPoint::Renewals, 1);
        }
        (code == 1 && !before.existed)
            .then(|| format!("I3 {} is renewed, and is not held", run.keys[0]))
    }

    /// I6: a request changes a number at most once.
    fn on_change(&mut self, node: &Node, run: &Run<'_>, before: &StateBefore) -> Option<String> {
        if node.model.number(&run.keys[1]) == before.number {
            return None;
        }
        let request = &run.args[0];
        if self.changes.contains(request) && !node.has_lost && !node.was_set {
            return Some(format!("I6 request {request} has changed {} again", run.keys[1]));
        }
        self.changes.push(request.clone());
        None
    }
}

/// Whether an acquiring script is for a hold that others share, with one token.
fn is_shared(run: &Run<'_>) -> bool {
    match run.script.script().name {
        "read_acquire" => true,
        "fair_rw_acquire" => run.args[4].starts_with('s'),
        _ => false,
    }
}

/// The state before a script ran.
pub(crate) struct StateBefore {
    existed: bool,
    number: Option<i64>,
}
