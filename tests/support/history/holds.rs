//! Checks holds: which ones coexisted, in which order they were granted, and how they ended.
//!
//! Tokens are the order of the grants, so nothing has to be searched for. Each grant is put at the
//! earliest moment that its call, the grant before it and the excluding holds allow. If that is
//! later than its response, no other choice of moments is possible either.

use super::{Claim, End, Ground, History, Hold, NEVER, Share, Take, Time, Told, Verdict};

/// The part of a hold that concerns one name.
struct Part<'a> {
    number: usize,
    take: &'a Take,
    claim: Claim,
    token: Option<u64>,
    /// When Redis certainly had it.
    certain: Option<(Time, Time)>,
}

impl History {
    pub(super) fn judge_holds(&self) -> Result<(), String> {
        for (number, take) in self.takes.iter().enumerate() {
            if let Told::Held(hold) = &take.told {
                self.judge_end(number, take, hold)?;
            }
        }
        let names: std::collections::BTreeSet<u8> =
            self.takes.iter().flat_map(|take| &take.claims).map(|claim| claim.name).collect();
        for name in names {
            let parts = self.parts(name);
            exclude(&parts, &self.ground)?;
            share(&parts)?;
            self.rise(parts)?;
        }
        Ok(())
    }

    fn parts(&self, name: u8) -> Vec<Part<'_>> {
        let mut parts = Vec::new();
        for (number, take) in self.takes.iter().enumerate() {
            let Told::Held(hold) = &take.told else { continue };
            let certain = take.certain(&self.ground);
            for (place, claim) in take.claims.iter().enumerate().filter(|(_, c)| c.name == name) {
                let token = hold.tokens.get(place).copied().flatten();
                parts.push(Part { number, take, claim: *claim, token, certain });
            }
        }
        parts.sort_by_key(|part| part.take.completed);
        parts
    }

    /// I3 and I4: the reported end of a hold is possible.
    fn judge_end(&self, number: usize, take: &Take, hold: &Hold) -> Result<(), String> {
        let may_be_lost = |at: Time| {
            self.ground.losses.iter().any(|loss| loss.from <= at && loss.to >= take.invoked)
        };
        if let Some(gone) = hold.gone.filter(|gone| *gone < hold.good(*gone) && !may_be_lost(*gone))
        {
            return Err(format!(
                "I3 {number} is gone at {gone}, and was good until {}",
                hold.until()
            ));
        }
        let Some(End { asked, told, verdict }) = hold.end else { return Ok(()) };
        let was_valid = hold.looks.iter().any(|look| look.at == asked) && hold.gone.is_none();
        if verdict == Verdict::WasLost && was_valid && told < hold.until() && !may_be_lost(told) {
            return Err(format!("I4 {number} was lost, and was good until {}", hold.until()));
        }
        let lingers = |gone: Time| self.ground.lingers && gone >= hold.until();
        let was_gone =
            hold.gone.is_some_and(|gone| gone < asked && !may_be_lost(gone) && !lingers(gone));
        if verdict == Verdict::Released && was_gone {
            return Err(format!("I4 {number} is released after it was gone"));
        }
        Ok(())
    }

    /// I2: tokens rise from grant to grant, and no grant overlaps a hold that excludes it.
    fn rise(&self, parts: Vec<Part<'_>>) -> Result<(), String> {
        let last = self.ground.tokens_until.unwrap_or(NEVER);
        let mut parts: Vec<_> = parts
            .into_iter()
            .filter(|part| part.take.completed < last)
            .filter_map(|part| Some((part.token?, part)))
            .collect();
        parts.sort_by_key(|(token, part)| (*token, part.take.invoked));
        let most = self.ground.permits.map_or(u32::MAX, |(permits, _)| permits);
        // The holds that exist, each with the time of its end.
        let mut there: Vec<(Time, &Part<'_>)> = Vec::new();
        let (mut at, mut newest) = (0, None);
        for (token, part) in &parts {
            let Take { owner, invoked, completed, .. } = *part.take;
            if newest.replace(*token) == Some(*token) {
                joins(*token, part, &parts)?;
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
            while let Some((end, _)) = there.first() {
                let others = || there.iter().filter(|(_, other)| other.take.owner != owner);
                let permits: u32 = others().map(|(_, other)| other.claim.permits()).sum();
                let clash = others().any(|(_, other)| other.claim.clashes(&part.claim));
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

/// Checks a token that occurs again: it must be the same owner's, or that of readers without a
/// writer between them.
fn joins(token: u64, part: &Part<'_>, all: &[(u64, Part<'_>)]) -> Result<(), String> {
    let mut others = all.iter().filter(|(other, o)| *other == token && o.number != part.number);
    if others.all(|(_, other)| other.take.owner == part.take.owner) {
        return Ok(());
    }
    let mut alike = all.iter().filter(|(other, _)| *other == token);
    if alike.all(|(_, other)| other.claim.share == Share::Beside) {
        return Ok(());
    }
    Err(format!("I2 token {token} of {} was handed out before", part.number))
}

/// I1: no two holds that certainly exist exclude each other.
fn exclude(parts: &[Part<'_>], ground: &Ground) -> Result<(), String> {
    let mut there: Vec<(Time, &Part<'_>)> = Vec::new();
    for part in parts {
        let Some((begin, end)) = part.certain else { continue };
        there.retain(|(end, _)| *end > begin);
        let mut others = there.iter().filter(|(_, other)| other.take.owner != part.take.owner);
        if let Some((_, other)) = others.find(|(_, other)| other.claim.clashes(&part.claim)) {
            return Err(format!("I1 {} and {} both hold at {begin}", other.number, part.number));
        }
        there.push((end, part));
        let permits: u32 = there.iter().map(|(_, part)| part.claim.permits()).sum();
        if ground.permits.is_some_and(|(most, _)| permits > most) {
            return Err(format!("I1 {permits} permits are held at {begin}"));
        }
    }
    Ok(())
}

/// I5: overlapping holds of one owner are one grant, with a hold count.
fn share(parts: &[Part<'_>]) -> Result<(), String> {
    for (place, part) in parts.iter().enumerate() {
        let Told::Held(hold) = &part.take.told else { continue };
        let own = || {
            parts.iter().enumerate().filter(move |(other, own)| {
                *other != place && own.take.owner == part.take.owner && own.claim == part.claim
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
        let asked = |take: &Take| match &take.told {
            Told::Held(Hold { end: Some(end), .. }) => (end.asked, end.told),
            _ => (NEVER, NEVER),
        };
        let Take { invoked, completed, .. } = *part.take;
        let same = || own().map(|(_, other)| other).filter(|other| other.token == part.token);
        let sure = |take: &Take| take.completed <= invoked && asked(take).0 >= completed;
        let perhaps = |take: &Take| take.invoked <= completed && asked(take).1 >= invoked;
        let least = 1 + same().filter(|other| sure(other.take)).count() as u32;
        let most = 1 + same().filter(|other| perhaps(other.take)).count() as u32;
        if !(least..=most).contains(&count) {
            return Err(format!("I5 {} is one of {count}, not {least} to {most}", part.number));
        }
    }
    Ok(())
}
