//! The transport of the clients: a network that loses, duplicates, delays and mixes up messages. It
//! carries the same bytes as a real one.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use edgelatch::error::FailureKind;
use edgelatch::transport::{Request, Response, StreamHead, StreamLimits, Transport};

use super::coverage::CoverPoint;
use super::engine::{EventKind, Sim};
use super::packet_fate::{PacketFate, WrongReply};
use super::plan::SeededFault;
use super::subscription::Stream;

/// The result of a request.
pub(crate) type Outcome = Result<Response, FailureKind>;

/// The connection from a host to the gateway of one Redis.
pub(crate) struct SimTransport {
    pub(crate) sim: Rc<Sim>,
    pub(crate) host: usize,
    pub(crate) node: usize,
    /// Whether an earlier request from here may have reached the gateway.
    pub(crate) is_gateway: Rc<Cell<bool>>,
}

/// A request in flight, and the faults that it meets.
pub(crate) struct SentRequest {
    pub(crate) number: u32,
    pub(crate) host: usize,
    pub(crate) node: usize,
    pub(crate) sent_at: u64,
    pub(crate) request: Request,
    pub(crate) fate: PacketFate,
}

/// The slot in which a client waits for a reply.
pub(crate) struct ReplySlot {
    pub(crate) host: usize,
    outcome: RefCell<Option<Outcome>>,
    waker: RefCell<Option<Waker>>,
}

