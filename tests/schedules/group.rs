//! A group of values, Redisson's `getMultiLock(group, values)`. An owner acquires several values at
//! once. Clients of this library and of Redisson acquire one set of values after another. Redisson
//! computes and compares the ends of holds by its own clocks, which may be wrong, so this library
//! allows for their error.

use std::collections::BTreeMap;
use std::time::Duration;

use edgelatch_proto::name::{LockName, RequestId};
use edgelatch_proto::protocol::calls::{GroupCalls, Target};
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::{Bound, Publish};
use edgelatch_proto::timing::PeerSkew;

use super::network::arg;
use super::runner::{
    Check, Coverage, Env, Leases, Network, Owners, Plan, Request, START_MS, Scenario,
    assert_all_hold, assert_violated,
};
use test_support::calls::{Calls, field as owner_field, lease, numbered_owner, request, token};
use test_support::script_model::Latches;
use test_support::script_model::java_group::JavaGroup;

const GROUP: &str = "students";
const VALUES: [&str; 3] = ["A", "B", "C"];
/// The sets of values that clients acquire.
const SETS: [&[&str]; 5] = [&["A"], &["B"], &["A", "B"], &["B", "C"], &["A", "B", "C"]];
/// The holder ids of the Redisson clients.
const JAVA_IDS: [&str; 2] =
    ["8743c9c0-0795-4907-87fd-6c719a6b4586:1", "1f1d3b8e-5a0a-4d2f-9f0e-0a6b7c8d9e0f:7"];
const CLIENTS: usize = 3;
const SCHEDULES: u64 = 600;

const NETWORK: Network = Network {
    loss_percent: 10,
    reply_loss_percent: 20,
    copy_percent: 35,
    slow_percent: 40,
    max_delay_ms: 200,
    max_slow_delay_ms: 6_000,
    max_copy_delay_ms: 12_000,
};

#[derive(Clone, Copy, Debug)]
struct Settings {
    /// The skew of Redisson's clocks that this library tolerates, in milliseconds.
    tolerated_skew: u64,
    /// The largest skew that Redisson's clocks have, in milliseconds. If it is above
    /// `tolerated_skew`, a client may lose a valid hold.
    max_skew: i64,
    /// The longest pause of a Redisson client between two actions, in milliseconds.
    max_java_pause: u64,
}

/// The tolerated skew suffices: 10 ms more than the clocks have.
const PLAN: Plan<Settings> =
    Plan::new(NETWORK, Settings { tolerated_skew: 1_000, max_skew: 990, max_java_pause: 3_000 });

/// The values that are held, and the holder of each: the content of the value's field in the
/// group's hash.
type HolderByValue = BTreeMap<&'static str, String>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Client(usize),
    Java(usize),
}

/// The current acquisition of one client of this library.
#[derive(Clone, Debug, Default)]
struct Client {
    /// The number of its owner, from 1; 0 while the client is idle.
    owner: u32,
    /// The owner as Redis stores it: the content of a held value's field.
    owner_text: String,
    /// The index of its set of values in `SETS`.
    set: usize,
    /// The token of its hold, once the client has the reply.
    token: Option<u64>,
}

struct Group {
    env: Env<Timer>,
    clients: [Client; CLIENTS],
    last_owner: u32,
    last_request: u64,
    max_java_pause: u64,
    calls: [Calls; SETS.len()],
    /// The field of each value in the group's hash.
    value_fields: BTreeMap<&'static str, String>,
    /// By how many milliseconds each Redisson clock is ahead.
    ahead: [i64; JAVA_IDS.len()],
    /// The leases on which clients rely, by value and holder.
    leases: Leases<(&'static str, String)>,
    /// The owners, as Redis stores them.
    owners: Owners,
    /// The holders before the execution of the current request.
    before: HolderByValue,
}

impl Scenario for Group {
    type Settings = Settings;
    type Timer = Timer;

    const WORK_MS: u64 = 60_000;

