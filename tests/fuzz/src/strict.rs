//! Another library's reading of a gateway's response: strict, and with every field in its place.

use std::fmt;

use edgelatch_proto::protocol::reply::RespValue;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::from_str;
use serde_json::value::RawValue;

/// The largest depth of skipped values.
const DEPTH_MAX: u8 = 127;

/// The fields of an object in their order, duplicates included.
pub(crate) struct Fields<'a>(pub(crate) Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Collect).map(Self)
    }
}

struct Collect;

impl<'de> Visitor<'de> for Collect {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(fields)
    }
}

/// The content of one response: cells, or the text of an error.
pub(crate) type RedisReply = Result<Vec<RespValue>, String>;

/// A response in Upstash's form: exactly one of the two known fields, once; others are skipped.
pub(crate) fn upstash(body: &str) -> Option<RedisReply> {
    let mut result = None;
    for (name, raw) in from_str::<Fields<'_>>(body).ok()?.0 {
        let part = match name.as_str() {
            "result" => Ok(cells(raw.get())?),
            "error" => Err(from_str(raw.get()).ok()?),
            _ if is_json(raw.get(), DEPTH_MAX) => continue,
            _ => return None,
        };
        if result.replace(part).is_some() {
            return None;
        }
    }
    result
}

/// A response in Webdis' form: one field, named by the verb. A list that starts with a boolean is a
/// status or an error.
pub(crate) fn webdis(verb: &str, body: &str) -> Option<RedisReply> {
    let fields = from_str::<Fields<'_>>(body).ok()?.0;
    let [(name, raw)] = fields.as_slice() else { return None };
    if name != verb {
        return None;
    }
    let Ok(elements) = from_str::<Vec<&RawValue>>(raw.get()) else {
        return Some(Ok(vec![cell(raw.get())?]));
    };
    let texts: Vec<&str> = elements.iter().map(|element| element.get()).collect();
    match texts.as_slice() {
        ["false", error] => Some(Err(from_str(error).ok()?)),
        ["true", rest @ ..] => rest.iter().map(|text| cell(text)).collect::<Option<_>>().map(Ok),
        all => all.iter().map(|text| cell(text)).collect::<Option<_>>().map(Ok),
    }
}

/// The elements of a list, each as it is spelt.
pub(crate) fn elements(body: &str) -> Option<Vec<&str>> {
    let elements = from_str::<Vec<&RawValue>>(body).ok()?;
    let texts: Vec<&str> = elements.into_iter().map(RawValue::get).collect();
    texts.iter().all(|text| is_json(text, DEPTH_MAX)).then_some(texts)
}

fn cells(raw: &str) -> Option<Vec<RespValue>> {
    match from_str::<Vec<&RawValue>>(raw) {
        Ok(elements) => elements.into_iter().map(|element| cell(element.get())).collect(),
        Err(_) => Some(vec![cell(raw)?]),
    }
}

/// A text or a whole number that fits; null, booleans and fractions are rejected.
fn cell(raw: &str) -> Option<RespValue> {
    if raw.starts_with('"') {
        from_str(raw).ok().map(RespValue::Text)
    } else {
        raw.parse().ok().map(RespValue::Int)
    }
}

/// Whether it is JSON down to its last value, and not nested too deeply.
fn is_json(raw: &str, depth: u8) -> bool {
    let deeper =
        |raw: &RawValue| depth.checked_sub(1).is_some_and(|depth| is_json(raw.get(), depth));
    match raw.as_bytes()[0] {
        b'"' => from_str::<String>(raw).is_ok(),
        b'[' => from_str::<Vec<&RawValue>>(raw).is_ok_and(|all| all.into_iter().all(deeper)),
        b'{' => from_str::<Fields<'_>>(raw)
            .is_ok_and(|all| all.0.into_iter().all(|(_, raw)| deeper(raw))),
        _ => true,
    }
}
