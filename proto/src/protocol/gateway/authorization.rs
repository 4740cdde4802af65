//! The `Authorization` header of each dialect.

use alloc::string::String;

use base64ct::{Base64, Encoding as _};

use crate::error::InvalidOption;

/// Encodes Upstash's token.
pub(super) fn bearer(token: &str) -> Result<String, InvalidOption> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_=+/.-~:".contains(&byte);
    if (1..=4096).contains(&token.len()) && token.bytes().all(fits) {
        Ok(["Bearer ", token].concat())
    } else {
        let accepted = "the gateway's REST token without `Bearer` or quotes: 1 to 4096 letters, digits or any of _ = + / . - ~ :";
        Err(InvalidOption::new("token", accepted))
    }
}

/// Encodes RFC 7617 credentials: the user has no colon, and neither part a control character.
pub(super) fn basic(token: &str) -> Result<Option<String>, InvalidOption> {
    if token.is_empty() {
        return Ok(None);
    }
    let fits = token.contains(':') && token.len() <= 1024 && !token.chars().any(char::is_control);
    if fits {
        Ok(Some(["Basic ", &Base64::encode_string(token.as_bytes())].concat()))
    } else {
        Err(InvalidOption::new("token", "user:password of at most 1024 bytes, or nothing"))
    }
}
