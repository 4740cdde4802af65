//! Parses commands from JSON, and holds their words.

use std::borrow::Cow;
use std::fmt;

use redis::Cmd;
use serde::Deserializer as _;
use serde::de::{SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The type of a word: text in a JSON body, any bytes in an address.
pub(crate) trait Word: AsRef<[u8]> + fmt::Debug + ToOwned<Owned: fmt::Debug> {}

impl Word for str {}
impl Word for [u8] {}

/// The words of one command, its name first. Neither the list nor the name is empty.
#[derive(Debug)]
pub(crate) struct Words<'a, T: Word + ?Sized = str>(Vec<Cow<'a, T>>);

impl<'a, T: Word + ?Sized> Words<'a, T> {
    pub(crate) fn new(words: Vec<Cow<'a, T>>) -> Result<Self, MalformedCommand> {
        match words.first() {
            Some(name) if !bytes::<T>(name).is_empty() => Ok(Self(words)),
            _ => Err(MalformedCommand::NoName),
        }
    }

    pub(crate) fn as_slice(&self) -> &[Cow<'a, T>] {
        &self.0
    }

    pub(crate) fn to_command(&self) -> Cmd {
        let length = self.0.iter().map(|word| bytes::<T>(word).len()).sum();
        let mut command = Cmd::with_capacity(self.0.len(), length);
        for word in &self.0 {
            command.arg(bytes::<T>(word));
        }
        command
    }
}

/// The bytes of a word.
pub(crate) fn bytes<T: Word + ?Sized>(word: &T) -> &[u8] {
    word.as_ref()
}

impl<'a> Words<'a> {
    /// Parses a command such as `["SET", "key", 1]`. Returns `None`, and stores no more than `max`
    /// words, if it has more.
    ///
    /// A number keeps its spelling, so that one of 64 bits or more stays exact. `true`, `false` and
    /// `null` become these words, as the official SDK expects.
    pub(crate) fn parse(command: &'a str, max: usize) -> Result<Option<Self>, MalformedCommand> {
        let (mut words, mut number, mut problem) = (Vec::new(), 0, None);
        let keep = |value| {
            number += 1;
            match word(value) {
                Ok(word) if number <= max => words.push(word),
                Ok(_) => {}
                Err(malformed) => problem = problem.or(Some(malformed)),
            }
        };
        each(command, keep).map_err(|_| MalformedCommand::Array)?;
        if let Some(malformed) = problem {
            return Err(malformed);
        }
        let words = Self::new(words)?;
        Ok((number <= max).then_some(words))
    }
}

/// Splits an array such as `[["SET", "key", 1], ["GET", "key"]]` into its commands, which it does
/// not parse. Returns `None` if there are more than `max`.
pub(crate) fn split(
    commands: &str,
    max: usize,
) -> Result<Option<Vec<&RawValue>>, MalformedCommand> {
    let (mut kept, mut number) = (Vec::new(), 0);
    let keep = |command| {
        number += 1;
        if number <= max {
            kept.push(command);
        }
    };
    each(commands, keep).map_err(|_| MalformedCommand::ArrayOfArrays)?;
    Ok((number <= max).then_some(kept))
}

/// Calls `on_element` with each element of an array, and checks that nothing follows the array.
/// Stores no element itself.
fn each<'a>(array: &'a str, on_element: impl FnMut(&'a RawValue)) -> serde_json::Result<()> {
    let mut reader = serde_json::Deserializer::from_str(array);
    reader.deserialize_seq(Each(on_element))?;
    reader.end()
}

/// Visits the elements of an array.
struct Each<F>(F);

impl<'de, F: FnMut(&'de RawValue)> Visitor<'de> for Each<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element()? {
            (self.0)(element);
        }
        Ok(())
    }
}

fn word(value: &RawValue) -> Result<Cow<'_, str>, MalformedCommand> {
    let text = value.get();
    match text.as_bytes().first() {
        // A string without an escape, which most are, is borrowed.
        Some(b'"') if !text.contains('\\') => Ok(Cow::Borrowed(text.trim_matches('"'))),
        Some(b'"') => serde_json::from_str::<String>(text)
            .map(Cow::Owned)
            .map_err(|_| MalformedCommand::Argument),
        Some(b'[' | b'{') | None => Err(MalformedCommand::Argument),
        Some(_) => Ok(Cow::Borrowed(text)),
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(json: &str) -> Vec<String> {
        Words::parse(json, usize::MAX)
            .unwrap()
            .unwrap()
            .0
            .into_iter()
            .map(Cow::into_owned)
            .collect()
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
        assert_eq!(words(json), expected);
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
            // With `max` 1 some words are not stored.
            for max in [usize::MAX, 1] {
                assert_eq!(Words::parse(json, max).unwrap_err(), problem, "{json}");
            }
        }
        for (json, number) in [("[]", Some(0)), ("[[],0]", Some(2)), ("[[],[],{}]", None)] {
            let split = split(json, 2).unwrap();
            assert_eq!(split.map(|commands| commands.len()), number, "{json}");
        }
        for json in ["{}", "[[],[],[]", "[[]] x", "[[],]"] {
            assert_eq!(split(json, 1).unwrap_err(), MalformedCommand::ArrayOfArrays, "{json}");
        }
    }

    #[test]
    fn a_command_has_no_more_words_than_its_client_may_send() {
        let json = format!("[{}0]", "0,".repeat(99));
        assert_eq!(Words::parse(&json, 100).unwrap().unwrap().as_slice().len(), 100);
        assert!(Words::parse(&json, 99).unwrap().is_none());
    }
}
