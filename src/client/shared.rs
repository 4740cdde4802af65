//! The state that the clones of a client, its objects and its leases share: its engine, its
//! transports and host, and the wakers of the tasks that wait for the engine.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::fmt;
use core::future::poll_fn;
use core::ops::Range;
use core::task::{Poll, Waker};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::driver::Driver;
use super::observe::ObservedGateway;
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::engine::{Context, EndpointId, Engine, Event, HoldId, OpId, ScopeId};
use edgelatch_proto::machine::Entropy;
use edgelatch_proto::protocol::gateway::Gateway;

/// Runs a [`Driver`] concurrently, or drops it if it cannot be run.
///
/// A function pointer that is created where `T` and `H` are known: generic code cannot tell whether
/// the driver's future is `Send`.
pub(super) type Spawn<T, H> = fn(Driver<T, H>);

/// The state that the clones of a client, its objects and its leases share.
pub(super) struct Shared<T: Transport, H: Host> {
    /// Locked while a function of the caller reads or changes the engine: that function must not
    /// use the client.
    state: Mutex<State>,
    /// The gateways, by their [`EndpointId`].
    pub(super) endpoints: Vec<Endpoint<T>>,
    pub(super) host: Arc<H>,
    /// Starts a driver; `None` if each operation drives its own I/O.
    pub(super) spawn: Option<Spawn<T, H>>,
    /// Whether one driver may do the I/O of all operations. Not in a Worker, where I/O belongs to
    /// one incoming HTTP request: there the operations that begin in one turn of the event loop
    /// share a driver. Ignored without `spawn`: each operation then polls a driver of its own.
    can_share_driver: bool,
    /// If this client has several gateways: the client of each one.
    members: Vec<Arc<Self>>,
    /// The clients of several gateways that [`join`](Self::join) returned with this client as their
    /// first member.
    joined: Mutex<Vec<Weak<Self>>>,
}

/// A gateway, and the transport to it.
pub(super) struct Endpoint<T> {
    pub(super) gateway: Gateway,
    pub(super) transport: Arc<T>,
    /// The state of the gateway that this client last reported to `tracing` and `metrics`.
    pub(super) observed: ObservedGateway,
}

impl<T> Endpoint<T> {
    fn new(gateway: Gateway, transport: Arc<T>) -> Self {
        let observed = ObservedGateway::new(gateway.host());
        Self { gateway, transport, observed }
    }
}

/// The endpoint for another client: shares the transport, but not `observed`, which belongs to that
/// client's engine.
impl<T> Clone for Endpoint<T> {
    fn clone(&self) -> Self {
        Self::new(self.gateway.clone(), Arc::clone(&self.transport))
    }
}

/// The data that the mutex protects.
struct State {
    engine: Engine,
    /// Sorted by `Source`, so that the wakers of one source are adjacent.
    wakers: Vec<(Source, Waker)>,
    /// Whether the driver of all operations is running.
    is_driven: bool,
    /// The scope of the operations that begin in this turn of the event loop. Its driver closes it
    /// before its first I/O.
    open_scope: Option<ScopeId>,
}

/// The source of the events that a task waits for: each of the engine's [`Event`]s but `Waiting`,
/// which only the JavaScript client reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    Op(OpId),
    Hold(HoldId),
    Endpoint(EndpointId),
    /// Only the driver of the scope waits for its events.
    Scope(ScopeId),
}

impl<T: Transport, H: Host> Shared<T, H> {
    /// Creates the client of one gateway.
    pub(super) fn new(
        gateway: Gateway,
        transport: T,
        host: H,
        spawn: Option<Spawn<T, H>>,
    ) -> Arc<Self> {
        let endpoint = Endpoint::new(gateway, Arc::new(transport));
        Self::with_endpoints([endpoint].into(), Arc::new(host), spawn, Vec::new())
    }

    fn with_endpoints(
        endpoints: Vec<Endpoint<T>>,
        host: Arc<H>,
        spawn: Option<Spawn<T, H>>,
        members: Vec<Arc<Self>>,
    ) -> Arc<Self> {
        let can_share_driver = endpoints.iter().all(|it| it.transport.streams().shared);
        let mut engine = Engine::new();
        for Endpoint { gateway, transport, .. } in &endpoints {
            engine.add_endpoint(gateway.clone(), transport.streams().max);
        }
        let state = State { engine, wakers: Vec::new(), is_driven: false, open_scope: None };
        let (state, joined) = (Mutex::new(state), Mutex::default());
        Arc::new(Self { state, endpoints, host, spawn, can_share_driver, members, joined })
    }

