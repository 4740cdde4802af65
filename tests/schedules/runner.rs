//! Plays the schedules of a scenario, one seed after the other, and searches them for
//! counter-examples.

use edgelatch_proto::protocol::reply::Reply;

use super::env::Event;
use test_support::script_model::Latches;

pub(crate) use super::coverage::Coverage;
pub(crate) use super::env::{Env, START_MS};
pub(crate) use super::ledger::{Leases, Owners, Requests};
pub(crate) use super::network::{Network, Request};

/// The faults and rules of a schedule. `S` is the scenario's own settings.
#[derive(Clone, Debug)]
pub(crate) struct Plan<S> {
    pub(crate) network: Network,
    /// Whether the scripts keep a latch for each owner, which lets it be granted only once (C1).
    pub(crate) latches: Latches,
    /// The rule that the scripts leave out; `None` to keep all rules.
    pub(crate) without: Option<&'static str>,
    /// Replaces the bound of each request by another one. Rule C8, one bound for all requests of
    /// one owner, forbids that: the tests that set it show why.
    pub(crate) moving_bound: Option<MovingBound>,
    pub(crate) settings: S,
}

impl<S> Plan<S> {
    /// Creates a plan that keeps all rules.
    pub(crate) const fn new(network: Network, settings: S) -> Self {
        Self { network, latches: Latches::On, without: None, moving_bound: None, settings }
    }

    pub(crate) fn without(self, rule: &'static str) -> Self {
        Self { without: Some(rule), ..self }
    }

    /// Applies `change` to the plan and returns it.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// Returns the bound of a request, from the request and its own bound.
pub(crate) type MovingBound = fn(&Request, Option<u64>) -> Option<u64>;

/// The result of a check. The error names the broken invariant.
pub(crate) type Check = Result<(), String>;

/// A scenario: the programs that use one object, and its invariants.
pub(crate) trait Scenario: Sized {
    type Settings;
    /// The type that identifies its timers.
    type Timer: Copy + Ord;

    /// For how many milliseconds clients begin new work. The schedule ends when no event is left.
    const WORK_MS: u64;

    fn new(settings: Self::Settings, env: Env<Self::Timer>) -> Self;

    fn env(&mut self) -> &mut Env<Self::Timer>;

    /// Called before a request is executed.
    fn on_arrival(&mut self, _: &Request) {}

    /// Called after a request was executed.
    fn on_executed(&mut self, request: &Request, reply: &Reply) -> Check;

    /// Called when a client receives a reply; with `None` when its connection broke.
    fn on_reply(&mut self, _: &Request, _: Option<Reply>) -> Check {
        Ok(())
    }

    fn on_timer(&mut self, timer: Self::Timer) -> Check;

    /// Called after every event: lets Redisson programs, which use no network, change the object.
    fn interfere(&mut self) -> Check {
        Ok(())
    }

    /// Checks the invariants that hold after every event.
    fn check(&mut self) -> Check {
        Ok(())
    }

    /// Checks the invariants that hold when no event is left.
    fn finish(&mut self) -> Check {
        Ok(())
    }
}

/// A schedule in which an invariant is broken.
pub(crate) struct Violation {
    invariant: String,
    /// The seed, the time, the broken invariant, and the scripts that ran last.
    report: String,
}

/// Executes a request in the model, and lets the scenario check its effect.
pub(crate) fn execute<S: Scenario>(scenario: &mut S, request: &Request) -> Result<Reply, String> {
    scenario.on_arrival(request);
    let reply = scenario.env().execute(request);
    scenario.on_executed(request, &reply)?;
    Ok(reply)
}

/// Plays one schedule.
pub(crate) fn play<S: Scenario>(plan: Plan<S::Settings>, seed: u64) -> Result<Coverage, Violation> {
    let env = Env::new(&plan, seed, S::WORK_MS);
    let mut scenario = S::new(plan.settings, env);
    let result = play_events(&mut scenario);
    let env = scenario.env();
    match result {
        Ok(()) => Ok(std::mem::take(&mut env.coverage)),
        Err(invariant) => {
            let (at, trace) = (env.now - START_MS, env.trace());
            let report =
                format!("seed {seed}, after {at} ms: {invariant}. The scripts before:\n{trace}");
            Err(Violation { invariant, report })
        }
    }
}

fn play_events<S: Scenario>(scenario: &mut S) -> Check {
    while let Some(event) = scenario.env().next_event() {
        match event {
            Event::Request { request, is_copy } => {
                let reply = execute(scenario, &request)?;
                if !is_copy {
                    scenario.env().send_reply(request, reply);
                }
            }
            Event::Reply { request, reply } => scenario.on_reply(&request, reply)?,
            Event::Timer(timer) => scenario.on_timer(timer)?,
        }
        scenario.interfere()?;
        scenario.check()?;
    }
    scenario.finish()
}

/// Plays one schedule for each seed below `seeds`, and fails if one breaks an invariant. Returns
/// the counts of their events.
pub(crate) fn assert_all_hold<S: Scenario>(
    seeds: u64,
    plan: impl Fn(u64) -> Plan<S::Settings>,
) -> Coverage {
    let mut sum = Coverage::default();
    for seed in 0..seeds {
        let coverage =
            play::<S>(plan(seed), seed).unwrap_or_else(|found| panic!("{}", found.report));
        sum.merge(&coverage);
    }
    println!("{seeds} schedules: {sum:?}");
    sum
}

/// Fails unless the schedule of a seed below `seeds` breaks an invariant with an error that
/// contains one of the `expected` texts. Other violations do not count. `missing` names the rule
/// that the plan leaves out, for the output.
pub(crate) fn assert_violated<S: Scenario>(
    missing: &str,
    seeds: u64,
    plan: impl Fn(u64) -> Plan<S::Settings>,
    expected: &[&str],
) {
    let mut others = Vec::new();
    for seed in 0..seeds {
        match play::<S>(plan(seed), seed) {
            Err(found) if expected.iter().any(|text| found.invariant.contains(text)) => {
                println!("without `{missing}`: {}", found.report);
                return;
            }
            Err(found) => others.push(found.invariant),
            Ok(_) => {}
        }
    }
    panic!("without `{missing}` {seeds} schedules break {others:?}, but not {expected:?}");
}
