//! Names and ids, checked once where they enter the crate: a value that exists is valid.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::fmt;

use uuid::Uuid;

use crate::error::InvalidOption;

/// The name of a lock: Redisson's object name, byte for byte.
///
/// 1 to 512 bytes of UTF-8 without control characters. Braces must form exactly one hash tag that
/// is not empty, as in `{order}:7`: other forms would put a lock's keys into different slots of a
/// Redis Cluster. A name must not begin with `redisson_` or `el:`. There is no normalisation: two
/// spellings of `é` are two locks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockName(String);

impl LockName {
    /// The longest name, in bytes of UTF-8.
    pub const BYTES_MAX: usize = 512;

    /// Checks a name.
    ///
    /// # Errors
    /// [`InvalidOption`] when the name breaks one of the rules above; the caller's mistake, nothing
    /// was sent.
    pub fn parse(name: &str) -> Result<Self, InvalidOption> {
        let accepted = if name.is_empty() || name.len() > Self::BYTES_MAX {
            Some("1 to 512 bytes of UTF-8")
        } else if name.chars().any(char::is_control) {
            Some("text without control characters")
        } else if name.starts_with("redisson_") || name.starts_with("el:") {
            Some("a name that does not begin with `redisson_` or `el:`")
        } else if !braces_are_fine(name) {
            Some("no braces, or exactly one `{tag}` with something in it")
        } else {
            None
        };
        accepted.map_or_else(
            || Ok(Self(name.into())),
            |accepted| Err(InvalidOption::new("name", accepted)),
        )
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the name has its own hash tag.
    pub(crate) fn is_tagged(&self) -> bool {
        self.0.contains('{')
    }
}

fn braces_are_fine(name: &str) -> bool {
    let braces = || name.bytes().enumerate().filter(|(_, byte)| matches!(byte, b'{' | b'}'));
    match (braces().next(), braces().nth(1), braces().nth(2)) {
        (None, ..) => true,
        (Some((open, b'{')), Some((close, b'}')), None) => close > open + 1,
        _ => false,
    }
}

/// A key of the caller that a guard protects.
///
/// 1 to 512 bytes of UTF-8. If it has braces, the first pair must be a hash tag that is not empty,
/// as in `{order}:7`; otherwise its fence could lie in another slot of a Redis Cluster. A key must
/// not begin with `redisson_` or `el:`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GuardKey(String);

impl GuardKey {
    /// Checks a key.
    ///
    /// # Errors
    /// [`InvalidOption`] when the key breaks one of the rules above; the caller's mistake, nothing
    /// was sent.
    pub fn parse(key: &str) -> Result<Self, InvalidOption> {
        let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        let is_tagged = tag.is_some_and(|(tag, _)| !tag.is_empty());
        let accepted = if key.is_empty() || key.len() > LockName::BYTES_MAX {
            "1 to 512 bytes of UTF-8"
        } else if key.starts_with("redisson_") || key.starts_with("el:") {
            "a key that does not begin with `redisson_` or `el:`"
        } else if key.contains(['{', '}']) && !is_tagged {
            "no braces, or first a `{tag}` with something in it"
        } else {
            return Ok(Self(key.into()));
        };
        Err(InvalidOption::new("key", accepted))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the key has its own hash tag.
    pub(crate) fn is_tagged(&self) -> bool {
        self.0.contains('{')
    }
}

/// The field in Redis that identifies an acquisition: `<uuid>:<number>`, in the form of Redisson's
/// owners.
///
/// New for every acquisition, so two tasks never share a hold by accident. The UUID has version 8
/// (Redisson's have version 4), so a script recognises this library's fields. The field is the
/// right to release, so `Debug` does not show it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnerId {
    entropy: [u8; 16],
    round: u32,
}

impl OwnerId {
    /// Creates an owner from 128 bits of entropy and the number of the round.
    pub const fn new(entropy: [u8; 16], round: u32) -> Self {
        Self { entropy, round }
    }

    /// Its entropy, which must not be shown.
    pub(crate) const fn entropy(self) -> [u8; 16] {
        self.entropy
    }

    /// Parses the field's text; each owner has one canonical form.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (uuid, round) = text.split_once(':')?;
        let owner = Self::new(Uuid::try_parse(uuid).ok()?.into_bytes(), round.parse().ok()?);
        (owner.to_text() == text).then_some(owner)
    }

