//! A driver that is dropped while another task begins an operation, on the gateway in memory.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use edgelatch::client::{Client, Driver};
use edgelatch::error::FailureKind;
use edgelatch::host::{Host, NoEntropy};
use edgelatch::time::Instant;
use edgelatch::transport::{ByteStream, Request, Response, StreamHead, StreamLimits, Transport};
use edgelatch_proto::protocol::gateway::Gateway;
use edgelatch_testing::MemoryGateway;
use test_support::fake_host::FakeHost;

/// The time of Redis' clock.
const NOW: Duration = Duration::from_secs(1_700_000_000);
/// As many polls as a driver needs for an acquisition, and more.
const POLLS: usize = 10;

type Task = Pin<Box<dyn Future<Output = ()>>>;
type Hook = Box<dyn FnOnce()>;

thread_local! {
    /// The drivers that the client has started.
    static DRIVERS: RefCell<Vec<Task>> = const { RefCell::new(Vec::new()) };
}

fn poll(task: &mut Task) -> Poll<()> {
    task.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// A host that calls a function of the test before it next reads its clock: there another thread
/// may run.
#[derive(Clone)]
struct HookedHost {
    host: FakeHost,
    hook: Rc<RefCell<Option<Hook>>>,
}

impl Host for HookedHost {
    fn now(&self) -> Instant {
        if let Some(hook) = self.hook.take() {
            hook();
        }
        self.host.now()
    }

    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> {
        self.host.sleep_until(deadline)
    }

    fn entropy(&self) -> Result<[u8; 32], NoEntropy> {
        self.host.entropy()
    }
}

/// Passes requests to a gateway, whose responses arrive at the second poll. Requests about the lock
/// `unanswered` get no response.
struct SlowTransport(Rc<RefCell<MemoryGateway>>);

struct NoStream;

impl ByteStream for NoStream {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, FailureKind>>> {
        Poll::Ready(None)
    }
}

impl Transport for SlowTransport {
    type Sending = Pin<Box<dyn Future<Output = Result<Response, FailureKind>>>>;
    type Stream = NoStream;

    fn send(&self, request: Request) -> Self::Sending {
        let (gateway, mut is_first) = (Rc::clone(&self.0), true);
        Box::pin(poll_fn(move |_| {
            if std::mem::take(&mut is_first) || request.body.contains("unanswered") {
                return Poll::Pending;
            }
            Poll::Ready(gateway.borrow_mut().send(&request, NOW))
        }))
    }

    async fn open(&self, _: Request) -> Result<(StreamHead, NoStream), FailureKind> {
        Err(FailureKind::NotSent)
    }

    fn streams(&self) -> StreamLimits {
        StreamLimits { max: 0, shared: true }
    }
}

#[test]
fn a_driver_that_starts_while_another_one_is_dropped_keeps_its_requests() {
    let gateway = MemoryGateway::new("gateway.test");
    let address = Gateway::upstash(gateway.url(), MemoryGateway::TOKEN).unwrap();
    let transport = SlowTransport(Rc::new(RefCell::new(gateway)));
    let host = HookedHost { host: FakeHost::new(), hook: Rc::default() };
    let spawn = |driver: Driver<SlowTransport, HookedHost>| {
        DRIVERS.with_borrow_mut(|drivers| drivers.push(Box::pin(driver.run())));
    };
    let client = Client::with_driver(address, transport, host.clone(), spawn);
    let acquire = |name: &str| -> Task {
        let lock = client.lock(name).unwrap();
        Box::pin(async move { drop(lock.acquire().await.unwrap()) })
    };

    let mut unanswered = acquire("unanswered");
    assert!(poll(&mut unanswered).is_pending());
    let mut first_driver = DRIVERS.with_borrow_mut(Vec::pop).unwrap();
    // The driver yields once, and then sends the request.
    assert!(poll(&mut first_driver).is_pending() && poll(&mut first_driver).is_pending());

    let second = Rc::new(RefCell::new(acquire("job")));
    let task = Rc::clone(&second);
    *host.hook.borrow_mut() = Some(Box::new(move || {
        assert!(poll(&mut task.borrow_mut()).is_pending());
        // If this has started a driver, it sends its first request here.
        if let Some(mut driver) = DRIVERS.with_borrow_mut(Vec::pop) {
            assert!(poll(&mut driver).is_pending() && poll(&mut driver).is_pending());
            DRIVERS.with_borrow_mut(|drivers| drivers.push(driver));
        }
    }));
    drop(first_driver);
    assert!(host.hook.borrow().is_none(), "the hook has run");

    let mut second = second.borrow_mut();
    let is_acquired = (0..POLLS).any(|_| {
        let is_ready = poll(&mut second).is_ready();
        if let Some(mut driver) = DRIVERS.with_borrow_mut(Vec::pop) {
            assert!(poll(&mut driver).is_pending(), "the first acquisition goes on");
            DRIVERS.with_borrow_mut(|drivers| drivers.push(driver));
        }
        is_ready
    });
    assert!(is_acquired, "a request of the second driver was given up");
}
