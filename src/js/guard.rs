//! Guarded writes.

use alloc::string::String;

use wasm_bindgen::prelude::*;

use super::host::NpmHost;
use super::make::stray;
use super::numbers::ask;
use super::options::first;
use super::{Given, Of, counts, error};
use crate::client::Guard;
use crate::error::{GuardError, InvalidOption};
use crate::transport::HostFetch;
use edgelatch_proto::protocol::calls::GuardedWrite;

pub(super) async fn answer(
    guard: &Guard<HostFetch, NpmHost>,
    redacts: bool,
    what: u32,
    lease: &Of,
    given: &Given,
) -> Result<JsValue, JsValue> {
    if what == ask::NEWEST {
        let newest = guard.newest().await.map_err(|error| error::request(&error))?;
        return Ok(newest.map_or(JsValue::NULL, |token| counts::as_number(token).into()));
    }
    let Of::Lease(held) = lease else { return Err(error::option(stray())) };
    let write = match what {
        ask::SET => {
            let life = given.numbers().life(0).map_err(error::option)?;
            GuardedWrite::set(first(&given.texts), life)
        }
        ask::DELETE => GuardedWrite::delete(),
        _ => GuardedWrite::claim(),
    };
    let name = given.texts.get(1).map(String::as_str);
    match guard.write(held.lease(), name, &write).await {
        Ok(()) => Ok(JsValue::UNDEFINED),
        // The message names both locks, so it is replaced.
        Err(GuardError::InvalidOption(bad)) if redacts && bad.option() == "lease" => {
            let accepted = "a lease of the lock that protects this key";
            Err(error::invalid(&InvalidOption::new("lease", accepted)))
        }
        Err(error) => Err(error::guard(&error)),
    }
}
