//! Guarded writes: Redis accepts a write only if its token is larger than that of the last write,
//! or equal and its number larger. Successive holders send a few writes each, and the network
//! delivers them and their copies at any later time, also after Redis has forgotten the last write.

use edgelatch_proto::name::GuardKey;
use edgelatch_proto::protocol::calls::{GuardCalls, GuardedWrite, Stamp};
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::timing::GuardMemory;
use std::time::Duration;

use super::runner::{
    Check, Env, Network, Owners, Plan, Request, START_MS, Scenario, assert_all_hold,
    assert_violated,
};
use test_support::calls::{UNBOUND, owner, request, token};
use test_support::script_model::{Latches, ScriptModel, Value};

/// How long Redis remembers the fence, the token and number of the last write, in milliseconds.
const MEMORY_MS: u64 = 600_000;
/// How many holders succeed each other in one schedule.
const HOLDERS: u8 = 4;
/// How much longer than `MEMORY_MS` Redis keeps a fence.
const FENCE_MARGIN_MS: u64 = 60_000;
const SCHEDULES: u64 = 3_000;
/// The index of the token in the arguments of `guard_write`.
const TOKEN: usize = 4;

/// Half of the requests are slow, and half arrive a second time, when Redis may have forgotten the
/// fence.
const NETWORK: Network = Network {
    loss_percent: 10,
    reply_loss_percent: 0,
    copy_percent: 50,
    slow_percent: 50,
    max_delay_ms: 20,
    max_slow_delay_ms: MEMORY_MS,
    max_copy_delay_ms: 2 * MEMORY_MS,
};

struct Settings {
    /// Whether each write of a holder has a number of its own; otherwise the numbers repeat.
    numbers_writes: bool,
}

const PLAN: Plan<Settings> = Plan::new(NETWORK, Settings { numbers_writes: true });

struct Guard {
    env: Env<()>,
    settings: Settings,
    calls: GuardCalls,
    owners: Owners,
    /// The number of the current holder, from 1.
    holder: u8,
    token: u64,
    /// How many writes the holder has sent, and how many it has still to send.
    writes: u64,
    writes_left: u64,
}

impl Scenario for Guard {
    type Settings = Settings;
    /// The only timer: it starts the next write.
    type Timer = ();

    const WORK_MS: u64 = 0;

    fn new(settings: Settings, mut env: Env<()>) -> Self {
        env.set_timer((), 0);
        let calls = GuardCalls::new(GuardKey::parse("total").unwrap(), memory());
        let owners = Owners::default();
        Self { env, settings, calls, owners, holder: 0, token: 0, writes: 0, writes_left: 0 }
    }

    fn env(&mut self) -> &mut Env<()> {
        &mut self.env
    }

    /// Checks that the stored value never moves back: neither from holder to holder nor from write
    /// to write.
    fn on_executed(&mut self, request: &Request, reply: &Reply) -> Check {
        if reply.code == Code::Done {
            self.env.coverage.count("writes");
            let token = request.call.args()[TOKEN].parse().unwrap();
            // Requests are numbered in the order of sending, so of two writes with one token the
            // newer has the larger number.
            self.owners.record_token("total", (token, request.number))?;
        }
        Ok(())
    }

    fn on_timer(&mut self, (): ()) -> Check {
        if self.writes_left == 0 {
            self.holder += 1;
            // A token is the time of its grant, in microseconds.
            self.token = self.env.now * 1_000;
            (self.writes, self.writes_left) = (0, self.env.rng.u64(1..4));
        }
        self.writes += 1;
        self.writes_left -= 1;
        let number = if self.settings.numbers_writes { self.writes } else { self.writes % 2 + 1 };
        let write = GuardedWrite::set(self.writes.to_string(), None);
        let stamp = stamp(self.token, self.holder, number);
        self.env.send(0, self.calls.write(request(1), UNBOUND, stamp, &write));
        // The pause between holders is sometimes long enough for Redis to forget a fence.
        let pauses: &[u64] = if self.writes_left > 0 {
            &[5, 5, MEMORY_MS / 3]
        } else {
            &[10, MEMORY_MS + FENCE_MARGIN_MS + 1_000]
        };
        if self.writes_left > 0 || self.holder < HOLDERS {
            let pause = *self.env.rng.choice(pauses).unwrap();
            self.env.set_timer((), pause);
        }
        Ok(())
    }
}

fn memory() -> GuardMemory {
    GuardMemory::new(Duration::from_millis(MEMORY_MS)).unwrap()
}

fn stamp(token_number: u64, holder: u8, number: u64) -> Stamp {
    Stamp { token: token(token_number), owner: owner(holder), number }
}

#[test]
fn the_token_of_a_guard_only_rises() {
    let coverage = assert_all_hold::<Guard>(SCHEDULES, |_| PLAN);
    coverage.assert_above(2 * SCHEDULES, &["writes"]);
}

#[test]
fn a_guard_that_forgets_without_checking_a_token_s_age_accepts_older_ones() {
    let rule = "an old token is refused";
    assert_violated::<Guard>(rule, SCHEDULES, |_| PLAN.without(rule), &["does not rise"]);
}

#[test]
fn a_guard_without_write_numbers_accepts_older_writes() {
    let plan = |_| Plan::new(NETWORK, Settings { numbers_writes: false });
    assert_violated::<Guard>("numbers of writes", SCHEDULES, plan, &["does not rise"]);
}

#[test]
fn a_guard_that_never_forgets_accepts_tokens_of_any_age() {
    let guard = GuardCalls::new(GuardKey::parse("total").unwrap(), GuardMemory::FOR_EVER);
    let mut model = ScriptModel::new(Latches::On);
    for (number, code) in [(5, Code::Done), (4, Code::No), (6, Code::Done)] {
        let call = guard.write(request(1), UNBOUND, stamp(number, 1, 1), &GuardedWrite::claim());
        let cells = model.run(&call, START_MS);
        assert_eq!(Reply::read(&cells, call.request).unwrap().code, code);
    }
    let fence = model.dump(u64::MAX - 1).remove("el:{total}:fence").unwrap();
    assert_eq!(fence.expires_at, None);
    assert!(matches!(fence.value, Value::Text(text) if text.starts_with("6:1:")));
}
