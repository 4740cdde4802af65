//! What a scoped token says.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// What a scoped token allows, and for how long.
///
/// Any library for JSON Web Tokens can make one as well: signed by HS256, with the claims `prefix`, `maxLeaseMs` and `exp`, and
/// `nbf` and `force` if wanted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ScopedToken {
    /// How the names begin that may be used. Not empty.
    pub prefix: String,
    /// The longest lease that may be asked for: 100 ms to 24 h.
    pub max_lease: Duration,
    /// For how long it is valid from now, in whole seconds. A gateway accepts 24 h at the most unless told otherwise.
    pub lives: Duration,
    /// Whether it may release by force what others hold. Default no.
    pub force: bool,
}

impl ScopedToken {
    /// A token for names that begin with `prefix`, without forced releases.
    #[must_use]
    pub fn new(prefix: impl Into<String>, max_lease: Duration, lives: Duration) -> Self {
        Self { prefix: prefix.into(), max_lease, lives, force: false }
    }

    pub(super) fn claims(&self, now: SystemTime) -> Claims {
        Claims {
            prefix: self.prefix.clone(),
            max_lease_ms: u64::try_from(self.max_lease.as_millis()).unwrap_or(u64::MAX),
            exp: seconds(now).saturating_add(self.lives.as_secs()),
            nbf: None,
            force: self.force,
        }
    }
}

/// The claims as they are signed. What else stands there is let pass, as the standard has it.
#[derive(Deserialize, Serialize)]
pub(super) struct Claims {
    pub(super) prefix: String,
    #[serde(rename = "maxLeaseMs")]
    pub(super) max_lease_ms: u64,
    /// In seconds since 1970.
    pub(super) exp: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) nbf: Option<u64>,
    #[serde(default)]
    pub(super) force: bool,
}

pub(super) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
