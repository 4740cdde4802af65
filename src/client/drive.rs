//! The loop that drives all machines. It contains no rule of a lock.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::future::{pending, poll_fn};
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll};

use super::clients::Clients;
use super::link::Link;
use super::listening::{Listener, Turn};
use super::undo::UndoOnDrop;
use crate::error::LossReason;
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::machine::{CallId, Endpoint, Input, Machine, Output, TimeoutReason};
use edgelatch_proto::protocol::calls::Topic;
use edgelatch_proto::protocol::exchange::Answer;
use edgelatch_proto::time::Instant;

/// Drives a machine of one gateway to its end.
pub(super) async fn drive<M>(
    machine: &mut M,
    link: &Link<impl Transport>,
    host: &impl Host,
) -> M::Outcome
where
    M: Machine<Outcome: Ended> + Send,
{
    drive_until(machine, &[link], host, pin!(pending())).await
}

/// Drives a machine of several gateways to its end.
pub(super) async fn drive_with<M>(
    machine: &mut M,
    links: &[&Link<impl Transport>],
    host: &impl Host,
) -> M::Outcome
where
    M: Machine<Outcome: Ended> + Send,
{
    drive_until(machine, links, host, pin!(pending())).await
}

/// Drives a machine to its end. When `cancel` ends, the machine receives [`Input::Cancelled`] once,
/// and is still driven to its end.
pub(super) async fn drive_until<M>(
    machine: &mut M,
    links: &[&Link<impl Transport>],
    host: &impl Host,
    mut cancel: Pin<&mut impl Future<Output = ()>>,
) -> M::Outcome
where
    M: Machine<Outcome: Ended> + Send,
{
    loop {
        run_until(machine, links, host, cancel.as_mut()).await;
        // A machine that is done returns its outcome at every poll.
        if let Output::Done(outcome) = machine.poll(host.now()) {
            return outcome;
        }
    }
}

/// Drives an acquisition to its end. If this future is dropped earlier, it hands the machine to the
/// client's background, if there is one: see `undo.rs`.
pub(super) async fn drive_acquisition<M, T, H>(
    machine: M,
    clients: &Clients<T, H>,
    places: impl IntoIterator<Item = usize>,
    cancel: Pin<&mut impl Future<Output = ()>>,
) -> M::Outcome
where
    M: Machine<Outcome: Ended> + Clone + Send + 'static,
    T: Transport,
    H: Host,
{
    let mut acquiring = UndoOnDrop::new(machine, clients, places.into_iter().collect());
    let links = clients.links(acquiring.places());
    let host = clients.first().host();
    let outcome = drive_until(acquiring.machine(), &links, host, cancel).await;
    acquiring.finish();
    outcome
}

/// The outcome of a machine.
pub(super) trait Ended {
    /// Whether the waiter has what it waited for; if not, a message that it received is passed on
    /// to another waiter.
    fn is_served(&self) -> bool;
}

impl<T, E> Ended for Result<T, E> {
    fn is_served(&self) -> bool {
        self.is_ok()
    }
}

/// The reason why a lease was lost, if it was: no waiter is involved.
impl Ended for Option<LossReason> {
    fn is_served(&self) -> bool {
        true
    }
}

/// The replies to several queries: no waiter is involved.
impl<T> Ended for Vec<T> {
    fn is_served(&self) -> bool {
        true
    }
}

/// A machine with its outcome reduced to whether it is served: the WebAssembly then contains one
/// loop for all machines instead of one for each.
pub(super) trait Step: Send {
    fn tell(&mut self, input: Input, now: Instant);
    fn next(&mut self, now: Instant) -> Output<bool>;
}

impl<M: Machine<Outcome: Ended> + Send> Step for M {
    fn tell(&mut self, input: Input, now: Instant) {
        self.handle(input, now);
    }

    fn next(&mut self, now: Instant) -> Output<bool> {
        self.poll(now).map(|outcome| outcome.is_served())
    }
}

async fn run_until(
    machine: &mut dyn Step,
    links: &[&Link<impl Transport>],
    host: &impl Host,
    mut cancel: Pin<&mut impl Future<Output = ()>>,
) {
    let cancelled = AtomicBool::new(false);
    let mut run = pin!(run(machine, links, host, &cancelled));
    poll_fn(|cx| {
        if !cancelled.load(Ordering::Relaxed) && cancel.as_mut().poll(cx).is_ready() {
            cancelled.store(true, Ordering::Relaxed);
        }
        run.as_mut().poll(cx)
    })
    .await;
}

