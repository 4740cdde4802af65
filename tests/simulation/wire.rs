//! The transport of the clients: a network that loses, duplicates, delays and mixes up messages. It
//! carries the same bytes as a real one.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use edgelatch::error::FailureKind;
use edgelatch::transport::{ByteStream, Request, Response, StreamHead, StreamLimits, Transport};

use super::engine::{Sim, What};
use super::fate::{Fate, Instead};
use super::faults::Fault;
use super::plan::Tooth;
use super::seen::Sight;

/// The result of a request.
pub(crate) type Outcome = Result<Response, FailureKind>;

/// The connection from a host to the gateway of one Redis.
pub(crate) struct Wire {
    pub(crate) sim: Rc<Sim>,
    pub(crate) host: usize,
    pub(crate) node: usize,
    /// Whether an earlier request from here may have reached the gateway.
    pub(crate) is_gateway: Rc<Cell<bool>>,
}

/// A request in flight, and the faults that it meets.
pub(crate) struct Letter {
    pub(crate) number: u32,
    pub(crate) host: usize,
    pub(crate) node: usize,
    pub(crate) sent_at: u64,
    pub(crate) request: Request,
    pub(crate) fate: Fate,
}

/// The place where a client waits for a reply.
pub(crate) struct Mailbox {
    pub(crate) host: usize,
    outcome: RefCell<Option<Outcome>>,
    waker: RefCell<Option<Waker>>,
}

impl Mailbox {
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
    mailbox: Rc<Mailbox>,
    is_gateway: Rc<Cell<bool>>,
    is_left_out: bool,
}

impl Sending {
    /// Replaces the status 200 of a web page by 502 while no request can have reached the gateway
    /// before. If the first response is a web page with status 200, the client takes the address
    /// for another website's and concludes that nothing was executed. Here the script may have run,
    /// as behind a gateway's proxy, which reports a failure.
    fn returned(&mut self, outcome: Outcome) -> Outcome {
        let is_page =
            |response: &Response| response.status == 200 && response.body.starts_with(b"<");
        match outcome {
            Ok(response) if is_page(&response) && !self.is_gateway.get() => {
                Ok(Response { status: 502, ..response })
            }
            Err(FailureKind::NotSent) => {
                self.is_left_out = true;
                outcome
            }
            outcome => outcome,
        }
    }
}

