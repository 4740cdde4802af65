//! Tokens for whoever may not have a whole one: signed, short-lived, for names with a prefix.

mod claims;
mod keys;
mod rules;
mod scripts;

pub use claims::ScopedToken;
pub(crate) use keys::Rejection;
pub use keys::{ScopeKeyError, ScopeKeys};
pub(crate) use rules::{Breach, Scope};
