//! Tasks that acquire each kind of object again and again, and check what they observe during
//! failovers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use edgelatch::Error;
use edgelatch::client::{AcquireOptions, Lease, Released, UserScript};
use edgelatch::error::{AcquireError, EvalError, RefusalKind, ReleaseError, RequestError};
use edgelatch::host::{Host as _, TokioHost};
use edgelatch::time::Instant;
use edgelatch::timing::PeerSkew;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::env::{RecordingClient, RecordingTransport, TestEnv};
use super::objects::{RecordingLock, kinds};

/// The number of tasks for each kind.
const TASKS: usize = 2;
/// The initial count of the latch: more than the tasks count down.
const COUNT: u64 = 1 << 40;
/// The time limit of a test: reached only by a failing one.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// The possible effect of a failover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failover {
    /// All writes are kept.
    Keeps,
    /// The last writes are lost.
    Loses,
}

/// The running tasks.
pub(crate) struct Load {
    tasks: JoinSet<()>,
    checkers: Vec<Arc<KindChecker>>,
    latch: Arc<KindChecker>,
    stop: Arc<AtomicBool>,
    client: RecordingClient,
    failover: Failover,
    tag: String,
}

/// The state that all tasks of one kind share.
struct KindChecker {
    kind: &'static str,
    failover: Failover,
    /// The largest token that was granted.
    newest: Mutex<u64>,
    /// The current holder's token, and the end of its lease, by the holder's own clock.
    inside: Mutex<Option<(u64, Instant)>>,
    /// The number of grants.
    grants: AtomicUsize,
    /// The number of increments in Redis that certainly happened, and of those with an unknown
    /// outcome.
    counted: AtomicUsize,
    unconfirmed: AtomicUsize,
    released: Arc<Notify>,
    host: TokioHost,
}

impl Load {
    /// Starts the tasks; all their keys have this tag.
    pub(crate) async fn begin(env: &TestEnv, tag: &str, failover: Failover) -> Self {
        let (client, stop) = (env.client_with_long_attempts(), Arc::new(AtomicBool::new(false)));
        semaphore(&client, tag).try_set_permits(1, None).await.unwrap();
        permit_semaphore(&client, tag).try_set_permits(1).await.unwrap();
        assert!(latch(&client, tag).try_set_count(COUNT).await.unwrap());
        let (mut tasks, released) = (JoinSet::new(), Arc::new(Notify::new()));
        let mut checkers = Vec::new();
        for (number, (kind, _)) in locks_to_acquire(&client, tag).iter().enumerate() {
            let checker = Arc::new(KindChecker::new(kind, failover, &released));
            for _ in 0..TASKS {
                let (client, tag) = (env.client_with_short_attempts(), tag.to_owned());
                let (checker, stop) = (Arc::clone(&checker), Arc::clone(&stop));
                tasks.spawn(async move {
                    let (_, lock) = locks_to_acquire(&client, &tag).swap_remove(number);
                    let key = counter(&tag, checker.kind);
                    while !stop.load(Ordering::Relaxed) {
                        checker.take(&lock, &key).await;
                    }
                });
            }
            checkers.push(checker);
        }
        let counting = Arc::new(KindChecker::new("latch", failover, &released));
        let (counts, stopped) = (Arc::clone(&counting), Arc::clone(&stop));
        let (counter, place) = (env.client_with_short_attempts(), tag.to_owned());
        tasks.spawn(async move {
            while !stopped.load(Ordering::Relaxed) {
                let counted = latch(&counter, &place).count_down().await.map(drop);
                counts.count(counted.map_err(Error::into_kind));
            }
        });
        checkers.push(Arc::clone(&counting));
        let tag = tag.to_owned();
        Self { tasks, checkers, latch: counting, stop, client, failover, tag }
    }

