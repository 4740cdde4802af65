//! Coalesces the calls of one event-loop turn into one request.
//!
//! A caller joins the open batch and yields once so that other calls of this event-loop turn can
//! join. The first caller to be polled again sends the batch; a batch of one call is sent as a
//! plain request. The request then belongs to all of its callers, the *members*: each of them that
//! is polled drives it, it outlives a member that is dropped, and it is cancelled with the last
//! one. The next batch does not wait for it.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::iter::once;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::link::Link;
use super::notice::Notice;
use crate::error::FailureKind;
use crate::transport::Transport;
use edgelatch_proto::protocol::gateway::{PipelineOutcome, Request, Response};

/// The result of joining a batch.
pub(super) enum Joined {
    /// The batch was sent: its response to this request, or its failure.
    Answered(Result<Response, FailureKind>),
    /// The caller has to send the request by itself: no other call has joined, or the gateway has
    /// no pipelines and so has executed nothing.
    Alone(Request),
}

/// Joins the open batch. The first poll only yields, so that other calls can join; the second sends
/// the batch unless another member has.
pub(super) async fn join<T: Transport>(link: &Link<T>, request: Request) -> Joined {
    let mut member = Member::new(link, request);
    let mut others_came = false;
    poll_fn(|cx| {
        if mem::replace(&mut others_came, true) {
            return member.poll(cx);
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// The newest batch of a client at one gateway: the next call joins it if it is open and has room,
/// and otherwise replaces it. Batches that were sent belong to their members.
pub(super) struct Batches<F>(Mutex<Arc<Batch<F>>>);

impl<F> Default for Batches<F> {
    fn default() -> Self {
        Self(Mutex::new(Batch::open(Vec::new())))
    }
}

impl<F> core::fmt::Debug for Batches<F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Batches").finish_non_exhaustive()
    }
}

/// One batch, shared by its members. `F` is the transport's future of the request.
struct Batch<F> {
    state: Mutex<State<F>>,
    /// The wakers of all members. The request wakes each of them, since any member may be dropped
    /// before it is polled.
    notice: Arc<Notice>,
}

struct State<F> {
    stage: Stage<F>,
    /// One seat for each member that has joined, in the order of the commands. A seat is not
    /// removed when its member leaves, since the members know theirs by index.
    seats: Vec<Seat>,
    /// The number of members that have neither taken their result nor left.
    members: usize,
}

enum Stage<F> {
    /// Calls may join.
    Open,
    /// The request was sent.
    UnderWay(F),
    /// The request has ended, or its last member has left.
    Over,
}

/// The state of one member's request.
enum Seat {
    /// The request, while it has no result.
    Taken(Request),
    /// The result, until the member takes it.
    Answered(Result<Response, FailureKind>),
    /// The member has left before the batch was sent, or has taken its result.
    Empty,
}

impl<F> Batch<F> {
    fn open(seats: Vec<Seat>) -> Arc<Self> {
        let state = State { stage: Stage::Open, members: seats.len(), seats };
        Arc::new(Self { state: Mutex::new(state), notice: Arc::default() })
    }

    fn state(&self) -> MutexGuard<'_, State<F>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> State<F> {
    /// Returns the requests without a result, in the order of the commands.
    fn requests(&self) -> impl Iterator<Item = &Request> {
        self.seats.iter().filter_map(|seat| match seat {
            Seat::Taken(request) => Some(request),
            Seat::Answered(_) | Seat::Empty => None,
        })
    }

    /// Adds a request and returns the index of its seat, or returns the request if the batch is
    /// full or no longer open. An empty batch accepts a request of any size, since it can be sent
    /// alone.
    fn seat(&mut self, request: Request) -> Result<usize, Request> {
        let bytes = self.requests().fold(request.body.len(), |sum, other| sum + other.body.len());
        let few = self.seats.len() < Request::SEVERAL_MAX && bytes <= Request::SEVERAL_BYTES_MAX;
        if !matches!(self.stage, Stage::Open) || !few && !self.seats.is_empty() {
            return Err(request);
        }
        self.seats.push(Seat::Taken(request));
        self.members += 1;
        Ok(self.seats.len() - 1)
    }

    /// Empties a seat, whose member leaves or takes its result.
    fn take(&mut self, place: usize) -> Seat {
        self.members -= 1;
        let seat = self.seats.get_mut(place);
        seat.map_or(Seat::Empty, |seat| mem::replace(seat, Seat::Empty))
    }

    /// Ends the batch, and stores each member's result. Responses are in the order of the requests.
    /// After `Unsupported` the requests stay, and each member sends its own.
    fn end(&mut self, answers: PipelineOutcome) {
        self.stage = Stage::Over;
        let (mut each, all) = match answers {
            PipelineOutcome::Unsupported => return,
            PipelineOutcome::Each(each) => (each.into_iter(), Err(FailureKind::Broken)),
            PipelineOutcome::All(all) => (Vec::new().into_iter(), all),
        };
        for seat in &mut self.seats {
            if matches!(seat, Seat::Taken(_)) {
                *seat = Seat::Answered(each.next().map_or_else(|| all.clone(), Ok));
            }
        }
    }
}

/// One caller in a batch. It leaves the batch when it is dropped.
struct Member<'l, T: Transport> {
    link: &'l Link<T>,
    batch: Arc<Batch<T::Sending>>,
    /// The index of its seat; `None` once it has taken its result.
    place: Option<usize>,
}

impl<'l, T: Transport> Member<'l, T> {
    /// Joins the open batch, or replaces it by a new one if it is full or was sent. The members of
    /// a full batch still send it.
    fn new(link: &'l Link<T>, request: Request) -> Self {
        let mut open = link.batches().0.lock().unwrap_or_else(PoisonError::into_inner);
        let seated = open.state().seat(request);
        let place = seated.unwrap_or_else(|request| {
            *open = Batch::open(vec![Seat::Taken(request)]);
            0
        });
        Self { link, batch: Arc::clone(&open), place: Some(place) }
    }

    /// Sends the batch if it is still open, and drives its request.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Joined> {
        let batch = Arc::clone(&self.batch);
        let mut state = batch.state();
        if matches!(state.stage, Stage::Open) {
            let mut requests = state.requests();
            let (Some(first), Some(second)) = (requests.next(), requests.next()) else {
                drop(requests);
                let joined = self.tell(&mut state);
                // This was the only member, so the batch is empty and stays open for the next
                // caller.
                state.seats.clear();
                return Poll::Ready(joined);
            };
            let request = Request::several(first, once(second).chain(requests));
            state.stage = Stage::UnderWay(self.link.transport().send(request));
        }
        if let Stage::UnderWay(sending) = &mut state.stage {
            batch.notice.tell(cx.waker());
            let all = Waker::from(Arc::clone(&batch.notice));
            let Poll::Ready(result) = Pin::new(sending).poll(&mut Context::from_waker(&all)) else {
                return Poll::Pending;
            };
            let count = state.requests().count();
            state.end(self.link.learned(|learned| learned.memory.pipeline_outcome(result, count)));
            let joined = self.tell(&mut state);
            drop(state);
            batch.notice.notify();
            return Poll::Ready(joined);
        }
        Poll::Ready(self.tell(&mut state))
    }

    /// Takes this member's result.
    fn tell(&mut self, state: &mut State<T::Sending>) -> Joined {
        match self.place.take().map_or(Seat::Empty, |place| state.take(place)) {
            Seat::Answered(answer) => Joined::Answered(answer),
            Seat::Taken(request) => Joined::Alone(request),
            // Not reached: the result is taken only once.
            Seat::Empty => Joined::Answered(Err(FailureKind::Broken)),
        }
    }
}

