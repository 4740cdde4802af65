//! `tests/vectors/group.json`.

use super::fixtures::{JAVA, values};
use crate::scripts::vectors::check_all;

#[tokio::test]
async fn every_group_call_of_redisson_leaves_the_keys_of_its_vector() {
    check_all(include_str!("../../vectors/group.json"), &JAVA, |_| values(&["A"])).await;
}
