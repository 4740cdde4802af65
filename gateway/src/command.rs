//! Parses commands from JSON into the form in which the driver sends them to Redis.
//!
//! The parser reads a body once, and appends each word to its command. `serde_json` parses the
//! values that are rare. It cannot parse the rest in the same way: it keeps the spelling of a
//! number only in a `RawValue`, so that strings would be read twice, and it reads a nested list to
//! its end before the gateway could refuse it.

use std::io::Write as _;

use redis::{Arg, Cmd, RedisWrite as _};
use serde::de::IgnoredAny;

/// The most words of a command: the gateway takes about 5 ms for so many. Redis before version 7
/// closes the connection at four times as many.
pub(crate) const MAX_WORDS: usize = (1 << 18) + 1;
/// The bytes of a string with escapes that are decoded before they are appended to the command.
const DECODED_BYTES: usize = 512;

/// Parses a command such as `["SET", "key", 1]`. Returns `None` if it has more than `max_words`
/// words; the text behind these is not read.
///
/// A number keeps its spelling, so that one of 64 bits or more stays exact. `true`, `false` and
/// `null` become these words, as the official SDK expects.
pub(crate) fn parse(json: &str, max_words: usize) -> Result<Option<Cmd>, MalformedCommand> {
    let mut parser = Parser { rest: json, problem: None };
    let parsed = parser.only_command(max_words);
    parser.finish(parsed, MalformedCommand::Array)
}

/// Parses a list such as `[["SET", "key", 1], ["GET", "key"]]`. Returns `None` if it has more than
/// `max` commands; the text behind these is not read. In the list, `None` is a command with more
/// than `max_words` words.
pub(crate) fn parse_list(
    json: &str,
    max: usize,
    max_words: usize,
) -> Result<Option<Vec<Option<Cmd>>>, MalformedCommand> {
    let mut parser = Parser { rest: json, problem: None };
    let parsed = parser.commands(max, max_words);
    parser.finish(parsed, MalformedCommand::ArrayOfArrays)
}

/// Creates a command from its words, which may be any bytes.
pub(crate) fn from_words<T: AsRef<[u8]>>(
    words: impl IntoIterator<Item = T>,
) -> Result<Cmd, MalformedCommand> {
    let mut command = Cmd::new();
    words.into_iter().for_each(|word| command.write_arg(word.as_ref()));
    if has_name(&command) { Ok(command) } else { Err(MalformedCommand::NoName) }
}

/// Returns the words of a command, its name first.
pub(crate) fn words(command: &Cmd) -> impl Iterator<Item = &[u8]> + Clone {
    command.args_iter().filter_map(|word| match word {
        Arg::Simple(word) => Some(word),
        _ => None,
    })
}

fn has_name(command: &Cmd) -> bool {
    words(command).next().is_some_and(|name| !name.is_empty())
}

/// The reason why the parser stopped before the end of the text.
enum Stop {
    /// A value is nested more deeply than any valid request.
    Nested(MalformedCommand),
    /// The text is not JSON.
    Syntax,
}

/// A position in the text of a body.
struct Parser<'a> {
    /// The text that has not been read.
    rest: &'a str,
    /// The first reason to refuse a request that is JSON.
    problem: Option<MalformedCommand>,
}

