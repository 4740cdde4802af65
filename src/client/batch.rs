//! Coalesces the calls of one event-loop turn into one request.
//!
//! A caller joins the open batch and yields once so that other calls of this event-loop turn can
//! join. The first caller to be polled again sends the batch; a batch of one call is sent as a
//! plain request. The request then belongs to all of its callers: each of them that is polled
//! drives it, it outlives a caller that is dropped, and it is cancelled with the last one. The next
//! batch does not wait for it.

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
use edgelatch_proto::protocol::gateway::{Answers, Request, Response};

/// The result of joining a batch.
pub(super) enum Joined {
    Answered(Result<Response, FailureKind>),
    /// The request is to be sent by itself.
    Alone(Request),
}

/// Joins the open batch, and returns the response, or the request if no other call has joined.
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

/// The open batch of a client at one gateway. Batches that are under way belong to their members.
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

struct Batch<F> {
    state: Mutex<State<F>>,
    /// Wakes all members, since any of them may be polled next.
    notice: Arc<Notice>,
}

struct State<F> {
    stage: Stage<F>,
    seats: Vec<Seat>,
    /// The number of members that have not taken their result yet.
    members: usize,
}

enum Stage<F> {
    Open,
    UnderWay(F),
    Over,
}

/// The state of one member's request.
enum Seat {
    Taken(Request),
    Answered(Result<Response, FailureKind>),
    /// The member left before the batch was sent, or has taken its result.
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
    fn requests(&self) -> impl Iterator<Item = &Request> {
        self.seats.iter().filter_map(|seat| match seat {
            Seat::Taken(request) => Some(request),
            Seat::Answered(_) | Seat::Empty => None,
        })
    }

    /// Adds a request and returns its place, or returns the request if the batch is full or no
    /// longer open.
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

    fn take(&mut self, place: usize) -> Seat {
        self.members -= 1;
        let seat = self.seats.get_mut(place);
        seat.map_or(Seat::Empty, |seat| mem::replace(seat, Seat::Empty))
    }

    /// Assigns each response to the member whose request it answers.
    fn end(&mut self, answers: Answers) {
        self.stage = Stage::Over;
        let (mut each, all) = match answers {
            Answers::NotTaken => return,
            Answers::Each(each) => (each.into_iter(), Err(FailureKind::Broken)),
            Answers::All(all) => (Vec::new().into_iter(), all),
        };
        for seat in &mut self.seats {
            if matches!(seat, Seat::Taken(_)) {
                *seat = Seat::Answered(each.next().map_or_else(|| all.clone(), Ok));
            }
        }
    }
}

/// A member's place in a batch, given up when it is dropped.
struct Member<'l, T: Transport> {
    link: &'l Link<T>,
    batch: Arc<Batch<T::Sending>>,
    /// `None` once the result was taken.
    place: Option<usize>,
}

impl<'l, T: Transport> Member<'l, T> {
    fn new(link: &'l Link<T>, request: Request) -> Self {
        let mut open = link.batches().0.lock().unwrap_or_else(PoisonError::into_inner);
        let seated = open.state().seat(request);
        let place = seated.unwrap_or_else(|request| {
            *open = Batch::open(vec![Seat::Taken(request)]);
            0
        });
        Self { link, batch: Arc::clone(&open), place: Some(place) }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Joined> {
        let batch = Arc::clone(&self.batch);
        let mut state = batch.state();
        if matches!(state.stage, Stage::Open) {
            let mut requests = state.requests();
            let (Some(first), Some(second)) = (requests.next(), requests.next()) else {
                drop(requests);
                let joined = self.tell(&mut state);
                // No member is left, so the batch stays open for the next caller.
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
            state.end(self.link.learned(|learned| learned.memory.answers(result, count)));
            let joined = self.tell(&mut state);
            drop(state);
            batch.notice.notify();
            return Poll::Ready(joined);
        }
        Poll::Ready(self.tell(&mut state))
    }

    fn tell(&mut self, state: &mut State<T::Sending>) -> Joined {
        match self.place.take().map_or(Seat::Empty, |place| state.take(place)) {
            Seat::Answered(answer) => Joined::Answered(answer),
            Seat::Taken(request) => Joined::Alone(request),
            // The result is taken only once.
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
        self.link.learned(|learned| learned.memory.unanswered());
        // The response to its request still arrives with those of the other members.
        state.members -= 1;
        if state.members == 0 {
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

    /// Returns the body of the request, when it is polled for the second time.
    struct Echo;

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

    /// The number of requests of each thread.
    const COUNT: usize = 10_000;

    /// Sends this body, and returns the body of the response.
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
