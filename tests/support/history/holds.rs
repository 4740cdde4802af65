//! Checks holds: which ones coexisted, in which order they were granted, and how they ended.
//!
//! Three checks run for each name. `check_exclusion` compares certain periods, also of holds
//! without a known token. `check_hold_counts` compares the acquisitions of one owner.
//! `check_tokens` decides whether some moments of the grants explain all holds. The tokens give the
//! order of the grants, so it needs no search: it places each grant at the earliest moment that its
//! call, the grant before it and the excluding holds allow. To place a grant earlier never delays a
//! later one, so if its earliest moment is after its response, no other choice is possible either.

use super::{
    AcquireResult, Acquisition, Assumptions, Claim, History, Hold, Mode, NEVER, ReleaseCall,
    ReleaseResult, Time,
};

/// The part of a hold that concerns one name.
struct Part<'a> {
    /// The index of the acquisition.
    number: usize,
    acquisition: &'a Acquisition,
    claim: Claim,
    token: Option<u64>,
    /// The certain period; `None` if there is none.
    certain: Option<(Time, Time)>,
}

impl History {
    /// I1 to I5, for each name on its own.
    pub(super) fn check_holds(&self) -> Result<(), String> {
        for (number, acquisition) in self.acquisitions.iter().enumerate() {
            if let AcquireResult::Held(hold) = &acquisition.result {
                self.check_end(number, acquisition, hold)?;
            }
        }
        let names: std::collections::BTreeSet<u8> = self
            .acquisitions
            .iter()
            .flat_map(|acquisition| &acquisition.claims)
            .map(|claim| claim.name)
            .collect();
        for name in names {
            let parts = self.parts(name);
            check_exclusion(&parts, &self.assumptions)?;
            check_hold_counts(&parts)?;
            self.check_tokens(parts)?;
        }
        Ok(())
    }

    /// The holds of one name, in the order of the responses that granted them.
    fn parts(&self, name: u8) -> Vec<Part<'_>> {
        let mut parts = Vec::new();
        for (number, acquisition) in self.acquisitions.iter().enumerate() {
            let AcquireResult::Held(hold) = &acquisition.result else { continue };
            let certain = acquisition.certain_period(&self.assumptions);
            for (place, claim) in
                acquisition.claims.iter().enumerate().filter(|(_, c)| c.name == name)
            {
                let token = hold.tokens.get(place).copied().flatten();
                parts.push(Part { number, acquisition, claim: *claim, token, certain });
            }
        }
        parts.sort_by_key(|part| part.acquisition.completed);
        parts
    }

    /// I3 and I4: the reported end of a hold is possible. Unless Redis may have lost data, three
    /// reports are impossible: that the hold is gone before its proven time is over (I3), that a
    /// release found it lost before that time (I4), and that a release succeeded after the hold was
    /// gone (I4).
    fn check_end(
        &self,
        number: usize,
        acquisition: &Acquisition,
        hold: &Hold,
    ) -> Result<(), String> {
        // Whether Redis may have lost the hold by this time.
        let may_be_lost = |at: Time| {
            self.assumptions
                .losses
                .iter()
                .any(|loss| loss.from <= at && loss.to >= acquisition.invoked)
        };
        if let Some(gone) =
            hold.gone.filter(|gone| *gone < hold.valid_until(*gone) && !may_be_lost(*gone))
        {
            return Err(format!(
                "I3 {number} is gone at {gone}, and was good until {}",
                hold.until()
            ));
        }
        let Some(ReleaseCall { sent, completed, result }) = hold.end else { return Ok(()) };
        // The recorders observe the lease when the release is sent. Without that observation the
        // lease was over by the holder's clocks, and a clock may have jumped ahead. Then the
        // client may report the lease as lost although earlier observations prove more.
        let was_valid = hold.observations.iter().any(|look| look.at == sent) && hold.gone.is_none();
        if result == ReleaseResult::WasLost
            && was_valid
            && completed < hold.until()
            && !may_be_lost(completed)
        {
            return Err(format!("I4 {number} was lost, and was good until {}", hold.until()));
        }
        // Whether Redis may still release a hold whose lease was over when it was reported as gone.
        let releasable_after_expiry =
            |gone: Time| self.assumptions.releasable_after_expiry && gone >= hold.until();
        // A clock of Redis that is set back in between, or a failover, may bring the hold back.
        let was_gone = hold.gone.is_some_and(|gone| {
            gone < sent && !may_be_lost(sent) && !releasable_after_expiry(gone)
        });
        if result == ReleaseResult::Released && was_gone {
            return Err(format!("I4 {number} is released after it was gone"));
        }
        Ok(())
    }

    /// I2, and I1 by the order of the tokens: tokens rise from grant to grant, and each grant has a
    /// moment, between its call and its response, at which no hold excludes it. A hold begins at
    /// that moment here, earlier than its certain period, so this finds overlaps that
    /// [`check_exclusion`] does not.
    fn check_tokens(&self, parts: Vec<Part<'_>>) -> Result<(), String> {
        let last = self.assumptions.tokens_until.unwrap_or(NEVER);
        let mut parts: Vec<_> = parts
            .into_iter()
            .filter(|part| part.acquisition.completed < last)
            .filter_map(|part| Some((part.token?, part)))
            .collect();
        parts.sort_by_key(|(token, part)| (*token, part.acquisition.invoked));
        let most = self.assumptions.permits.map_or(u32::MAX, |(permits, _)| permits);
        // The holds that exist at `at`, each with the earliest time at which it may have ended.
        let mut there: Vec<(Time, &Part<'_>)> = Vec::new();
        // The earliest moment of the current grant, and its token.
        let (mut at, mut newest) = (0, None);
        for (token, part) in &parts {
            let Acquisition { owner, invoked, completed, .. } = *part.acquisition;
            if newest.replace(*token) == Some(*token) {
                check_shared_token(*token, part, &parts)?;
            }
            at = at.max(invoked);
            if at > completed {
                return Err(format!(
                    "I2 token {token} of {} is older than one before",
                    part.number
                ));
            }
            there.retain(|(end, _)| *end > at);
            there.sort_by_key(|(end, _)| *end);
            // While a hold excludes this grant, the grant waits for the hold that ends next.
            while let Some((end, _)) = there.first() {
                let others = || there.iter().filter(|(_, other)| other.acquisition.owner != owner);
                let permits: u32 = others().map(|(_, other)| other.claim.permits()).sum();
                let clash = others().any(|(_, other)| other.claim.conflicts_with(&part.claim));
                if !clash && permits + part.claim.permits() <= most {
                    break;
                }
                at = at.max(*end);
                there.remove(0);
            }
            if at > completed {
                return Err(format!("I1 {} was granted with no room for it", part.number));
            }
            there.push((part.certain.map_or(at, |(_, end)| end.max(at)), part));
        }
        Ok(())
    }
}

