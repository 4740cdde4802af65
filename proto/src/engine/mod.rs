//! The sans-I/O client: operations, holds, subscriptions and the requests that they share, as plain
//! data. It has no clock, no I/O, no waker and no randomness of its own.
//!
//! **The contract:** after each call that takes a [`Context`], drain [`poll_event`], and
//! [`poll_transmit`] of each scope that has something to send; then wait until [`poll_timeout`].
//! Early and repeated calls of [`handle_timeout`] change nothing. The order of draining does not
//! matter.
//!
//! A *scope* is the set of operations that may share I/O: one for a whole program, or one for each
//! operation where I/O objects belong to the request that created them, as in a Worker.
//!
//! [`poll_transmit`]: Engine::poll_transmit
//! [`poll_event`]: Engine::poll_event
//! [`poll_timeout`]: Engine::poll_timeout
//! [`handle_timeout`]: Engine::handle_timeout

mod acquisition;
mod begin;
mod calls;
mod contention;
mod deadlines;
mod endpoint;
mod failures;
mod health;
mod hold;
mod hold_part;
mod holds;
mod ids;
mod keep;
mod objects;
mod operation;
mod owner;
mod parts;
mod policy;
mod release;
mod renewal;
mod requests;
mod rollback;
mod runner;
mod schedule;
mod spec;
mod subscription;
mod table;
mod under_hold;
mod waiters;

pub use hold::{LeaseEnd, Situation};
pub use ids::{EndpointId, HoldId, OpId, OwnerHandle, ScopeId, StreamId, TransmitId};
pub use operation::Outcome;
pub use owner::Side;
pub use policy::{AcquirePolicy, HoldTime};
pub use spec::{LockSpec, MemberSpec};

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::error::FailureKind;
use crate::machine::{Entropy, Input};
use crate::protocol::gateway::{Gateway, Request, Response};
use crate::protocol::reply::ServerClock;
use crate::time::Instant;
use calls::Call;
use deadlines::Deadlines;
use endpoint::{Endpoint, Endpoints};
use hold::Hold;
use operation::Operation;
use owner::{Owner, OwnerKey};
use requests::SentRequest;
use subscription::Subscription;
use table::{Key, Table};

/// The time, and a source of entropy.
pub struct Context<'a> {
    /// Both clocks of the host.
    pub now: Instant,
    /// Draws 256 fresh bits; `None` if the host has no cryptographic source.
    pub entropy: &'a mut dyn FnMut() -> Option<Entropy>,
}

impl core::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Context").field("now", &self.now).finish_non_exhaustive()
    }
}

impl Context<'_> {
    #[inline(never)]
    fn draw(&mut self) -> Option<Entropy> {
        (self.entropy)()
    }
}

/// I/O for the driver to do.
#[derive(Clone, Debug)]
pub enum Transmit {
    /// Send this request, and pass its outcome to [`Engine::handle_response`].
    Send {
        /// The request.
        id: TransmitId,
        /// The gateway.
        to: EndpointId,
        /// The request to send.
        request: Request,
    },
    /// Cancel a request: its outcome is no longer needed.
    Abort {
        /// The request.
        id: TransmitId,
    },
    /// Open a stream, and pass its events to [`Engine::handle_stream`].
    Open {
        /// The stream.
        id: StreamId,
        /// The gateway.
        to: EndpointId,
        /// The request to send.
        request: Request,
    },
    /// Close a stream, or stop opening it.
    Close {
        /// The stream.
        id: StreamId,
    },
}

/// An event of a stream.
#[derive(Clone, Copy, Debug)]
pub enum StreamInput<'a> {
    /// The response has begun.
    Head {
        /// The HTTP status.
        status: u16,
        /// The `Retry-After` header, as in [`Response::retry_after`].
        retry_after: Option<Duration>,
    },
    /// Bytes of the body have arrived.
    Bytes(&'a [u8]),
    /// The stream has ended, or could not be opened.
    End,
}

