//! `tests/vectors/read_write.json`.

use edgelatch_proto::name::OwnerId;
use edgelatch_proto::protocol::calls::Target;
use serde_json::Value;

use super::fixtures::{JAVA, read_calls, want, write_calls};
use crate::scripts::vectors::check_all;
use test_support::calls::{Calls, owner};

#[tokio::test]
async fn every_call_of_either_side_leaves_the_keys_of_its_vector() {
    check_all(include_str!("../../vectors/read_write.json"), &JAVA, target).await;
}

/// The side that a step concerns.
fn target(step: &Value) -> Calls {
    let named = |word: &str| step[word].as_str().map(owner_named);
    Calls(match step["of"].as_str().unwrap() {
        "read" => {
            let calls = read_calls("myLock");
            Target::Read(match named("parent") {
                Some(parent) => calls.nested_in_write(parent),
                None => calls,
            })
        }
        _ => {
            let calls = match named("inner") {
                Some(inner) => write_calls("myLock").with_nested_read(inner),
                None => write_calls("myLock"),
            };
            Target::Write(match step["want"].as_u64() {
                Some(ms) => calls.prefers_writers(want(ms)),
                None => calls,
            })
        }
    })
}

fn owner_named(letter: &str) -> OwnerId {
    owner(letter.as_bytes()[0] - b'A' + 1)
}
