//! Checks refusals: another client's hold must explain each of them.

use super::{AcquireResult, Acquisition, Claim, History, Mode, Time};

impl History {
    /// I10: for each refusal another client may have held the object at some moment of the call.
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

    fn has_holder(&self, number: usize, acquisition: &Acquisition, claim: &Claim) -> bool {
        let others = self.acquisitions.iter().enumerate().filter(|(other, _)| *other != number);
        // An earlier try of the same call may have left a hold, if its response was lost or late.
        let itself = (acquisition.completed - acquisition.invoked > acquisition.lease / 4)
            .then_some((number, acquisition));
        let near: Vec<&Acquisition> = others
            .chain(itself)
            .map(|(_, other)| other)
            .filter(|other| other.invoked <= acquisition.completed)
            .filter(|other| self.assumptions.queues || other.latest_end() >= acquisition.invoked)
            .filter(|other| other.claims.iter().any(|other| other.name == claim.name))
            .collect();
        let Mode::Permits(wanted) = claim.mode else {
            let waits = self.assumptions.queues && !near.is_empty();
            let mut claims = near.iter().flat_map(|other| &other.claims);
            return waits || claims.any(|other| other.conflicts_with(claim));
        };
        let most = self.assumptions.permits.map_or(0, |(most, _)| most);
        // The number of held permits peaks when an acquisition has just begun.
        let moments = near.iter().map(|other| other.invoked.max(acquisition.invoked));
        moments.chain([acquisition.invoked]).any(|at| wanted + permits_at(&near, at) > most)
    }
}

/// How many permits may have been held.
fn permits_at(acquisitions: &[&Acquisition], at: Time) -> u32 {
    let there = acquisitions
        .iter()
        .filter(|acquisition| acquisition.invoked <= at && acquisition.latest_end() >= at);
    there.flat_map(|acquisition| &acquisition.claims).map(Claim::permits).sum()
}