/// A change for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An operation has ended: [`Engine::take_outcome`] has its outcome.
    Finished(OpId),
    /// An operation waits: Redis has refused its first try, and has queued it if there is a queue.
    Waiting(OpId),
    /// The situation of a hold has changed.
    Hold(HoldId),
    /// The notification mode or the clock of a gateway has changed.
    Endpoint(EndpointId),
    /// A scope has something to send, or another deadline.
    Scope(ScopeId),
}

/// How the waiters at a gateway learn that a retry may succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotificationMode {
    /// A subscription is confirmed: messages wake the waiters, which do not poll.
    Stream,
    /// The waiters retry at intervals: the gateway has no streams, or none at present, or this
    /// runtime opens none, or the client's options disable them.
    Polling,
}

/// The client.
#[derive(Clone, Debug, Default)]
pub struct Engine {
    endpoints: Endpoints,
    ops: Table<Operation>,
    deadlines: Deadlines,
    calls: Table<Call>,
    requests: Table<SentRequest>,
    subscriptions: Table<Subscription>,
    holds: Table<Hold>,
    owners: Table<Owner>,
    /// The calls to send, in their order.
    unsent: Vec<(ScopeId, Key)>,
    transmits: Vec<(ScopeId, Transmit)>,
    events: VecDeque<Event>,
    inputs: VecDeque<(OpId, Input)>,
    /// The subscriptions whose waiters may have an event.
    to_notify: Vec<Key>,
    /// The holds that have changed.
    changed: Vec<HoldId>,
    /// The owners one of whose acquisitions has ended, so that the waiting ones may begin.
    freed_owners: Vec<OwnerHandle>,
    /// The gateways at which a subscription has ended, so that another one may begin.
    freed_endpoints: Vec<EndpointId>,
    scopes: u32,
}

impl Engine {
    /// Creates a client without a gateway.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a gateway. At most `streams_max` streams are open to it at a time.
    pub fn add_endpoint(&mut self, gateway: Gateway, streams_max: usize) -> EndpointId {
        self.endpoints.insert(Endpoint::new(gateway, streams_max))
    }

    /// Removes a gateway that no operation and no hold uses. Its index may be used again.
    pub fn remove_endpoint(&mut self, id: EndpointId) {
        self.endpoints.remove(id);
    }

    /// Creates a scope for one operation.
    pub const fn new_scope(&mut self) -> ScopeId {
        self.scopes = self.scopes.wrapping_add(1);
        ScopeId(if self.scopes == 0 { 1 } else { self.scopes })
    }

    /// Passes the outcome of a request. A request that was aborted is ignored.
    pub fn handle_response(
        &mut self,
        id: TransmitId,
        result: Result<Response, FailureKind>,
        cx: &mut Context<'_>,
    ) {
        self.responded(id, result, cx);
        self.settle(cx);
    }

    /// Passes an event of a stream. A stream that was closed is ignored.
    pub fn handle_stream(&mut self, id: StreamId, input: StreamInput<'_>, cx: &mut Context<'_>) {
        self.stream_input(id, input, cx);
        self.settle(cx);
    }

    /// Passes that time has gone by, for the operations of a scope.
    pub fn handle_timeout(&mut self, scope: ScopeId, cx: &mut Context<'_>) {
        let due = self.deadlines.due(scope, cx.now);
        self.inputs.extend(due.map(|op| (op, Input::Timeout)));
        for key in self.subscriptions.keys(|subscription| subscription.scope == scope) {
            self.check_stream(key, cx);
        }
        self.settle(cx);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout); `None` if nothing waits for time.
    pub fn poll_timeout(&self, scope: ScopeId) -> Option<Instant> {
        let streams = self.subscriptions.iter().filter(|(_, one)| one.scope == scope);
        let streams =
            streams.filter_map(|(_, one)| one.deadline(&self.endpoints.get(one.endpoint)?.health));
        self.deadlines.next(scope).into_iter().chain(streams).reduce(Instant::sooner)
    }