impl Parser<'_> {
    /// Returns the result, or the reason why the request is refused: `syntax` if it is not JSON.
    fn finish<T>(
        self,
        parsed: Result<T, Stop>,
        syntax: MalformedCommand,
    ) -> Result<T, MalformedCommand> {
        match parsed {
            Err(Stop::Syntax) => Err(syntax),
            Err(Stop::Nested(problem)) => Err(self.problem.unwrap_or(problem)),
            Ok(parsed) => self.problem.map_or(Ok(parsed), Err),
        }
    }

    fn only_command(&mut self, max_words: usize) -> Result<Option<Cmd>, Stop> {
        let command = self.command(max_words)?;
        if command.is_some() {
            self.end()?;
        }
        Ok(command)
    }

    fn commands(&mut self, max: usize, max_words: usize) -> Result<Option<Vec<Option<Cmd>>>, Stop> {
        self.open()?;
        let mut commands = Vec::new();
        while self.has_element(commands.is_empty())? {
            if commands.len() == max {
                self.problem = None;
                return Ok(None);
            }
            let command = if self.peek() == Some(b'[') {
                let command = self.command(max_words)?;
                if command.is_none() {
                    self.skip_words()?;
                }
                command
            } else {
                self.report(MalformedCommand::Array);
                self.flat_value()?;
                None
            };
            commands.push(command);
        }
        self.end()?;
        Ok(Some(commands))
    }

    /// Reads a command; `None` before its word that is one too many.
    fn command(&mut self, max_words: usize) -> Result<Option<Cmd>, Stop> {
        self.open()?;
        let mut command = Cmd::new();
        let mut number = 0;
        while self.has_element(number == 0)? {
            if number == max_words {
                return Ok(None);
            }
            self.word(&mut command)?;
            number += 1;
        }
        if !has_name(&command) {
            self.report(MalformedCommand::NoName);
        }
        Ok(Some(command))
    }

    /// Reads the other words of a command, and drops them.
    fn skip_words(&mut self) -> Result<(), Stop> {
        let mut has_more = true;
        while has_more {
            self.word(&mut Cmd::new())?;
            has_more = self.has_element(false)?;
        }
        Ok(())
    }

    /// Reads a word, and appends it to `command`.
    fn word(&mut self, command: &mut Cmd) -> Result<(), Stop> {
        match self.peek() {
            Some(b'"') => self.string(command),
            Some(b'[' | b'{') => Err(Stop::Nested(MalformedCommand::Argument)),
            _ => self.scalar(command),
        }
    }

    /// Reads a number, `true`, `false` or `null`.
    fn scalar(&mut self, command: &mut Cmd) -> Result<(), Stop> {
        let bytes = self.rest.as_bytes();
        let length =
            |is_part: fn(&u8) -> bool| bytes.iter().take_while(|byte| is_part(byte)).count();
        let digits = length(u8::is_ascii_digit);
        let is_whole_number = matches!(bytes, [b'0', b',' | b']', ..] | [b'1'..=b'9', ..])
            && matches!(bytes.get(digits), Some(b',' | b']'));
        if is_whole_number {
            command.write_arg(self.take(digits).as_bytes());
            return Ok(());
        }
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        let text = self.take(length(is_part));
        serde_json::from_str::<IgnoredAny>(text).map_err(|_| Stop::Syntax)?;
        command.write_arg(text.as_bytes());
        Ok(())
    }

    fn string(&mut self, command: &mut Cmd) -> Result<(), Stop> {
        self.take(1);
        let text = self.take(plain_length(self.rest.as_bytes()));
        if self.eat(b'"') {
            command.write_arg(text.as_bytes());
            return Ok(());
        }
        let mut word = command.writer_for_next_arg();
        // Writing to memory does not fail.
        let mut write = |bytes: &[u8]| word.write_all(bytes).map_err(|_| Stop::Syntax);
        write(text.as_bytes())?;
        let mut rest = self.rest.as_bytes();
        while rest.first() != Some(&b'"') {
            let mut block = [0; DECODED_BYTES];
            let length;
            (length, rest) = self.decode(rest, &mut block)?;
            write(block.get(..length).unwrap_or_default())?;
        }
        self.take(self.rest.len() - rest.len() + 1);
        Ok(())
    }

    /// Decodes a string until its end, or until the block is full. Returns the number of decoded
    /// bytes, and the text behind them.
    fn decode<'b>(
        &mut self,
        mut text: &'b [u8],
        block: &mut [u8; DECODED_BYTES],
    ) -> Result<(usize, &'b [u8]), Stop> {
        let mut decoded = 0;
        while let Some(room) = block.get_mut(decoded..).and_then(<[u8]>::first_chunk_mut) {
            let length;
            (length, text) = match text {
                [b'"', ..] => break,
                [b'\\', b'u', rest @ ..] => self.code_point(rest, room)?,
                [b'\\', escape, rest @ ..] => (unescape(*escape, room)?, rest),
                _ => plain_bytes(text, room)?,
            };
            decoded += length;
        }
        Ok((decoded, text))
    }

    /// Decodes a character behind `\u`, which may need the second half of a surrogate pair.
    #[inline]
    fn code_point<'b>(
        &mut self,
        text: &'b [u8],
        room: &mut [u8; 8],
    ) -> Result<(usize, &'b [u8]), Stop> {
        let (unit, rest) = code_unit(text).ok_or(Stop::Syntax)?;
        if let Some(character) = char::from_u32(unit.into()) {
            return Ok((character.encode_utf8(room).len(), rest));
        }
        let second = rest.strip_prefix(b"\\u").and_then(code_unit);
        let units = [Some(unit), second.map(|(unit, _)| unit)];
        match (char::decode_utf16(units.into_iter().flatten()).next(), second) {
            (Some(Ok(character)), Some((_, rest))) => Ok((character.encode_utf8(room).len(), rest)),
            _ => {
                self.report(MalformedCommand::Argument);
                Ok((0, rest))
            }
        }
    }

    /// Reads a value in the place of a command, and drops it.
    fn flat_value(&mut self) -> Result<(), Stop> {
        if !self.eat(b'{') {
            return self.word(&mut Cmd::new());
        }
        loop {
            match self.peek().ok_or(Stop::Syntax)? {
                b'"' => self.string(&mut Cmd::new())?,
                b'[' | b'{' => return Err(Stop::Nested(MalformedCommand::Array)),
                b'}' => break,
                _ => drop(self.rest.chars().next().map(|one| self.take(one.len_utf8()))),
            }
        }
        self.take(1);
        Ok(())
    }

    /// Records the reason to refuse the request, unless an earlier one is known.
    fn report(&mut self, problem: MalformedCommand) {
        self.problem.get_or_insert(problem);
    }

    /// Reads the opening bracket of an array.
    fn open(&mut self) -> Result<(), Stop> {
        self.peek();
        if self.eat(b'[') { Ok(()) } else { Err(Stop::Syntax) }
    }

    /// Reads the comma before the next element of an array, or its closing bracket. Returns whether
    /// an element must follow.
    fn has_element(&mut self, is_first: bool) -> Result<bool, Stop> {
        let next = self.peek();
        if next == Some(b']') {
            self.take(1);
            return Ok(false);
        }
        if is_first || next == Some(b',') {
            self.take(usize::from(!is_first));
            return Ok(true);
        }
        Err(Stop::Syntax)
    }

    /// Checks that only white space follows.
    fn end(&mut self) -> Result<(), Stop> {
        if self.peek().is_none() { Ok(()) } else { Err(Stop::Syntax) }
    }

    /// Skips white space, and returns the next byte without reading it.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.rest.as_bytes().first() {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.take(1),
                next => return next.copied(),
            };
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        let is_next = self.rest.as_bytes().first() == Some(&byte);
        self.take(usize::from(is_next));
        is_next
    }
}

