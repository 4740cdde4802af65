//! The words of a command, and how JSON writes them.

use std::borrow::Cow;
use std::fmt;

use redis::Cmd;
use serde_json::value::RawValue;

/// What a word is: text in a JSON body, any bytes in an address.
pub(crate) trait Word: AsRef<[u8]> + fmt::Debug + ToOwned<Owned: fmt::Debug> {}

impl Word for str {}
impl Word for [u8] {}

/// The words of one command, its name first. Never empty.
#[derive(Debug)]
pub(crate) struct Words<'a, T: Word + ?Sized = str>(Vec<Cow<'a, T>>);

impl<'a, T: Word + ?Sized> Words<'a, T> {
    pub(crate) fn new(words: Vec<Cow<'a, T>>) -> Result<Self, Malformed> {
        match words.first() {
            Some(name) if !bytes::<T>(name).is_empty() => Ok(Self(words)),
            _ => Err(Malformed::NoName),
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
    /// Reads `["SET", "key", 1]`.
    ///
    /// A number is passed on letter by letter, so that one of 64 bits or more stays exact;
    /// `true`, `false` and `null` become these words, as the official SDK expects.
    pub(crate) fn parse(command: &'a str) -> Result<Self, Malformed> {
        let values: Vec<&RawValue> = serde_json::from_str(command).map_err(|_| Malformed::Array)?;
        Self::new(values.into_iter().map(word).collect::<Result<_, _>>()?)
    }

    /// Reads `[["SET", "key", 1], ["GET", "key"]]`.
    pub(crate) fn parse_all(commands: &'a str) -> Result<Vec<Self>, Malformed> {
        let commands: Vec<&RawValue> =
            serde_json::from_str(commands).map_err(|_| Malformed::ArrayOfArrays)?;
        commands.into_iter().map(|command| Self::parse(command.get())).collect()
    }
}

fn word(value: &RawValue) -> Result<Cow<'_, str>, Malformed> {
    let text = value.get();
    match text.as_bytes().first() {
        // Borrowed if the string has no escape in it, which is nearly always.
        Some(b'"') if !text.contains('\\') => Ok(Cow::Borrowed(text.trim_matches('"'))),
        Some(b'"') => {
            serde_json::from_str::<String>(text).map(Cow::Owned).map_err(|_| Malformed::Argument)
        }
        Some(b'[' | b'{') | None => Err(Malformed::Argument),
        Some(_) => Ok(Cow::Borrowed(text)),
    }
}

/// What is wrong with a body. The body itself is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// An argument is an array, an object or half a surrogate pair.
    Argument,
    /// Not an array where a command should be.
    Array,
    /// Not an array where commands should be.
    ArrayOfArrays,
    /// Not UTF-8, which JSON is.
    Encoding,
    /// A command without a name.
    NoName,
}

impl Malformed {
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
        Words::parse(json).unwrap().0.into_iter().map(Cow::into_owned).collect()
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
    fn what_is_no_command_is_told_apart() {
        for (json, problem) in [
            ("{}", Malformed::Array),
            ("\"PING\"", Malformed::Array),
            ("[\"PING\"", Malformed::Array),
            ("[\"PING\"] x", Malformed::Array),
            ("", Malformed::Array),
            ("[]", Malformed::NoName),
            ("[\"\"]", Malformed::NoName),
            ("[\"SET\",[]]", Malformed::Argument),
            ("[\"SET\",{\"a\":1}]", Malformed::Argument),
            ("[\"SET\",\"\\ud800\"]", Malformed::Argument),
        ] {
            assert_eq!(Words::parse(json).unwrap_err(), problem, "{json}");
        }
        assert_eq!(Words::parse_all("[\"PING\"]").unwrap_err(), Malformed::Array);
        assert_eq!(Words::parse_all("{}").unwrap_err(), Malformed::ArrayOfArrays);
        assert!(Words::parse_all("[]").unwrap().is_empty());
    }
}
