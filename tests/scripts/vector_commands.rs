//! The meaning of the vectors' words, and Redis' replies in the form of the vectors.

use std::collections::BTreeMap;

use redis::Value as Raw;
use serde_json::{Value, json};

/// Words and their meaning.
pub(crate) struct Words(BTreeMap<String, String>);

impl Words {
    /// The words of a document.
    pub(crate) fn of(document: &Value) -> Self {
        let words = document["words"].as_object().unwrap();
        let text = |text: &Value| text.as_str().unwrap().to_owned();
        Self(words.iter().map(|(word, stands_for)| (word.clone(), text(stands_for))).collect())
    }

    /// Sets the meaning of a word.
    pub(crate) fn mean(&mut self, word: &str, text: String) {
        self.0.insert(word.to_owned(), text);
    }

    /// The text with all words replaced.
    pub(crate) fn fill(&self, text: &str) -> String {
        // The longest first: `$T` is a prefix of `$T+1`.
        self.0.iter().rev().fold(text.to_owned(), |text, (word, value)| text.replace(word, value))
    }

    /// A list of texts with all words replaced.
    pub(crate) fn texts(&self, list: &Value) -> Vec<String> {
        let list = list.as_array().unwrap();
        list.iter().map(|text| self.fill(text.as_str().unwrap())).collect()
    }
}

/// A reply of Redis.
pub(crate) fn raw(value: Raw) -> Value {
    match value {
        Raw::Nil => Value::Null,
        Raw::Int(number) => json!(number),
        Raw::Array(values) => values.into_iter().map(raw).collect(),
        other => json!(redis::from_redis_value::<String>(other).unwrap()),
    }
}