    /// The field's text.
    pub(crate) fn to_text(self) -> String {
        let uuid = uuid::Builder::from_custom_bytes(self.entropy).into_uuid();
        let mut buffer = Uuid::encode_buffer();
        [&*uuid.hyphenated().encode_lower(&mut buffer), ":", &u64::from(self.round).to_string()]
            .concat()
    }
}

impl fmt::Debug for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerId(..)")
    }
}

/// A text of the caller's own that queries of fair read-write locks show beside each hold and wait.
///
/// At most 64 bytes of UTF-8 without control characters; empty by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientId(Arc<str>);

impl ClientId {
    /// The longest client id, in bytes of UTF-8.
    pub const BYTES_MAX: usize = 64;

    /// Checks a client id.
    ///
    /// # Errors
    /// [`InvalidOption`] when it is too long or contains a control character.
    pub fn parse(id: &str) -> Result<Self, InvalidOption> {
        let fits = id.len() <= Self::BYTES_MAX && !id.chars().any(char::is_control);
        let accepted = "at most 64 bytes of UTF-8 without control characters";
        fits.then(|| Self(id.into())).ok_or_else(|| InvalidOption::new("clientId", accepted))
    }

    /// The client id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One permit of a permit-expirable semaphore: 16 bytes, written as Redisson writes them.
///
/// The ids are derived from the owner, so a client knows them before its request. An id is the
/// right to give the permit back, so `Debug` does not show it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PermitId([u8; 16]);

impl PermitId {
    /// The permit with this index, from 0, of those that `owner` acquires together.
    pub(crate) fn of(owner: OwnerId, index: u16) -> Self {
        // A part of the owner's entropy is left out, so that the id does not reveal the owner.
        let (mut id, [_, round @ ..], [high, low]) =
            (owner.entropy, owner.round.to_be_bytes(), index.to_be_bytes());
        let [.., a, b, c, d, e] = &mut id;
        ([*a, *b, *c], *d, *e) = (round, high, low);
        Self(id)
    }

    /// Parses the 32 lower-case hexadecimal digits of an id.
    ///
    /// # Errors
    /// [`InvalidOption`] for any other text.
    pub fn parse(text: &str) -> Result<Self, InvalidOption> {
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let number = u128::from_str_radix(text, 16).ok().filter(|_| digits && text.len() == 32);
        number
            .map(|number| Self(number.to_be_bytes()))
            .ok_or_else(|| InvalidOption::new("permitId", "32 lower-case hexadecimal digits"))
    }

    /// Its 32 lower-case hexadecimal digits.
    pub fn to_text(self) -> String {
        Uuid::from_bytes(self.0).simple().encode_lower(&mut Uuid::encode_buffer()).to_string()
    }
}

impl fmt::Debug for PermitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PermitId(..)")
    }
}

/// Ties a reply to its request, which Redis echoes. Kept over the attempts of a request, except
/// where a lease counts from one of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct RequestId(u64);

impl RequestId {
    /// Creates the id of this number, which distinguishes the requests of one gateway.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Parses the sixteen digits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let request = Self(u64::from_str_radix(text, 16).ok()?);
        (request.to_text() == text).then_some(request)
    }

    /// Sixteen lower-case hexadecimal digits.
    pub(crate) fn to_text(self) -> String {
        let mut buffer = Uuid::encode_buffer();
        let text = Uuid::from_u64_pair(0, self.0).simple().encode_lower(&mut buffer);
        text.get(16..).unwrap_or_default().to_string()
    }
}

/// A number that rises with every grant of a name.
///
/// The larger of the last token plus one and Redis' clock in microseconds, so it keeps rising after
/// the loss of the key that stores it. Below 2^53 until the year 2255, so a JavaScript number is
/// exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FencingToken(u64);

impl FencingToken {
    /// The largest token: 2^53 - 1.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// Parses the decimal text of a reply. `None` for anything but 1 to [`MAX`](Self::MAX).
    pub fn parse(text: &str) -> Option<Self> {
        let number = text.parse().ok().filter(|n| (1..=Self::MAX.0).contains(n))?;
        // `+1` and `01` parse too; a token has one canonical form.
        (number.to_string() == text).then_some(Self(number))
    }

    /// Its decimal text.
    pub(crate) fn to_text(self) -> String {
        self.0.to_string()
    }

