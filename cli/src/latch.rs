//! `edgelatch latch`: waits for a count-down latch, and changes its count.

use tokio::pin;
use tokio::select;
use tokio::sync::oneshot;

use edgelatch::AcquireOptions;
use edgelatch::client::CountDownLatch;
use edgelatch::error::AcquireError;
use edgelatch::host::TokioHost;
use edgelatch::transport::Reqwest;

use crate::args::LatchCommand;
use crate::exit::{Exit, Failure};
use crate::print_line;
use crate::signals::Signals;
use crate::target::Client;
use crate::wait::{Progress, Wait};

type Latch = CountDownLatch<Reqwest, TokioHost>;

/// Runs a command about a latch.
pub(crate) async fn run(client: &Client, command: LatchCommand) -> Result<u8, Failure> {
    match command {
        LatchCommand::Wait { wait, name } => {
            let latch = client.count_down_latch(&name)?;
            await_open(&latch, wait.into()).await?;
        }
        LatchCommand::CountDown { name } => {
            let count = client.count_down_latch(&name)?.count_down().await?;
            print_line(&count.to_string())?;
        }
        LatchCommand::Set { name, count } => {
            if !client.count_down_latch(&name)?.try_set_count(count).await? {
                let message = format!("the latch {name:?} is closed already");
                return Err(Failure::new(Exit::Exists, message));
            }
        }
        LatchCommand::Show { name } => {
            let count = client.count_down_latch(&name)?.count().await?;
            print_line(&count.to_string())?;
        }
    }
    Ok(0)
}

async fn await_open(latch: &Latch, wait: Wait) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let name = latch.name().as_str();
    let _progress = Progress::show(wait, &format!("the latch {name:?}"));
    let (cancel, cancelled) = oneshot::channel::<()>();
    let waiting = async {
        if wait != Wait::Once {
            let options = wait.apply(AcquireOptions::new());
            let cancelled = async { drop(cancelled.await) };
            return latch.wait_cancellable(options, cancelled).await.map_err(Failure::from);
        }
        match latch.count().await? {
            0 => Ok(()),
            count => {
                let message = format!("the latch {name:?} is closed: its count is {count}");
                Err(Failure::new(Exit::Busy, message))
            }
        }
    };
    pin!(waiting);
    let signal = select! {
        outcome = &mut waiting => return outcome,
        signal = signals.end() => signal,
    };
    // A wait leaves nothing to undo, so it need not end before the program.
    drop(cancel);
    Err(Failure::signalled(signal, AcquireError::Cancelled { held_at_most: None }.message()))
}