impl Future for Sending {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        if let Some(outcome) = self.mailbox.outcome.take() {
            return Poll::Ready(self.returned(outcome));
        }
        self.mailbox.waker.replace(Some(cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.sim.open.set(self.sim.open.get() - 1);
        if !self.is_left_out {
            self.is_gateway.set(true);
        }
    }
}

/// A stream of messages.
pub(crate) struct Feed {
    pub(crate) host: usize,
    pub(crate) node: usize,
    pub(crate) channel: String,
    pub(crate) is_closed: Cell<bool>,
    /// `None` is its end.
    bytes: RefCell<VecDeque<Option<Vec<u8>>>>,
    waker: RefCell<Option<Waker>>,
}

impl Feed {
    pub(crate) fn put(&self, bytes: Option<Vec<u8>>) {
        self.bytes.borrow_mut().push_back(bytes);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The client's end of a stream.
pub(crate) struct Stream {
    sim: Rc<Sim>,
    feed: Rc<Feed>,
}

impl ByteStream for Stream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, FailureKind>>> {
        if let Some(bytes) = self.feed.bytes.borrow_mut().pop_front() {
            return Poll::Ready(bytes.map(Ok));
        }
        self.feed.waker.replace(Some(cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.feed.is_closed.set(true);
        self.sim.open.set(self.sim.open.get() - 1);
    }
}

impl Transport for Wire {
    type Sending = Sending;
    type Stream = Stream;

    fn send(&self, request: Request) -> Sending {
        let mailbox = Rc::new(Mailbox {
            host: self.host,
            outcome: RefCell::default(),
            waker: RefCell::default(),
        });
        self.sim.sends(self.host, self.node, request, &mailbox);
        let is_gateway = Rc::clone(&self.is_gateway);
        Sending { sim: Rc::clone(&self.sim), mailbox, is_gateway, is_left_out: false }
    }

    async fn open(&self, request: Request) -> Result<(StreamHead, Stream), FailureKind> {
        let channel = channel_of(&request.url).ok_or(FailureKind::NotSent)?;
        let feed = Rc::new(Feed {
            host: self.host,
            node: self.node,
            channel,
            is_closed: Cell::new(false),
            bytes: RefCell::default(),
            waker: RefCell::default(),
        });
        self.sim.open.set(self.sim.open.get() + 1);
        self.sim.listens(&feed);
        let head = StreamHead { status: 200, retry_after: None };
        Ok((head, Stream { sim: Rc::clone(&self.sim), feed }))
    }

    fn streams(&self) -> StreamLimits {
        StreamLimits { max: if self.sim.plan.streams { 4 } else { 0 }, shared: true }
    }
}

/// The channel in a URL with `/subscribe/`, where it is percent-encoded.
fn channel_of(url: &str) -> Option<String> {
    let mut bytes = url.split_once("/subscribe/")?.1.bytes();
    let mut channel = Vec::new();
    while let Some(byte) = bytes.next() {
        channel.push(match byte {
            b'%' => {
                let mut digit = || Some(char::from(bytes.next()?).to_digit(16)? as u8);
                digit()? << 4 | digit()?
            }
            byte => byte,
        });
    }
    String::from_utf8(channel).ok()
}

/// The length of the end of a reply to one call: sixteen digits of echo and the closing brackets.
const ECHO: usize = 19;

/// The `Retry-After` values of a gateway that rejects a request, in seconds.
const RESTS: [Option<u64>; 5] = [None, Some(0), Some(1), Some(30), Some(u64::MAX)];

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
    fn sends(&self, host: usize, node: usize, request: Request, mailbox: &Rc<Mailbox>) {
        self.open.set(self.open.get() + 1);
        let seed = self.machines.borrow_mut()[host].rng.u64(..);
        let fate = Fate::draw(&self.plan, seed, self.healed.get());
        let number = self.seen.count(Sight::Requests, 1) as u32;
        let letter = Rc::new(Letter { number, host, node, sent_at: self.now(), request, fate });
        self.tell(|| format!("host {host} sends #{number} to redis {node}: {}", letter.shown()));
        let Fate { stays, breaks, arrives, copies, .. } = &letter.fate;
        if *stays {
            self.seen.count(Sight::NotSent, 1);
            let outcome = Err(FailureKind::NotSent);
            return self.after(100, What::Answers(Rc::clone(mailbox), outcome));
        }
        if let Some(at) = breaks {
            self.seen.count(Sight::Broken, 1);
            self.after(*at, What::Answers(Rc::clone(mailbox), Err(FailureKind::Broken)));
        }
        match arrives {
            Some(at) => {
                self.after(*at, What::Arrives(Rc::clone(&letter), Some(Rc::clone(mailbox))))
            }
            None => {
                self.seen.count(Sight::Lost, 1);
            }
        }
        for at in copies {
            self.after(*at, What::Arrives(Rc::clone(&letter), None));
        }
    }

    /// A request arrives at its gateway.
    pub(crate) fn arrives(&self, letter: &Rc<Letter>, mailbox: Option<Rc<Mailbox>>) {
        let Letter { number, host, fate, .. } = &**letter;
        if fate.throttled && !self.healed.get() {
            self.seen.count(Sight::Throttled, 1);
            self.tell(|| format!("#{number} of host {host} is turned away"));
            if let Some(mailbox) = mailbox {
                let status = if number & 1 == 0 { 429 } else { 503 };
                let rest = RESTS[usize::try_from(number >> 1).unwrap() % RESTS.len()];
                let retry_after = rest.map(Duration::from_secs);
                let response = Response { retry_after, ..Response::new(status, []) };
                self.after(fate.returns.unwrap_or(1_000), What::Answers(mailbox, Ok(response)));
            }
            return;
        }
        if mailbox.is_none() {
            self.seen.count(Sight::Copies, 1);
        }
        let (status, body) = self.executes(letter);
        self.tell(|| {
            let which = if mailbox.is_some() { "" } else { "a copy of " };
            format!(
                "{which}#{number} of host {host} is executed: {}",
                String::from_utf8_lossy(&body)
            )
        });
        let (Some(mailbox), Some(returns)) = (mailbox, fate.returns) else {
            self.seen.count(Sight::Unanswered, 1);
            return;
        };
        let response = self.returned(letter, status, body);
        self.after(returns, What::Answers(mailbox, Ok(response)));
    }

    /// Returns the response, or what replaces it.
    fn returned(&self, letter: &Letter, status: u16, body: Vec<u8>) -> Response {
        let others = self.keep(letter.node, &body);
        let (status, body) = match letter.fate.instead {
            None => (status, body),
            Some(Instead::Failure(status)) => {
                self.seen.count(Sight::Failed, 1);
                (status, Vec::new())
            }
            Some(Instead::Garbage(which)) => {
                self.seen.count(Sight::Garbage, 1);
                (200, GARBAGE[which % GARBAGE.len()].into())
            }
            Some(Instead::Cut(at)) => {
                self.seen.count(Sight::Cut, 1);
                (200, body[..body.len() * at / 256].into())
            }
            Some(Instead::Others(which)) => match others.len() {
                0 => (status, body),
                count => {
                    self.seen.count(Sight::Swapped, 1);
                    let mut other = others[which % count].clone();
                    if self.plan.lacks(Tooth::ForgedEcho) && body.len() > ECHO && other.len() > ECHO
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

    /// Opens a stream: the gateway confirms it after a while, unless the stream stays silent.
    fn listens(&self, feed: &Rc<Feed>) {
        self.tell(|| {
            format!("host {} listens to {} at redis {}", feed.host, feed.channel, feed.node)
        });
        let mut rng = self.machines.borrow_mut()[feed.host].rng.fork();
        let healed = self.healed.get();
        let strikes = |fault, rng: &mut fastrand::Rng| {
            self.plan.has(fault) && !healed && rng.u32(0..256) < self.plan.odds
        };
        if strikes(Fault::StreamsSilent, &mut rng) {
            self.seen.count(Sight::StreamsSilent, 1);
            return;
        }
        let at = 50 + rng.u64(0..self.plan.way);
        let frame = format!("data: subscribe,{},1\n\n", feed.channel).into_bytes();
        self.after(at, What::Heard(Rc::clone(feed), Some(frame)));
        self.nodes.borrow_mut()[feed.node].listeners.push(Rc::clone(feed));
        if strikes(Fault::StreamsEnd, &mut rng) {
            self.seen.count(Sight::StreamsEnded, 1);
            self.after(
                at + rng.u64(0..self.plan.lease * 1_000),
                What::Heard(Rc::clone(feed), None),
            );
        }
        if strikes(Fault::Forged, &mut rng) {
            self.seen.count(Sight::Forged, 1);
            let frame = format!("data: message,{},{}\n\n", feed.channel, rng.u32(..)).into_bytes();
            self.after(
                at + rng.u64(0..self.plan.lease * 1_000),
                What::Heard(Rc::clone(feed), Some(frame)),
            );
        }
    }

    /// Publishes a message.
    pub(crate) fn published(&self, node: usize, channel: &str, message: &str) {
        let mut nodes = self.nodes.borrow_mut();
        let listeners = &mut nodes[node].listeners;
        listeners.retain(|feed| !feed.is_closed.get());
        for feed in listeners.iter().filter(|feed| feed.channel == channel) {
            let mut rng = self.machines.borrow_mut()[feed.host].rng.fork();
            let unheard = self.plan.has(Fault::Unheard) && !self.healed.get();
            if unheard && rng.u32(0..256) < self.plan.odds {
                self.seen.count(Sight::Unheard, 1);
                continue;
            }
            self.seen.count(Sight::Messages, 1);
            let frame = format!("data: message,{channel},{message}\n\n").into_bytes();
            self.after(50 + rng.u64(0..self.plan.way), What::Heard(Rc::clone(feed), Some(frame)));
        }
    }
}

impl Letter {
    /// Formats the request for the history, without the keys that all requests share.
    fn shown(&self) -> String {
        let commands: Vec<String> = super::gateway::commands(&self.request)
            .unwrap_or_default()
            .iter()
            .map(super::gateway::shown)
            .collect();
        commands.join(" and ")
    }
}
