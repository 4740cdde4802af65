//! The expectations of a test. A failure prints the machine's timeout and the calls so far.

use std::fmt::{self, Debug, Display, Formatter};
use std::ops::RangeBounds;

use edgelatch_proto::machine::{Machine, TimeoutReason};

use super::conversation::Conversation;

impl<M: Machine> Conversation<M> {
    /// Expects exactly one call since the last expectation, of this script, and that the machine
    /// waits for its reply.
    #[track_caller]
    pub(crate) fn expect_call(mut self, script: &str) -> Self {
        let new: Vec<_> = self.calls[self.expected..].iter().map(|call| call.name()).collect();
        assert_eq!(new, [script], "the machine {self}");
        // A renewal waits for its lease's end instead if the reply is due later.
        let waits_for_reply = [Some(TimeoutReason::ReplyDue), Some(TimeoutReason::LeaseEnds)];
        let reason = self.timeout_reason();
        assert!(waits_for_reply.contains(&reason), "it awaits no reply: the machine {self}");
        self.expected = self.calls.len();
        self
    }

    /// Expects exactly these calls since the last expectation, in the order of their gateways.
    #[track_caller]
    pub(crate) fn expect_calls(mut self, calls: &[(usize, &str)]) -> Self {
        let new = self.calls[self.expected..].iter().map(|call| (call.gateway, call.name()));
        let mut new: Vec<_> = new.collect();
        new.sort_unstable();
        assert_eq!(new, calls, "the machine {self}");
        self.expected = self.calls.len();
        self
    }

    /// Expects no call since the last expectation, and that the machine waits for this timeout.
    #[track_caller]
    pub(crate) fn expect_timeout(self, reason: TimeoutReason) -> Self {
        self.expect_no_calls();
        assert_eq!(self.timeout_reason(), Some(reason), "the machine {self}");
        self
    }

    /// Expects no call since the last expectation, and this timeout in exactly `ms`.
    #[track_caller]
    pub(crate) fn expect_timeout_in(self, reason: TimeoutReason, ms: u64) -> Self {
        self.expect_timeout_within(reason, ms..=ms)
    }

    /// Expects no call since the last expectation, and this timeout within this range of
    /// milliseconds.
    #[track_caller]
    pub(crate) fn expect_timeout_within(
        self,
        reason: TimeoutReason,
        range: impl RangeBounds<u64> + Debug,
    ) -> Self {
        let it = self.expect_timeout(reason);
        assert!(range.contains(&it.timeout_ms()), "not within {range:?}: the machine {it}");
        it
    }

    /// Expects that the machine's latest subscription request is for this channel at this gateway,
    /// whenever it was made.
    #[track_caller]
    pub(crate) fn expect_subscription_request(self, gateway: usize, channel: &str) -> Self {
        let (at, topic) =
            self.subscription.as_ref().expect("the machine has requested a subscription");
        assert_eq!((*at, topic.channel()), (gateway, channel), "the machine {self}");
        self
    }

    /// Expects that the machine has never requested a subscription.
    #[track_caller]
    pub(crate) fn expect_no_subscription_request(self) -> Self {
        assert!(self.subscription.is_none(), "the machine {self}");
        self
    }

    /// Expects no call since the last expectation, and that the machine is done; returns its
    /// outcome.
    #[track_caller]
    pub(crate) fn expect_done(&self) -> M::Outcome
    where
        M::Outcome: Clone,
    {
        self.expect_no_calls();
        self.expect_outcome()
    }

    /// Expects that the machine is done, even after calls that no expectation covers; returns its
    /// outcome.
    #[track_caller]
    pub(crate) fn expect_outcome(&self) -> M::Outcome
    where
        M::Outcome: Clone,
    {
        self.outcome().cloned().unwrap_or_else(|| panic!("the machine {self}"))
    }

    #[track_caller]
    fn expect_no_calls(&self) {
        assert!(!self.has_new_calls(), "unexpected calls: the machine {self}");
    }
}

/// Prints the machine's timeout, its latest subscription request, and its calls: those that no
/// expectation has covered come last.
impl<M: Machine> Display for Conversation<M> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.timeout_reason() {
            Some(reason) => write!(f, "waits for {reason:?} in {} ms", self.timeout_ms())?,
            None if self.is_done() => write!(f, "is done")?,
            None => write!(f, "has not waited yet")?,
        }
        if let Some((gateway, topic)) = &self.subscription {
            write!(f, ", has requested {} of gateway {gateway}", topic.channel())?;
        }
        let calls = |range: &[super::reply::Call]| -> Vec<String> {
            range.iter().map(|call| format!("{}@{}", call.name(), call.gateway)).collect()
        };
        let (expected, new) = self.calls.split_at(self.expected);
        let (expected, new) = (calls(expected).join(" "), calls(new).join(" "));
        write!(
            f,
            "; elapsed: {} ms; expected calls: [{expected}]; new calls: [{new}]",
            self.elapsed_ms()
        )
    }
}
