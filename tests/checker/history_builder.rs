//! Builds histories by hand. A span reaches from a call to its reply.

use test_support::history::{
    Act, Claim, Count, End, History, Hold, Look, Loss, NEVER, Share, Take, Time, Told, Verdict,
};

pub(crate) type Span = (Time, Time);

/// A history.
#[derive(Default)]
pub(crate) struct Past {
    pub(crate) history: History,
}

/// An acquisition of the history.
pub(crate) struct Taken<'a> {
    history: &'a mut History,
    number: usize,
}

impl Past {
    /// A history with one name and this number of permits.
    pub(crate) fn with_permits(permits: u32) -> Self {
        let mut past = Self::default();
        past.history.ground.permits = Some((permits, 0));
        past
    }

    /// Records an acquisition with this result.
    pub(crate) fn asks(&mut self, owner: u32, share: Share, span: Span, told: Told) -> Taken<'_> {
        let claims = vec![Claim { name: 0, share }];
        let (invoked, completed) = span;
        self.history.takes.push(Take { owner, claims, invoked, completed, lease: 100, told });
        Taken { number: self.history.takes.len() - 1, history: &mut self.history }
    }

    /// Records a hold with this token; the holder may rely on it until `until`.
    pub(crate) fn holds(
        &mut self,
        owner: u32,
        share: Share,
        span: Span,
        token: u64,
        until: Time,
    ) -> Taken<'_> {
        let looks = vec![Look { at: span.1, until }];
        let hold = Hold { tokens: vec![Some(token)], looks, ..Hold::default() };
        self.asks(owner, share, span, Told::Held(hold))
    }

    /// Records an exclusive hold.
    pub(crate) fn has(&mut self, owner: u32, span: Span, token: u64, until: Time) -> Taken<'_> {
        self.holds(owner, Share::Alone, span, token, until)
    }

    /// Redis loses data in this span.
    pub(crate) fn loses(&mut self, from: Time, to: Time) {
        self.history.ground.losses.push(Loss { from, to });
    }

    pub(crate) fn counts(&mut self, (invoked, completed): Span, act: Act) {
        self.history.counts.push(Count { name: 0, invoked, completed, act });
    }

    /// Records a call without a reply.
    pub(crate) fn perhaps_counts(&mut self, invoked: Time, act: Act) {
        self.counts((invoked, NEVER), act);
    }

    /// The judge accepts the history.
    pub(crate) fn passes(&self) {
        self.history.judge().unwrap_or_else(|what| panic!("{what}: {:#?}", self.history));
    }

    /// The judge rejects the history, for this reason.
    pub(crate) fn fails(&self, reason: &str) {
        let verdict = self.history.judge();
        let refused = verdict.as_ref().is_err_and(|what| what.contains(reason));
        assert!(refused, "{verdict:?}, not {reason}: {:#?}", self.history);
    }
}

impl Taken<'_> {
    fn hold(&mut self) -> &mut Hold {
        self.history.hold(self.number).unwrap()
    }

    fn ends(mut self, (asked, told): Span, verdict: Verdict) -> Self {
        self.hold().end = Some(End { asked, told, verdict });
        self
    }

    pub(crate) fn released(self, span: Span) -> Self {
        self.ends(span, Verdict::Released)
    }

    pub(crate) fn was_lost(self, span: Span) -> Self {
        self.ends(span, Verdict::WasLost)
    }

    /// Records a release after which other acquisitions of the owner still hold.
    pub(crate) fn left(self, span: Span) -> Self {
        self.ends(span, Verdict::Left)
    }

    /// Records a release without a reply.
    pub(crate) fn perhaps_ends(self, asked: Time) -> Self {
        self.ends((asked, NEVER), Verdict::Nothing)
    }

    /// Records a release with an unknown outcome; the hold is over at `over`.
    pub(crate) fn perhaps_released(self, span: Span, over: Time) -> Self {
        self.ends(span, Verdict::Unknown { over })
    }

    /// Records that the holder read its lease.
    pub(crate) fn seen(mut self, at: Time, left: Time) -> Self {
        self.hold().sees(at, left);
        self
    }

    /// Records Redis' reply that the hold existed.
    pub(crate) fn stood(mut self, at: Time, asked: Time) -> Self {
        self.hold().stood(at, asked);
        self
    }

    pub(crate) fn gone(mut self, at: Time) -> Self {
        self.hold().gone = Some(at);
        self
    }

    pub(crate) fn one_of(mut self, count: u32) -> Self {
        self.hold().count = Some(count);
        self
    }
}