    fn new(
        Settings { tolerated_skew, max_skew, max_java_pause }: Settings,
        mut env: Env<Timer>,
    ) -> Self {
        (0..CLIENTS).for_each(|client| env.set_timer(Timer::Client(client), 0));
        (0..JAVA_IDS.len()).for_each(|java| env.set_timer(Timer::Java(java), 0));
        Self {
            clients: Default::default(),
            last_owner: 0,
            last_request: 0,
            max_java_pause,
            calls: SETS.map(|set| calls_for(set, tolerated_skew)),
            value_fields: VALUES.map(|value| (value, value_field(value))).into(),
            ahead: JAVA_IDS.map(|_| env.rng.i64(-max_skew..=max_skew)),
            leases: Leases::new(),
            owners: Owners::default(),
            before: HolderByValue::new(),
            env,
        }
    }

    fn env(&mut self) -> &mut Env<Timer> {
        &mut self.env
    }

    fn on_arrival(&mut self, _: &Request) {
        self.before = self.holders();
    }

    fn on_executed(&mut self, request: &Request, reply: &Reply) -> Check {
        let (script, owner) = (request.script(), &request.call.args()[arg::OWNER]);
        let after = self.holders();
        for value in VALUES {
            let (was, is) = (self.before.get(value), after.get(value));
            match script {
                _ if was == is => {}
                "group_acquire" if is == Some(owner) => {
                    self.check_holder_had_expired(value, was, "we")?
                }
                "group_release" if was == Some(owner) => {}
                _ => {
                    return Err(format!(
                        "{script} of {owner} changed {value} of {was:?} to {is:?}"
                    ));
                }
            }
        }
        if script == "group_release" {
            self.owners.record_end(owner);
        }
        if script == "group_acquire" && self.owners.has_ended(owner) {
            self.env.coverage.count("late copies");
        }
        if script == "group_acquire" && reply.code == Code::Done {
            self.env.coverage.count("grants");
            let token = reply.value.parse().unwrap();
            self.owners.record_grant(owner, token)?;
            for value in VALUES.into_iter().filter(|value| after.get(value) == Some(owner)) {
                self.owners.record_token(value, (token, 0))?;
            }
        }
        Ok(())
    }

    fn on_reply(&mut self, request: &Request, reply: Option<Reply>) -> Check {
        let (args, client) = (request.call.args(), &mut self.clients[request.client]);
        let Some(reply) = reply.filter(|_| client.owner_text == args[arg::OWNER]) else {
            return Ok(());
        };
        match reply.code {
            Code::Done | Code::AlreadyYours => {
                client.token = Some(reply.value.parse().unwrap());
                let until = request.sent_at + args[arg::LEASE_MS].parse::<u64>().unwrap();
                for value in SETS[client.set] {
                    self.leases.extend((value, client.owner_text.clone()), until);
                }
            }
            Code::No => self.env.coverage.count("refusals"),
            code => {
                if code == Code::Lost {
                    self.env.coverage.count("losses");
                }
                self.release(request.client);
            }
        }
        Ok(())
    }

    fn on_timer(&mut self, timer: Timer) -> Check {
        if !self.env.accepts_new_work() {
            return Ok(());
        }
        // With a long pause a client may lose its hold.
        let max_pause = match timer {
            Timer::Client(_) if self.env.chance(30) => 9_000,
            Timer::Client(_) => 1_500,
            Timer::Java(_) => self.max_java_pause,
        };
        let pause = self.env.rng.u64(1..max_pause);
        self.env.set_timer(timer, pause);
        match timer {
            Timer::Client(client) => {
                self.send_next(client);
                Ok(())
            }
            Timer::Java(java) => self.act_as_java(java),
        }
    }

