//! The keys that scoped tokens are signed with.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, SystemTime};

use edgelatch::error::InvalidOption;
use edgelatch::protocol::scope::{ObjectKind, PEER_SKEW_DEFAULT, Prefix, Right};
use edgelatch::timing::{LeaseTime, PeerSkew};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use serde_json::value::RawValue;

use super::claims::{Claims, ScopedToken, seconds};
use super::rules::Scope;
use crate::clock::now;
use crate::limits::ClientKey;

/// By how much the clocks of those who make tokens may be off.
const LEEWAY: Duration = Duration::from_secs(30);
/// Longer than any token that says no more than it needs to.
const TOKEN_BYTES_MAX: usize = 4096;
/// As many bytes as HS256 has bits to offer.
const KEY_BYTES_MIN: usize = 32;

/// The keys that scoped tokens are signed with: the first signs, each may have signed what comes
/// in.
///
/// They are never part of the debug output.
#[derive(Clone)]
pub struct ScopeKeys {
    first: EncodingKey,
    all: Vec<DecodingKey>,
}

impl ScopeKeys {
    /// Takes the keys as they come from a file or the environment: white space around a key is
    /// dropped, and so are empty entries. A key is the bytes of its text.
    ///
    /// # Errors
    ///
    /// [`ScopeKeyError::None`] if no key is left, [`ScopeKeyError::Short`] if one of them has less
    /// than 32 bytes.
    pub fn new<T: AsRef<str>>(keys: impl IntoIterator<Item = T>) -> Result<Self, ScopeKeyError> {
        let mut first = None;
        let mut all = Vec::new();
        for key in keys {
            let key = key.as_ref().trim();
            if key.is_empty() {
                continue;
            }
            if key.len() < KEY_BYTES_MIN {
                return Err(ScopeKeyError::Short);
            }
            first.get_or_insert_with(|| EncodingKey::from_secret(key.as_bytes()));
            all.push(DecodingKey::from_secret(key.as_bytes()));
        }
        let first = first.ok_or(ScopeKeyError::None)?;
        Ok(Self { first, all })
    }

    /// Signs a token.
    ///
    /// # Errors
    ///
    /// [`ScopeKeyError::Token`] for claims that no gateway accepts, [`ScopeKeyError::Long`] for a
    /// token of more than 4096 bytes.
    pub fn sign(&self, token: &ScopedToken) -> Result<String, ScopeKeyError> {
        let now = now();
        let claims = token.claims(now);
        // What every gateway would refuse is not signed.
        scope(&claims, now, client(&claims, ""))?;
        let token = encode(&Header::new(Algorithm::HS256), &claims, &self.first)
            .map_err(|_| ScopeKeyError::Signing)?;
        if token.len() > TOKEN_BYTES_MAX { Err(ScopeKeyError::Long) } else { Ok(token) }
    }

    /// What a token allows now, unless it would do so for longer than `longest`.
    pub(crate) fn admit(
        &self,
        token: &[u8],
        now: SystemTime,
        longest: Duration,
    ) -> Result<Scope, Rejection> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Rejection::Unknown);
        }
        // Its times are looked at here: a clock is nothing to reach for in passing.
        let mut validation = Validation::new(Algorithm::HS256);
        validation.validate_exp = false;
        validation.required_spec_claims.clear();
        let token = self
            .all
            .iter()
            .find_map(|key| decode::<Box<RawValue>>(token, key, &validation).ok())
            // What is critical to whoever signed it would have to be understood.
            .filter(|token| token.header.crit.is_none())
            .ok_or(Rejection::Unknown)?;
        let claims = Claims::parse(token.claims.get()).ok_or(Rejection::Claims)?;
        let now = seconds(now);
        let ends = claims.exp.saturating_add(LEEWAY.as_secs());
        if ends <= now {
            return Err(Rejection::Expired);
        }
        if claims.nbf.is_some_and(|begins| begins > now.saturating_add(LEEWAY.as_secs())) {
            return Err(Rejection::Early);
        }
        let longest = longest.as_secs().saturating_add(LEEWAY.as_secs());
        if claims.exp > now.saturating_add(longest) {
            return Err(Rejection::Long);
        }
        let ends = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(ends));
        let client = client(&claims, token.claims.get());
        scope(&claims, ends.ok_or(Rejection::Long)?, client).map_err(|_| Rejection::Claims)
    }
}

