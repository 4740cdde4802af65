//! `edgelatch watch`: the state of an object, live on a terminal, else a line for each change.

mod change;
mod live;
mod queue;
mod screen;

use std::io::{self, IsTerminal as _};
use std::time::{Duration, SystemTime};

use edgelatch::Gateway;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::{select, time};

use crate::args::{Kind, WatchArgs};
use crate::exit::Failure;
use crate::signals::Signals;
use crate::status::{self, Status};
use crate::target::Client;
use crate::{clock, print_line, say};

use change::Changes;
use queue::Queue;

/// The state of an object at a time.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Snapshot {
    #[serde(skip)]
    at: SystemTime,
    #[serde(flatten)]
    status: Status,
    /// The number of waiters of a fair lock; other objects have no list of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<u64>,
}

/// The result of a query.
type News = Result<Snapshot, Failure>;

/// Shows the state until a key or a signal ends it.
pub(crate) async fn run(gateway: Gateway, args: WatchArgs) -> Result<u8, Failure> {
    let mut signals = Signals::new()?;
    let source = Source::new(gateway, &args)?;
    // The first query finds a wrong gateway or token before the screen changes.
    let first = select! {
        first = source.query() => first?,
        signal = signals.end() => return Ok(signal.exit_code()),
    };
    let news = poll(source, args.interval);
    if io::stdout().is_terminal() && !args.json {
        live::run(first, news, &mut signals).await
    } else {
        print_changes(first, news, &mut signals, args.json).await
    }
}

/// The source of snapshots.
struct Source {
    client: Client,
    queue: Option<Queue>,
    kind: Kind,
    name: String,
}

impl Source {
    fn new(gateway: Gateway, args: &WatchArgs) -> Result<Self, Failure> {
        let name = args.name.clone();
        let is_fair = args.kind == Kind::Fair;
        let queue = is_fair.then(|| Queue::new(gateway.clone(), &name)).transpose()?;
        Ok(Self { client: Client::connect(gateway), queue, kind: args.kind, name })
    }

    async fn query(&self) -> News {
        let status = status::query(&self.client, self.kind, self.name.clone()).await?;
        let queue = match &self.queue {
            Some(queue) => Some(queue.length().await?),
            None => None,
        };
        Ok(Snapshot { at: clock::now(), status, queue })
    }
}

/// Queries the source at this interval, until the receiver is dropped.
fn poll(source: Source, interval: Duration) -> mpsc::Receiver<News> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            time::sleep(interval).await;
            if sender.send(source.query().await).await.is_err() {
                break;
            }
        }
    });
    receiver
}

/// Prints a line for the first snapshot and for each that differs from the one before.
async fn print_changes(
    first: Snapshot,
    mut news: mpsc::Receiver<News>,
    signals: &mut Signals,
    as_json: bool,
) -> Result<u8, Failure> {
    let mut changes = Changes::default();
    let mut next: Option<News> = Some(Ok(first));
    while let Some(snapshot) = next {
        match snapshot {
            Ok(snapshot) => {
                if let Some(line) = changes.on_snapshot(&snapshot) {
                    print_line(&if as_json { status::json(&snapshot)? } else { line })?;
                }
            }
            Err(failure) => {
                if changes.on_failure() {
                    say(&failure.message);
                }
            }
        }
        next = select! {
            snapshot = news.recv() => snapshot,
            signal = signals.end() => return Ok(signal.exit_code()),
        };
    }
    Ok(0)
}
