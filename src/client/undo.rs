//! Undoes acquisitions in the background if their future was dropped: releases holds that they may
//! have been granted.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::AtomicBool;

use super::clients::Clients;
use super::drive::{Step, run};
use crate::host::Host;
use crate::transport::Transport;

/// Runs an [`Undo`] concurrently, or drops it if it cannot be run.
///
/// A function of the concrete client, since only a concrete client determines whether its futures
/// are `Send`.
pub(super) type Background<T, H> = fn(Undo<T, H>);

/// The undo of an acquisition whose future was dropped before it was ready.
#[must_use = "nothing is undone unless `run` is awaited"]
pub struct Undo<T: Transport, H> {
    machine: Box<dyn Step>,
    clients: Clients<T, H>,
    places: Vec<usize>,
}

impl<T: Transport, H> fmt::Debug for Undo<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Undo").finish_non_exhaustive()
    }
}

impl<T: Transport, H: Host> Undo<T, H> {
    /// Cancels the acquisition. Completes when Redis has confirmed that nothing is held, or after
    /// three attempts. If it is dropped before, a hold that was granted lasts until its lease ends.
    pub async fn run(mut self) {
        let links = self.clients.links(self.places.iter().copied());
        let cancelled = AtomicBool::new(true);
        run(&mut *self.machine, &links, self.clients.first().host(), &cancelled).await;
    }
}

/// The machine of an acquisition. Dropping it before [`finish`](Self::finish) hands the acquisition
/// to the client's background to be undone.
pub(super) struct UndoOnDrop<'a, M, T, H>
where
    M: Step + Clone + 'static,
    T: Transport,
    H: Host,
{
    machine: M,
    clients: &'a Clients<T, H>,
    places: Vec<usize>,
    is_finished: bool,
}

impl<'a, M, T, H> UndoOnDrop<'a, M, T, H>
where
    M: Step + Clone + 'static,
    T: Transport,
    H: Host,
{
    pub(super) const fn new(machine: M, clients: &'a Clients<T, H>, places: Vec<usize>) -> Self {
        Self { machine, clients, places, is_finished: false }
    }

    pub(super) const fn machine(&mut self) -> &mut M {
        &mut self.machine
    }

    pub(super) fn places(&self) -> impl Iterator<Item = usize> {
        self.places.iter().copied()
    }

    /// Notes that the machine has ended, so that nothing has to be undone.
    pub(super) const fn finish(&mut self) {
        self.is_finished = true;
    }
}

impl<M, T, H> Drop for UndoOnDrop<'_, M, T, H>
where
    M: Step + Clone + 'static,
    T: Transport,
    H: Host,
{
    fn drop(&mut self) {
        if !H::UNDOES_DROPPED {
            return;
        }
        let background = self.clients.first().background().filter(|_| !self.is_finished);
        if let Some(background) = background {
            background(Undo {
                machine: Box::new(self.machine.clone()),
                clients: self.clients.clone(),
                places: core::mem::take(&mut self.places),
            });
        }
    }
}
