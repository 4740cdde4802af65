//! Checks refusals: another client's hold must explain each of them.

use super::{Claim, History, Share, Take, Time, Told};

impl History {
    /// I10: for each refusal another client may have held the object at some moment of the call.
    pub(super) fn judge_refusals(&self) -> Result<(), String> {
        let ground = &self.ground;
        if ground.partial {
            return Ok(());
        }
        for (number, take) in self.takes.iter().enumerate() {
            // The refusal of several names does not say which one was held.
            let ([claim], Told::Busy) = (take.claims.as_slice(), &take.told) else { continue };
            let is_lost = ground.losses.iter().any(|loss| loss.from <= take.completed);
            let is_unsure = claim.permits() > 0
                && ground.permits.is_none_or(|(_, since)| since >= take.invoked);
            if !is_lost && !is_unsure && !self.is_in_the_way(number, take, claim) {
                return Err(format!("I10 {number} was told that somebody else has it"));
            }
        }
        Ok(())
    }

    fn is_in_the_way(&self, number: usize, take: &Take, claim: &Claim) -> bool {
        let others = self.takes.iter().enumerate().filter(|(other, _)| *other != number);
        // An earlier try of the same call may have left a hold, if its response was lost or late.
        let itself = (take.completed - take.invoked > take.lease / 4).then_some((number, take));
        let near: Vec<&Take> = others
            .chain(itself)
            .map(|(_, other)| other)
            .filter(|other| other.invoked <= take.completed)
            .filter(|other| self.ground.queues || other.over() >= take.invoked)
            .filter(|other| other.claims.iter().any(|other| other.name == claim.name))
            .collect();
        let Share::Some(wanted) = claim.share else {
            let waits = self.ground.queues && !near.is_empty();
            let mut claims = near.iter().flat_map(|other| &other.claims);
            return waits || claims.any(|other| other.clashes(claim));
        };
        let most = self.ground.permits.map_or(0, |(most, _)| most);
        // The number of held permits peaks when an acquisition has just begun.
        let moments = near.iter().map(|other| other.invoked.max(take.invoked));
        moments.chain([take.invoked]).any(|at| wanted + permits_at(&near, at) > most)
    }
}

/// How many permits may have been held.
fn permits_at(takes: &[&Take], at: Time) -> u32 {
    let there = takes.iter().filter(|take| take.invoked <= at && take.over() >= at);
    there.flat_map(|take| &take.claims).map(Claim::permits).sum()
}
