//! Parses KEYS and ARGV to the names and amounts of a call.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::slice::Iter;
use core::time::Duration;

use super::layout::{Arg, Key, Layout, NAMES_MAX};
use super::tables::{KEEP_MAX, guard_args, layout};
use super::{ObjectKind, Right, Touched};
use crate::name::{ClientId, FencingToken, GuardKey, LockName, OwnerId, PermitId, RequestId};
use crate::protocol::calls::GroupCalls;
use crate::protocol::key;
use crate::protocol::script::{Script, scripts};
use crate::timing::{LeaseTime, PeerSkew};

/// The largest number of permits in one call.
const IDS_MAX: usize = 1000;
/// The largest number of keys in one call: a latch, and two for each member of a multi-lock.
const KEYS_MAX: usize = 1 + 2 * NAMES_MAX;
/// The largest number of arguments in one call: those before the ids of permits, and the ids.
const ARGS_MAX: usize = 16 + IDS_MAX;
/// The longest life in milliseconds: ten years.
const LIFE_MAX: u64 = 315_360_000_000;
/// The longest life in milliseconds that does not count as lasting: one day.
const LASTING: u64 = 24 * 60 * 60 * 1000;
/// The length of a value's field: two words of 64 bits in base64, without padding.
const FIELD_LENGTH: usize = 22;

/// Returns the names that a call of this script with these keys and arguments touches, and the
/// rights that it needs; `None` unless this library could have made the call.
///
/// The work is linear in the size of the call, and calls with too many keys or arguments are
/// refused before any of them is read. A caller's own script (`eval`) is always refused: its
/// effects cannot be known.
pub fn touched(script: &Script, keys: &[&str], args: &[&str]) -> Option<Touched> {
    if keys.len() > KEYS_MAX || args.len() > ARGS_MAX {
        return None;
    }
    let [request, not_after, keep, "P" | "S" | "B", own @ ..] = args else { return None };
    let request = RequestId::parse(request)?;
    let not_after = if not_after.is_empty() { None } else { Some(number(not_after, u64::MAX)?) };
    number(keep, KEEP_MAX)?;
    let word = |place| own.get(place).copied().unwrap_or_default();
    if let Some(args) = guard_args(script.name, word(4)) {
        let mut parsed = Parsed::default();
        parsed.parse_args(args, args.len(), own, &[])?;
        let key = guarded(keys, script.name == scripts::GUARD_WRITE.name)?;
        let (kind, right) = (Some(ObjectKind::Guard), Some(Right::Guard));
        return Some(parsed.into_touched(vec![key], kind, right, not_after));
    }
    let layout = layout(script.name, word(1)).filter(|layout| layout.allows_keys(keys.len()))?;
    // Each reading that fits is one that the call may mean, so a token must allow all of them.
    let readings = named(&layout, keys).into_iter().filter_map(|names| {
        let mut parsed = Parsed { lasts: layout.lasting, ..Parsed::default() };
        parsed.parse_args(layout.args, layout.min_args, own, &names)?;
        parsed.check_keys(&layout, keys, &names, request)?;
        Some((names, parsed))
    });
    let (names, parsed): (Vec<_>, Vec<_>) = readings.unzip();
    let parsed = parsed.into_iter().next()?;
    let subjects = match <[_; 1]>::try_from(names) {
        Ok([names]) => names.iter().map(|name| vec![text(name)]).collect(),
        Err(names) => vec![names.iter().flatten().map(text).collect()],
    };
    Some(parsed.into_touched(subjects, layout.kind, layout.right, not_after))
}

fn text(name: &LockName) -> String {
    name.as_str().into()
}

