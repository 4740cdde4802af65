//! Encodes the WebAssembly module as text, for entries that cannot rely on a file: each of the
//! commonest bytes is one letter, each other byte two. With gzip this is a fifth smaller than
//! base64, whose letters do not align with bytes. pkg/decode.js decodes it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Returns the letters: printable ASCII that needs no escape in JavaScript, JSON or HTML.
fn letters() -> Vec<char> {
    (' '..='~').filter(|letter| !"\"$'<\\`".contains(*letter)).collect()
}

/// Returns a JavaScript module that exports `text`, `order` (each byte in hexadecimal digits, the
/// commonest first) and `size`.
pub(crate) fn module(bytes: &[u8]) -> String {
    let order = by_frequency(bytes);
    let mut digits = String::new();
    for byte in &order {
        let _ = write!(digits, "{byte:02x}");
    }
    let text = encode(bytes, &order);
    format!(
        "export const size = {};\nexport const order = \"{digits}\";\nexport const text =\n\"{text}\";\n",
        bytes.len()
    )
}

/// Returns all bytes, the commonest first, and those of equal frequency in numeric order.
fn by_frequency(bytes: &[u8]) -> Vec<u8> {
    let mut counts: BTreeMap<u8, usize> = (0..=255).map(|byte| (byte, 0)).collect();
    for byte in bytes {
        *counts.entry(*byte).or_default() += 1;
    }
    let mut order: Vec<(u8, usize)> = counts.into_iter().collect();
    order.sort_by_key(|(_, count)| Reverse(*count));
    order.into_iter().map(|(byte, _)| byte).collect()
}

fn encode(bytes: &[u8], order: &[u8]) -> String {
    let letters = letters();
    // The last two letters begin a pair.
    let (single, first_of_pair) = letters.split_at(letters.len() - 2);
    let pairs =
        first_of_pair.iter().flat_map(|first| letters.iter().map(move |second| [*first, *second]));
    let words = single.iter().map(char::to_string).chain(pairs.map(String::from_iter));
    let word_of: BTreeMap<u8, String> = order.iter().copied().zip(words).collect();
    bytes.iter().filter_map(|byte| word_of.get(byte).map(String::as_str)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_bytes_are_one_letter_and_others_two() {
        let bytes: Vec<u8> = (0..=255).chain([7; 100]).collect();
        let order = by_frequency(&bytes);
        assert_eq!(order[0], 7);
        let text = encode(&bytes, &order);
        assert_eq!(text.len(), 100 + 87 + 2 * 169);
        assert!(text.ends_with(&" ".repeat(100)));
    }

    #[test]
    fn two_prefixes_are_enough_for_all_bytes() {
        assert!(letters().len() == 89 && 87 + 2 * 89 >= 256);
    }
}
