//! Values of a group.

mod ends;
mod given;
mod keys;
mod mixed;
mod random;
mod schedule;
mod teeth;
mod twice;
mod vectors;

use edgelatch::protocol::script::Publish;

use crate::support::calls::Calls;

/// Some values of a group.
pub(super) fn calls(group: &str, values: &[&str]) -> Calls {
    given::values_of(group, values, given::PAD, Publish::Plain)
}
