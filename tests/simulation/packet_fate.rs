//! The faults that one request meets, drawn when it is sent.

use fastrand::Rng;

use super::faults::Fault;
use super::plan::Plan;

/// The delays and faults of one request. Times are in microseconds and count from the sending;
/// `reply_delay` counts from the execution.
#[derive(Debug)]
pub(crate) struct PacketFate {
    /// Whether the request fails before it leaves.
    pub(crate) not_sent: bool,
    /// When the connection breaks, if it does.
    pub(crate) breaks_at: Option<u64>,
    /// When the request arrives; `None` if it is lost.
    pub(crate) arrives_at: Option<u64>,
    /// When copies of the request arrive; their replies are dropped.
    pub(crate) copies: Vec<u64>,
    /// How long the reply takes; `None` if it is lost.
    pub(crate) reply_delay: Option<u64>,
    /// Whether the gateway rejects the request as overloaded, and executes nothing.
    pub(crate) throttled: bool,
    /// The response that the client receives in place of the reply.
    pub(crate) wrong_reply: Option<WrongReply>,
}

/// A substitute for a reply.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WrongReply {
    /// An empty body with this status, from the gateway.
    Failure(u16),
    /// The body with this index in `GARBAGE`.
    Garbage(usize),
    /// This many 256ths of the body.
    Cut(usize),
    /// The reply to another client, or an older reply.
    OtherReply(usize),
}

impl PacketFate {
    /// Draws the delays of a request without faults.
    fn without_fault(plan: &Plan, rng: &mut Rng, faults_ended: bool) -> Self {
        // A network without faults must be faster than the clients' timeouts.
        let most =
            if faults_ended { plan.max_latency.min(plan.attempt * 100) } else { plan.max_latency };
        let latency = |rng: &mut Rng| 50 + rng.u64(0..most);
        let (arrives_at, reply_delay) = (Some(latency(rng)), Some(latency(rng)));
        let (not_sent, throttled, breaks_at, wrong_reply) = (false, false, None, None);
        Self {
            not_sent,
            breaks_at,
            arrives_at,
            copies: Vec::new(),
            reply_delay,
            throttled,
            wrong_reply,
        }
    }

    /// Draws the fate of one message from a seed of its own, so that it does not change the fate of
    /// other messages.
    pub(crate) fn draw(plan: &Plan, seed: u64, faults_ended: bool) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut fate = Self::without_fault(plan, &mut rng, faults_ended);
        if faults_ended {
            return fate;
        }
        for fault in plan.faults.iter() {
            // Draws both numbers even if the fault does not occur, so that switching off one fault
            // does not change the others.
            let (chance, mut own) = (rng.u32(0..256), rng.fork());
            if chance < plan.odds {
                fate.apply(fault, plan, &mut own);
            }
        }
        fate
    }

    fn apply(&mut self, fault: Fault, plan: &Plan, rng: &mut Rng) {
        // From a few microseconds to longer than the lease, with each order of magnitude equally
        // likely.
        let span =
            |rng: &mut Rng, longest_ms: u64| rng.u64(0..longest_ms * 1_000) >> rng.u32(0..12);
        let lease = plan.lease * 5 / 4;
        match fault {
            Fault::Lost => self.arrives_at = None,
            Fault::Unanswered => self.reply_delay = None,
            Fault::Slow if rng.bool() => {
                self.arrives_at = self.arrives_at.map(|at| at + span(rng, lease));
            }
            Fault::Slow => self.reply_delay = self.reply_delay.map(|at| at + span(rng, lease)),
            Fault::Copies => {
                self.copies.extend((0..rng.u32(1..=3)).map(|_| span(rng, lease)));
            }
            Fault::LateCopies => self.copies.push(span(rng, 900_000)),
            Fault::Swapped => self.wrong_reply = Some(WrongReply::OtherReply(rng.usize(..))),
            Fault::Throttled => self.throttled = true,
            Fault::Failing => {
                self.wrong_reply =
                    Some(WrongReply::Failure([500, 502, 503, 504, 429][rng.usize(0..5)]));
            }
            Fault::Garbage => self.wrong_reply = Some(WrongReply::Garbage(rng.usize(..))),
            Fault::Cut => self.wrong_reply = Some(WrongReply::Cut(rng.usize(0..256))),
            Fault::Broken if rng.bool() => self.not_sent = true,
            Fault::Broken => self.breaks_at = Some(span(rng, lease)),
            _ => {}
        }
    }
}