impl<'a> Parser<'a> {
    /// Reads `length` bytes, which end where a character does.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or_default();
        self.rest = rest;
        taken
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
fn plain_bytes<'a>(text: &'a [u8], room: &mut [u8; 8]) -> Result<(usize, &'a [u8]), Stop> {
    match text.first_chunk() {
        Some(bytes) => *room = *bytes,
        None => {
            // A zero byte is special.
            *room = [0; 8];
            room.iter_mut().zip(text).for_each(|(to, from)| *to = *from);
        }
    }
    match plain_length_of_8(*room) {
        0 => Err(Stop::Syntax),
        length => text.get(length..).map(|rest| (length, rest)).ok_or(Stop::Syntax),
    }
}

/// Returns the number of bytes before the first special one.
///
/// A borrow of the subtractions reaches only bytes behind a special one, so the lowest bit is right.
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
fn unescape(escape: u8, [byte, ..]: &mut [u8; 8]) -> Result<usize, Stop> {
    *byte = match escape {
        b'"' | b'\\' | b'/' => escape,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        _ => return Err(Stop::Syntax),
    };
    Ok(1)
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

/// The reason why a body is refused. Contains nothing of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MalformedCommand {
    /// An argument is an array, an object, or text with half a surrogate pair.
    Argument,
    /// A command is not an array.
    Array,
    /// The list of commands is not an array.
    ArrayOfArrays,
    /// The body is not UTF-8.
    Encoding,
    /// A command has no name.
    NoName,
    /// A command has more than [`MAX_WORDS`] words.
    TooLong,
}