    /// Checks that clients of this library hold the values on which they rely, so that no two rely
    /// on one value; and that no ended owner holds a value.
    fn check(&mut self) -> Check {
        let holders = self.holders();
        let ours = self.leases.valid(self.env.now).filter(|(_, holder)| !is_java(holder));
        for (value, client) in ours {
            let holder = holders.get(value);
            if holder != Some(client) {
                return Err(format!("{client} relies on {value}, which {holder:?} has"));
            }
        }
        match holders.values().find(|holder| self.owners.has_ended(holder)) {
            Some(holder) => Err(format!("{holder} has ended but is still stored")),
            None => Ok(()),
        }
    }
}

impl Group {
    /// Sends the next request of a client: a try, which begins or repeats an acquisition; a renewal
    /// of its hold; or a release.
    fn send_next(&mut self, client: usize) {
        if self.clients[client].owner == 0 {
            self.last_owner += 1;
            let (owner, set) = (self.last_owner, self.env.rng.usize(0..SETS.len()));
            let owner_text = owner_field(&numbered_owner(owner));
            self.clients[client] = Client { owner, owner_text, set, token: None };
        } else if self.env.rng.u8(0..3) == 0 {
            return self.release(client);
        }
        let Client { owner, set, token: grant, .. } = self.clients[client];
        let (owner, lease, last) =
            (numbered_owner(owner), lease(self.env.rng.u64(2_000..6_000)), self.env.chance(25));
        let (id, bound) = self.next_request(client);
        let call = match grant {
            None => self.calls[set].acquire(id, bound, &owner, lease, last),
            Some(grant) => self.calls[set].renew(id, bound, &owner, lease, token(grant)),
        };
        self.env.send(client, call);
    }

    /// Sends a release. From then on the client relies on no value, and is idle.
    fn release(&mut self, client: usize) {
        let (id, bound) = self.next_request(client);
        let Client { owner, owner_text, set, .. } = std::mem::take(&mut self.clients[client]);
        self.leases.retain(|(_, holder)| *holder != owner_text);
        self.env.send(client, self.calls[set].release(id, bound, &numbered_owner(owner)));
    }

    /// Returns an id for the next request, and the owner's bound. All requests of one owner carry
    /// the same bound (rule C8), so it depends on the owner's number alone.
    fn next_request(&mut self, client: usize) -> (RequestId, Bound) {
        self.last_request += 1;
        let not_after = START_MS + u64::from(self.clients[client].owner) * 2_000 + 60_000;
        let bound = Bound { not_after: Some(not_after), keep: Duration::from_secs(60) };
        (request(self.last_request), bound)
    }

    /// Checks that the lease of the holder from which `by` took this value had expired.
    fn check_holder_had_expired(
        &self,
        value: &'static str,
        holder: Option<&String>,
        by: &str,
    ) -> Check {
        let Some(holder) = holder else { return Ok(()) };
        if self.leases.is_valid(&(value, holder.clone()), self.env.now) {
            let side = if is_java(holder) { "Java's" } else { "ours" };
            return Err(format!("{by} took {value} from a holder of {side} that relied on it"));
        }
        Ok(())
    }

    /// Runs a random action of a Redisson client. Redisson's clients may take values from each
    /// other: their clocks differ, and a late unlock of one ends the hold of the next.
    /// They must take none from a client of this library.
    fn act_as_java(&mut self, java: usize) -> Check {
        let before = self.holders();
        let Env { rng, model, now, coverage, .. } = &mut self.env;
        let (set, holder, now) = (rng.choice(SETS).unwrap(), JAVA_IDS[java], *now);
        let lease = rng.u64(2_000..6_000);
        let fields: Vec<String> =
            set.iter().map(|value| self.value_fields[value].clone()).collect();
        let clock = now.saturating_add_signed(self.ahead[java]);
        let run = JavaGroup { group: GROUP, holder, clock, fields: &fields };
        let (holds, event) = match rng.u8(0..4) {
            0 | 1 => (model.java_group_acquire(&run, lease, now).is_none(), "grants of Java's"),
            2 => (model.java_group_renew(&run, lease, now), "renewals of Java's"),
            _ => {
                model.java_group_unlock(&run, lease, now);
                self.leases.retain(|(value, other)| other != holder || !set.contains(value));
                (false, "")
            }
        };
        if holds {
            coverage.count(event);
            set.iter().for_each(|value| self.leases.extend((value, holder.into()), now + lease));
        }
        let after = self.holders();
        for (value, was) in before.iter().filter(|(_, was)| !is_java(was)) {
            if after.get(value) != Some(was) {
                self.check_holder_had_expired(value, Some(was), "Java")?;
            }
        }
        Ok(())
    }

