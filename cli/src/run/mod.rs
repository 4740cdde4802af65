//! `edgelatch run`: waits for a lock, runs a command while holding it, and releases it.

mod acquire;
mod command;
mod hold;
mod launch;
mod plan;
mod supervisor;

use std::ffi::OsString;

use edgelatch::Gateway;
use edgelatch::client::Released;
use edgelatch::error::LossReason;
use tokio::{pin, select};

use crate::args::RunArgs;
use crate::clock;
use crate::exit::{Exit, Failure, with_cause};
use crate::say;
use crate::signals::Signals;
use crate::target::{self, Client, Lease};

use command::Command;
use plan::Plan;
use supervisor::Supervisor;

pub(crate) use launch::launch;

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
    let (loss, code) = match work(&lease, &plan, &mut signals).await {
        Ok(end) => end,
        Err(failure) => {
            release(&lease, &plan, &mut signals).await;
            return Err(failure);
        }
    };
    let loss = match loss {
        // Redis ends the hold too; a release could only delay the end of the program.
        Some(reason) => Some(reason),
        None => release(&lease, &plan, &mut signals).await,
    };
    let Some(reason) = loss else { return Ok(code) };
    Err(Failure::new(Exit::Lost, lost(&plan.name, reason)))
}

/// Runs the command until its end, and ends it when the lease is lost. Returns the reason of a
/// loss, and the exit code of the command.
async fn work(
    lease: &Lease,
    plan: &Plan,
    signals: &mut Signals,
) -> Result<(Option<LossReason>, u8), Failure> {
    let deadline = clock::since_1970(clock::now() + lease.remaining()).as_secs();
    let variables: [(&str, OsString); 3] = [
        ("EDGELATCH_FENCING_TOKEN", lease.token().as_u64().to_string().into()),
        ("EDGELATCH_LOCK", plan.name.as_str().into()),
        ("EDGELATCH_DEADLINE", deadline.to_string().into()),
    ];
    let mut command = Command::start(&plan.command, variables)?;
    let mut supervisor = Supervisor::new();
    let keep = hold::keep(lease, plan.lease);
    let grace = hold::grace(plan.grace);
    pin!(keep, grace);
    let status = loop {
        let action = select! {
            // The end of the command comes first: a lease that is lost at the same time was held
            // until then or not at all, which the release finds out.
            biased;
            status = command.ended() => break status?,
            reason = &mut keep, if supervisor.loss().is_none() => {
                say(&lost(&plan.name, reason));
                grace.set(hold::grace(plan.grace));
                supervisor.on_lost(reason)
            }
            signal = signals.next() => supervisor.on_signal(signal),
            () = &mut grace, if supervisor.is_ending() => supervisor.on_grace_over(),
        };
        command.perform(action);
    };
    // Processes that the command has started may still do its work.
    while supervisor.is_ending() && command.has_descendants() {
        let action = select! {
            signal = signals.next() => supervisor.on_signal(signal),
            () = &mut grace => supervisor.on_grace_over(),
            () = hold::pause() => None,
        };
        command.perform(action);
    }
    Ok((supervisor.loss(), command::exit_code(status)))
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
