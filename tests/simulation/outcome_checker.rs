//! Checks the results that a client received against the state of Redis.

use std::time::Duration;

use edgelatch::client::Released;

use super::checker::Owner;
use super::coverage::CoverPoint;
use super::engine::Sim;
use super::faults::Fault;
use super::plan::Kind;

impl Sim {
    /// I10: a client with a lease has a grant in Redis.
    pub(crate) fn check_grant(&self, operation: u32, host: usize, parts: usize, token: u64) {
        let mut checker = self.checker.borrow_mut();
        let (mut count, mut known) = (0, false);
        for node in 0..self.plan.nodes {
            // Earlier rounds of the wait were abandoned, each under an owner of its own.
            let granted =
                |owner: &&mut Owner| owner.node == node && owner.grants > 0 && !owner.released;
            if let Some(owner) = checker.owners_of(operation).rfind(granted) {
                owner.held = true;
                count += 1;
                known |= owner.tokens.contains(&token);
            }
        }
        if count < parts || parts == 1 && !known {
            checker
                .fail(self, || format!("I10 host {host} was granted nothing with token {token}"));
        }
    }

    /// I4: the result of a release agrees with Redis.
    pub(crate) fn check_release(&self, operation: u32, parts: usize, result: Released) {
        let has_lost = self.has_lost();
        let mut checker = self.checker.borrow_mut();
        // Only owners with a hold on which the client relied count: others were released before the
        // hold began, or were granted too late.
        let held = checker.owners_of(operation).filter(|owner| owner.held).count();
        let released =
            checker.owners_of(operation).filter(|owner| owner.held && owner.released).count();
        match result {
            Released::Released => {
                self.coverage.count(CoverPoint::Released, 1);
                if released < parts {
                    checker.fail(self, || {
                        format!("I4 released, and {released} of {parts} were freed")
                    });
                }
            }
            Released::WasLost => {
                self.coverage.count(CoverPoint::WasLost, 1);
                if held >= parts && released == held && !has_lost {
                    checker.fail(self, || "I4 it was lost, and its release has freed it".into());
                }
            }
        }
    }

    /// A client received the result that nothing of an operation is held, or nothing after
    /// `held_at_most` by its clocks.
    pub(crate) fn check_not_held(
        &self,
        operation: u32,
        host: usize,
        held_at_most: Option<Duration>,
    ) {
        let now = self.now();
        let over_at = match held_at_most {
            None => now,
            // The client's upper bound is right only if clocks drift less than it allows for.
            Some(_) if self.plan.has(Fault::Drift) => return,
            Some(time) => {
                let clocks = &self.hosts.borrow()[host].clocks;
                clocks.time_of(clocks.monotonic(now) + time.as_micros() as u64, now) + 10_000
            }
        };
        let nodes = self.nodes.borrow();
        let mut checker = self.checker.borrow_mut();
        let can_exclude = checker.can_exclude;
        let mut still_held = 0;
        for owner in checker.owners_of(operation) {
            still_held +=
                usize::from(over_at <= now && owner.hold.is_valid(&nodes[owner.node], now));
            if self.plan.kind != Kind::Red {
                owner.over_at = Some(over_at);
            }
        }
        // The holds of a redLock on a minority of nodes block no client, and expire.
        let least = if self.plan.kind == Kind::Red { self.plan.nodes / 2 + 1 } else { 1 };
        if still_held >= least && can_exclude {
            checker.fail(self, || {
                format!("I4 host {host} got the result that it holds nothing, and it does")
            });
        }
    }
}
