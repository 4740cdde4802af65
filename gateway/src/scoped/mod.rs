//! Scoped tokens: signed and short-lived, with some rights on names with their prefixes.

mod claims;
mod keys;
mod rules;

pub use claims::{ScopedNames, ScopedToken};
pub(crate) use keys::Rejection;
pub use keys::{ScopeKeyError, ScopeKeys};
pub(crate) use rules::{Scope, ScopeViolation};
