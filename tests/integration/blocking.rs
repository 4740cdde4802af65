//! The objects for programs without an event loop.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use edgelatch::Error;
use edgelatch::blocking::Client;
use edgelatch::client::{
    AcquireOptions, FairReadWriteSettings, GuardedWrite, LeaseEnd, ReadWriteSettings, Released,
    RunError, UserScript,
};
use edgelatch::error::{AcquireError, LossReason};
use edgelatch::timing::{GuardMemory, PeerSkew};
use test_support::slow_machine::{is_too_slow, longer_and_longer};
use test_support::test_env::TestEnv;
use tokio::runtime::Runtime;

/// A gateway that runs in the background, and a blocking client.
struct Beside {
    runtime: Runtime,
    env: Option<TestEnv>,
    client: Client,
}

impl Beside {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let env = runtime.block_on(TestEnv::new());
        let client = Client::connect(env.gateway()).unwrap();
        Self { runtime, env: Some(env), client }
    }

    fn query<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        self.runtime.block_on(self.env.as_ref().unwrap().redis.query(words))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _context = self.runtime.enter();
        drop(self.env.take());
    }
}

/// The outcome of `call` with the first time that suffices for this machine.
fn in_time<T>(
    time: Duration,
    call: impl Fn(Duration) -> Result<T, Error<AcquireError>>,
) -> Result<T, Error<AcquireError>> {
    let mut outcomes = longer_and_longer(time).map(call);
    outcomes.find(|outcome| !outcome.as_ref().is_err_and(|error| is_too_slow(&error.kind))).unwrap()
}

#[test]
fn threads_count_under_a_lock() {
    let beside = Beside::new();
    let counter = Arc::new(std::sync::Mutex::new((0, Vec::new())));
    thread::scope(|scope| {
        for _ in 0..8 {
            let (lock, counter) = (beside.client.lock("job").unwrap(), Arc::clone(&counter));
            scope.spawn(move || {
                lock.run(|lease| {
                    let before = counter.lock().unwrap().0;
                    thread::yield_now();
                    let mut counter = counter.lock().unwrap();
                    counter.0 = before + 1;
                    counter.1.push(lease.token());
                })
                .unwrap();
            });
        }
    });
    let (count, tokens) = counter.lock().unwrap().clone();
    assert_eq!(count, 8);
    assert!(tokens.is_sorted());
}

#[test]
fn a_lease_is_tried_waited_for_renewed_and_released() {
    let beside = Beside::new();
    let lock = beside.client.lock("job").unwrap();
    let lease = lock.try_acquire().unwrap().unwrap();
    assert!(lock.try_acquire().unwrap().is_none());
    let waited = in_time(Duration::from_millis(30), |time| {
        lock.acquire_with(AcquireOptions::new().wait(time))
    });
    assert!(matches!(waited.unwrap_err().kind, AcquireError::Busy { .. }));
    lease.renew(Some(Duration::from_secs(100))).unwrap();
    assert!(lease.remaining() > Duration::from_secs(90) && lease.is_held().unwrap());
    assert_eq!(lock.inspect().unwrap().last_token, lease.token().as_u64());
    let script = UserScript::new("return ARGV[1]", vec![], vec!["x".into()]).unwrap();
    assert_eq!(lease.eval(&script), Ok("\"x\"".to_owned()));
    let guard = beside.client.guard("total", GuardMemory::DEFAULT).unwrap();
    guard.write(&lease, None, &GuardedWrite::set("1", None)).unwrap();
    assert_eq!(guard.newest(), Ok(Some(lease.token().as_u64())));
    assert_eq!(lease.release(), Ok(Released::Released));
}

