//! Three Redis servers behind gateways, and the operations of a cell of the matrix.

use std::env;
use std::sync::Arc;
use std::time::Duration;

use edgelatch::Gateway;
use edgelatch::client::Client;
use edgelatch::timing::AttemptTime;
use edgelatch::transport::Reqwest;
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, LocalSet, spawn_local};

use super::actions::{Action, Times, actions};
use super::objects::{AnyLock, Object};
use test_support::fault_proxy::FaultProxy;
use test_support::faults::{Fault, FaultResponse};
use test_support::redis::{Redis, TOKEN};
use test_support::test_env::{LONG_ATTEMPT, NativeClient};

/// The time for an attempt without a response: each test of silence waits for it.
const SILENT_ATTEMPT: Duration = Duration::from_secs(5);
/// The number of cells that run concurrently.
const MAX_CONCURRENT: usize = 8;
/// Without `EDGELATCH_FAULTS=all`, one of this many cells is tested: a prime, so that each fault
/// and each object occurs.
const ONE_IN: usize = 19;

/// One cell: an object, and the fault of a request about it.
pub(crate) struct Cell {
    pub(crate) object: Object,
    pub(crate) action: Action,
    pub(crate) times: Times,
    pub(crate) name: String,
    /// Clients of the servers' gateways without a proxy in between.
    pub(crate) direct: Vec<NativeClient>,
    /// Clients of the same gateways through proxies that inject the fault.
    pub(crate) faulty: Vec<NativeClient>,
    proxies: Vec<FaultProxy>,
}

/// Tests the cells to which an operation `applies`, and prints their number.
pub(crate) async fn each_cell<F>(
    operation: &str,
    applies: fn(Object, &Action, Times) -> bool,
    test: fn(Cell) -> F,
) where
    F: Future<Output = ()> + 'static,
{
    LocalSet::new().run_until(run(operation, applies, test)).await;
}

async fn run<F>(operation: &str, applies: fn(Object, &Action, Times) -> bool, test: fn(Cell) -> F)
where
    F: Future<Output = ()> + 'static,
{
    let mut servers = [Redis::start().await, Redis::start().await, Redis::start().await];
    for redis in &mut servers {
        // With loaded scripts each call takes one request.
        redis.load_scripts().await;
    }
    let all = env::var("EDGELATCH_FAULTS").is_ok_and(|cells| cells == "all");
    let cells: Vec<(Object, Action, Times)> = Object::ALL
        .into_iter()
        .flat_map(|object| {
            actions().into_iter().map(move |(action, times)| (object, action, times))
        })
        .filter(|(object, action, times)| applies(*object, action, *times))
        .enumerate()
        .filter(|(number, _)| all || (number + operation.len()).is_multiple_of(ONE_IN))
        .map(|(_, cell)| cell)
        .collect();
    // All cells share one HTTP client: each takes tens of milliseconds to create, so that attempts
    // of other cells would time out on a busy machine.
    let http = Reqwest::new();
    let (permits, mut running) = (Arc::new(Semaphore::new(MAX_CONCURRENT)), JoinSet::new());
    for (number, (object, action, times)) in cells.iter().cloned().enumerate() {
        let permit = Arc::clone(&permits).acquire_owned().await.unwrap();
        let label = format!("{operation}, {object:?}, {}, {times:?}", action.name);
        let name = format!("cell-{number}");
        let cell = Cell::new(&servers, &http, object, action, times, name).await;
        running.spawn_local(async move {
            let _permit = permit;
            let outcome = spawn_local(test(cell)).await;
            outcome.err().map(|error| format!("{label}: {error}"))
        });
    }
    let broken: Vec<String> = running.join_all().await.into_iter().flatten().collect();
    println!("{operation}: {} cells", cells.len());
    assert!(broken.is_empty(), "{} of {} cells: {broken:#?}", broken.len(), cells.len());
}

impl Cell {
    async fn new(
        servers: &[Redis; 3],
        http: &Reqwest,
        object: Object,
        action: Action,
        times: Times,
        name: String,
    ) -> Self {
        let (mut proxies, mut direct, mut faulty) = (Vec::new(), Vec::new(), Vec::new());
        let is_silent = matches!(action.fault.response, FaultResponse::Silence);
        let attempt = if is_silent { SILENT_ATTEMPT } else { LONG_ATTEMPT };
        for redis in servers {
            let proxy = FaultProxy::start(redis.address()).await;
            faulty.push(client(http, &proxy.url(), attempt));
            direct.push(client(http, &format!("http://{}", redis.address()), LONG_ATTEMPT));
            proxies.push(proxy);
        }
        object.prepare(&direct[0], &name).await;
        Self { object, action, times, name, direct, faulty, proxies }
    }

    /// The lock under test, through the faulty gateways.
    pub(crate) fn lock(&self) -> AnyLock {
        self.object.of(&self.faulty, &self.name)
    }

    /// A lock that excludes it, through the correct gateways.
    pub(crate) fn rival(&self) -> AnyLock {
        self.object.rival().of(&self.direct, &self.name)
    }

    /// Injects the fault into the first or all of the further requests of this operation.
    pub(crate) fn inject_fault(&self, operation: &'static str) {
        for proxy in &self.proxies {
            let (fault, times) = (self.action.fault.clone(), self.times);
            proxy.plan(move |seen| {
                let is_hit = operation_of(seen.script) == operation;
                if is_hit && (times == Times::All || seen.number == 1) {
                    fault.clone()
                } else {
                    Fault::none()
                }
            });
        }
    }

    /// The number of requests of this operation.
    pub(crate) fn count_requests(&self, operation: &str) -> usize {
        let all = self.proxies.iter().flat_map(FaultProxy::calls);
        all.filter(|seen| operation_of(seen.script) == operation).count()
    }

    /// Ends all faults, and delivers the copies that were kept back.
    pub(crate) async fn end_faults(&self) {
        for proxy in &self.proxies {
            proxy.deliver_copies().await;
            proxy.plan(|_| Fault::none());
        }
    }

    /// Asserts that another client is refused.
    pub(crate) async fn assert_held(&self) {
        self.object.assert_held(&self.direct, &self.name).await;
    }

    /// Asserts that no client holds any part of it.
    pub(crate) async fn assert_free(&self) {
        self.object.assert_free(&self.direct, &self.name).await;
    }
}

/// The operation of a script, whatever the object: its name without the object's.
fn operation_of(script: &str) -> &str {
    match (script.strip_prefix("fair_rw_"), script.split_once('_')) {
        (Some(operation), _) | (None, Some((_, operation))) => operation,
        (None, None) => script,
    }
}

fn client(http: &Reqwest, url: &str, attempt: Duration) -> NativeClient {
    let attempt = AttemptTime::new(attempt).unwrap();
    let gateway = Gateway::upstash(url, TOKEN).unwrap().request_timeout(attempt);
    Client::connect_with(gateway, http.clone())
}
