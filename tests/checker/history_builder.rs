//! Builds histories by hand, with all calls about one name. Only the order of the times matters, so
//! they are small numbers of microseconds.

use test_support::history::{
    AcquireResult, Acquisition, Claim, History, Hold, LatchCall, LatchOperation, Loss, Mode, NEVER,
    Observation, ReleaseCall, ReleaseResult, Time,
};

/// The times of a call and of its reply.
pub(crate) type Span = (Time, Time);

/// A history under construction. Each method appends one call.
#[derive(Default)]
pub(crate) struct HistoryBuilder {
    /// Tests change its assumptions directly.
    pub(crate) history: History,
}

/// The acquisition that was appended last, for facts about its hold.
pub(crate) struct AcquisitionBuilder<'a> {
    history: &'a mut History,
    number: usize,
}

impl HistoryBuilder {
    /// Creates a history of an object that has this number of permits from the beginning.
    pub(crate) fn with_permits(permits: u32) -> Self {
        let mut builder = Self::default();
        builder.history.assumptions.permits = Some((permits, 0));
        builder
    }

    /// Appends an acquisition with this result, and a lease of 100.
    pub(crate) fn acquire(
        &mut self,
        owner: u32,
        mode: Mode,
        span: Span,
        result: AcquireResult,
    ) -> AcquisitionBuilder<'_> {
        let claims = vec![Claim { name: 0, mode }];
        let (invoked, completed) = span;
        self.history.acquisitions.push(Acquisition {
            owner,
            claims,
            invoked,
            completed,
            lease: 100,
            result,
        });
        AcquisitionBuilder {
            number: self.history.acquisitions.len() - 1,
            history: &mut self.history,
        }
    }

    /// Appends a granted acquisition. At the time of the reply, the holder's clocks prove that the
    /// hold exists until `until`.
    pub(crate) fn hold_as(
        &mut self,
        owner: u32,
        mode: Mode,
        span: Span,
        token: u64,
        until: Time,
    ) -> AcquisitionBuilder<'_> {
        let observations = vec![Observation { at: span.1, until }];
        let hold = Hold { tokens: vec![Some(token)], observations, ..Hold::default() };
        self.acquire(owner, mode, span, AcquireResult::Held(hold))
    }

    /// Appends a granted exclusive acquisition, as [`hold_as`](Self::hold_as) does.
    pub(crate) fn hold_exclusively(
        &mut self,
        owner: u32,
        span: Span,
        token: u64,
        until: Time,
    ) -> AcquisitionBuilder<'_> {
        self.hold_as(owner, Mode::Exclusive, span, token, until)
    }

    /// Assumes that Redis may lose data between these times.
    pub(crate) fn lose_data(&mut self, from: Time, to: Time) {
        self.history.assumptions.losses.push(Loss { from, to });
    }

    /// Appends a call to a count-down latch.
    pub(crate) fn call_latch(&mut self, (invoked, completed): Span, operation: LatchOperation) {
        self.history.latch_calls.push(LatchCall { name: 0, invoked, completed, operation });
    }

    /// Appends a call to a count-down latch without a reply.
    pub(crate) fn call_latch_unanswered(&mut self, invoked: Time, operation: LatchOperation) {
        self.call_latch((invoked, NEVER), operation);
    }

    /// Asserts that the checker accepts the history.
    pub(crate) fn assert_accepted(&self) {
        self.history.check().unwrap_or_else(|what| panic!("{what}: {:#?}", self.history));
    }

    /// Asserts that the checker rejects the history with an error that contains `reason`.
    pub(crate) fn assert_rejected(&self, reason: &str) {
        let result = self.history.check();
        let refused = result.as_ref().is_err_and(|what| what.contains(reason));
        assert!(refused, "{result:?}, not {reason}: {:#?}", self.history);
    }
}

impl AcquisitionBuilder<'_> {
    fn hold(&mut self) -> &mut Hold {
        self.history.hold(self.number).unwrap()
    }

    fn end(mut self, (sent, completed): Span, result: ReleaseResult) -> Self {
        self.hold().end = Some(ReleaseCall { sent, completed, result });
        self
    }

    /// Records a release that found the hold and ended it.
    pub(crate) fn released(self, span: Span) -> Self {
        self.end(span, ReleaseResult::Released)
    }

    /// Records a release that did not find the hold.
    pub(crate) fn was_lost(self, span: Span) -> Self {
        self.end(span, ReleaseResult::WasLost)
    }

    /// Records a release after which other acquisitions of the owner still hold.
    pub(crate) fn released_in_part(self, span: Span) -> Self {
        self.end(span, ReleaseResult::StillHeld)
    }

    /// Records a release without a reply.
    pub(crate) fn release_unanswered(self, sent: Time) -> Self {
        self.end((sent, NEVER), ReleaseResult::NoResponse)
    }

    /// Records a release with an unknown outcome; the hold may exist until `ends_by`.
    pub(crate) fn release_unknown(self, span: Span, ends_by: Time) -> Self {
        self.end(span, ReleaseResult::Unknown { ends_by })
    }

    /// Records that the holder's clocks show at `at` a lease that lasts for `left` more.
    pub(crate) fn lease_observed(mut self, at: Time, left: Time) -> Self {
        self.hold().record_lease(at, left);
        self
    }

    /// Records Redis' reply, received at `at`, that the hold existed; the call was sent at `sent`.
    pub(crate) fn record_held(mut self, at: Time, sent: Time) -> Self {
        self.hold().record_held(at, sent);
        self
    }

    /// Records Redis' reply, received at `at`, that the hold does not exist.
    pub(crate) fn gone_at(mut self, at: Time) -> Self {
        self.hold().gone = Some(at);
        self
    }

    /// Records the hold count in the reply to the acquisition.
    pub(crate) fn with_hold_count(mut self, count: u32) -> Self {
        self.hold().count = Some(count);
        self
    }
}