    fn holders(&self) -> HolderByValue {
        let holder = |field: &String| self.env.model.holder(GROUP, field, self.env.now);
        let held = |(value, field): (&&'static str, _)| Some((*value, holder(field)?.to_owned()));
        self.value_fields.iter().filter_map(held).collect()
    }
}

fn is_java(holder: &str) -> bool {
    JAVA_IDS.contains(&holder)
}

fn calls_for(values: &[&str], tolerated_skew: u64) -> Calls {
    let tolerated_skew = PeerSkew::new(Duration::from_millis(tolerated_skew)).unwrap();
    let group = LockName::parse(GROUP).unwrap();
    Calls(Target::Group(GroupCalls::new(group, values, tolerated_skew, Publish::Plain).unwrap()))
}

/// The field of one value in the group's hash.
fn value_field(value: &str) -> String {
    /// The index of the first field in the arguments of `group_inspect`.
    const FIRST_FIELD: usize = 6;
    calls_for(&[value], 0).inspect(request(1), None).args()[FIRST_FIELD].clone()
}

// With almost as much skew as is tolerated, with none, and with neither skew nor tolerance.
#[test]
fn no_client_loses_a_valid_hold_if_the_skew_of_java_s_clocks_is_tolerated() {
    let mut sum = Coverage::default();
    for (tolerated_skew, max_skew) in [(1_000, 990), (1_000, 0), (0, 0)] {
        let skews = |settings: &mut Settings| {
            (settings.tolerated_skew, settings.max_skew) = (tolerated_skew, max_skew);
        };
        sum.merge(&assert_all_hold::<Group>(SCHEDULES, |_| with_settings(skews)));
    }
    let events = ["grants", "grants of Java's", "refusals", "losses", "late copies"];
    sum.assert_above(SCHEDULES / 4, &events);
}

fn with_settings(change: impl FnOnce(&mut Settings)) -> Plan<Settings> {
    PLAN.with(|plan| change(&mut plan.settings))
}

fn assert_broken(plan: &Plan<Settings>, expected: &str) {
    let missing = format!("{:?}, {:?}", plan.without, plan.settings);
    assert_violated::<Group>(&missing, 10 * SCHEDULES, |_| plan.clone(), &[expected]);
}

#[test]
fn more_skew_of_java_s_clocks_than_is_tolerated_ends_a_valid_hold() {
    assert_broken(&PLAN.without("a clock of Java's may be behind"), "from a holder of Java's");
    assert_broken(&PLAN.without("a clock of Java's may be ahead"), "Java took");
    let untolerated = with_settings(|settings| settings.tolerated_skew = 0);
    assert_broken(&untolerated, "from a holder of Java's");
    assert_broken(&with_settings(|settings| settings.max_skew = 2_500), "Java took");
}

#[test]
fn a_late_unlock_of_java_s_ends_a_hold_if_earlier_owners_leave_fields() {
    let short_pauses = with_settings(|settings| settings.max_java_pause = 1_700);
    assert_broken(&short_pauses.without("fields of earlier owners are removed"), "Java took");
}

#[test]
fn a_release_that_ignores_the_owner_of_a_value_ends_the_hold_of_another() {
    assert_broken(&PLAN.without("a release leaves others' values alone"), "group_release of");
}

#[test]
fn a_repeat_or_renewal_that_misses_a_lost_value_leaves_a_client_relying_on_it() {
    assert_broken(&PLAN.without("a repeat needs all values"), "relies on");
    assert_broken(&PLAN.without("a renewal needs all values"), "relies on");
}

#[test]
fn an_ended_owner_is_granted_again_without_latches() {
    let plan = Plan { latches: Latches::Off, ..PLAN };
    assert_broken(&plan, "granted after its end");
}