/// The names that a call may be about: one list of names, or several if the call does not contain
/// the first key of its object.
fn named(layout: &Layout, keys: &[&str]) -> Vec<Vec<LockName>> {
    let parse = |name: &&str| LockName::parse(name).ok();
    if !layout.each.is_empty() {
        let groups = keys.get(layout.keys.len()..).unwrap_or_default().chunks(layout.each.len());
        let names: Option<Vec<_>> = groups.map(|group| group.first().and_then(parse)).collect();
        return names.filter(|names| are_distinct(names)).into_iter().collect();
    }
    let mut named = Vec::new();
    if let Some(place) = layout.keys.iter().position(|key| matches!(key, Key::Name)) {
        named.extend(keys.get(place).and_then(parse));
    } else {
        let names = keys.iter().flat_map(|key| {
            let (record, holds) = (key::record_names(key), key::holds_names(key));
            [record, holds, key::held_permits_names(key), key::fair_rw_lock_names(key)].concat()
        });
        for name in names {
            if !named.contains(&name) {
                named.push(name);
            }
        }
    }
    named.into_iter().map(|name| vec![name]).collect()
}

fn are_distinct(names: &[LockName]) -> bool {
    names.iter().collect::<BTreeSet<_>>().len() == names.len()
}

/// The names of a guarded key whose fence is the first key, followed by the key itself if it is
/// written.
fn guarded(keys: &[&str], is_written: bool) -> Option<Vec<String>> {
    let (fence, key) = keys.split_first()?;
    let fits = |guarded: &GuardKey| {
        let written = is_written.then(|| guarded.as_str());
        key::fence(guarded) == *fence && key.iter().copied().eq(written)
    };
    let keys = key::fence_keys(fence).into_iter().filter(fits);
    let keys: Vec<String> = keys.map(|key| key.as_str().into()).collect();
    (!keys.is_empty()).then_some(keys)
}

/// The values that a call contains. Some occur several times, and must then be equal.
#[derive(Clone, Default)]
struct Parsed {
    /// The owner of the request, in its latch, its arguments and its timeout key.
    owner: Option<OwnerId>,
    /// Another owner: a previous one, or the same program's on the other side.
    other: Option<OwnerId>,
    lease: Option<LeaseTime>,
    /// The token that the call stores.
    stores: Option<FencingToken>,
    peer_skew: Option<Duration>,
    /// The length of the guarded value.
    value_bytes: usize,
    /// Whether a setting is outside of the range for scoped tokens.
    has_own_settings: bool,
    /// Whether the call may leave its object without an end.
    lasts: bool,
    /// The locks whose token keys are kept without an end.
    fenced: Vec<String>,
}

impl Parsed {
    fn into_touched(
        self,
        subjects: Vec<Vec<String>>,
        kind: Option<ObjectKind>,
        right: Option<Right>,
        not_after: Option<u64>,
    ) -> Touched {
        let Self { lease, stores, peer_skew, value_bytes, has_own_settings, lasts, fenced, .. } =
            self;
        let lasting = if lasts { subjects.iter().flatten().cloned().collect() } else { fenced };
        Touched {
            subjects,
            kind,
            right,
            lease,
            peer_skew,
            has_own_settings,
            lasting,
            value_bytes,
            not_after,
            stores,
        }
    }

