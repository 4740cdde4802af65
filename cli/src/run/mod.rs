//! `edgelatch run`: waits for a lock, runs a command while holding it, and releases it.

mod acquire;
mod command;
mod guard;
mod hold;
mod launch;
mod plan;
mod receiver;
mod supervisor;

use std::ffi::OsString;

use edgelatch::Gateway;
use edgelatch::client::{LeaseState, Released};
use edgelatch::error::LossReason;
use tokio::sync::Notify;
use tokio::{pin, select};

use crate::args::RunArgs;
use crate::clock;
use crate::exit::{Exit, Failure, with_cause};
use crate::say;
use crate::signals::Signals;
use crate::target::{self, Client, Lease};

use command::Command;
use guard::Guard;
use plan::Plan;
use supervisor::{Action, Supervisor};

pub(crate) use guard::guard;
pub(crate) use launch::launch;
pub(crate) use receiver::Receiver;

/// Runs the command under the lock. Returns the exit code.
pub(crate) async fn run(gateway: Gateway, args: RunArgs) -> Result<u8, Failure> {
    let plan = Plan::new(args)?;
    // Before the first request, so that no signal leaves a hold behind.
    let mut signals = Signals::new()?;
    let client = Client::connect(gateway);
    let lock = target::held(&client, plan.kind, plan.permits, &plan.name)?;
    let lease = acquire::acquire(&lock, &plan, &mut signals).await?;
    if plan.is_verbose {
        say(&format!("acquired {:?}, fencing token {}", plan.name, lease.token().as_u64()));
    }
    let code = match work(&lease, &plan, &mut signals).await {
        // The loss was reported. Redis ends the hold too; a release could only delay the end.
        Ok(None) => return Ok(Exit::Lost.code()),
        Ok(Some(code)) => Ok(code),
        Err(failure) => Err(failure),
    };
    // The signals until now were for the command: a terminal sends keys to both programs.
    signals.forget().await;
    match release(&lease, &plan, &mut signals).await {
        Some(reason) if code.is_ok() => Err(Failure::new(Exit::Lost, lost(&plan.name, reason))),
        _ => code,
    }
}

/// Runs the command until its end, and ends it when the lease is lost. Returns the exit code of the
/// command, or `None` after a loss.
async fn work(lease: &Lease, plan: &Plan, signals: &mut Signals) -> Result<Option<u8>, Failure> {
    let deadline = clock::since_1970(clock::now() + lease.remaining()).as_secs();
    let variables: [(&str, OsString); 3] = [
        ("EDGELATCH_FENCING_TOKEN", lease.token().as_u64().to_string().into()),
        ("EDGELATCH_LOCK", plan.name.as_str().into()),
        ("EDGELATCH_DEADLINE", deadline.to_string().into()),
    ];
    let mut command = Command::start(&plan.command, variables)?;
    let mut guard = Guard::start(command.receiver(), lease.remaining(), plan.grace);
    let mut supervisor = Supervisor::new();
    let status = {
        let keep = hold::keep(lease, plan.lease);
        let is_lost = Notify::new();
        let feed = guard.feed(lease, plan.lease, &is_lost);
        let grace = hold::grace(plan.grace);
        pin!(keep, feed, grace);
        loop {
            let action = select! {
                biased;
                status = command.ended() => break status?,
                reason = &mut keep, if supervisor.loss().is_none() => {
                    is_lost.notify_one();
                    grace.set(hold::grace(plan.grace));
                    on_lost(&mut supervisor, plan, reason)
                }
                signal = signals.next() => supervisor.on_signal(signal),
                () = &mut grace, if supervisor.is_ending() => supervisor.on_grace_over(),
                () = &mut feed => None,
            };
            command.perform(action);
        }
    };
    // The command may have ended because of a loss, before this program noticed it.
    if let (None, LeaseState::Lost(reason)) = (supervisor.loss(), lease.state()) {
        command.perform(on_lost(&mut supervisor, plan, reason));
    }
    end_descendants(&command, &mut supervisor, plan, signals).await;
    guard.end().await;
    Ok(supervisor.loss().is_none().then(|| command::exit_code(status)))
}

fn on_lost(supervisor: &mut Supervisor, plan: &Plan, reason: LossReason) -> Option<Action> {
    say(&lost(&plan.name, reason));
    supervisor.on_lost(reason)
}

/// After a loss, ends the processes that the command has started, which may still do its work.
async fn end_descendants(
    command: &Command,
    supervisor: &mut Supervisor,
    plan: &Plan,
    signals: &mut Signals,
) {
    let grace = hold::grace(plan.grace);
    pin!(grace);
    while supervisor.is_ending() && command.has_descendants() {
        let action = select! {
            signal = signals.next() => supervisor.on_signal(signal),
            () = &mut grace => supervisor.on_grace_over(),
            () = hold::pause() => None,
        };
        command.perform(action);
    }
}

/// Releases the lease; a second signal ends the attempts. Returns the reason of a loss that the
/// program had not noticed before.
async fn release(lease: &Lease, plan: &Plan, signals: &mut Signals) -> Option<LossReason> {
    let left = select! {
        biased;
        released = lease.release() => match released {
            Ok(Released::Released) => {
                if plan.is_verbose {
                    say(&format!("released {:?}", plan.name));
                }
                return None;
            }
            Ok(Released::WasLost) => return Some(LossReason::Gone),
            Err(error) => with_cause(&error),
        },
        () = second_end(signals) => format!("the release of {:?} was interrupted", plan.name),
    };
    let ends = clock::short(plan.lease);
    say(&format!("{left}; the lock is free in {ends} at the latest"));
    None
}

/// Waits for the second signal that asks the program to end. The first one may be the signal that
/// has ended the command: a terminal sends it to both, and it can arrive late.
async fn second_end(signals: &mut Signals) {
    signals.end().await;
    signals.end().await;
}

fn lost(name: &str, reason: LossReason) -> String {
    format!("lost {name:?}: {}", reason.message())
}
