//! Scoped tokens: signed, short-lived, for some rights on the names with a prefix.

mod claims;
mod keys;
mod rules;
mod scripts;

pub use claims::{ScopedNames, ScopedToken};
pub(crate) use keys::Rejection;
pub use keys::{ScopeKeyError, ScopeKeys};
pub(crate) use rules::{Breach, Scope};