    /// Checks that `keys` are those of a call about `names` by this layout; `None` otherwise.
    fn check_keys(
        &mut self,
        layout: &Layout,
        keys: &[&str],
        names: &[LockName],
        request: RequestId,
    ) -> Option<()> {
        let first = names.first()?;
        let mut rest = keys.iter();
        let mut check = |patterns: &[Key], name: &LockName, rest: &mut Iter<'_, &str>| {
            patterns
                .iter()
                .try_for_each(|pattern| self.check_key(*pattern, rest.next()?, name, request))
        };
        check(layout.keys, first, &mut rest)?;
        if !layout.each.is_empty() {
            names.iter().try_for_each(|name| check(layout.each, name, &mut rest))?;
        } else if rest.len() > 0 {
            check(layout.more, first, &mut rest)?;
        }
        rest.next().is_none().then_some(())
    }

    /// Checks that `found` is the key of this kind for `name`, and records an owner in it.
    fn check_key(
        &mut self,
        key: Key,
        found: &str,
        name: &LockName,
        request: RequestId,
    ) -> Option<()> {
        let fits = match key {
            Key::Name => found == name.as_str(),
            Key::Record => found == key::record(name, request),
            Key::Of(build) => found == build(name),
            Key::Latch => agrees(&mut self.owner, key::latch_owner(name, found)?),
            Key::OtherLatch => agrees(&mut self.other, key::latch_owner(name, found)?),
            Key::ReadTimeout => agrees(&mut self.owner, key::read_timeout_owner(name, found)?),
            Key::OtherReadTimeout => agrees(&mut self.other, key::read_timeout_owner(name, found)?),
        };
        fits.then_some(())
    }

    /// Parses the arguments of a call; the first `min` are required. `None` if one is not as `args`
    /// describes it.
    fn parse_args(
        &mut self,
        args: &[Arg],
        min: usize,
        found: &[&str],
        names: &[LockName],
    ) -> Option<()> {
        let mut rest = found.iter();
        for (place, arg) in args.iter().enumerate() {
            let remaining = rest.as_slice();
            let fits = match arg {
                Arg::Ids => {
                    remaining.len() <= IDS_MAX
                        && remaining.iter().all(|id| PermitId::parse(id).is_ok())
                }
                Arg::Fields => {
                    (1..=GroupCalls::VALUES_MAX).contains(&remaining.len())
                        && remaining.iter().all(|field| is_field(field))
                }
                Arg::Channels => {
                    remaining.is_empty()
                        || remaining.iter().copied().eq(names.iter().map(key::channel))
                }
                _ => match rest.next() {
                    Some(text) => {
                        self.parse_arg(arg, text, names)?;
                        continue;
                    }
                    None => return (place >= min).then_some(()),
                },
            };
            return fits.then_some(());
        }
        rest.next().is_none().then_some(())
    }

    /// Parses one argument, and records its value.
    fn parse_arg(&mut self, arg: &Arg, found: &str, names: &[LockName]) -> Option<()> {
        let fits = match arg {
            Arg::Owner(endings) => {
                let owner = endings
                    .iter()
                    .find_map(|ending| found.strip_suffix(ending).and_then(OwnerId::parse))?;
                agrees(&mut self.owner, owner)
            }
            Arg::Other(ending) => {
                agrees(&mut self.other, OwnerId::parse(found.strip_suffix(ending)?)?)
            }
            Arg::Member(modes) => {
                let (mode, owner) = member(found)?;
                modes.contains(&mode) && agrees(&mut self.owner, owner)
            }
            Arg::OtherMember => agrees(&mut self.other, member(found)?.1),
            Arg::Lease(endless) => {
                self.lease = Some(lease(found, *endless)?);
                true
            }
            Arg::Stored => {
                self.stores = Some(FencingToken::parse(found)?);
                true
            }
            Arg::UpTo(max) => number(found, *max).is_some(),
            Arg::Positive(max) => number(found, *max).is_some_and(|number| number > 0),
            Arg::Exactly(value) => number(found, *value) == Some(*value),
            Arg::Setting { max, scoped: (from, to) } => {
                self.has_own_settings |= !(*from..=*to).contains(&number(found, *max)?);
                true
            }
            Arg::PeerSkew => {
                let skew = Duration::from_millis(number(found, u64::MAX)?);
                self.peer_skew = Some(PeerSkew::new(skew).ok()?.get());
                true
            }
            Arg::Life { min, or_empty } => {
                let life = if *or_empty && found.is_empty() { 0 } else { number(found, LIFE_MAX)? };
                self.lasts |= life == 0 || life > LASTING;
                life == 0 || life >= *min
            }
            Arg::Value => {
                self.value_bytes = found.len();
                true
            }
            Arg::Int => found.parse().is_ok_and(|int: i32| is_canonical(found, int)),
            Arg::Is(words) => words.contains(&found),
            Arg::Kinds => {
                let kinds = || names.iter().zip(found.bytes());
                self.fenced =
                    kinds().filter(|(_, kind)| *kind == b'f').map(|(name, _)| text(name)).collect();
                found.len() == names.len() && kinds().all(|(_, kind)| matches!(kind, b'f' | b'x'))
            }
            Arg::Of(build) => names.first().is_some_and(|name| found == build(name)),
            Arg::Maybe(arg) => found.is_empty() || self.parse_arg(arg, found, names).is_some(),
            Arg::Ids | Arg::Fields | Arg::Channels => false,
        };
        fits.then_some(())
    }
}