    /// Waits until each kind was granted `grants` times more.
    pub(crate) async fn wait_for_grants(&mut self, grants: usize) {
        for checker in &self.checkers {
            let wanted = checker.grants.load(Ordering::Relaxed) + grants;
            let waiting = async {
                loop {
                    // Registers before it reads the count, so that a grant in between is not
                    // missed.
                    let released = checker.released.notified();
                    if checker.grants.load(Ordering::Relaxed) >= wanted {
                        return;
                    }
                    released.await;
                }
            };
            let waited = timeout(TIME_LIMIT, async {
                tokio::select! {
                    () = waiting => {}
                    // No task ends by itself unless it fails.
                    ended = self.tasks.join_next() => ended.unwrap().unwrap(),
                }
            });
            assert!(waited.await.is_ok(), "{}: no grant for too long", checker.kind);
        }
    }

    /// Ends the tasks, and compares their counts with those in Redis.
    pub(crate) async fn finish(self) {
        self.stop.store(true, Ordering::Relaxed);
        timeout(TIME_LIMIT, self.tasks.join_all()).await.unwrap();
        for checker in &self.checkers {
            // The other kinds count with a script, which runs only while the lease is held. The
            // counter is read with a script too, so under a lease.
            if !["semaphore", "permits", "latch"].contains(&checker.kind) {
                let lock = self.client.lock(&format!("{}:reads", self.tag)).unwrap();
                let lease = lock.acquire().await.unwrap();
                let key = counter(&self.tag, checker.kind);
                let text = "return tonumber(redis.call('GET', KEYS[1]) or 0)";
                let script = UserScript::new(text, vec![key], vec![]).unwrap();
                checker.check(lease.eval(&script).await.unwrap().parse().unwrap());
                lease.release().await.unwrap();
            }
        }
        let left = latch(&self.client, &self.tag).count().await.unwrap();
        if left > 0 || self.failover == Failover::Keeps {
            self.latch.check(usize::try_from(COUNT - left).unwrap());
        }
    }
}

impl KindChecker {
    fn new(kind: &'static str, failover: Failover, released: &Arc<Notify>) -> Self {
        let (newest, inside, released) = (Mutex::default(), Mutex::default(), Arc::clone(released));
        let [grants, counted, unconfirmed] = [(); 3].map(|()| AtomicUsize::new(0));
        let host = TokioHost::new();
        Self { kind, failover, newest, inside, grants, counted, unconfirmed, released, host }
    }

    /// One round: acquires the object, increments a counter in Redis while it is held, and releases
    /// it.
    async fn take(&self, lock: &RecordingLock, key: &str) {
        let before = *self.newest.lock().unwrap();
        let options = AcquireOptions::new().lease(Duration::from_secs(6));
        let lease = match lock.acquire_with(options.wait(Duration::from_secs(8))).await {
            Ok(lease) => lease,
            Err(error) => return assert!(is_documented(&error.kind), "{}: {error:?}", self.kind),
        };
        let token = lease.token().as_u64();
        assert!(token > before, "{}: {token} after {before}", self.kind);
        self.enter(token, &lease);
        if !["semaphore", "permits"].contains(&self.kind) {
            let text = "return redis.call('INCR', KEYS[1])";
            let script = UserScript::new(text, vec![key.to_owned()], vec![]).unwrap();
            self.count(lease.eval(&script).await.map(drop).map_err(|error| match error.kind {
                EvalError::Request(error) => error,
                other => panic!("{}: {other:?}", self.kind),
            }));
        }
        self.leave(token);
        match lease.release().await {
            Ok(Released::Released | Released::WasLost)
            | Err(Error { kind: ReleaseError::Unknown { .. }, .. }) => {}
            Err(Error { kind: ReleaseError::Refused(no), .. })
                if no.kind() == RefusalKind::Unavailable => {}
            Err(other) => panic!("{}: {other:?}", self.kind),
        }
    }