/// What the claims allow until then.
fn scope(claims: &Claims, ends: SystemTime, client: ClientKey) -> Result<Scope, ScopeKeyError> {
    let rights = match &claims.rights {
        None => BTreeSet::from([Right::Hold]),
        Some(names) => names.iter().map(|name| Right::parse(name)).collect::<Result<_, _>>()?,
    };
    if rights.is_empty() {
        return Err(ScopeKeyError::NoRight);
    }
    let skew = claims.peer_skew_ms.map(Duration::from_millis);
    Ok(Scope {
        prefixes: prefixes(claims)?,
        rights,
        lasting: claims.lasting.iter().cloned().collect(),
        max_lease: LeaseTime::new(Duration::from_millis(claims.max_lease_ms))?,
        peer_skew: PeerSkew::new(skew.unwrap_or(PEER_SKEW_DEFAULT))?.get(),
        ends,
        client,
    })
}

/// The client that limits are counted for: a user who gets many tokens for the same names is one
/// client if they have the same `sub`. Without `sub` each token is a client of its own, told apart
/// by its claims as they were signed: others may have the same prefixes.
fn client(claims: &Claims, signed: &str) -> ClientKey {
    let Claims { prefix, semaphore_prefix, permit_prefix, latch_prefix, guard_prefix, sub, .. } =
        claims;
    if sub.is_none() {
        return ClientKey::new(signed);
    }
    let parts = [prefix, semaphore_prefix, permit_prefix, latch_prefix, guard_prefix, sub];
    // No prefix has a control character, `sub` comes last, and no signed object begins with a line
    // break: no two clients have one key.
    let parts = parts.map(|part| part.as_deref().unwrap_or_default());
    ClientKey::new(&format!("\n{}", parts.join("\n")))
}

/// The prefix of each kind of object. They must not have a name in common.
fn prefixes(claims: &Claims) -> Result<Vec<(ObjectKind, Prefix)>, ScopeKeyError> {
    let named = [
        (ObjectKind::Lock, &claims.prefix),
        (ObjectKind::Semaphore, &claims.semaphore_prefix),
        (ObjectKind::Permits, &claims.permit_prefix),
        (ObjectKind::Latch, &claims.latch_prefix),
        (ObjectKind::Guard, &claims.guard_prefix),
    ];
    let mut prefixes: Vec<(ObjectKind, Prefix)> = Vec::new();
    for (kind, text) in named {
        let Some(text) = text else { continue };
        let prefix = Prefix::new(text)?;
        if prefixes.iter().any(|(_, other)| other.overlaps(&prefix)) {
            return Err(ScopeKeyError::Overlap);
        }
        prefixes.push((kind, prefix));
    }
    if prefixes.is_empty() {
        return Err(ScopeKeyError::NoPrefix);
    }
    Ok(prefixes)
}

impl fmt::Debug for ScopeKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScopeKeys({} hidden)", self.all.len())
    }
}

/// Why a scoped token opens nothing. Only of one that was signed with a key more is said than that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    Claims,
    Early,
    Expired,
    Long,
    Unknown,
}

impl Rejection {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Claims => {
                "WRONGPASS the scoped token has claims that this gateway does not accept"
            }
            Self::Early => "WRONGPASS the scoped token is not valid yet",
            Self::Expired => "WRONGPASS the scoped token has expired",
            Self::Long => "WRONGPASS the scoped token is valid for longer than the gateway allows",
            Self::Unknown => "WRONGPASS invalid or missing auth token",
        }
    }
}

/// Why keys cannot be used, or a token cannot be signed. Never holds a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScopeKeyError {
    /// There is no key at all.
    #[error("a key is needed: --scope-key-file or EDGELATCH_SCOPE_KEYS")]
    None,
    /// One could be guessed.
    #[error("a key for scoped tokens must have 32 bytes or more")]
    Short,
    /// The token names no right.
    #[error("a scoped token needs a right, such as `hold`")]
    NoRight,
    /// The token names no prefix.
    #[error("a scoped token needs a prefix for one kind of object")]
    NoPrefix,
    /// One prefix begins with another, so that a name would belong to two kinds of objects.
    #[error("no prefix of a scoped token may begin with another of its prefixes")]
    Overlap,
    /// The token has too many names.
    #[error("a scoped token must not have more than 4096 bytes")]
    Long,
    /// The signature could not be made.
    #[error("the scoped token cannot be signed")]
    Signing,
    /// No gateway would accept such a token.
    #[error("no such scoped token: {0}")]
    Token(#[from] InvalidOption),
}