/// Drives a machine until it is done. `cancelled` is read at every poll.
pub(super) async fn run<'l, T: Transport>(
    machine: &mut dyn Step,
    links: &[&'l Link<T>],
    host: &impl Host,
    cancelled: &AtomicBool,
) {
    let mut under_way: Vec<(usize, CallId, Pin<Box<_>>)> = Vec::new();
    let mut listener: Option<Listener<'l, T>> = None;
    let mut opening: Option<Pin<Box<_>>> = None;
    let mut wanted: Option<(&Link<T>, Topic)> = None;
    // Read after each event: no time passes between an event and the machine's reaction.
    let mut now = host.now();
    let mut asked_at = now;
    let mut told = cancelled.load(Ordering::Relaxed);
    if told {
        // Before the first poll: no call was sent, and none will be.
        machine.tell(Input::Cancelled, now);
    }
    loop {
        let (wait_until, why) = loop {
            match machine.next(now) {
                Output::Call { call, to: Endpoint(endpoint), script } => {
                    under_way.retain(|(other, ..)| *other != endpoint);
                    asked_at = now;
                    if let Some(listener) = &listener {
                        listener.asks();
                    }
                    if let Some(link) = links.get(endpoint) {
                        under_way.push((endpoint, call, Box::pin(link.call(script, host))));
                    }
                }
                Output::Subscribe { to: Endpoint(endpoint), topic } => {
                    (listener, opening) = (None, None);
                    wanted = links.get(endpoint).map(|link| (*link, topic));
                }
                Output::Timeout { until, why } => {
                    listener = waiting(listener, wanted.as_ref(), why, asked_at);
                    break (until, why);
                }
                Output::Done(is_served) => {
                    // The listener of a waiter that was woken and did not acquire passes the
                    // message on when it is dropped.
                    if let Some(listener) = listener.filter(|_| is_served) {
                        listener.served();
                    }
                    return;
                }
            }
        };
        let mut sleep = pin!(sleep(links, host, wait_until, why));
        let input = poll_fn(|cx| {
            if !told && cancelled.load(Ordering::Relaxed) {
                told = true;
                return Poll::Ready(Input::Cancelled);
            }
            let open =
                |listener: &Listener<'l, T>| Box::pin(listener.opening(|| host.now(), seed(host)));
            let input = answered(&mut under_way, cx).or_else(|| {
                listener.as_mut().and_then(|it| heard(it, &mut opening, open, cx, host.now()))
            });
            match input {
                Some(input) => Poll::Ready(input),
                None => sleep.as_mut().poll(cx).map(|()| Input::Timeout),
            }
        })
        .await;
        now = host.now();
        machine.tell(input, now);
    }
}

/// Sleeps until the machine's timeout; renewals that are due at the same time wake together.
async fn sleep<T: Transport>(
    links: &[&Link<T>],
    host: &impl Host,
    until: Instant,
    why: TimeoutReason,
) {
    let alarm =
        links.first().filter(|_| why == TimeoutReason::RenewalDue).and_then(|link| link.alarm());
    match alarm {
        Some(alarm) => alarm.sleep_until(until, host).await,
        None => host.sleep_until(until).await,
    }
}

/// Returns the waiter's listener. Without one it subscribes if the machine wants that and there is
/// room, perhaps only by now.
fn waiting<'l, T: Transport>(
    listener: Option<Listener<'l, T>>,
    wanted: Option<&(&'l Link<T>, Topic)>,
    why: TimeoutReason,
    asked_at: Instant,
) -> Option<Listener<'l, T>> {
    if let Some(listener) = &listener {
        listener.waits(why);
    }
    // A waiter with nothing left but its last attempt leaves messages to the other waiters.
    let listener = listener.filter(|_| why != TimeoutReason::LastTry);
    let wanted =
        wanted.filter(|_| !matches!(why, TimeoutReason::ReplyDue | TimeoutReason::LastTry));
    listener.or_else(|| wanted.and_then(|(link, topic)| Listener::new(link, topic, asked_at)))
}

/// The seed of the jitter.
fn seed(host: &impl Host) -> u64 {
    let drawn = host.entropy().unwrap_or_default();
    drawn.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Polls the calls under way, and returns the outcome of one that has ended.
fn answered<F>(
    under_way: &mut Vec<(usize, CallId, Pin<Box<F>>)>,
    cx: &mut Context<'_>,
) -> Option<Input>
where
    F: Future<Output = Answer>,
{
    let (place, call, answer) =
        under_way.iter_mut().enumerate().find_map(|(place, (_, call, exchange))| match exchange
            .as_mut()
            .poll(cx)
        {
            Poll::Ready(answer) => Some((place, *call, answer)),
            Poll::Pending => None,
        })?;
    drop(under_way.swap_remove(place));
    Some(match answer {
        Answer::Reply(reply) => Input::Reply { call, reply },
        Answer::Refused(refusal) => Input::Refused { call, refusal },
        Answer::Failed(kind) => Input::Failed { call, kind },
    })
}

/// Polls the listener, and returns an input for its machine. Opens the stream if the listener
/// requests it.
fn heard<'a, T, F>(
    listener: &mut Listener<'a, T>,
    opening: &mut Option<Pin<Box<F>>>,
    open: impl Fn(&Listener<'a, T>) -> Pin<Box<F>>,
    cx: &mut Context<'_>,
    now: Instant,
) -> Option<Input>
where
    T: Transport,
    F: Future<Output = ()>,
{
    loop {
        match listener.poll(cx, now) {
            Poll::Ready(Turn::Tell(input)) => return Some(input),
            Poll::Ready(Turn::Open) => *opening = Some(open(listener)),
            Poll::Pending => {}
        }
        // An open stream is read at once, which also stores this waiter's waker.
        let is_open = opening.as_mut().is_some_and(|opening| opening.as_mut().poll(cx).is_ready());
        if !is_open {
            return None;
        }
        *opening = None;
    }
}
