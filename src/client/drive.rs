//! The one loop that moves a machine. It has no rule of a lock in it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::future::{pending, poll_fn};
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Poll;

use super::link::Link;
use crate::host::Host;
use crate::machine::{CallId, Endpoint, Input, Machine, Output};
use crate::protocol::exchange::Answer;
use crate::time::Instant;
use crate::transport::Transport;

/// Moves a machine of one gateway to its end.
pub(super) async fn drive<M>(
    machine: &mut M,
    link: &Link<impl Transport>,
    host: &impl Host,
) -> M::Outcome
where
    M: Machine + Send,
{
    drive_until(machine, &[link], host, pin!(pending())).await
}

/// Moves a machine to its end. When `cancel` ends, the machine is told, once, and still moved to its end.
pub(super) async fn drive_until<M>(
    machine: &mut M,
    links: &[&Link<impl Transport>],
    host: &impl Host,
    mut cancel: Pin<&mut impl Future<Output = ()>>,
) -> M::Outcome
where
    M: Machine + Send,
{
    loop {
        run_until(machine, links, host, cancel.as_mut()).await;
        // It is done, and says so as often as it is asked.
        if let Output::Done(outcome) = machine.poll(host.now()) {
            return outcome;
        }
    }
}

/// A machine, whatever it ends with: so there is one loop for all of them, and not one for each in the WebAssembly.
trait Step: Send {
    fn tell(&mut self, input: Input, now: Instant);
    fn next(&mut self, now: Instant) -> Output<()>;
}

impl<M: Machine + Send> Step for M {
    fn tell(&mut self, input: Input, now: Instant) {
        self.handle(input, now);
    }

    fn next(&mut self, now: Instant) -> Output<()> {
        match self.poll(now) {
            Output::Call { call, to, script } => Output::Call { call, to, script },
            Output::Wait { until, why } => Output::Wait { until, why },
            Output::Done(_) => Output::Done(()),
        }
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

/// Moves a machine until it is done. `cancelled` is looked at whenever this is polled.
async fn run(
    machine: &mut dyn Step,
    links: &[&Link<impl Transport>],
    host: &impl Host,
    cancelled: &AtomicBool,
) {
    let mut under_way: Vec<(usize, CallId, Pin<Box<_>>)> = Vec::new();
    let mut told = cancelled.load(Ordering::Relaxed);
    if told {
        // Before the first poll: nothing has been asked for, so nothing will be sent.
        machine.tell(Input::Cancelled, host.now());
    }
    loop {
        let wait_until = loop {
            match machine.next(host.now()) {
                Output::Call { call, to: Endpoint(endpoint), script } => {
                    under_way.retain(|(other, ..)| *other != endpoint);
                    if let Some(link) = links.get(endpoint) {
                        under_way.push((endpoint, call, Box::pin(link.call(script, host))));
                    }
                }
                Output::Wait { until, .. } => break until,
                Output::Done(()) => return,
            }
        };
        let mut sleep = pin!(host.sleep_until(wait_until));
        let input = poll_fn(|cx| {
            if !told && cancelled.load(Ordering::Relaxed) {
                told = true;
                return Poll::Ready(Input::Cancelled);
            }
            let answered =
                under_way.iter_mut().enumerate().find_map(|(place, (_, call, exchange))| {
                    match exchange.as_mut().poll(cx) {
                        Poll::Ready(answer) => Some((place, *call, answer)),
                        Poll::Pending => None,
                    }
                });
            if let Some((place, call, answer)) = answered {
                drop(under_way.swap_remove(place));
                return Poll::Ready(match answer {
                    Answer::Reply(reply) => Input::Reply { call, reply },
                    Answer::Refused(refusal) => Input::Refused { call, refusal },
                    Answer::Failed(kind) => Input::Failed { call, kind },
                });
            }
            sleep.as_mut().poll(cx).map(|()| Input::Woken)
        })
        .await;
        machine.tell(input, host.now());
    }
}
