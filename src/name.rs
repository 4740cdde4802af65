//! Names and ids, parsed once at the border: one that exists is valid.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use crate::error::InvalidOption;

/// The name of a lock: Redisson's object name, byte for byte.
///
/// 1 to 512 bytes of UTF-8 without control characters. Braces are accepted as exactly one hash tag with something in it,
/// as in `{order}:7`, since other forms put a lock's keys into different slots of a Redis Cluster. The beginnings
/// `redisson_` and `el:` are taken. No normalisation: two spellings of `é` are two locks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockName(String);

impl LockName {
    /// The longest name, in bytes of UTF-8.
    pub const BYTES_MAX: usize = 512;

    /// Checks a name.
    ///
    /// # Errors
    /// [`InvalidOption`] when the name breaks one of the rules above; the caller's mistake, nothing was sent.
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

    /// Whether the name brings its own hash tag.
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

/// The field in Redis that proves who took a lock: `<uuid>:<number>`, as Redisson's holders look.
///
/// Fresh for every acquisition, so two tasks never share a hold by accident. The UUID is of version 8 (Redisson's are of
/// version 4), so that a script can tell whose field it sees. It is the right to release: `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnerId(String);

impl OwnerId {
    /// The owner made of 128 bits of entropy and the number of the round in which it asks.
    pub(crate) fn new(entropy: [u8; 16], round: u32) -> Self {
        let uuid = uuid::Builder::from_custom_bytes(entropy).into_uuid();
        Self(format!("{uuid}:{round}"))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerId(..)")
    }
}

/// What ties a reply to its request: sent with it, kept over its attempts, and echoed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct RequestId(u64);

impl RequestId {
    pub(crate) const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Sixteen lower-case hexadecimal digits.
    pub(crate) fn to_text(self) -> String {
        format!("{:016x}", self.0)
    }
}

/// A number that rises with each grant of one name.
///
/// It is the larger of the last token plus one and Redis' clock in microseconds, so it goes on rising when the key that
/// holds it is lost. Below 2^53 until the year 2255, hence a plain number in JavaScript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FencingToken(u64);

impl FencingToken {
    /// The largest token: 2^53 - 1.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// Reads the decimal text of a reply. `None` for anything but 1 to [`MAX`](Self::MAX).
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let number = text.parse().ok().filter(|n| (1..=Self::MAX.0).contains(n))?;
        // `+1` and `01` parse as well; a token has one spelling.
        (number.to_string() == text).then_some(Self(number))
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
    fn an_owner_looks_like_redisson_s_and_is_of_version_eight() {
        let owner = OwnerId::new([0xab; 16], 3);
        assert_eq!(owner.as_str(), "abababab-abab-8bab-abab-abababababab:3");
        assert_eq!(format!("{owner:?}"), "OwnerId(..)");
    }

    #[test]
    fn a_token_has_one_spelling_and_a_range() {
        assert_eq!(FencingToken::parse("9007199254740991"), Some(FencingToken::MAX));
        for text in ["0", "-1", "+1", "01", "1.5", "9007199254740992", "", "x", "1e3"] {
            assert_eq!(FencingToken::parse(text), None, "{text}");
        }
    }
}
