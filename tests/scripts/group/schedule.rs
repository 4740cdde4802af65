//! Random schedules in virtual time: three clients of ours and two of Redisson's on three values, a network that loses, doubles and
//! delays, and what must hold after each step.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use edgelatch::protocol::reply::{Cell, Code, Reply};
use edgelatch::protocol::script::{Bound, Publish, ScriptCall};
use fastrand::Rng;

use super::given::{GROUP, field, values_of};
use crate::support::calls::{Calls, field as text_of, lease, numbered_owner, request, token};
use crate::support::script_model::java_group::JavaGroup;
use crate::support::script_model::{Latches, ScriptModel};

const EPOCH: u64 = 1_700_000_000_000;
const SETS: [&[&str]; 5] = [&["A"], &["B"], &["A", "B"], &["B", "C"], &["A", "B", "C"]];
const VALUES: [&str; 3] = ["A", "B", "C"];
const HOLDERS: [&str; 2] =
    ["8743c9c0-0795-4907-87fd-6c719a6b4586:1", "1f1d3b8e-5a0a-4d2f-9f0e-0a6b7c8d9e0f:7"];
const STEPS: usize = 120;

/// What a schedule is played with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) pad: u64,
    /// By how much a clock of Java's may be off at the most.
    pub(super) skew: i64,
    pub(super) latches: Latches,
    pub(super) without: Option<&'static str>,
}

pub(super) const ALL_RULES: Rules =
    Rules { pad: 1_000, skew: 990, latches: Latches::On, without: None };

/// What came up.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) grants: u32,
    pub(super) java_grants: u32,
    pub(super) refusals: u32,
    pub(super) losses: u32,
    /// Copies that were executed after their owner's end.
    pub(super) late_copies: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Acquire,
    Renew,
    Release,
}

/// A request on its way, or a copy of it.
#[derive(Clone, Debug)]
struct Letter {
    client: usize,
    owner: u32,
    kind: Kind,
    set: usize,
    lease: u64,
    sent_at: u64,
    call: ScriptCall,
}

/// What one client of ours does now.
#[derive(Clone, Debug, Default)]
struct Client {
    owner: u32,
    set: usize,
    asking: bool,
    token: u64,
    /// Until when it believes that it holds its set.
    until: u64,
}

pub(super) struct World {
    rng: Rng,
    model: ScriptModel,
    now: u64,
    owners: u32,
    requests: u64,
    clients: [Client; 3],
    /// The field of each owner, by its number.
    names: Vec<String>,
    calls: [Calls; 5],
    letters: Vec<Letter>,
    ahead: [i64; 2],
    /// Until when, by Redis' clock, each of Java's believes that it holds each value.
    java: [BTreeMap<&'static str, u64>; 2],
    fields: BTreeMap<&'static str, String>,
    granted: BTreeSet<u32>,
    ended: BTreeSet<u32>,
    /// The fields of those who have ended.
    ghosts: BTreeSet<String>,
    newest: BTreeMap<&'static str, u64>,
    seen: Seen,
}

/// Plays one schedule; the error says which promise was broken.
pub(super) fn play(rules: Rules, seed: u64) -> Result<Seen, String> {
    let mut rng = Rng::with_seed(seed);
    let ahead = [0, 1].map(|_| rng.i64(-rules.skew..=rules.skew));
    let mut model = ScriptModel::new(rules.latches);
    model.without = rules.without;
    let mut world = World {
        rng,
        model,
        now: EPOCH,
        owners: 0,
        requests: 0,
        clients: Default::default(),
        names: vec![String::new()],
        calls: SETS.map(|set| values_of(GROUP, set, rules.pad, Publish::Plain)),
        letters: Vec::new(),
        ahead,
        java: Default::default(),
        fields: VALUES.map(|value| (value, field(value))).into(),
        granted: BTreeSet::new(),
        ended: BTreeSet::new(),
        ghosts: BTreeSet::new(),
        newest: BTreeMap::new(),
        seen: Seen::default(),
    };
    for _ in 0..STEPS {
        world.step()?;
        world.check()?;
    }
    Ok(world.seen)
}

impl World {
    fn step(&mut self) -> Result<(), String> {
        match self.rng.u8(0..10) {
            0 | 1 => self.now += self.rng.u64(0..1_500),
            2..=4 => self.client(),
            5..=7 => return self.deliver(),
            _ => return self.redisson(),
        }
        Ok(())
    }

