//! Three Redis behind gateways, and what is done for each cell of the matrix.

use std::env;
use std::sync::Arc;
use std::time::Duration;

use edgelatch::client::Client;
use edgelatch::protocol::gateway::Gateway;
use edgelatch::timing::AttemptTime;
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, LocalSet, spawn_local};

use super::actions::{Action, Times, actions};
use super::objects::{AnyLock, Object};
use test_support::misbehaviour::{Fault, Said};
use test_support::redis::{Redis, TOKEN};
use test_support::relay::Relay;
use test_support::stand::{ANSWERED_ATTEMPT, NativeClient};

/// How long an attempt may take that gets no answer: each test of silence waits for it.
const SILENT_ATTEMPT: Duration = Duration::from_secs(5);
/// How many cells are looked at side by side.
const AT_ONCE: usize = 8;
/// Without `EDGELATCH_FAULTS=all`, one cell of so many is looked at: a prime, so that each action
/// and each object comes up.
const THIN: usize = 19;

/// One cell: an object, and what befalls a request about it.
pub(crate) struct Cell {
    pub(crate) object: Object,
    pub(crate) action: Action,
    pub(crate) times: Times,
    pub(crate) name: String,
    /// Clients whose gateways do what they should.
    pub(crate) honest: Vec<NativeClient>,
    /// Clients whose gateways are in between.
    pub(crate) bad: Vec<NativeClient>,
    relays: Vec<Relay>,
}

/// Looks at the cells of an operation that make `sense`, and tells how many they were.
pub(crate) async fn each_cell<F>(
    operation: &str,
    sense: fn(Object, &Action, Times) -> bool,
    look: fn(Cell) -> F,
) where
    F: Future<Output = ()> + 'static,
{
    LocalSet::new().run_until(run(operation, sense, look)).await;
}

async fn run<F>(operation: &str, sense: fn(Object, &Action, Times) -> bool, look: fn(Cell) -> F)
where
    F: Future<Output = ()> + 'static,
{
    let mut ground = [Redis::start().await, Redis::start().await, Redis::start().await];
    for redis in &mut ground {
        // Known already, so that each call is one request.
        redis.learn().await;
    }
    let all = env::var("EDGELATCH_FAULTS").is_ok_and(|cells| cells == "all");
    let cells: Vec<(Object, Action, Times)> = Object::ALL
        .into_iter()
        .flat_map(|object| {
            actions().into_iter().map(move |(action, times)| (object, action, times))
        })
        .filter(|(object, action, times)| sense(*object, action, *times))
        .enumerate()
        .filter(|(number, _)| all || (number + operation.len()).is_multiple_of(THIN))
        .map(|(_, cell)| cell)
        .collect();
    let (places, mut looking) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new());
    for (number, (object, action, times)) in cells.iter().cloned().enumerate() {
        let place = Arc::clone(&places).acquire_owned().await.unwrap();
        let what = format!("{operation}, {object:?}, {}, {times:?}", action.name);
        let cell = Cell::new(&ground, object, action, times, format!("cell-{number}")).await;
        looking.spawn_local(async move {
            let _place = place;
            let outcome = spawn_local(look(cell)).await;
            outcome.err().map(|error| format!("{what}: {error}"))
        });
    }
    let broken: Vec<String> = looking.join_all().await.into_iter().flatten().collect();
    println!("{operation}: {} cells", cells.len());
    assert!(broken.is_empty(), "{} of {} cells: {broken:#?}", broken.len(), cells.len());
}

impl Cell {
    async fn new(
        ground: &[Redis; 3],
        object: Object,
        action: Action,
        times: Times,
        name: String,
    ) -> Self {
        let (mut relays, mut honest, mut bad) = (Vec::new(), Vec::new(), Vec::new());
        let is_silent = matches!(action.fault.answer, Said::Silence);
        let attempt = if is_silent { SILENT_ATTEMPT } else { ANSWERED_ATTEMPT };
        for redis in ground {
            let relay = Relay::start(redis.address()).await;
            bad.push(client(&relay.url(), attempt));
            honest.push(client(&format!("http://{}", redis.address()), ANSWERED_ATTEMPT));
            relays.push(relay);
        }
        object.prepare(&honest[0], &name).await;
        Self { object, action, times, name, honest, bad, relays }
    }

    /// What is asked for through the gateways that may fail.
    pub(crate) fn lock(&self) -> AnyLock {
        self.object.of(&self.bad, &self.name)
    }

    /// What excludes it, through those that do not.
    pub(crate) fn rival(&self) -> AnyLock {
        self.object.rival().of(&self.honest, &self.name)
    }

    /// From now on the requests of this operation go wrong: the first, or all.
    pub(crate) fn befall(&self, operation: &'static str) {
        for relay in &self.relays {
            let (fault, times) = (self.action.fault.clone(), self.times);
            relay.plan(move |seen| {
                let is_hit = operation_of(seen.script) == operation;
                if is_hit && (times == Times::All || seen.number == 1) {
                    fault.clone()
                } else {
                    Fault::none()
                }
            });
        }
    }

    /// How many requests of this operation have come.
    pub(crate) fn seen(&self, operation: &str) -> usize {
        let all = self.relays.iter().flat_map(Relay::seen);
        all.filter(|seen| operation_of(seen.script) == operation).count()
    }

    /// Nothing goes wrong any more; the copies that were kept are delivered.
    pub(crate) async fn heal(&self) {
        for relay in &self.relays {
            relay.deliver_copies().await;
            relay.plan(|_| Fault::none());
        }
    }

    /// Others are refused.
    pub(crate) async fn assert_held(&self) {
        self.object.assert_held(&self.honest, &self.name).await;
    }

    /// Nobody holds any of it.
    pub(crate) async fn assert_free(&self) {
        self.object.assert_free(&self.honest, &self.name).await;
    }
}

/// What a script does, whatever the object: all of its name but the first word.
fn operation_of(script: &str) -> &str {
    script.split_once('_').map_or(script, |(_, operation)| operation)
}

fn client(url: &str, attempt: Duration) -> NativeClient {
    let attempt = AttemptTime::new(attempt).unwrap();
    Client::connect(Gateway::upstash(url, TOKEN).unwrap().request_timeout(attempt))
}
