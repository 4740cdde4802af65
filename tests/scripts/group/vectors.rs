//! `tests/vectors/group.json`.

use super::fixtures::{JAVA, values};
use crate::scripts::vectors::check_all;

#[tokio::test]
async fn every_call_of_redisson_s_about_a_group_leaves_what_its_vector_says() {
    check_all(include_str!("../../vectors/group.json"), &JAVA, |_| values(&["A"])).await;
}