    /// One client of ours does what it may do next.
    fn client(&mut self) {
        let number = self.rng.usize(0..3);
        let Client { owner, asking, token: grant, .. } = self.clients[number];
        if owner == 0 {
            self.owners += 1;
            self.names.push(text_of(&numbered_owner(self.owners)));
            let set = self.rng.usize(0..SETS.len());
            self.clients[number] =
                Client { owner: self.owners, set, asking: true, ..Client::default() };
            return self.send(number, Kind::Acquire, 0);
        }
        match self.rng.u8(0..3) {
            0 => {
                self.send(number, Kind::Release, 0);
                self.clients[number] = Client::default();
            }
            _ if asking => self.send(number, Kind::Acquire, 0),
            _ => self.send(number, Kind::Renew, grant),
        }
    }

    fn send(&mut self, client: usize, kind: Kind, grant: u64) {
        let Client { owner, set, .. } = self.clients[client];
        self.requests += 1;
        let (id, lease_ms) = (request(self.requests), self.rng.u64(2_000..6_000));
        let (calls, who) = (&self.calls[set], numbered_owner(owner));
        // C8: all requests of one owner carry one bound.
        let not_after = EPOCH + u64::from(owner) * 2_000 + 60_000;
        let bound = Bound { not_after: Some(not_after), keep: Duration::from_secs(60) };
        let call = match kind {
            Kind::Acquire => {
                let last = self.rng.u8(0..4) == 0;
                calls.acquire(id, bound, &who, lease(lease_ms), last)
            }
            Kind::Renew => calls.renew(id, bound, &who, lease(lease_ms), token(grant)),
            Kind::Release => calls.release(id, bound, &who),
        };
        let sent_at = self.now;
        self.letters.push(Letter { client, owner, kind, set, lease: lease_ms, sent_at, call });
    }

    fn name(&self, owner: u32) -> &str {
        &self.names[owner as usize]
    }

    /// One letter is executed, or lost; a copy of it may stay on its way.
    fn deliver(&mut self) -> Result<(), String> {
        if self.letters.is_empty() {
            return Ok(());
        }
        let place = self.rng.usize(0..self.letters.len());
        let letter = if self.rng.u8(0..3) == 0 {
            self.letters[place].clone()
        } else {
            self.letters.swap_remove(place)
        };
        if self.rng.u8(0..10) == 0 {
            return Ok(());
        }
        let before = self.holders();
        let cells = self.model.run(&letter.call, self.now);
        self.executed(&letter, &cells, &before)?;
        let heard = self.rng.u8(0..5) > 0 && self.clients[letter.client].owner == letter.owner;
        if heard {
            self.hear(&letter, Reply::read(&cells, letter.call.request).unwrap());
        }
        Ok(())
    }

    /// What Redis did must have been right, whatever the client hears of it.
    fn executed(
        &mut self,
        letter: &Letter,
        cells: &[Cell],
        before: &BTreeMap<&'static str, String>,
    ) -> Result<(), String> {
        let Letter { owner, kind, set, .. } = *letter;
        let us = self.name(owner).to_owned();
        let reply = Reply::read(cells, letter.call.request).ok_or("no reply")?;
        let after = self.holders();
        let over = self.ended.contains(&owner);
        self.seen.late_copies += u32::from(over && kind == Kind::Acquire);
        for value in VALUES {
            let (was, is) = (before.get(value), after.get(value));
            if was == is {
                continue;
            }
            match kind {
                Kind::Acquire if is == Some(&us) => self.may_take(value, was, "we")?,
                Kind::Release if was == Some(&us) => {}
                _ => return Err(format!("{kind:?} of {us} changed {value} of {was:?} to {is:?}")),
            }
        }
        if kind == Kind::Acquire && reply.code == Code::Done {
            if !self.granted.insert(owner) || over {
                return Err(format!("{us} was granted twice, or after its end"));
            }
            self.seen.grants += 1;
            let token: u64 = reply.value.parse().unwrap();
            for value in SETS[set] {
                if self.newest.insert(value, token).is_some_and(|last| token <= last) {
                    return Err(format!("the token of {value} did not rise"));
                }
            }
        }
        if kind == Kind::Release {
            self.ended.insert(owner);
            self.ghosts.insert(us);
        }
        Ok(())
    }

