//! What JavaScript hands in, checked once: everything behind this border is of the right kind and in range.

use alloc::format;
use alloc::string::String;
use core::time::Duration;

use js_sys::{Function, JsString, Reflect};
use wasm_bindgen::prelude::*;

use super::error::invalid;
use crate::client::Terms;
use crate::error::InvalidOption;
use crate::protocol::gateway::{Gateway, KeyLocking};
use crate::protocol::script::Publish;
use crate::timing::{AttemptTime, LeaseTime, Patience, RequestBudget, WaitTime};

/// An options object, or its absence.
pub(super) struct Options<'a>(Option<&'a JsValue>);

impl<'a> Options<'a> {
    pub(super) fn new(value: &'a JsValue) -> Result<Self, JsValue> {
        if value.is_undefined() {
            Ok(Self(None))
        } else if value.is_object() {
            Ok(Self(Some(value)))
        } else {
            Err(no("options", "an object"))
        }
    }

    /// The option's value; `None` when it is absent or undefined.
    fn get(&self, name: &str) -> Result<Option<JsValue>, JsValue> {
        let Some(object) = self.0 else { return Ok(None) };
        let value = Reflect::get(object, &name.into())?;
        Ok(Some(value).filter(|value| !value.is_undefined()))
    }

    fn parse<T>(
        &self,
        name: &str,
        accepted: &str,
        parse: impl FnOnce(&JsValue) -> Option<T>,
    ) -> Result<Option<T>, JsValue> {
        self.get(name)?.map(|value| parse(&value).ok_or_else(|| no(name, accepted))).transpose()
    }

    fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<Option<T>, JsValue> {
        let accepted = words.iter().map(|(word, _)| format!("\"{word}\" ")).collect::<String>();
        self.parse(name, &format!("one of {}", accepted.trim_end()), |value| {
            let word = value.as_string()?;
            words.iter().find(|(known, _)| *known == word).map(|(_, meaning)| *meaning)
        })
    }

    fn flag(&self, name: &str) -> Result<bool, JsValue> {
        Ok(self.parse(name, "true or false", JsValue::as_bool)?.unwrap_or(false))
    }

    pub(super) fn lease(&self) -> Result<Option<LeaseTime>, JsValue> {
        self.parse("leaseMs", "a whole number from 100 to 86400000", |value| {
            LeaseTime::new(ms(value)?).ok()
        })
    }

    pub(super) fn signal(&self) -> Result<Option<JsValue>, JsValue> {
        self.parse("signal", "an AbortSignal", |value| {
            let listens = Reflect::get(value, &"addEventListener".into()).ok()?;
            (listens.is_function() && Reflect::has(value, &"aborted".into()).ok()?)
                .then(|| value.clone())
        })
    }

    /// Everything that an acquisition that waits may be told.
    pub(super) fn terms(&self, has_signal: bool) -> Result<Terms, JsValue> {
        let accepted = "a whole number from 1 to 86400000, or \"until-aborted\" with a signal";
        let patience = self.parse("waitMs", accepted, |value| match value.as_string() {
            Some(word) => {
                (word == "until-aborted" && has_signal).then_some(Patience::UntilCancelled)
            }
            None => Some(Patience::UpTo(WaitTime::new(ms(value)?).ok()?)),
        })?;
        let budget = self.parse("maxRequests", "a whole number from 3 to 10000", |value| {
            RequestBudget::new(u32::try_from(ms(value)?.as_millis()).ok()?).ok()
        })?;
        Ok(Terms::new(self.lease()?, patience.unwrap_or(Patience::UpTo(WaitTime::DEFAULT)), budget))
    }

    pub(super) fn terms_once(&self) -> Result<Terms, JsValue> {
        Ok(Terms::new(self.lease()?, Patience::Once, None))
    }

    pub(super) fn fetch(&self) -> Result<Option<Function>, JsValue> {
        self.parse("fetch", "a function", |value| value.dyn_ref::<Function>().cloned())
    }

    pub(super) fn text(&self, name: &str, accepted: &str) -> Result<Option<String>, JsValue> {
        self.parse(name, accepted, well_formed)
    }

    /// The gateway at this address, with the further options that it has.
    pub(super) fn gateway(&self, url: &str, token: &str) -> Result<Gateway, JsValue> {
        let over_http = self.flag("allowHttp")?;
        let gateway = if over_http {
            Gateway::upstash_over_http(url, token)
        } else {
            Gateway::upstash(url, token)
        };
        let mut gateway = gateway.map_err(|error| invalid(&error))?;
        let words = [("auto", KeyLocking::Auto), ("on", KeyLocking::On), ("off", KeyLocking::Off)];
        if let Some(key_locking) = self.word("keyLocking", &words)? {
            gateway = gateway.key_locking(key_locking);
        }
        let words =
            [("plain", Publish::Plain), ("sharded", Publish::Sharded), ("both", Publish::Both)];
        if let Some(publish) = self.word("publish", &words)? {
            gateway = gateway.publish(publish);
        }
        let accepted = "a whole number from 50 to 60000";
        if let Some(attempt) =
            self.parse("requestTimeoutMs", accepted, |value| AttemptTime::new(ms(value)?).ok())?
        {
            gateway = gateway.request_timeout(attempt);
        }
        Ok(gateway)
    }
}

/// A lock's name: text, and every character of it whole, since halves of one would all become the same.
pub(super) fn name(value: &JsValue) -> Result<String, JsValue> {
    well_formed(value).ok_or_else(|| no("name", "a string of whole characters"))
}

pub(super) fn no(option: &str, accepted: &str) -> JsValue {
    invalid(&InvalidOption::new(option, accepted))
}

fn well_formed(value: &JsValue) -> Option<String> {
    value.dyn_ref::<JsString>().filter(|text| text.is_valid_utf16()).map(String::from)
}

/// A number that is a whole count of milliseconds (or of anything else).
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be whole and in range"
)]
fn ms(value: &JsValue) -> Option<Duration> {
    let number = value.as_f64()?;
    let whole = number.is_finite() && number.trunc() == number && (0.0..=9e15).contains(&number);
    whole.then(|| Duration::from_millis(number as u64))
}