    fn enter(&self, token: u64, lease: &Lease<RecordingTransport, TokioHost>) {
        let mut newest = self.newest.lock().unwrap();
        *newest = token.max(*newest);
        drop(newest);
        let now = self.host.now();
        let mut inside = self.inside.lock().unwrap();
        if let Some((other, until)) = *inside
            && self.failover == Failover::Keeps
        {
            assert!(now.has_reached(until), "{}: {other} and {token} are inside", self.kind);
        }
        *inside = Some((token, now + lease.remaining()));
        drop(inside);
        self.grants.fetch_add(1, Ordering::Relaxed);
        self.released.notify_waiters();
    }

    fn leave(&self, token: u64) {
        let mut inside = self.inside.lock().unwrap();
        if inside.is_some_and(|(other, _)| other == token) {
            *inside = None;
        }
    }

    /// Records the outcome of one increment.
    fn count(&self, outcome: Result<(), RequestError>) {
        match outcome {
            Ok(()) => {
                self.counted.fetch_add(1, Ordering::Relaxed);
                if self.kind == "latch" {
                    self.grants.fetch_add(1, Ordering::Relaxed);
                    self.released.notify_waiters();
                }
            }
            Err(RequestError::Unreachable(_)) => {
                self.unconfirmed.fetch_add(1, Ordering::Relaxed);
            }
            Err(RequestError::Lost(_) | RequestError::NotExecuted(_)) => {}
            Err(RequestError::Refused(no)) if no.kind() == RefusalKind::Unavailable => {}
            Err(other) => panic!("{}: {other:?}", self.kind),
        }
    }

    /// Checks the counter in Redis: never above all increments that were sent, and not below the
    /// confirmed ones unless writes were lost.
    fn check(&self, found: usize) {
        let counted = self.counted.load(Ordering::Relaxed);
        let at_most = counted + self.unconfirmed.load(Ordering::Relaxed);
        assert!(found <= at_most, "{}: {found}, not {at_most}", self.kind);
        let complete = found >= counted || self.failover == Failover::Loses;
        assert!(complete, "{}: {found}, not {counted}", self.kind);
    }
}

/// One lock of each kind that can be held at the same time as the others.
pub(crate) fn locks_to_acquire(
    client: &RecordingClient,
    tag: &str,
) -> Vec<(&'static str, RecordingLock)> {
    let mut all = Vec::new();
    for number in 0..kinds(client, tag).len() {
        // Each has a name of its own.
        all.push(kinds(client, &format!("{tag}:{number}"))[number].clone());
    }
    all.push(("semaphore", semaphore(client, tag).permits(1).unwrap()));
    all.push(("permits", permit_semaphore(client, tag).permits(1).unwrap()));
    all
}

pub(crate) fn semaphore(
    client: &RecordingClient,
    tag: &str,
) -> edgelatch::client::Semaphore<RecordingTransport, TokioHost> {
    client.semaphore(&format!("{tag}:pool")).unwrap()
}

pub(crate) fn permit_semaphore(
    client: &RecordingClient,
    tag: &str,
) -> edgelatch::client::PermitExpirableSemaphore<RecordingTransport, TokioHost> {
    client.permit_expirable_semaphore(&format!("{tag}:seats"), PeerSkew::DEFAULT).unwrap()
}

fn latch(
    client: &RecordingClient,
    tag: &str,
) -> edgelatch::client::CountDownLatch<RecordingTransport, TokioHost> {
    client.count_down_latch(&format!("{tag}:latch")).unwrap()
}

fn counter(tag: &str, kind: &str) -> String {
    format!("{tag}:count:{kind}")
}

fn is_documented(error: &AcquireError) -> bool {
    match error {
        AcquireError::Busy { .. }
        | AcquireError::Unreachable(_)
        | AcquireError::Unknown { .. }
        | AcquireError::TooSlow => true,
        AcquireError::Refused(refusal) => refusal.kind() == RefusalKind::Unavailable,
        _ => false,
    }
}