impl<T: Transport> Drop for Member<'_, T> {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let mut state = self.batch.state();
        if !matches!(state.stage, Stage::UnderWay(_)) {
            state.take(place);
            return;
        }
        // A gateway that never responds to pipelines would make each caller give up, so the next
        // calls are sent singly unless pipelines are known to work here.
        self.link.learned(|learned| learned.memory.unanswered());
        // The seat keeps the request, since the gateway still responds to its command: without the
        // seat, the responses would be assigned to the wrong members.
        state.members -= 1;
        if state.members == 0 {
            // Dropping the transport's future cancels the request. That is
            // foreign code, so it runs without the lock.
            let given_up = mem::replace(&mut state.stage, Stage::Over);
            drop(state);
            drop(given_up);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;
    use core::mem;
    use core::pin::{Pin, pin};
    use core::task::{Context, Poll, Waker};
    use std::thread;

    use super::{Joined, join};
    use crate::client::link::Link;
    use crate::error::FailureKind;
    use crate::transport::{ByteStream, StreamHead, StreamLimits, Transport};
    use edgelatch_proto::protocol::gateway::{Gateway, Request, Response};

    /// A transport whose response is the body of the request.
    struct Echo;

    /// Its request under way: pending at the first poll, so that members share the driving of it.
    struct Echoing {
        answer: Option<Response>,
        was_polled: bool,
    }

    impl Future for Echoing {
        type Output = Result<Response, FailureKind>;

        fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
            match mem::replace(&mut self.was_polled, true) {
                true => Poll::Ready(self.answer.take().ok_or(FailureKind::Broken)),
                false => Poll::Pending,
            }
        }
    }

    impl Transport for Echo {
        type Sending = Echoing;
        type Stream = Never;

        fn send(&self, request: Request) -> Echoing {
            let answer = Response::new(200, request.body);
            Echoing { answer: Some(answer), was_polled: false }
        }

        async fn open(&self, _: Request) -> Result<(StreamHead, Never), FailureKind> {
            Err(FailureKind::NotSent)
        }

        fn streams(&self) -> StreamLimits {
            StreamLimits { max: 0, shared: true }
        }
    }

    enum Never {}

    impl ByteStream for Never {
        fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, FailureKind>>> {
            match *self {}
        }
    }

    /// The number of requests that each thread sends, one after the other.
    const COUNT: usize = 10_000;

    /// Sends this body, and returns the body of the response, or its own if no other call has
    /// joined.
    fn ask(link: &Link<Echo>, body: &str) -> String {
        let request = Request {
            url: String::new(),
            authorization: None,
            sync_token: None,
            content_type: "",
            body: body.to_string(),
        };
        let mut joined = pin!(join(link, request));
        loop {
            match joined.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Pending => thread::yield_now(),
                Poll::Ready(Joined::Alone(request)) => return request.body,
                Poll::Ready(Joined::Answered(answer)) => {
                    return String::from_utf8(answer.unwrap().body).unwrap();
                }
            }
        }
    }

    // Slow: four threads spin for 40,000 responses, beside other tests that use the same cores.
    #[test]
    fn each_thread_has_its_own_answers() {
        let link = Link::new(Gateway::upstash("http://localhost", "token").unwrap(), Echo);
        thread::scope(|scope| {
            for thread in 0..4 {
                let link = &link;
                scope.spawn(move || {
                    for number in 0..COUNT {
                        let body = (thread * COUNT + number).to_string();
                        assert_eq!(ask(link, &body), body);
                    }
                });
            }
        });
    }
}
