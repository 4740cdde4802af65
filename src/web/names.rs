//! Numbers that JavaScript gives to names, read from its source when this crate is compiled. So
//! each number is written only once, and a name that JavaScript does not have is an error of the
//! compiler.

/// Returns the place of an item in a list of this source, from 0 on. The list is the first one
/// after the text `start`, and the item the first one that contains the word `name`.
pub(crate) const fn place(source: &str, start: &str, name: &str) -> u32 {
    let mut rest = after(after(source.as_bytes(), start), "[");
    let (mut place, mut depth, mut is_in_word) = (0, 0_u32, false);
    while let [byte, next @ ..] = rest {
        let is_name = matches!(strip(rest, name), Some(end) if !begins_in_word(end));
        if is_name && !is_in_word {
            return place;
        }
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                assert!(depth > 0, "the list has no item with this name");
                depth -= 1;
            }
            b',' if depth == 0 => place += 1,
            _ => {}
        }
        (rest, is_in_word) = (next, begins_in_word(rest));
    }
    assert!(!rest.is_empty(), "the list has no end");
    place
}

/// Returns the number in a declaration such as `const NAME = 1;`. `declaration` is the text before
/// the number.
pub(crate) const fn number(source: &str, declaration: &str) -> u32 {
    let mut rest = after(source.as_bytes(), declaration);
    assert!(matches!(rest, [b'0'..=b'9', ..]), "the name has no number");
    let mut number = 0;
    while let [digit @ b'0'..=b'9', next @ ..] = rest {
        number = number * 10 + (*digit - b'0') as u32;
        rest = next;
    }
    number
}

/// Returns the text behind the first occurrence of `part`.
const fn after<'a>(mut text: &'a [u8], part: &str) -> &'a [u8] {
    loop {
        if let Some(rest) = strip(text, part) {
            return rest;
        }
        assert!(!text.is_empty(), "the source does not have this text");
        if let [_, next @ ..] = text {
            text = next;
        }
    }
}

/// Returns the text without this beginning; `None` if it begins otherwise.
const fn strip<'a>(mut text: &'a [u8], beginning: &str) -> Option<&'a [u8]> {
    let mut beginning = beginning.as_bytes();
    while let [expected, further @ ..] = beginning {
        match text {
            [byte, rest @ ..] if *byte == *expected => (text, beginning) = (rest, further),
            _ => return None,
        }
    }
    Some(text)
}

/// Whether the first character belongs to a word.
const fn begins_in_word(text: &[u8]) -> bool {
    matches!(text, [b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'$', ..])
}

/// Examples, which the compiler checks.
const _: () = {
    const SOURCE: &str = r#"
        const OTHERS = ["b"];
        const KINDS = [
          "aLong", "a", list(["x, y", [1]], "c"), ["e", d], /* f */ { g: 1 },
        ];
        const LIMIT = 25;
    "#;
    assert!(place(SOURCE, "const OTHERS = ", "b") == 0);
    assert!(place(SOURCE, "const KINDS = ", "aLong") == 0);
    assert!(place(SOURCE, "const KINDS = ", "a") == 1);
    assert!(place(SOURCE, "const KINDS = ", "c") == 2);
    assert!(place(SOURCE, "const KINDS = ", "d") == 3);
    assert!(place(SOURCE, "const KINDS = ", "g") == 4);
    assert!(number(SOURCE, "const LIMIT = ") == 25);
};