    /// The token as a number.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn names_that_redisson_can_place_are_accepted() {
        for name in ["a", "invoice:42", "é/?#% \"", "{tag}", "x{a}b", &"n".repeat(512)] {
            assert!(LockName::parse(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn other_names_are_refused_by_the_option_s_name() {
        let long = "é".repeat(257);
        for name in [
            "",
            &long,
            "a\nb",
            "\u{7f}",
            "\u{85}",
            "a{b",
            "a}b",
            "{}x",
            "}{",
            "{a}{b}",
            "redisson_x",
            "el:x",
        ] {
            let error = LockName::parse(name).unwrap_err();
            assert_eq!(error.option(), "name", "{name}");
        }
    }

    #[test]
    fn a_key_whose_fence_can_be_placed_is_accepted() {
        for key in ["a", "a\nb", "{tag}", "x{a}b", "{a}{b}", "}{a}b}", &"k".repeat(512)] {
            assert!(GuardKey::parse(key).is_ok(), "{key}");
        }
        for key in ["", &"k".repeat(513), "a{b", "a}b", "{}x", "}{", "{}{a}", "redisson_x", "el:x"]
        {
            assert_eq!(GuardKey::parse(key).unwrap_err().option(), "key", "{key}");
        }
    }

    #[test]
    fn an_owner_looks_like_redisson_s_and_is_of_version_eight() {
        let owner = OwnerId::new([0xab; 16], 3);
        assert_eq!(owner.to_text(), "abababab-abab-8bab-abab-abababababab:3");
        assert_eq!(format!("{owner:?}"), "OwnerId(..)");
        assert_eq!(OwnerId::parse(&owner.to_text()).map(OwnerId::to_text), Some(owner.to_text()));
        for other in [
            "",
            "abababab-abab-8bab-abab-abababababab",
            "abababab-abab-4bab-abab-abababababab:3",
            "ABABABAB-abab-8bab-abab-abababababab:3",
            "abababababab8bababababababababab:3",
            "abababab-abab-8bab-abab-abababababab:03",
            "abababab-abab-8bab-abab-abababababab:3:write",
        ] {
            assert_eq!(OwnerId::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_request_s_id_has_one_canonical_form() {
        assert_eq!(RequestId::parse("00000000000000ff"), Some(RequestId::new(255)));
        for other in ["", "ff", "00000000000000FF", "+0000000000000ff", "000000000000000ff"] {
            assert_eq!(RequestId::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_client_id_is_short_and_printable() {
        for id in ["", "tab 7", "a|b", &"é".repeat(32)] {
            assert_eq!(ClientId::parse(id).unwrap().as_str(), id);
        }
        for id in ["a\tb", "\u{85}", &"é".repeat(33)] {
            assert_eq!(ClientId::parse(id).unwrap_err().option(), "clientId", "{id}");
        }
    }

    #[test]
    fn a_permit_s_id_has_one_canonical_form() {
        let text = "000102030405060708090a0b0c0d0e0f";
        assert_eq!(PermitId::parse(text).unwrap().to_text(), text);
        for text in ["", "0", &text[1..], &text.to_uppercase(), &format!("+{}", &text[1..])] {
            assert_eq!(PermitId::parse(text).unwrap_err().option(), "permitId", "{text}");
        }
        assert_eq!(format!("{:?}", PermitId::parse(text).unwrap()), "PermitId(..)");
    }

    #[test]
    fn permits_are_of_their_owner_its_round_and_their_place() {
        let id = |entropy, round, index| PermitId::of(OwnerId::new([entropy; 16], round), index);
        assert_eq!(
            id(0xab, 0x0102_0304, 0x0506).to_text(),
            "abababababababababababab0203040506"[2..]
        );
        let all = [id(1, 1, 0), id(1, 1, 1), id(1, 2, 0), id(2, 1, 0)];
        assert!((0..4).all(|one| (0..one).all(|other| all[one] != all[other])));
    }

    #[test]
    fn a_token_has_one_canonical_form_and_a_range() {
        assert_eq!(FencingToken::parse("9007199254740991"), Some(FencingToken::MAX));
        for text in ["0", "-1", "+1", "01", "1.5", "9007199254740992", "", "x", "1e3"] {
            assert_eq!(FencingToken::parse(text), None, "{text}");
        }
    }
}
