//! Runs the visitors of all objects until a round ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use edgelatch::Client;
use edgelatch::timing::PeerSkew;
use fastrand::Rng;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::door::Door;
use super::object::{Object, PERMITS};
use super::proofs::Proofs;
use super::visitor::Visitor;
use super::watch::{Tally, Watch};
use test_support::history::{Loss, Time};
use test_support::servers::Server;

/// The number of visitors of each object.
const VISITORS: usize = 3;
/// The longest wait of a test; a test that reaches it fails.
pub(crate) const AT_MOST: Duration = Duration::from_secs(300);

/// The running visitors, and the histories that they record.
pub(crate) struct Load {
    tasks: JoinSet<()>,
    watches: Vec<Arc<Watch>>,
    stop: Arc<AtomicBool>,
    news: Arc<Notify>,
    rng: Rng,
}

impl Load {
    /// Starts the visitors, which use this gateway, on objects with the prefix `tag`.
    pub(crate) async fn begin(door: &Door, tag: &str, mut rng: Rng) -> Self {
        make_permits(door, tag).await;
        let (stop, news) = (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
        let (mut tasks, mut watches, clock) = (JoinSet::new(), Vec::new(), Instant::now());
        for object in Object::ALL {
            let proofs = Proofs::new(object, tag, door.url());
            let watch = Arc::new(Watch::new(object, proofs, VISITORS, clock, Arc::clone(&news)));
            for number in 0..VISITORS {
                let ways = object.ways(&Client::connect(door.gateway()), tag);
                let (watch, stop) = (Arc::clone(&watch), Arc::clone(&stop));
                let mut visitor = Visitor { number, watch, ways, rng: rng.fork() };
                tasks.spawn(async move {
                    while !stop.load(Ordering::Relaxed) {
                        visitor.visits().await;
                    }
                });
            }
            watches.push(watch);
        }
        Self { tasks, watches, stop, news, rng }
    }

    /// Draws a number from 1 to `most`.
    pub(crate) fn draw(&mut self, most: usize) -> usize {
        self.rng.usize(1..=most)
    }

    /// Sleeps for a random time up to `most`.
    pub(crate) async fn rests(&mut self, most: Duration) {
        sleep(most.mul_f64(self.rng.f64())).await;
    }

    /// Waits until each visitor has had `grants` further grants.
    pub(crate) async fn goes_on(&mut self, grants: usize) {
        let before: Vec<_> = self.watches.iter().map(|watch| watch.grants()).collect();
        self.until(|watches| {
            let now = watches.iter().map(|watch| watch.grants());
            let more = |(now, before): (Vec<usize>, &Vec<usize>)| {
                now.iter().zip(before).all(|(now, before)| *now >= before + grants)
            };
            now.zip(&before).all(more)
        })
        .await;
    }

    /// Waits for `times` further results of the kinds `what`.
    pub(crate) async fn hears(&mut self, what: &[&str], times: usize) {
        let wanted = told(&self.watches, what) + times;
        self.until(|watches| told(watches, what) >= wanted).await;
    }

    async fn until(&mut self, so: impl Fn(&[Arc<Watch>]) -> bool) {
        let waiting = async {
            loop {
                // Registers for notifications before the check, so that none in between is missed.
                let news = self.news.notified();
                if so(&self.watches) {
                    return;
                }
                news.await;
            }
        };
        let waited = timeout(AT_MOST, async {
            tokio::select! {
                () = waiting => {}
                // A visitor ends by itself only if a check has failed.
                ended = self.tasks.join_next() => ended.unwrap().unwrap(),
            }
        });
        if waited.await.is_err() {
            let tallies =
                self.watches.iter().map(|watch| (watch.object, watch.grants(), watch.tally()));
            panic!("too little for too long: {:#?}", Vec::from_iter(tallies));
        }
    }

    /// Returns the time by the clock of the histories.
    pub(crate) fn now(&self) -> Time {
        self.watches[0].now()
    }

    /// Records that Redis may have lost writes that it confirmed since `from`.
    pub(crate) fn has_lost(&self, from: Time) {
        let loss = Loss { from, to: self.now() };
        self.watches.iter().for_each(|watch| watch.loses(loss));
    }

    /// Checks that the entries in Redis until now are consistent with the histories; returns their
    /// number.
    pub(crate) fn judge_proofs(&self, redis: &Server) -> usize {
        self.watches.iter().map(|watch| watch.judge_proofs(redis)).sum()
    }

    /// Stops the visitors, and checks their histories and the entries in Redis. Returns the number
    /// of results by kind.
    pub(crate) async fn ends(mut self, redis: &Server) -> Tally {
        self.stop.store(true, Ordering::Relaxed);
        let ending = async {
            while let Some(ended) = self.tasks.join_next().await {
                ended.unwrap();
            }
        };
        timeout(AT_MOST, ending).await.unwrap();
        let mut tally = Tally::from([("in Redis", self.judge_proofs(redis))]);
        for watch in &self.watches {
            watch.judge();
            for (what, times) in watch.tally() {
                *tally.entry(what).or_default() += times;
            }
        }
        tally
    }
}

fn told(watches: &[Arc<Watch>], what: &[&str]) -> usize {
    let tallies = watches.iter().map(|watch| watch.tally());
    tallies.map(|tally| what.iter().filter_map(|what| tally.get(what)).sum::<usize>()).sum()
}

/// Sets the number of permits, and retries until the call succeeds.
pub(crate) async fn make_permits(door: &Door, tag: &str) {
    let client = Client::connect(door.gateway());
    let seats = client.permit_expirable_semaphore(&Object::Permits.name(tag), PeerSkew::DEFAULT);
    let seats = seats.unwrap();
    let making = async { while seats.try_set_permits(PERMITS).await.is_err() {} };
    timeout(AT_MOST, making).await.unwrap();
}
