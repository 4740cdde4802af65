//! When a hold is renewed, and for how long.

use super::policy::LeasePolicy;
use crate::time::Instant;
use crate::timing::LeaseTime;

/// The renewals of a hold while it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RenewalSchedule {
    /// Whether the hold is renewed, or only watched until its lease ends.
    pub(super) renews: bool,
    /// The lease of each renewal.
    pub(super) lease: LeaseTime,
    /// The lease of the acquisition, for which a renewal on demand without a time extends the hold.
    pub(super) whole: LeaseTime,
    /// When the renewals end; `None` for not before the release.
    pub(super) ends_at: Option<Instant>,
    /// The longest lease of one request.
    lease_max: Option<LeaseTime>,
}

impl RenewalSchedule {
    /// Creates the schedule of a hold that was requested at `sent_at`.
    pub(super) fn new(policy: LeasePolicy, sent_at: Instant) -> Self {
        let LeasePolicy { lease, whole, renews, lease_max } = policy;
        let ends_at = (lease < whole).then(|| sent_at + whole.get());
        Self { renews, lease, whole, ends_at, lease_max }
    }

    /// Limits the lease of a renewal on demand to the longest of one request.
    pub(super) fn limited(&self, lease: LeaseTime) -> LeaseTime {
        self.lease_max.map_or(lease, |max| lease.min(max))
    }

    /// Extends the schedule to at least `lease` after `now`. Does nothing if one request extends
    /// the hold so far, or if the renewals have no end.
    pub(super) fn extend(&mut self, lease: LeaseTime, now: Instant) {
        let limited = self.limited(lease);
        let is_endless = self.renews && self.ends_at.is_none();
        if limited == lease || is_endless {
            return;
        }
        let end = now + lease.get();
        let is_later = self.ends_at.is_some_and(|until| until.is_later(end));
        if !is_later {
            (self.renews, self.lease, self.ends_at) = (true, limited, Some(end));
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    const SENT: Instant = Instant::from_millis(1_000, 50_000);

    fn secs(seconds: u64) -> LeaseTime {
        LeaseTime::new(Duration::from_secs(seconds)).unwrap()
    }

    /// The schedule of a hold with this lease, of a kind whose requests have at most 30 s.
    fn schedule(whole: u64, renews: bool) -> RenewalSchedule {
        let (whole, max) = (secs(whole), secs(30));
        let policy = LeasePolicy { lease: whole.min(max), whole, renews, lease_max: Some(max) };
        RenewalSchedule::new(policy, SENT)
    }

    #[test]
    fn a_renewal_on_demand_beyond_one_request_is_renewed_to_its_end() {
        let mut fixed = schedule(10, false);
        fixed.extend(secs(600), SENT + Duration::from_secs(5));
        assert_eq!((fixed.renews, fixed.lease), (true, secs(30)));
        assert_eq!(fixed.ends_at, Some(SENT + Duration::from_secs(605)));
        let longer = fixed;
        fixed.extend(secs(100), SENT + Duration::from_secs(6));
        assert_eq!(fixed, longer, "an earlier end shortens nothing");
        fixed.extend(secs(600), SENT + Duration::from_secs(6));
        assert_eq!(fixed.ends_at, Some(SENT + Duration::from_secs(606)));
    }

    #[test]
    fn a_renewal_on_demand_within_one_request_changes_no_schedule() {
        for before in [schedule(10, false), schedule(600, true)] {
            let mut after = before;
            after.extend(secs(30), SENT);
            assert_eq!(after, before);
        }
    }

    #[test]
    fn renewals_without_an_end_get_none_on_demand() {
        let mut after = schedule(30, true);
        after.extend(secs(600), SENT);
        assert_eq!(after, schedule(30, true));
    }

    #[test]
    fn a_kind_without_a_limit_requests_the_whole_lease_at_once() {
        let lease = secs(10);
        let policy = LeasePolicy { lease, whole: lease, renews: false, lease_max: None };
        let before = RenewalSchedule::new(policy, SENT);
        let mut after = before;
        after.extend(secs(600), SENT);
        assert_eq!((after, before.limited(secs(600))), (before, secs(600)));
    }
}
