//! Values of a group.

mod beside_redisson;
mod bounds;
pub(super) mod fixtures;
mod idempotency;
mod keys;
mod vectors;

use edgelatch_proto::protocol::script::Publish;

use test_support::calls::Calls;

/// Some values of a group.
pub(super) fn calls(group: &str, values: &[&str]) -> Calls {
    fixtures::values_of(group, values, fixtures::PAD, Publish::Plain)
}
