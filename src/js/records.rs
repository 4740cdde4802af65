//! The result of each call for `pkg/driver.js`: records as JSON in the first line, then the bodies
//! of requests, a line each. Bodies are JSON or encoded for a URL, so they contain no line break.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

/// A value for JavaScript.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// `undefined`: left out of a list.
    Absent,
    /// `null`.
    Nothing,
    Flag(bool),
    Number(i64),
    Text(String),
    List(Vec<Self>),
}

impl Value {
    pub(super) fn or_nothing(value: Option<impl Into<Self>>) -> Self {
        value.map_or(Self::Nothing, Into::into)
    }

    /// Appends the value as JSON.
    fn write(&self, json: &mut String) {
        match self {
            Self::Absent => {}
            Self::Nothing => json.push_str("null"),
            Self::Flag(flag) => json.push_str(if *flag { "true" } else { "false" }),
            Self::Number(number) => json.push_str(&number.to_string()),
            Self::Text(text) => {
                json.push_str(&serde_json::to_string(text).unwrap_or_default());
            }
            Self::List(values) => {
                json.push('[');
                let given = values.iter().filter(|value| !matches!(value, Self::Absent));
                for (place, value) in given.enumerate() {
                    json.push_str(if place == 0 { "" } else { "," });
                    value.write(json);
                }
                json.push(']');
            }
        }
    }

    pub(super) fn to_json(&self) -> String {
        let mut json = String::new();
        self.write(&mut json);
        json
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<u16> for Value {
    fn from(number: u16) -> Self {
        Self::Number(number.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

/// Counts, tokens and keys are below 2^53.
impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number.try_into().unwrap_or(i64::MAX))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// The records of one call.
#[derive(Debug, Default)]
pub(super) struct Records {
    json: String,
    bodies: String,
}

impl Records {
    /// Adds a record of this kind.
    pub(super) fn add<const N: usize>(&mut self, kind: u32, fields: [Value; N]) {
        self.add_list(kind, &fields);
    }

    fn add_list(&mut self, kind: u32, fields: &[Value]) {
        self.json.push_str(if self.json.is_empty() { "[[" } else { ",[" });
        self.json.push_str(&u64::from(kind).to_string());
        for field in fields.iter().filter(|field| !matches!(field, Value::Absent)) {
            self.json.push(',');
            field.write(&mut self.json);
        }
        self.json.push(']');
    }

    /// Adds the body of the request of the last record.
    pub(super) fn add_body(&mut self, body: &str) {
        self.bodies.push('\n');
        self.bodies.push_str(body);
    }

    /// Takes what was recorded, if anything.
    pub(super) fn take(&mut self) -> Option<String> {
        let Self { mut json, bodies } = core::mem::take(self);
        if json.is_empty() {
            return None;
        }
        json.push(']');
        json.push_str(&bodies);
        Some(json)
    }
}
