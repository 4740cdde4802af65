//! The one loop that moves a machine. It has no rule of a lock in it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::future::{pending, poll_fn};
use core::pin::{Pin, pin};
use core::task::Poll;

use super::link::Link;
use crate::host::Host;
use crate::machine::{CallId, Endpoint, Input, Machine, Output};
use crate::protocol::exchange::Answer;
use crate::transport::Transport;

/// Moves a machine of one gateway to its end.
pub(super) async fn drive<M: Machine>(
    machine: &mut M,
    link: &Link<impl Transport>,
    host: &impl Host,
) -> M::Outcome {
    drive_watched(machine, &[link], host, pending(), |_| {}).await
}

/// Moves a machine to its end. When `cancel` ends, the machine is told, once, and still moved to its end. `watch` sees the
/// machine before and after each input.
pub(super) async fn drive_watched<M: Machine>(
    machine: &mut M,
    links: &[&Link<impl Transport>],
    host: &impl Host,
    cancel: impl Future<Output = ()>,
    mut watch: impl FnMut(&mut M),
) -> M::Outcome {
    let mut under_way: Vec<(usize, CallId, Pin<Box<_>>)> = Vec::new();
    let mut cancel = pin!(cancel);
    let mut cancelled = poll_fn(|cx| Poll::Ready(cancel.as_mut().poll(cx).is_ready())).await;
    if cancelled {
        // Before the first poll: nothing has been asked for, so nothing will be sent.
        machine.handle(Input::Cancelled, host.now());
    }
    loop {
        let wait_until = loop {
            match machine.poll(host.now()) {
                Output::Call { call, to: Endpoint(endpoint), script } => {
                    under_way.retain(|(other, ..)| *other != endpoint);
                    if let Some(link) = links.get(endpoint) {
                        under_way.push((endpoint, call, Box::pin(link.call(script, host))));
                    }
                }
                Output::Wait { until, .. } => break until,
                Output::Done(outcome) => return outcome,
            }
        };
        let mut sleep = pin!(host.sleep_until(wait_until));
        let input = poll_fn(|cx| {
            if !cancelled && cancel.as_mut().poll(cx).is_ready() {
                cancelled = true;
                return Poll::Ready(Input::Cancelled);
            }
            let answered = under_way.iter_mut().enumerate().find_map(|(place, (_, call, exchange))| {
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
        watch(machine);
        machine.handle(input, host.now());
        watch(machine);
    }
}
