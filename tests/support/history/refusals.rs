//! Checks refusals, [`AcquireResult::Busy`]: another client's hold, or possible hold, must explain
//! each of them.

use super::{AcquireResult, Acquisition, Claim, History, Mode, Time};

impl History {
    /// I10: for each refusal another client may have held the object at some moment of the call.
    ///
    /// Not checked are refusals of several names, refusals by a majority of nodes, refusals after a
    /// loss of data, and refusals of permits that were not set up before the call.
    pub(super) fn check_refusals(&self) -> Result<(), String> {
        let assumptions = &self.assumptions;
        if assumptions.needs_majority {
            return Ok(());
        }
        for (number, acquisition) in self.acquisitions.iter().enumerate() {
            // The refusal of several names does not say which one was held.
            let ([claim], AcquireResult::Busy) =
                (acquisition.claims.as_slice(), &acquisition.result)
            else {
                continue;
            };
            let is_lost = assumptions.losses.iter().any(|loss| loss.from <= acquisition.completed);
            let is_unsure = claim.permits() > 0
                && assumptions.permits.is_none_or(|(_, since)| since >= acquisition.invoked);
            if !is_lost && !is_unsure && !self.has_holder(number, acquisition, claim) {
                return Err(format!("I10 {number} was refused without another holder"));
            }
        }
        Ok(())
    }

    /// Whether another acquisition, or an earlier try of this one, may have held at some moment of
    /// the call what `claim` conflicts with.
    fn has_holder(&self, number: usize, acquisition: &Acquisition, claim: &Claim) -> bool {
        let others = self.acquisitions.iter().enumerate().filter(|(other, _)| *other != number);
        // A long call may consist of several tries. An earlier one may have been granted with a
        // lost or late response; its hold then refuses a later try under another owner. A call
        // shorter than a quarter of the lease is assumed to have no such try.
        let itself = (acquisition.completed - acquisition.invoked > acquisition.lease / 4)
            .then_some((number, acquisition));
        // The acquisitions of this name that may hold, or wait in its queue, during the call.
        let near: Vec<&Acquisition> = others
            .chain(itself)
            .map(|(_, other)| other)
            .filter(|other| other.invoked <= acquisition.completed)
            .filter(|other| self.assumptions.queues || other.latest_end() >= acquisition.invoked)
            .filter(|other| other.claims.iter().any(|other| other.name == claim.name))
            .collect();
        // A refused acquisition counts too: an earlier try of it may have held and been undone.
        let Mode::Permits(wanted) = claim.mode else {
            let waits = self.assumptions.queues && !near.is_empty();
            let mut claims = near.iter().flat_map(|other| &other.claims);
            return waits || claims.any(|other| other.conflicts_with(claim));
        };
        let most = self.assumptions.permits.map_or(0, |(most, _)| most);
        // The number of permits that may be held rises only when an acquisition begins.
        let moments = near.iter().map(|other| other.invoked.max(acquisition.invoked));
        moments.chain([acquisition.invoked]).any(|at| wanted + permits_at(&near, at) > most)
    }
}

/// The largest number of permits that these acquisitions may have held at this time.
fn permits_at(acquisitions: &[&Acquisition], at: Time) -> u32 {
    let there = acquisitions
        .iter()
        .filter(|acquisition| acquisition.invoked <= at && acquisition.latest_end() >= at);
    there.flat_map(|acquisition| &acquisition.claims).map(Claim::permits).sum()
}