/// I2: a token that several acquisitions have belongs to one owner, whose hold they share, or to
/// readers without a writer between them.
fn check_shared_token(token: u64, part: &Part<'_>, all: &[(u64, Part<'_>)]) -> Result<(), String> {
    let mut others = all.iter().filter(|(other, o)| *other == token && o.number != part.number);
    if others.all(|(_, other)| other.acquisition.owner == part.acquisition.owner) {
        return Ok(());
    }
    let mut alike = all.iter().filter(|(other, _)| *other == token);
    if alike.all(|(_, other)| other.claim.mode == Mode::Shared) {
        return Ok(());
    }
    Err(format!("I2 token {token} of {} was handed out before", part.number))
}

/// I1: no two certain periods of holds that exclude each other overlap, and at no time do certain
/// holds have more permits than there are.
fn check_exclusion(parts: &[Part<'_>], assumptions: &Assumptions) -> Result<(), String> {
    // The holds that certainly exist at `begin`, each with the end of its certain period.
    let mut there: Vec<(Time, &Part<'_>)> = Vec::new();
    for part in parts {
        let Some((begin, end)) = part.certain else { continue };
        there.retain(|(end, _)| *end > begin);
        let mut others =
            there.iter().filter(|(_, other)| other.acquisition.owner != part.acquisition.owner);
        if let Some((_, other)) = others.find(|(_, other)| other.claim.conflicts_with(&part.claim))
        {
            return Err(format!("I1 {} and {} both hold at {begin}", other.number, part.number));
        }
        there.push((end, part));
        let permits: u32 = there.iter().map(|(_, part)| part.claim.permits()).sum();
        if assumptions.permits.is_some_and(|(most, _)| permits > most) {
            return Err(format!("I1 {permits} permits are held at {begin}"));
        }
    }
    Ok(())
}

/// I5: acquisitions of one owner that overlap are one grant, so they have one token, and the hold
/// count in each response is the number of acquisitions that the owner had then. Where calls
/// overlap, Redis may have executed them in either order, so the count has a range.
fn check_hold_counts(parts: &[Part<'_>]) -> Result<(), String> {
    for (place, part) in parts.iter().enumerate() {
        let AcquireResult::Held(hold) = &part.acquisition.result else { continue };
        let own = || {
            parts.iter().enumerate().filter(move |(other, own)| {
                *other != place
                    && own.acquisition.owner == part.acquisition.owner
                    && own.claim == part.claim
            })
        };
        for (_, other) in own() {
            let both = part.certain.zip(other.certain);
            let together = both.is_some_and(|(one, two)| one.0 < two.1 && two.0 < one.1);
            if together && part.token != other.token {
                return Err(format!("I5 {} and {} are two grants", other.number, part.number));
            }
        }
        let Some(count) = hold.count else { continue };
        // When the release was sent and when its response came; never without a release.
        let release_span = |acquisition: &Acquisition| match &acquisition.result {
            AcquireResult::Held(Hold { end: Some(end), .. }) => (end.sent, end.completed),
            _ => (NEVER, NEVER),
        };
        let Acquisition { invoked, completed, .. } = *part.acquisition;
        let same = || own().map(|(_, other)| other).filter(|other| other.token == part.token);
        // Granted before this call began, and not released before its response: counted.
        let sure = |acquisition: &Acquisition| {
            acquisition.completed <= invoked && release_span(acquisition).0 >= completed
        };
        // Begun before this response, and perhaps not released when this call began: may count.
        let perhaps = |acquisition: &Acquisition| {
            acquisition.invoked <= completed && release_span(acquisition).1 >= invoked
        };
        let least = 1 + same().filter(|other| sure(other.acquisition)).count() as u32;
        let most = 1 + same().filter(|other| perhaps(other.acquisition)).count() as u32;
        if !(least..=most).contains(&count) {
            return Err(format!("I5 {} is one of {count}, not {least} to {most}", part.number));
        }
    }
    Ok(())
}
