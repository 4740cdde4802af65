//! The wall clock.

use std::time::SystemTime;

/// Returns the present time. Called only at the edges; functions that decide by the time get it as
/// an argument.
#[expect(clippy::disallowed_methods, reason = "tokens expire by this clock")]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}
