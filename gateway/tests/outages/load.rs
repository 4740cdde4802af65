//! Runs the clients of all objects until a round ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use edgelatch::Client;
use edgelatch::timing::PeerSkew;
use fastrand::Rng;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::gateway_process::GatewayProcess;
use super::holder_log::HolderLog;
use super::load_client::LoadClient;
use super::object::{Object, PERMITS};
use super::recorder::{Recorder, Tally};
use test_support::history::{Loss, Time};
use test_support::servers::Server;

/// The number of clients of each object.
const CLIENTS: usize = 3;
/// The longest wait of a test; a test that reaches it fails.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(300);

/// The running clients, and the histories that they record.
pub(crate) struct Load {
    tasks: JoinSet<()>,
    recorders: Vec<Arc<Recorder>>,
    stop: Arc<AtomicBool>,
    news: Arc<Notify>,
    rng: Rng,
}

impl Load {
    /// Starts the clients, which use this gateway, on objects with the prefix `tag`.
    pub(crate) async fn begin(process: &GatewayProcess, tag: &str, mut rng: Rng) -> Self {
        set_permits(process, tag).await;
        let (stop, news) = (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
        let (mut tasks, mut recorders, clock) = (JoinSet::new(), Vec::new(), Instant::now());
        for object in Object::ALL {
            let holder_log = HolderLog::new(object, tag, process.url());
            let recorder =
                Arc::new(Recorder::new(object, holder_log, CLIENTS, clock, Arc::clone(&news)));
            for number in 0..CLIENTS {
                let ways = object.ways(&Client::connect(process.gateway()), tag);
                let (recorder, stop) = (Arc::clone(&recorder), Arc::clone(&stop));
                let mut client = LoadClient { number, recorder, ways, rng: rng.fork() };
                tasks.spawn(async move {
                    while !stop.load(Ordering::Relaxed) {
                        client.run_once().await;
                    }
                });
            }
            recorders.push(recorder);
        }
        Self { tasks, recorders, stop, news, rng }
    }

    /// Draws a number from 1 to `most`.
    pub(crate) fn draw(&mut self, most: usize) -> usize {
        self.rng.usize(1..=most)
    }

    /// Sleeps for a random time up to `most`.
    pub(crate) async fn pause(&mut self, most: Duration) {
        sleep(most.mul_f64(self.rng.f64())).await;
    }

    /// Waits until each client has had `grants` further grants.
    pub(crate) async fn wait_for_grants(&mut self, grants: usize) {
        let before: Vec<_> = self.recorders.iter().map(|recorder| recorder.grants()).collect();
        self.until(|recorders| {
            let now = recorders.iter().map(|recorder| recorder.grants());
            let more = |(now, before): (Vec<usize>, &Vec<usize>)| {
                now.iter().zip(before).all(|(now, before)| *now >= before + grants)
            };
            now.zip(&before).all(more)
        })
        .await;
    }

    /// Waits for `times` further results of the kinds `what`.
    pub(crate) async fn wait_for_results(&mut self, what: &[&str], times: usize) {
        let wanted = count(&self.recorders, what) + times;
        self.until(|recorders| count(recorders, what) >= wanted).await;
    }

    async fn until(&mut self, so: impl Fn(&[Arc<Recorder>]) -> bool) {
        let waiting = async {
            loop {
                // Registers for notifications before the check, so that none in between is missed.
                let news = self.news.notified();
                if so(&self.recorders) {
                    return;
                }
                news.await;
            }
        };
        let waited = timeout(TIME_LIMIT, async {
            tokio::select! {
                () = waiting => {}
                // A client ends by itself only if a check has failed.
                ended = self.tasks.join_next() => ended.unwrap().unwrap(),
            }
        });
        if waited.await.is_err() {
            let tallies = self
                .recorders
                .iter()
                .map(|recorder| (recorder.object, recorder.grants(), recorder.tally()));
            panic!("too little for too long: {:#?}", Vec::from_iter(tallies));
        }
    }

    /// Returns the time by the clock of the histories.
    pub(crate) fn now(&self) -> Time {
        self.recorders[0].now()
    }

    /// Records that Redis may have lost writes that it confirmed since `from`.
    pub(crate) fn record_data_loss(&self, from: Time) {
        let loss = Loss { from, to: self.now() };
        self.recorders.iter().for_each(|recorder| recorder.record_data_loss(loss));
    }

    /// Checks that the entries in Redis until now are consistent with the histories; returns their
    /// number.
    pub(crate) fn check_entries(&self, redis: &Server) -> usize {
        self.recorders.iter().map(|recorder| recorder.check_entries(redis)).sum()
    }

    /// Stops the clients, and checks their histories and the entries in Redis. Returns the number
    /// of results by kind.
    pub(crate) async fn finish(mut self, redis: &Server) -> Tally {
        self.stop.store(true, Ordering::Relaxed);
        let ending = async {
            while let Some(ended) = self.tasks.join_next().await {
                ended.unwrap();
            }
        };
        timeout(TIME_LIMIT, ending).await.unwrap();
        let mut tally = Tally::from([("in Redis", self.check_entries(redis))]);
        for recorder in &self.recorders {
            recorder.check();
            for (what, times) in recorder.tally() {
                *tally.entry(what).or_default() += times;
            }
        }
        tally
    }
}

fn count(recorders: &[Arc<Recorder>], what: &[&str]) -> usize {
    let tallies = recorders.iter().map(|recorder| recorder.tally());
    tallies.map(|tally| what.iter().filter_map(|what| tally.get(what)).sum::<usize>()).sum()
}

/// Sets the number of permits, and retries until the call succeeds.
pub(crate) async fn set_permits(process: &GatewayProcess, tag: &str) {
    let client = Client::connect(process.gateway());
    let semaphore =
        client.permit_expirable_semaphore(&Object::Permits.name(tag), PeerSkew::DEFAULT);
    let semaphore = semaphore.unwrap();
    let making = async { while semaphore.try_set_permits(PERMITS).await.is_err() {} };
    timeout(TIME_LIMIT, making).await.unwrap();
}
