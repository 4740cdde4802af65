//! Detects objects of another kind under the same name: `parts/kind.lua`.

use super::{ERROR, Out, ScriptModel, Value};

/// The reply of a script to an object of another kind.
pub(super) fn other_kind() -> Out {
    (ERROR, "WRONGTYPE the key holds an object of another kind".into(), 0)
}

impl ScriptModel {
    /// Whether a hash belongs to a group. All fields of a hash in the model are of one kind.
    pub(super) fn is_group(&self, key: &str) -> bool {
        self.some_field(key, |field| {
            let value = field.split(':').next().unwrap_or_default();
            value.len() == 22
                && value.chars().all(|c| c.is_ascii_alphanumeric() || "+/".contains(c))
        })
    }

    /// Whether a hash belongs to a plain or a read-write lock.
    pub(super) fn is_lock(&self, key: &str) -> bool {
        let is_at =
            |field: &str, place: usize, what: u8| field.as_bytes().get(place) == Some(&what);
        self.some_field(key, |field| {
            field == "mode" || is_at(field, 8, b'-') && is_at(field, 36, b':')
        })
    }

    /// Whether a key holds anything but a text.
    pub(super) fn is_no_text(&self, key: &str) -> bool {
        self.keys.get(key).is_some_and(|entry| !matches!(entry.value, Value::Text(_)))
    }

    fn some_field(&self, key: &str, is: impl Fn(&str) -> bool) -> bool {
        match self.keys.get(key).map(|entry| &entry.value) {
            Some(Value::Hash(hash)) => hash.keys().any(|field| is(field)),
            _ => false,
        }
    }
}
