//! Decodes JSON strings.

use std::io::Write as _;

use redis::{Cmd, RedisWrite as _};

/// The bytes of a string with escapes that are decoded before they are appended to the command.
const BLOCK_BYTES: usize = 512;

/// The facts that are known at the end of a string.
pub(super) struct StringEnd {
    /// Its length in the body, with its closing quote.
    pub(super) length: usize,
    /// Whether each surrogate among its escapes is half of a pair.
    pub(super) is_unicode: bool,
}

/// Appends a string to `command`, without its escapes. `text` begins behind the opening quote.
/// Returns `None` if the string is not JSON.
pub(super) fn append_string(text: &str, command: &mut Cmd) -> Option<StringEnd> {
    let (plain, rest) = text.split_at_checked(plain_length(text.as_bytes()))?;
    let mut is_unicode = true;
    let mut rest = rest.as_bytes();
    if rest.first() == Some(&b'"') {
        command.write_arg(plain.as_bytes());
    } else {
        let mut word = command.writer_for_next_arg();
        word.write_all(plain.as_bytes()).ok()?;
        while rest.first() != Some(&b'"') {
            let mut block = [0; BLOCK_BYTES];
            let length;
            (length, rest) = decode(rest, &mut block, &mut is_unicode)?;
            word.write_all(block.get(..length)?).ok()?;
        }
    }
    Some(StringEnd { length: text.len() - rest.len() + 1, is_unicode })
}

/// Decodes a string until its end, or until the block is full. Returns the number of decoded bytes,
/// and the text behind them.
fn decode<'a>(
    mut text: &'a [u8],
    block: &mut [u8; BLOCK_BYTES],
    is_unicode: &mut bool,
) -> Option<(usize, &'a [u8])> {
    let mut decoded = 0;
    while let Some(buffer) = block.get_mut(decoded..).and_then(<[u8]>::first_chunk_mut) {
        let length;
        (length, text) = match text {
            [b'"', ..] => break,
            [b'\\', b'u', rest @ ..] => code_point(rest, buffer, is_unicode)?,
            [b'\\', escape, rest @ ..] => (unescape(*escape, buffer)?, rest),
            _ => plain_bytes(text, buffer)?,
        };
        decoded += length;
    }
    Some((decoded, text))
}

/// Decodes a character behind `\u`, which may need the second half of a surrogate pair.
#[inline]
fn code_point<'a>(
    text: &'a [u8],
    buffer: &mut [u8; 8],
    is_unicode: &mut bool,
) -> Option<(usize, &'a [u8])> {
    let (unit, rest) = code_unit(text)?;
    if let Some(character) = char::from_u32(unit.into()) {
        return Some((character.encode_utf8(buffer).len(), rest));
    }
    let second = rest.strip_prefix(b"\\u").and_then(code_unit);
    let units = [Some(unit), second.map(|(unit, _)| unit)];
    match (char::decode_utf16(units.into_iter().flatten()).next(), second) {
        (Some(Ok(character)), Some((_, rest))) => Some((character.encode_utf8(buffer).len(), rest)),
        _ => {
            *is_unicode = false;
            Some((0, rest))
        }
    }
}

/// Whether a byte of a string ends it, begins an escape, or is not allowed in it.
fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Returns the number of bytes before the first special one. The compiler turns the inner loop into
/// vector instructions.
pub(crate) fn plain_length(text: &[u8]) -> usize {
    let is_plain =
        |block: &&[u8]| !block.iter().fold(false, |found, byte| found | is_special(*byte));
    let length = 32 * text.chunks_exact(32).take_while(is_plain).count();
    let rest = text.get(length..).unwrap_or_default();
    length + rest.iter().position(|byte| is_special(*byte)).unwrap_or(rest.len())
}

/// Copies the bytes before the first special one, at most eight. Returns their number, and the text
/// behind them.
#[inline]
fn plain_bytes<'a>(text: &'a [u8], buffer: &mut [u8; 8]) -> Option<(usize, &'a [u8])> {
    match text.first_chunk() {
        Some(bytes) => *buffer = *bytes,
        None => {
            // A zero byte is special.
            *buffer = [0; 8];
            buffer.iter_mut().zip(text).for_each(|(to, from)| *to = *from);
        }
    }
    match plain_length_of_8(*buffer) {
        0 => None,
        length => text.get(length..).map(|rest| (length, rest)),
    }
}

/// Returns the number of bytes before the first special one.
///
/// A borrow of the subtractions reaches only bytes behind a special one, so the lowest bit is
/// right.
fn plain_length_of_8(block: [u8; 8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH_BITS: u64 = ONES << 7;
    let word = u64::from_le_bytes(block);
    let less = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word;
    let equal = |byte: u8| less(word ^ (ONES * u64::from(byte)), 1);
    let special = (less(word, 0x20) | equal(b'"') | equal(b'\\')) & HIGH_BITS;
    usize::try_from(special.trailing_zeros() / 8).unwrap_or(0)
}

/// Writes the byte that `escape` stands for behind a backslash. Returns the number of bytes.
#[inline]
fn unescape(escape: u8, [byte, ..]: &mut [u8; 8]) -> Option<usize> {
    *byte = match escape {
        b'"' | b'\\' | b'/' => escape,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        _ => return None,
    };
    Some(1)
}

/// Parses four hexadecimal digits. Returns the text behind them too.
#[inline]
fn code_unit(text: &[u8]) -> Option<(u16, &[u8])> {
    const ONES: u32 = u32::from_ne_bytes([1; 4]);
    let (digits, rest) = text.split_first_chunk::<4>()?;
    let word = u32::from_be_bytes(*digits);
    // The high bit of a byte says whether it is at least `bound`, if all bytes are ASCII.
    let at_least = |word: u32, bound: u8| word.wrapping_add(ONES * u32::from(0x80 - bound));
    let small = word | (ONES * 0x20);
    let are_digits = at_least(word, b'0') & !at_least(word, b'9' + 1);
    let are_letters = at_least(small, b'a') & !at_least(small, b'f' + 1);
    if (are_digits | are_letters) & !word & (ONES * 0x80) != ONES * 0x80 {
        return None;
    }
    // The low half of a digit is its value, and that of a letter its value less 9.
    let values = (word & (ONES * 0xf)) + 9 * ((word >> 6) & ONES);
    // 0a 0b 0c 0d, then ab cd in every other byte, then abcd in the lowest two.
    let pairs = (values | values >> 4) & 0x00ff_00ff;
    let [.., high, low] = (pairs | pairs >> 8).to_be_bytes();
    Some((u16::from_be_bytes([high, low]), rest))
}