/// Records an owner, or compares it with the recorded one.
fn agrees(known: &mut Option<OwnerId>, found: OwnerId) -> bool {
    *known.get_or_insert(found) == found
}

/// Parses a member of a fair read-write lock: its mode and its owner.
fn member(found: &str) -> Option<(char, OwnerId)> {
    let (owner, client) = found.get(1..)?.split_once('|')?;
    ClientId::parse(client).ok()?;
    let mode = found.chars().next().filter(|mode| matches!(mode, 'x' | 's'))?;
    Some((mode, OwnerId::parse(owner)?))
}

/// Parses a lease; `endless` is the text of one without an end, if the script accepts it.
fn lease(found: &str, endless: Option<&str>) -> Option<LeaseTime> {
    if endless == Some(found) {
        return Some(LeaseTime::ENDLESS);
    }
    LeaseTime::new(Duration::from_millis(number(found, u64::MAX)?)).ok()
}

/// Parses a whole number in its canonical form, at most `max`.
fn number(found: &str, max: u64) -> Option<u64> {
    found.parse().ok().filter(|number: &u64| *number <= max && is_canonical(found, *number))
}

/// Whether a text is the canonical form of a number: without a sign or leading zeros.
fn is_canonical(found: &str, number: impl alloc::string::ToString) -> bool {
    number.to_string() == found
}

/// Whether a text has the form of a value's field: base64 of 128 bits.
fn is_field(found: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    found.len() == FIELD_LENGTH && found.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::FencingToken;
    use crate::protocol::calls::{LockCalls, Member};
    use crate::protocol::script::{Bound, Publish, ScriptCall};

    /// A call that raises the token of two locks, as the machine of a majority sends it.
    fn raising(token: FencingToken) -> ScriptCall {
        let member = |name| Member { name: LockName::parse(name).unwrap(), fenced: false };
        let members = ["app:a", "app:{x}"].map(member);
        let calls = LockCalls::of_set(members, Publish::Plain).unwrap();
        calls.raise(RequestId::new(1), Bound::NONE, OwnerId::new([1; 16], 1), token)
    }

    #[test]
    fn a_stored_token_is_returned() {
        let call = raising(FencingToken::MAX);
        let mut keys: Vec<&str> = call.keys().iter().map(String::as_str).collect();
        let args: Vec<&str> = call.args().iter().map(String::as_str).collect();
        let found = touched(call.script(), &keys, &args).unwrap();
        assert_eq!(found.stores, Some(FencingToken::MAX));
        assert_eq!(found.names().collect::<Vec<_>>(), ["app:a", "app:{x}"]);
        assert!(touched(call.script(), keys.get(..4).unwrap(), &args).is_none());
        keys.swap(1, 3);
        assert!(touched(call.script(), &keys, &args).is_none());
    }

    #[test]
    fn a_number_has_one_canonical_form_and_a_range() {
        for text in ["", "+1", "01", "-1", "1e3", "0x1", " 1", "1 ", "1.0", "nan", "11"] {
            assert_eq!(number(text, 10), None, "{text}");
        }
        assert_eq!((number("0", 10), number("10", 10)), (Some(0), Some(10)));
        assert_eq!(lease("99", None), None);
        assert_eq!(lease("", None), None);
        assert_eq!(lease("", Some("")), Some(LeaseTime::ENDLESS));
        assert_eq!(lease("100", Some("")).map(LeaseTime::get), Some(Duration::from_millis(100)));
    }
}