impl ReplySlot {
    pub(crate) fn put(&self, outcome: Outcome) {
        self.outcome.borrow_mut().get_or_insert(outcome);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The future of a request's reply.
pub(crate) struct Sending {
    sim: Rc<Sim>,
    reply_slot: Rc<ReplySlot>,
    is_gateway: Rc<Cell<bool>>,
    was_not_sent: bool,
}

impl Sending {
    /// Replaces the status 200 of a web page by 502 while no earlier request can have reached the
    /// gateway. A client whose first response is a web page with status 200 concludes that the
    /// address belongs to another website and that nothing was executed. Here the script may have
    /// run: the page stands for the failure of a proxy, which has a status of failure.
    fn outcome(&mut self, outcome: Outcome) -> Outcome {
        let is_page =
            |response: &Response| response.status == 200 && response.body.starts_with(b"<");
        match outcome {
            Ok(response) if is_page(&response) && !self.is_gateway.get() => {
                Ok(Response { status: 502, ..response })
            }
            Err(FailureKind::NotSent) => {
                self.was_not_sent = true;
                outcome
            }
            outcome => outcome,
        }
    }
}

impl Future for Sending {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        if let Some(outcome) = self.reply_slot.outcome.take() {
            return Poll::Ready(self.outcome(outcome));
        }
        self.reply_slot.waker.replace(Some(cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.sim.open.set(self.sim.open.get() - 1);
        if !self.was_not_sent {
            self.is_gateway.set(true);
        }
    }
}

impl Transport for SimTransport {
    type Sending = Sending;
    type Stream = Stream;

    fn send(&self, request: Request) -> Sending {
        let reply_slot = Rc::new(ReplySlot {
            host: self.host,
            outcome: RefCell::default(),
            waker: RefCell::default(),
        });
        self.sim.send_request(self.host, self.node, request, &reply_slot);
        let is_gateway = Rc::clone(&self.is_gateway);
        Sending { sim: Rc::clone(&self.sim), reply_slot, is_gateway, was_not_sent: false }
    }

    async fn open(&self, request: Request) -> Result<(StreamHead, Stream), FailureKind> {
        let stream = Stream::open(&self.sim, self.host, self.node, &request.url);
        let stream = stream.ok_or(FailureKind::NotSent)?;
        let head = StreamHead { status: 200, retry_after: None };
        Ok((head, stream))
    }

    fn streams(&self) -> StreamLimits {
        StreamLimits { max: if self.sim.plan.streams { 4 } else { 0 }, shared: true }
    }
}

/// The length of the end of a reply to one call: sixteen digits of echo and the closing brackets.
const ECHO: usize = 19;

/// The `Retry-After` values of a gateway that rejects a request, in seconds.
const RETRY_AFTER: [Option<u64>; 5] = [None, Some(0), Some(1), Some(30), Some(u64::MAX)];

/// Bodies that are not replies.
const GARBAGE: [&str; 10] = [
    "",
    "{}",
    "null",
    "[]",
    "OK",
    r#"{"result":null}"#,
    r#"{"result":1}"#,
    r#"{"result":[1,"9007199254740990",30000,1700000000000,"0000000000000000"]}"#,
    r#"{"result":[1,"1"],"result":[1,"1"]}"#,
    "<html><title>502</title></html>",
];

impl Sim {
    fn send_request(&self, host: usize, node: usize, request: Request, reply_slot: &Rc<ReplySlot>) {
        self.open.set(self.open.get() + 1);
        let seed = self.hosts.borrow_mut()[host].rng.u64(..);
        let fate = PacketFate::draw(&self.plan, seed, self.faults_ended.get());
        let number = self.coverage.count(CoverPoint::Requests, 1) as u32;
        let sent = Rc::new(SentRequest { number, host, node, sent_at: self.now(), request, fate });
        self.trace(|| format!("host {host} sends #{number} to redis {node}: {}", sent.summary()));
        let PacketFate { not_sent, breaks_at, arrives_at, copies, .. } = &sent.fate;
        if *not_sent {
            self.coverage.count(CoverPoint::NotSent, 1);
            let outcome = Err(FailureKind::NotSent);
            return self.after(100, EventKind::ReplyArrives(Rc::clone(reply_slot), outcome));
        }
        if let Some(at) = breaks_at {
            self.coverage.count(CoverPoint::Broken, 1);
            self.after(
                *at,
                EventKind::ReplyArrives(Rc::clone(reply_slot), Err(FailureKind::Broken)),
            );
        }
        match arrives_at {
            Some(at) => self.after(
                *at,
                EventKind::RequestArrives(Rc::clone(&sent), Some(Rc::clone(reply_slot))),
            ),
            None => {
                self.coverage.count(CoverPoint::Lost, 1);
            }
        }
        for at in copies {
            self.after(*at, EventKind::RequestArrives(Rc::clone(&sent), None));
        }
    }

    /// A request arrives at its gateway.
    pub(crate) fn on_request_arrives(
        &self,
        sent: &Rc<SentRequest>,
        reply_slot: Option<Rc<ReplySlot>>,
    ) {
        let SentRequest { number, host, fate, .. } = &**sent;
        if fate.throttled && !self.faults_ended.get() {
            self.coverage.count(CoverPoint::Throttled, 1);
            self.trace(|| format!("#{number} of host {host} is rejected as overloaded"));
            if let Some(reply_slot) = reply_slot {
                let status = if number & 1 == 0 { 429 } else { 503 };
                let seconds =
                    RETRY_AFTER[usize::try_from(number >> 1).unwrap() % RETRY_AFTER.len()];
                let retry_after = seconds.map(Duration::from_secs);
                let response = Response { retry_after, ..Response::new(status, []) };
                self.after(
                    fate.reply_delay.unwrap_or(1_000),
                    EventKind::ReplyArrives(reply_slot, Ok(response)),
                );
            }
            return;
        }
        if reply_slot.is_none() {
            self.coverage.count(CoverPoint::Copies, 1);
        }
        let (status, body) = self.execute(sent, reply_slot.is_none());
        self.trace(|| {
            let which = if reply_slot.is_some() { "" } else { "a copy of " };
            format!(
                "{which}#{number} of host {host} is executed: {}",
                String::from_utf8_lossy(&body)
            )
        });
        let (Some(reply_slot), Some(reply_delay)) = (reply_slot, fate.reply_delay) else {
            self.coverage.count(CoverPoint::Unanswered, 1);
            return;
        };
        let response = self.reply_or_fault(sent, status, body);
        self.after(reply_delay, EventKind::ReplyArrives(reply_slot, Ok(response)));
    }

    /// Returns the response, or its substitute.
    fn reply_or_fault(&self, sent: &SentRequest, status: u16, body: Vec<u8>) -> Response {
        let others = self.keep_reply(sent.node, &body);
        let (status, body) = match sent.fate.wrong_reply {
            None => (status, body),
            Some(WrongReply::Failure(status)) => {
                self.coverage.count(CoverPoint::Failed, 1);
                (status, Vec::new())
            }
            Some(WrongReply::Garbage(which)) => {
                self.coverage.count(CoverPoint::Garbage, 1);
                (200, GARBAGE[which % GARBAGE.len()].into())
            }
            Some(WrongReply::Cut(at)) => {
                self.coverage.count(CoverPoint::Cut, 1);
                (200, body[..body.len() * at / 256].into())
            }
            Some(WrongReply::OtherReply(which)) => match others.len() {
                0 => (status, body),
                count => {
                    self.coverage.count(CoverPoint::Swapped, 1);
                    let mut other = others[which % count].clone();
                    if self.plan.has_seeded(SeededFault::ForgedEcho)
                        && body.len() > ECHO
                        && other.len() > ECHO
                    {
                        other.truncate(other.len() - ECHO);
                        other.extend(&body[body.len() - ECHO..]);
                    }
                    (200, other)
                }
            },
        };
        Response::new(status, body)
    }
}

impl SentRequest {
    /// Formats the request for the trace, without the keys that all requests share.
    fn summary(&self) -> String {
        let commands: Vec<String> = super::gateway::commands(&self.request)
            .unwrap_or_default()
            .iter()
            .map(super::gateway::summary)
            .collect();
        commands.join(" and ")
    }
}
