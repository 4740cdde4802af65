//! The bearer tokens with full access.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::{Choice, ConstantTimeEq as _};

/// The least length of a token, in characters. Sixteen random letters and digits have 95 bits, far
/// more than can be tried over a network.
const MIN_TOKEN_CHARS: usize = 16;

/// The bearer tokens with full access that a gateway accepts: at least one, each of 16 or more
/// visible ASCII characters.
///
/// The debug output does not contain them.
#[derive(Clone)]
pub struct Tokens(Vec<String>);

impl Tokens {
    /// Accepts tokens as an option, the environment or a file contains them: removes white space
    /// around each, and drops empty entries.
    ///
    /// # Errors
    ///
    /// [`TokenError::None`] if no token is left, [`TokenError::NotVisibleAscii`] if a token has a
    /// space or another character than visible ASCII, [`TokenError::Short`] if a token has less
    /// than 16 characters.
    pub fn new<T: Into<String>>(tokens: impl IntoIterator<Item = T>) -> Result<Self, TokenError> {
        let mut kept = Vec::new();
        for token in tokens {
            let token: String = token.into();
            let token = token.trim();
            if token.is_empty() {
                continue;
            }
            if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(TokenError::NotVisibleAscii);
            }
            if token.len() < MIN_TOKEN_CHARS {
                return Err(TokenError::Short);
            }
            kept.push(token.to_owned());
        }
        if kept.is_empty() { Err(TokenError::None) } else { Ok(Self(kept)) }
    }

    /// Creates a token with 256 bits from the operating system, and returns it also as text.
    ///
    /// # Errors
    ///
    /// [`TokenError::NoEntropy`] if the operating system provides no random bytes.
    pub fn random() -> Result<(Self, String), TokenError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|_| TokenError::NoEntropy)?;
        let token = URL_SAFE_NO_PAD.encode(bytes);
        Ok((Self(vec![token.clone()]), token))
    }

    /// Whether `candidate` is one of the tokens.
    ///
    /// Takes the same time for a wrong token as for a right one of the same length, and compares it
    /// with all tokens, so that the time of a response shows nothing about how much of a guess was
    /// right.
    pub(crate) fn contains(&self, candidate: &[u8]) -> bool {
        let found = self
            .0
            .iter()
            .fold(Choice::from(0), |found, token| found | token.as_bytes().ct_eq(candidate));
        found.into()
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({} hidden)", self.0.len())
    }
}

/// The reason why a set of tokens cannot be used. Never contains a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// No token was given. The gateway would be open to every client.
    #[error("a token is needed: --token, --token-file or EDGELATCH_TOKENS")]
    None,
    /// The operating system provides no random bytes for a token.
    #[error("the operating system gives no random bytes for a token")]
    NoEntropy,
    /// A token has a character other than visible ASCII.
    #[error("a token may hold visible ASCII characters only, and no space")]
    NotVisibleAscii,
    /// A token has less than 16 characters, so it could be guessed.
    #[error("a token has 16 characters or more: `openssl rand -base64 32` makes one")]
    Short,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_admitted_only_whole() {
        let (first, second) = ("the-first-of-two", "the-second-of-two");
        let tokens = Tokens::new([first, " the-second-of-two\n", ""]).unwrap();
        for token in [first, second] {
            assert!(tokens.contains(token.as_bytes()));
        }
        for wrong in ["", "the-first-of-tw", "the-first-of-two ", "The-first-of-two"] {
            assert!(!tokens.contains(wrong.as_bytes()));
        }
        assert!(!tokens.contains([first, second].concat().as_bytes()));
    }

    #[test]
    fn a_gateway_without_a_token_is_refused() {
        assert_eq!(Tokens::new(["", "  "]).unwrap_err(), TokenError::None);
        assert_eq!(Tokens::new(["a b"]).unwrap_err(), TokenError::NotVisibleAscii);
    }

    #[test]
    fn a_token_that_could_be_guessed_is_refused() {
        assert_eq!(Tokens::new(["x".repeat(15)]).unwrap_err(), TokenError::Short);
        let long_enough = "x".repeat(16);
        assert!(Tokens::new([long_enough.as_str()]).unwrap().contains(long_enough.as_bytes()));
        assert_eq!(Tokens::new([long_enough.as_str(), "short"]).unwrap_err(), TokenError::Short);
    }

    #[test]
    fn debug_output_hides_the_text() {
        let (tokens, text) = Tokens::random().unwrap();
        assert!(text.len() >= 40 && tokens.contains(text.as_bytes()));
        assert_eq!(format!("{tokens:?}"), "Tokens(1 hidden)");
    }
}