    /// The client that uses only this gateway of the client; the client itself if it has only one,
    /// or no gateway of this id.
    pub(super) fn member(self: &Arc<Self>, EndpointId(index): EndpointId) -> Arc<Self> {
        Arc::clone(self.members.get(index as usize).unwrap_or(self))
    }

    /// Returns a joint client, with the gateways of `clients` in their order, and with the host and
    /// `spawn` of the first. Each of `clients` must have exactly one gateway. Returns `None` if
    /// there are none, and the client itself if there is one. A joint client of the same clients in
    /// the same order that is still in use is returned again: its engine knows the gateways'
    /// capabilities and clocks.
    pub(super) fn join(clients: &[Arc<Self>]) -> Option<Arc<Self>> {
        let (first, others) = clients.split_first()?;
        if others.is_empty() {
            return Some(Arc::clone(first));
        }
        let mut joined = first.joined.lock().unwrap_or_else(PoisonError::into_inner);
        joined.retain(|client| client.strong_count() > 0);
        let is_same = |other: &Arc<Self>| {
            other.members.len() == clients.len()
                && other.members.iter().zip(clients).all(|(one, client)| Arc::ptr_eq(one, client))
        };
        if let Some(same) = joined.iter().filter_map(Weak::upgrade).find(is_same) {
            return Some(same);
        }
        let endpoints = clients.iter().flat_map(|client| client.endpoints.iter().cloned());
        let host = Arc::clone(&first.host);
        let client = Self::with_endpoints(endpoints.collect(), host, first.spawn, clients.to_vec());
        joined.push(Arc::downgrade(&client));
        Some(client)
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the engine.
    pub(super) fn read<R>(&self, read: impl FnOnce(&Engine) -> R) -> R {
        read(&self.lock_state().engine)
    }

    /// Returns whether the caller must start the driver of all operations; if so, records that it
    /// is running. Returns `false` if it is running already, and if operations cannot share a
    /// driver. Called only with `spawn`.
    pub(super) fn claim_driver(&self) -> bool {
        let mut state = self.lock_state();
        self.can_share_driver && !core::mem::replace(&mut state.is_driven, true)
    }

    /// Lets no later operation join this scope.
    pub(super) fn close_to_new_operations(&self, scope: ScopeId) {
        let mut state = self.lock_state();
        state.open_scope.take_if(|open| *open == scope);
    }

    /// Whether an operation has an outcome, or its outcome was taken, or it was removed.
    pub(super) fn is_over(&self, op: OpId) -> bool {
        self.read(|engine| engine.is_over(op))
    }

    /// Stores a waker for the next event of `source`.
    pub(super) fn keep_waker(&self, source: Source, waker: &Waker) {
        let mut state = self.lock_state();
        state.keep_waker(source, waker);
    }

    /// Removes the wakers for events of `source`.
    pub(super) fn forget_wakers(&self, source: Source) {
        let mut state = self.lock_state();
        let forgotten = state.take_wakers(source);
        // Unlocked first: the last waker of a task drops the task, whose destructor may lock.
        drop(state);
        drop(forgotten);
    }

    /// Removes the wakers for events of `source`, and wakes their tasks without an event; each that
    /// goes on waiting stores its waker again.
    pub(super) fn wake_tasks(&self, source: Source) {
        let mut state = self.lock_state();
        let woken = state.take_wakers(source);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Returns the scope of an operation that begins now, and whether the scope is new and the
    /// caller must start a driver for it. If one driver does the I/O of all operations,
    /// `claim_driver` tells whether to start it.
    pub(super) fn assign_scope(&self) -> (ScopeId, bool) {
        if self.spawn.is_some() && self.can_share_driver {
            return (ScopeId::GLOBAL, false);
        }
        let mut state = self.lock_state();
        if let Some(open) = state.open_scope {
            return (open, false);
        }
        let scope = state.engine.new_scope();
        if self.spawn.is_some() {
            state.open_scope = Some(scope);
        }
        (scope, self.spawn.is_some())
    }

    /// Changes the engine, and wakes the tasks that wait for the changes.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Engine, &mut Context<'_>) -> R) -> R {
        self.change_state(|state, cx| change(&mut state.engine, cx))
    }

    fn change_state<R>(&self, change: impl FnOnce(&mut State, &mut Context<'_>) -> R) -> R {
        let mut entropy = || self.host.entropy().ok().map(Entropy::new);
        // Another thread may lock the state first and pass a later time; for the engine, no time
        // has passed then.
        let mut cx = Context { now: self.host.now(), entropy: &mut entropy };
        let mut state = self.lock_state();
        let result = change(&mut state, &mut cx);
        wake(state);
        result
    }

    /// Records the end of a scope's driver if the scope has nothing to do; returns whether the
    /// driver must end. The driver has closed the scope before.
    pub(super) fn end_driver_if_idle(&self, scope: ScopeId) -> bool {
        // Under one lock: an operation that begins now either keeps this driver running, or starts
        // another one.
        let mut state = self.lock_state();
        let is_idle = state.engine.is_idle(scope);
        if is_idle {
            if scope == ScopeId::GLOBAL {
                state.is_driven = false;
            }
            // The driver's own. They are not woken: it is running, and ends.
            let driver_wakers = state.take_wakers(Source::Scope(scope));
            drop(state);
            drop(driver_wakers);
        }
        is_idle
    }

    /// Records that a driver was dropped before its operations had ended: its requests break, and
    /// its streams end. Wakes every task. If it was the driver of all operations, each task that
    /// still awaits an operation may start another driver. An operation of any other scope gets no
    /// other driver, and its future never completes.
    pub(super) fn on_driver_dropped(&self, scope: ScopeId) {
        self.close_to_new_operations(scope);
        // All under one lock: the requests of a driver that started in between would break too.
        let woken = self.change_state(|state, cx| {
            if scope == ScopeId::GLOBAL {
                state.is_driven = false;
            }
            state.engine.close_scope(scope, cx);
            core::mem::take(&mut state.wakers)
        });
        woken.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Waits until `poll` returns a value. Calls it whenever the future is polled: at once, after
    /// each event of `source`, and when the task wakes for another reason. The waker stays stored
    /// after the end.
    pub(super) async fn until<R>(
        &self,
        source: Source,
        mut poll: impl FnMut(&mut Engine) -> Option<R>,
    ) -> R {
        poll_fn(|cx| {
            // The waker is stored before `poll` is called, so a change in between is not missed.
            self.keep_waker(source, cx.waker());
            self.change(|engine, _| poll(engine)).map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// Wakes the tasks that wait for a change of the engine. Not inlined, for the size of the code:
/// each instance of `change` calls it.
#[inline(never)]
fn wake(mut state: MutexGuard<'_, State>) {
    let woken = state.take_woken();
    drop(state);
    woken.into_iter().for_each(Waker::wake);
}

impl State {
    /// Stores a waker, unless one of the same task is stored for this source.
    fn keep_waker(&mut self, source: Source, waker: &Waker) {
        let positions = self.positions(source);
        let mut known = self.wakers.get(positions.clone()).into_iter().flatten();
        if !known.any(|(_, known)| known.will_wake(waker)) {
            self.wakers.insert(positions.end, (source, waker.clone()));
        }
    }

    /// The positions of the wakers for events of `source`.
    fn positions(&self, source: Source) -> Range<usize> {
        let position = |is_before: fn(&Source, &Source) -> bool| {
            self.wakers.partition_point(|(other, _)| is_before(other, &source))
        };
        position(Source::lt)..position(Source::le)
    }

    /// Removes and returns the wakers for events of `source`.
    fn take_wakers(&mut self, source: Source) -> Vec<Waker> {
        let positions = self.positions(source);
        self.wakers.drain(positions).map(|(_, waker)| waker).collect()
    }

    /// Removes and returns the wakers of the tasks that wait for one of the engine's new events.
    fn take_woken(&mut self) -> Vec<Waker> {
        let mut woken = Vec::new();
        while let Some(event) = self.engine.poll_event() {
            woken.extend(self.take_wakers(match event {
                // No task waits for it.
                Event::Waiting(_) => continue,
                Event::Finished(op) => Source::Op(op),
                Event::Hold(hold) => Source::Hold(hold),
                Event::Endpoint(endpoint) => Source::Endpoint(endpoint),
                Event::Scope(scope) => Source::Scope(scope),
            }));
        }
        woken
    }
}

impl<T: Transport, H: Host> fmt::Debug for Shared<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gateways = self.endpoints.iter().map(|endpoint| &endpoint.gateway);
        f.debug_list().entries(gateways).finish()
    }
}