impl MalformedCommand {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Argument => {
                "ERR an argument must be a string of Unicode text, a number, a boolean or null"
            }
            Self::Array => "ERR a command must be a JSON array",
            Self::ArrayOfArrays => "ERR the commands must be a JSON array of JSON arrays",
            Self::Encoding => "ERR the request body must be JSON in UTF-8",
            Self::NoName => "ERR a command must begin with its name",
            Self::TooLong => "ERR a command may have at most 262144 arguments",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    fn texts(command: &Cmd) -> Vec<String> {
        words(command).map(|word| String::from_utf8(word.to_vec()).unwrap()).collect()
    }

    fn parsed(json: &str) -> Vec<String> {
        texts(&parse(json, usize::MAX).unwrap().unwrap())
    }

    #[test]
    fn every_kind_of_argument_arrives_as_it_was_written() {
        let json = r#"["SET", "a\"b\né", "", "\"", 9007199254740993, 12345678901234567890123,
                       -1.50, 1e21, true, false, null]"#;
        let expected = [
            "SET",
            "a\"b\né",
            "",
            "\"",
            "9007199254740993",
            "12345678901234567890123",
            "-1.50",
            "1e21",
            "true",
            "false",
            "null",
        ];
        assert_eq!(parsed(json), expected);
    }

    #[test]
    fn a_malformed_command_is_refused_with_its_reason() {
        for (json, problem) in [
            ("{}", MalformedCommand::Array),
            ("\"PING\"", MalformedCommand::Array),
            ("[\"PING\"", MalformedCommand::Array),
            ("[\"PING\"] x", MalformedCommand::Array),
            ("", MalformedCommand::Array),
            ("[]", MalformedCommand::NoName),
            ("[\"\"]", MalformedCommand::NoName),
            ("[\"SET\",[]]", MalformedCommand::Argument),
            ("[\"SET\",{\"a\":1}]", MalformedCommand::Argument),
            ("[\"SET\",\"\\ud800\"]", MalformedCommand::Argument),
        ] {
            assert_eq!(parse(json, 2).unwrap_err(), problem, "{json}");
        }
        for (json, number) in [("[]", Some(0)), ("[[1],[2]]", Some(2)), ("[[],[],{}]", None)] {
            let list = parse_list(json, 2, usize::MAX).unwrap();
            assert_eq!(list.map(|commands| commands.len()), number, "{json}");
        }
        for json in ["{}", "[[],[]", "[[]] x", "[[],]"] {
            let refused = parse_list(json, 2, usize::MAX).unwrap_err();
            assert_eq!(refused, MalformedCommand::ArrayOfArrays, "{json}");
        }
        for (json, problem) in [
            ("[[1],0]", MalformedCommand::Array),
            ("[[1],{\"a\":\"}\",\"b\":\"é\"}]", MalformedCommand::Array),
            ("[[1],[]]", MalformedCommand::NoName),
            ("[[1,[]],[]]", MalformedCommand::Argument),
            ("[[],[1,[]]]", MalformedCommand::NoName),
        ] {
            assert_eq!(parse_list(json, 2, usize::MAX).unwrap_err(), problem, "{json}");
        }
    }

    #[test]
    fn a_command_has_no_more_words_than_its_client_may_send() {
        let json = format!("[{}0]", "0,".repeat(99));
        assert_eq!(words(&parse(&json, 100).unwrap().unwrap()).count(), 100);
        assert!(parse(&json, 99).unwrap().is_none());
        let list = parse_list(&format!("[[1],{json},[2]]"), 3, 99).unwrap().unwrap();
        assert_eq!(list.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true]);
    }

    /// What follows the elements that a client may send is no JSON, so it cannot have been read.
    #[test]
    fn nothing_is_read_behind_the_elements_that_a_client_may_send() {
        assert!(parse("[0,0,0,\u{1}", 2).unwrap().is_none());
        assert!(parse_list("[[],[],[],\u{1}", 2, usize::MAX).unwrap().is_none());
    }

    #[test]
    fn nothing_is_read_behind_a_value_that_is_nested_too_deeply() {
        for nested in ["[", "{"] {
            let refused = parse(&format!("[{nested}\u{1}"), usize::MAX).unwrap_err();
            assert_eq!(refused, MalformedCommand::Argument);
            let refused = parse_list(&format!("[[1],[{nested}\u{1}"), 2, usize::MAX).unwrap_err();
            assert_eq!(refused, MalformedCommand::Argument);
            let refused =
                parse_list(&format!("[{{\"a\":{nested}\u{1}"), 2, usize::MAX).unwrap_err();
            assert_eq!(refused, MalformedCommand::Array);
        }
    }

    /// Parses a command by `serde_json` alone.
    fn by_serde_json(json: &str) -> Result<Vec<String>, MalformedCommand> {
        let values: Vec<&RawValue> =
            serde_json::from_str(json).map_err(|_| MalformedCommand::Array)?;
        let word = |value: &RawValue| match value.get().as_bytes() {
            [b'"', ..] => serde_json::from_str(value.get()).map_err(|_| MalformedCommand::Argument),
            _ => Ok(value.get().to_owned()),
        };
        let words: Vec<String> = values.into_iter().map(word).collect::<Result<_, _>>()?;
        match words.first() {
            Some(name) if !name.is_empty() => Ok(words),
            _ => Err(MalformedCommand::NoName),
        }
    }

    /// Both parsers read every text of a few pieces in the same way: each piece begins, continues or
    /// ends a value, and the long one crosses the blocks in which a string is read.
    #[test]
    fn a_text_is_read_as_serde_json_reads_it() {
        let long = "0123456789".repeat(4);
        let pieces = [
            "", "\"", "\\", "\\\"", "\\n", "\\u", "\\u0041", "\\ud83d", "\\ude00", "\\uD8", "00e9",
            "é", "\u{1}", "\n", " ", ",", "0", "-", "1.5e+3", "true", "nul", "]", "x", &long,
        ];
        let mut accepted = 0;
        for first in pieces {
            for second in pieces {
                for third in pieces {
                    for quote in ["", "\""] {
                        let json = format!("[{quote}{first}{second}{third}{quote}]");
                        let found = parse(&json, usize::MAX);
                        let found = found.map(|command| texts(&command.unwrap()));
                        accepted += usize::from(found.is_ok());
                        assert_eq!(found, by_serde_json(&json), "{json}");
                    }
                }
            }
        }
        assert!(accepted > 4_000, "{accepted}");
    }

    #[test]
    fn long_strings_arrive_as_serde_json_reads_them() {
        for escape in ["\\n", "\\u0061", "\\u00e9", "\\u20ac", "\\ud83d\\ude00", "é", "x"] {
            for between in 0..=40 {
                let json =
                    format!("[1,\"{}\"]", format!("{}{escape}", "y".repeat(between)).repeat(3_000));
                assert_eq!(parsed(&json), by_serde_json(&json).unwrap(), "{escape} {between}");
            }
        }
    }
}