    /// The next I/O of this scope, if there is any.
    pub fn poll_transmit(&mut self, scope: ScopeId) -> Option<Transmit> {
        let next = self.transmits.iter().position(|(of, _)| *of == scope);
        match next {
            Some(at) => Some(self.transmits.remove(at).1),
            None => self.next_request(scope),
        }
    }

    /// Whether a scope has I/O to do.
    pub fn has_transmit(&self, scope: ScopeId) -> bool {
        let is_of = |of: ScopeId| of == scope;
        self.transmits.iter().any(|(of, _)| is_of(*of))
            || self.unsent.iter().any(|(of, _)| is_of(*of))
    }

    /// The next change, if there is any.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether a scope has neither an operation nor I/O.
    pub fn is_idle(&self, scope: ScopeId) -> bool {
        let has_ops = self.deadlines.has(scope);
        let has_requests = self.requests.iter().any(|(_, request)| request.scope == scope);
        let has_streams = self.subscriptions.iter().any(|(_, one)| one.scope == scope);
        !(has_ops || has_requests || has_streams || self.has_transmit(scope))
    }

    /// Records that the I/O of a scope was dropped: requests under way break, streams end.
    pub fn close_scope(&mut self, scope: ScopeId, cx: &mut Context<'_>) {
        self.transmits.retain(|(of, _)| *of != scope);
        for id in self.requests.keys(|request| request.scope == scope) {
            self.responded(TransmitId(id), Err(FailureKind::Broken), cx);
        }
        for key in self.subscriptions.keys(|one| one.scope == scope) {
            if let Some(id) = self.subscriptions.get(key).and_then(|one| one.stream_id(key)) {
                self.stream_input(id, StreamInput::End, cx);
            }
        }
        self.settle(cx);
    }

    /// How waiters at a gateway learn of releases; `None` before the first wait.
    pub fn notification_mode(&self, endpoint: EndpointId) -> Option<NotificationMode> {
        self.endpoint(endpoint)?.health.notification_mode()
    }

    /// The number of times that the clock of Redis behind this gateway was set back, and the size
    /// of the last step; `None` if that number is `seen`.
    pub fn last_rollback(&self, endpoint: EndpointId, seen: u32) -> Option<(u32, Duration)> {
        self.endpoint(endpoint)?.rollback.last_rollback(seen)
    }

    /// The clock of Redis behind this gateway, as last known.
    pub fn clock(&self, endpoint: EndpointId) -> Option<ServerClock> {
        self.endpoint(endpoint)?.clock()
    }

    fn endpoint(&self, id: EndpointId) -> Option<&Endpoint> {
        self.endpoints.get(id)
    }

    fn endpoint_mut(&mut self, id: EndpointId) -> Option<&mut Endpoint> {
        self.endpoints.get_mut(id)
    }

    /// Records that a scope has something to send, or another deadline.
    fn wake(&mut self, scope: ScopeId) {
        let event = Event::Scope(scope);
        if !self.events.contains(&event) {
            self.events.push_back(event);
        }
    }

    fn transmit(&mut self, scope: ScopeId, transmit: Transmit) {
        self.transmits.push((scope, transmit));
        self.wake(scope);
    }

    /// Passes on what operations have caused for each other, until nothing is left.
    fn settle(&mut self, cx: &mut Context<'_>) {
        loop {
            if let Some((op, input)) = self.inputs.pop_front() {
                self.on_input(op, input, cx);
            } else if let Some(subscription) = self.to_notify.pop() {
                self.notify(subscription, cx);
            } else if let Some(hold) = self.changed.pop() {
                self.hold_changed(hold, cx);
            } else if let Some(owner) = self.freed_owners.pop() {
                self.retry_waiting_acquisitions(owner, cx);
            } else if let Some(endpoint) = self.freed_endpoints.pop() {
                self.subscribe_next(endpoint, cx);
            } else {
                return;
            }
        }
    }
}
