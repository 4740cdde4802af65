//! Parses commands from JSON into the form in which the driver sends them to Redis.
//!
//! The parser reads a body once, and appends each word to its command. `serde_json` parses the
//! values that are rare. It cannot parse the rest in the same way: it keeps the spelling of a
//! number only in a `RawValue`, so that strings would be read twice, and it reads a nested list to
//! its end before the gateway could refuse it.

mod string;
#[cfg(test)]
mod tests;

use redis::{Arg, Cmd, RedisWrite as _};
use serde::de::IgnoredAny;

use self::string::append_string;
pub(crate) use self::string::plain_length;

/// The most words of a command: the gateway parses a command of this size in about 5 ms. Redis
/// before version 7 closes the connection at four times this number.
pub(crate) const MAX_WORDS: usize = (1 << 18) + 1;

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
        let end = append_string(self.rest, command).ok_or(Stop::Syntax)?;
        if !end.is_unicode {
            self.report(MalformedCommand::Argument);
        }
        self.take(end.length);
        Ok(())
    }

    /// Reads a value in the place of a command, and drops it.
    fn flat_value(&mut self) -> Result<(), Stop> {
        if !self.consume(b'{') {
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
        if self.consume(b'[') { Ok(()) } else { Err(Stop::Syntax) }
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

    fn consume(&mut self, byte: u8) -> bool {
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
