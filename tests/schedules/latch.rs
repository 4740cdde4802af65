//! A count-down latch that Redisson uses too: each call is counted once, whatever the network does.
//! This latch is an object of callers; an owner's latch, elsewhere in these tests, is a key of the
//! protocol (C1).

use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{CountDownLatchCalls, LatchCount};
use edgelatch_proto::protocol::reply::Reply;
use edgelatch_proto::protocol::script::Publish;

use super::ledger::is_repeated;
use super::machines::{Machines, Progress, Timer};
use super::network::arg;
use super::runner::{
    Check, Env, Network, Plan, Request, Requests, Scenario, assert_all_hold, assert_violated,
};
use test_support::script_model::holds::rules;

const NAME: &str = "gate";
const CLIENTS: usize = 3;

const NETWORK: Network = Network {
    loss_percent: 20,
    reply_loss_percent: 20,
    copy_percent: 35,
    slow_percent: 40,
    max_delay_ms: 100,
    max_slow_delay_ms: 6_000,
    max_copy_delay_ms: 6_000,
};

struct Latch {
    machines: Machines,
    calls: CountDownLatchCalls,
    requests: Requests,
    /// The count that the latch must have, from the calls that were executed.
    count: i64,
}

impl Scenario for Latch {
    type Settings = ();
    type Timer = Timer;

    const WORK_MS: u64 = 60_000;

    fn new((): (), env: Env<Timer>) -> Self {
        let calls = CountDownLatchCalls::new(LockName::parse(NAME).unwrap(), Publish::Plain);
        let (max_work_ms, max_pause_ms) = (0, 2_000);
        let machines = Machines::new(env, CLIENTS, max_work_ms, max_pause_ms);
        Self { machines, calls, requests: Requests::default(), count: 0 }
    }

    fn env(&mut self) -> &mut Env<Timer> {
        &mut self.machines.env
    }

    fn on_executed(&mut self, request: &Request, reply: &Reply) -> Check {
        let (args, code) = (request.call.args(), reply.code as i64);
        if request.script() != "latch_change" || code < 0 || is_repeated(reply) {
            return Ok(());
        }
        match (args[arg::OPERATION].as_str(), code) {
            ("down", 1) => {
                self.count -= 1;
                if self.count == 0 {
                    self.machines.env.coverage.count("openings");
                }
            }
            ("down", _) => self.machines.env.coverage.count("counts of an open latch"),
            ("set", 1) => self.count = args[arg::AMOUNT].parse().unwrap(),
            ("delete", 1) => self.count = 0,
            _ => {}
        }
        self.requests.record_execution(&args[arg::REQUEST_ID], code, &reply.value)
    }

    fn on_reply(&mut self, request: &Request, reply: Option<Reply>) -> Check {
        let progress = self.machines.on_reply(request, reply);
        self.on_progress(progress)
    }

    fn on_timer(&mut self, timer: Timer) -> Check {
        let progress = self.machines.on_timer(timer);
        self.on_progress(progress)
    }

    /// Lets a Redisson client count down, after one event in 30 on average.
    fn interfere(&mut self) -> Check {
        if self.machines.env.rng.u8(0..30) == 0 {
            self.machines.env.model.java_counts_down(NAME);
            self.count = (self.count - 1).max(0);
        }
        Ok(())
    }

    fn check(&mut self) -> Check {
        match self.machines.env.model.number(NAME).unwrap_or(0) {
            count if count == self.count => Ok(()),
            count => Err(format!("the count is {count} and not {}", self.count)),
        }
    }
}

impl Latch {
    fn on_progress(&mut self, progress: Option<Progress>) -> Check {
        match progress {
            Some(Progress::Idle(client)) => {
                let call = match self.machines.env.rng.u8(0..8) {
                    0 => self.calls.delete(),
                    1 | 2 => self.calls.try_set(LatchCount::new(3).unwrap()),
                    _ => self.calls.count_down(),
                };
                self.machines.call_once(client, call);
                Ok(())
            }
            Some(Progress::CallEnded(ids, outcome)) => self.requests.record_outcome(ids, outcome),
            _ => Ok(()),
        }
    }
}

const PLAN: Plan<()> = Plan::new(NETWORK, ());

#[test]
fn each_call_of_a_count_down_latch_is_counted_once() {
    let coverage = assert_all_hold::<Latch>(500, |_| PLAN);
    coverage.assert_above(0, &["openings", "counts of an open latch", "calls not executed"]);
}

#[test]
fn a_refusal_that_is_not_recorded_is_executed_later() {
    assert_violated::<Latch>(
        "recorded refusals",
        200,
        |_| PLAN.without(rules::RECORDED),
        &["executed twice"],
    );
}

#[test]
fn a_bound_that_moves_with_each_attempt_makes_a_client_s_result_wrong() {
    let plan = |_| Plan { moving_bound: Some(|request, _| Some(request.sent_at + 90_000)), ..PLAN };
    assert_violated::<Latch>("one bound for all attempts", 200, plan, &["but Redis executed"]);
}