    /// Whether somebody may take this value of who had it.
    fn may_take(&self, value: &str, was: Option<&String>, who: &str) -> Result<(), String> {
        let Some(was) = was else { return Ok(()) };
        for (holder, believes) in HOLDERS.iter().zip(&self.java) {
            if was == holder && believes.get(value).is_some_and(|until| *until > self.now) {
                return Err(format!("{who} took {value} from a holder of Java's that was valid"));
            }
        }
        for client in self.clients.iter().filter(|client| client.until > self.now) {
            if was == self.name(client.owner) {
                return Err(format!("{who} took {value} from a holder of ours that was valid"));
            }
        }
        Ok(())
    }

    fn hear(&mut self, letter: &Letter, reply: Reply) {
        let client = &mut self.clients[letter.client];
        match (letter.kind, reply.code) {
            (Kind::Acquire, Code::Done | Code::AlreadyYours) | (Kind::Renew, Code::Done) => {
                client.asking = false;
                client.token = reply.value.parse().unwrap();
                client.until = client.until.max(letter.sent_at + letter.lease);
            }
            (_, Code::No) => self.seen.refusals += 1,
            (_, code) => {
                self.seen.losses += u32::from(code == Code::Lost);
                client.until = 0;
                self.send(letter.client, Kind::Release, 0);
                self.clients[letter.client] = Client::default();
            }
        }
    }

    /// One of Redisson's clients does something.
    fn redisson(&mut self) -> Result<(), String> {
        let number = self.rng.usize(0..2);
        let (set, lease) = (SETS[self.rng.usize(0..SETS.len())], self.rng.u64(2_000..6_000));
        let fields: Vec<String> = set.iter().map(|value| self.fields[value].clone()).collect();
        let clock = self.now.saturating_add_signed(self.ahead[number]);
        let run = JavaGroup { group: GROUP, holder: HOLDERS[number], clock, fields: &fields };
        let before = self.holders();
        let act = self.rng.u8(0..4);
        match act {
            0 | 1 => {
                if self.model.java_group_acquire(&run, lease, self.now).is_none() {
                    self.seen.java_grants += 1;
                    for value in set {
                        let until = self.java[number].entry(value).or_default();
                        *until = (self.now + lease).max(*until);
                    }
                }
            }
            2 => {
                if self.model.java_group_renew(&run, lease, self.now) {
                    for value in set {
                        let until = self.java[number].entry(value).or_default();
                        *until = (self.now + lease).max(*until);
                    }
                }
            }
            _ => {
                self.model.java_group_unlock(&run, lease, self.now);
                for value in set {
                    self.java[number].remove(value);
                }
            }
        }
        self.java_changed(&before)
    }

    /// Java among itself may do what it does (FM7); to us it must not.
    fn java_changed(&self, before: &BTreeMap<&'static str, String>) -> Result<(), String> {
        let after = self.holders();
        let is_java = |holder: &str| HOLDERS.contains(&holder);
        for (value, was) in before.iter().filter(|(_, was)| !is_java(was)) {
            if after.get(value) != Some(was) {
                self.may_take(value, Some(was), "Java")?;
            }
        }
        Ok(())
    }

    fn holders(&self) -> BTreeMap<&'static str, String> {
        let of = |field: &str| self.model.holder(GROUP, field, self.now).map(ToOwned::to_owned);
        self.fields.iter().filter_map(|(value, field)| Some((*value, of(field)?))).collect()
    }

    /// What must hold at any time.
    fn check(&self) -> Result<(), String> {
        let holders = self.holders();
        for (number, client) in self.clients.iter().enumerate() {
            if client.until <= self.now {
                continue;
            }
            let us = self.name(client.owner);
            for value in SETS[client.set] {
                if holders.get(value).is_none_or(|holder| holder != us) {
                    return Err(format!(
                        "{us} believes in {value}, which {:?} has",
                        holders.get(value)
                    ));
                }
                let others = self.clients[number + 1..].iter();
                let mut others = others.filter(|other| other.until > self.now);
                if others.any(|other| SETS[other.set].contains(value)) {
                    return Err(format!("two of ours believe in {value}"));
                }
            }
        }
        let ghost = holders.values().find(|holder| self.ghosts.contains(*holder));
        ghost.map_or(Ok(()), |ghost| Err(format!("{ghost} has ended and holds something")))
    }
}
