//! The WebAssembly module as text, for entries that cannot rely on a file: each of the commonest bytes is one letter, each other
//! one two. With gzip this is a fifth smaller than base64, whose letters do not line up with bytes. pkg/decode.js reads it.

use std::fmt::Write as _;

/// What a letter may be: printable ASCII that needs no escape in JavaScript, JSON or HTML.
fn letters() -> Vec<char> {
    (' '..='~').filter(|letter| !"\"$'<\\`".contains(*letter)).collect()
}

/// A JavaScript module that exports `text`, `order` (each byte in hexadecimal digits, the commonest first) and `size`.
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

/// All bytes, the commonest first, and those equally common in order.
fn by_frequency(bytes: &[u8]) -> Vec<u8> {
    let mut counts = [0_usize; 256];
    for byte in bytes {
        counts[usize::from(*byte)] += 1;
    }
    let mut order: Vec<u8> = (0..=255).collect();
    order.sort_by_key(|byte| std::cmp::Reverse(counts[usize::from(*byte)]));
    order
}

fn encode(bytes: &[u8], order: &[u8]) -> String {
    let letters = letters();
    // The last two letters begin a pair.
    let single = letters.len() - 2;
    let words: Vec<String> = (0..order.len())
        .map(|place| match place.checked_sub(single) {
            None => letters[place].to_string(),
            Some(rest) => [letters[single + rest / letters.len()], letters[rest % letters.len()]]
                .iter()
                .collect(),
        })
        .collect();
    let mut word_of = [""; 256];
    for (byte, word) in order.iter().zip(&words) {
        word_of[usize::from(*byte)] = word;
    }
    bytes.iter().map(|byte| word_of[usize::from(*byte)]).collect()
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