#[test]
fn keep_and_run_report_the_loss_of_a_lease() {
    let beside = Beside::new();
    let lock = beside.client.lock("job").unwrap();
    let lease = in_time(Duration::from_millis(200), |time| {
        lock.acquire_with(AcquireOptions::new().lease(time))
    });
    let lease = lease.unwrap();
    assert_eq!(lease.keep(), LeaseEnd::Lost(LossReason::Expired));
    let outcome = lock.run(|_| beside.query::<u64>(&["DEL", "job"]));
    assert!(matches!(outcome, Err(RunError::Lost { result: 1, .. })), "{outcome:?}");
}

#[test]
fn a_read_renewed_on_demand_is_trusted_for_the_watchdog_time_at_most() {
    let beside = Beside::new();
    let shelf = beside.client.read_write_lock("shelf", ReadWriteSettings::default()).unwrap();
    let lease = shelf.read().acquire().unwrap();
    lease.renew(Some(Duration::from_secs(600))).unwrap();
    assert!(lease.remaining() <= Duration::from_secs(30));
    assert_eq!(lease.release(), Ok(Released::Released));
}

/// S83.
#[test]
fn work_that_panics_leaves_no_thread_that_renews() {
    let beside = Beside::new();
    let lock = beside.client.lock("job").unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        lock.run(|_| panic!("as it was meant to")).unwrap_or(());
    }));
    // `run` joins its renewing thread before it unwinds, so that thread has ended.
    assert!(panicked.is_err());
    assert!(beside.query::<u64>(&["EXISTS", "job"]) == 1);
}

#[test]
fn the_other_objects_are_there_too() {
    let beside = Beside::new();
    let client = &beside.client;
    let owner = client.owner();
    let shelf = owner.read_write_lock("shelf", Default::default()).unwrap();
    let (writer, reader) = (shelf.write().acquire().unwrap(), shelf.read().acquire().unwrap());
    assert_eq!(shelf.write().clone().acquire().unwrap().hold_count(), 2);
    for lease in [writer, reader] {
        lease.release().unwrap();
    }
    let several = [client.lock("a").unwrap(), client.fenced_lock("b").unwrap()];
    let several = client.multi_lock(several).unwrap().acquire().unwrap();
    assert!(several.token_of("b").is_some());
    several.release().unwrap();

    let pool = client.semaphore("pool").unwrap();
    assert!(pool.try_set_permits(3, None).unwrap());
    let two = pool.permits(2).unwrap().acquire().unwrap();
    assert_eq!(pool.available_permits(), Ok(1));
    two.release().unwrap();
    let seats = client.permit_expirable_semaphore("seats", PeerSkew::DEFAULT).unwrap();
    assert!(seats.try_set_permits(2).unwrap());
    let seat = seats.permits(1).unwrap().acquire().unwrap();
    assert_eq!(seats.release(&seat.permit_ids()), Ok(1));

    let gate = client.count_down_latch("gate").unwrap();
    assert!(gate.try_set_count(1).unwrap());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| gate.wait(AcquireOptions::new()));
        assert_eq!(gate.count_down(), Ok(0));
        assert_eq!(waiting.join().unwrap(), Ok(()));
    });
}

#[test]
fn a_fair_read_write_lock_blocks_like_any_other() {
    let beside = Beside::new();
    let settings = FairReadWriteSettings::default();
    let lock = beside.client.fair_read_write_lock("shelf", settings).unwrap();
    let lock = lock.client_id("thread").unwrap();
    assert_eq!(lock.name().as_str(), "shelf");
    let reader = lock.read().acquire().unwrap();
    assert!(lock.write().try_acquire().unwrap().is_none());
    assert_eq!(lock.query().unwrap()[0].client_id, "thread");
    let thief = lock.steal().unwrap();
    assert!(lock.inspect().unwrap().is_exclusive);
    assert_eq!(reader.release(), Ok(Released::WasLost));
    assert!(lock.force_release().unwrap());
    assert_eq!(thief.release(), Ok(Released::WasLost));
    lock.write().run(|lease| assert!(lease.token() > thief.token())).unwrap();
}
