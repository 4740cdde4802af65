//! Address and token from an environment.

use alloc::format;
use alloc::string::String;

use js_sys::Reflect;
use wasm_bindgen::prelude::*;

use super::options::no;

/// The names that gateways' own documentation uses, the first that is there wins.
const URL: [&str; 2] = ["UPSTASH_REDIS_REST_URL", "KV_REST_API_URL"];
const TOKEN: [&str; 2] = ["UPSTASH_REDIS_REST_TOKEN", "KV_REST_API_TOKEN"];

/// Reads both from `env`, or from `process.env` where that is not given.
pub(super) fn read(env: &JsValue, prefix: &str) -> Result<(String, String), JsValue> {
    let env = if env.is_undefined() { process_env() } else { env.clone() };
    if !env.is_object() {
        return Err(no(
            "env",
            "an object, such as a Worker's bindings; this runtime has no process.env",
        ));
    }
    Ok((find(&env, prefix, URL)?, find(&env, prefix, TOKEN)?))
}

fn find(env: &JsValue, prefix: &str, names: [&str; 2]) -> Result<String, JsValue> {
    for name in names {
        let value = Reflect::get(env, &format!("{prefix}{name}").into())?;
        if let Some(text) = value.as_string().filter(|text| !text.trim().is_empty()) {
            return Ok(text);
        }
    }
    let [first, second] = names;
    Err(no(
        &format!("{prefix}{first}"),
        &format!("a string in the environment (or {prefix}{second})"),
    ))
}

fn process_env() -> JsValue {
    let field = |object: &JsValue, name: &str| Reflect::get(object, &name.into()).ok();
    field(&js_sys::global(), "process")
        .and_then(|process| field(&process, "env"))
        .unwrap_or_default()
}
