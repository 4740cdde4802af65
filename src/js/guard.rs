//! Guarded writes.

use alloc::string::String;

use wasm_bindgen::prelude::*;

use super::make::stray;
use super::numbers::method;
use super::options::first;
use super::{Given, Object, counts, error};
use crate::client::Guard;
use crate::host::JsHost;
use crate::transport::HostFetch;
use edgelatch_proto::protocol::calls::GuardedWrite;

pub(super) async fn answer(
    guard: &Guard<HostFetch, JsHost>,
    what: u32,
    lease: &Object,
    given: &Given,
) -> Result<JsValue, JsValue> {
    if what == method::NEWEST {
        let newest = guard.query_newest().await.map_err(|error| error::request(&error))?;
        return Ok(newest.map_or(JsValue::NULL, |token| counts::as_number(token).into()));
    }
    let Object::Lease(held) = lease else { return Err(error::option(stray())) };
    let write = match what {
        method::SET => {
            let life = given.numbers().life(0).map_err(error::option)?;
            GuardedWrite::set(first(&given.texts), life)
        }
        method::DELETE => GuardedWrite::delete(),
        _ => GuardedWrite::claim(),
    };
    let name = given.texts.get(1).map(String::as_str);
    let written = guard.send(held.lease(), name, &write).await;
    written.map(|()| JsValue::UNDEFINED).map_err(|error| error::guard(&error))
}
