//! Signs and verifies scoped tokens.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, SystemTime};

use edgelatch_proto::error::InvalidOption;
use edgelatch_proto::protocol::scope::{ObjectKind, PEER_SKEW_DEFAULT, Prefix, Right};
use edgelatch_proto::timing::{LeaseTime, PeerSkew};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use serde_json::value::RawValue;

use super::claims::{Claims, ScopedToken, seconds};
use super::rules::Scope;
use crate::clock::now;
use crate::limits::ClientKey;

/// The tolerated clock skew between the gateway and a signer of tokens.
const LEEWAY: Duration = Duration::from_secs(30);
/// The longest token, in bytes, above the length of any useful one.
const MAX_TOKEN_BYTES: usize = 4096;
/// The least length of a key: 256 bits, as HS256 needs.
const MIN_KEY_BYTES: usize = 32;

/// The keys of scoped tokens. The first signs; a token signed by any of them is accepted.
///
/// The debug output does not contain them.
#[derive(Clone)]
pub struct ScopeKeys {
    first: EncodingKey,
    all: Vec<DecodingKey>,
}

impl ScopeKeys {
    /// Accepts keys as a file or the environment contains them: removes white space around each,
    /// and drops empty entries. A key is the bytes of its text.
    ///
    /// # Errors
    ///
    /// [`ScopeKeyError::None`] if no key is left, [`ScopeKeyError::Short`] if a key has less than
    /// 32 bytes.
    pub fn new<T: AsRef<str>>(keys: impl IntoIterator<Item = T>) -> Result<Self, ScopeKeyError> {
        let mut first = None;
        let mut all = Vec::new();
        for key in keys {
            let key = key.as_ref().trim();
            if key.is_empty() {
                continue;
            }
            if key.len() < MIN_KEY_BYTES {
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
        // Refuses to sign claims that no gateway accepts.
        scope(&claims, now, client(&claims, ""))?;
        let token = encode(&Header::new(Algorithm::HS256), &claims, &self.first)
            .map_err(|_| ScopeKeyError::Signing)?;
        if token.len() > MAX_TOKEN_BYTES { Err(ScopeKeyError::Long) } else { Ok(token) }
    }

    /// Verifies a token, and returns the scope of its claims. Refuses one that is valid for longer
    /// than `max_lifetime` from `now`.
    pub(crate) fn verify(
        &self,
        token: &[u8],
        now: SystemTime,
        max_lifetime: Duration,
    ) -> Result<Scope, Rejection> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(Rejection::Unknown);
        }
        // The times are checked below against `now`, since the library would read a clock of its
        // own.
        let mut validation = Validation::new(Algorithm::HS256);
        validation.validate_exp = false;
        validation.required_spec_claims.clear();
        let token = self
            .all
            .iter()
            .find_map(|key| decode::<Box<RawValue>>(token, key, &validation).ok())
            // RFC 7515 requires refusing critical extensions that are not supported, and none is.
            .filter(|token| token.header.crit.is_none())
            .ok_or(Rejection::Unknown)?;
        let claims = Claims::parse(token.claims.get()).ok_or(Rejection::Claims)?;
        let now = seconds(now);
        let expires_at = claims.exp.saturating_add(LEEWAY.as_secs());
        if expires_at <= now {
            return Err(Rejection::Expired);
        }
        if claims.nbf.is_some_and(|begins| begins > now.saturating_add(LEEWAY.as_secs())) {
            return Err(Rejection::Early);
        }
        let max_lifetime = max_lifetime.as_secs().saturating_add(LEEWAY.as_secs());
        if claims.exp > now.saturating_add(max_lifetime) {
            return Err(Rejection::Long);
        }
        let expires_at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(expires_at));
        let client = client(&claims, token.claims.get());
        scope(&claims, expires_at.ok_or(Rejection::Long)?, client).map_err(|_| Rejection::Claims)
    }
}

/// Checks the claims, and returns the scope that they describe, valid until `expires_at`.
fn scope(
    claims: &Claims,
    expires_at: SystemTime,
    client: ClientKey,
) -> Result<Scope, ScopeKeyError> {
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
        expires_at,
        client,
    })
}

/// Returns the client whose limits apply. Tokens with the same prefixes and the same `sub` are one
/// client, so that more tokens give a user no higher limits. Without `sub` each token is a client
/// of its own, identified by its claims as they were signed, since tokens of different users may
/// have the same prefixes.
fn client(claims: &Claims, signed: &str) -> ClientKey {
    let Claims { prefix, semaphore_prefix, permit_prefix, latch_prefix, guard_prefix, sub, .. } =
        claims;
    if sub.is_none() {
        return ClientKey::new(signed);
    }
    let parts = [prefix, semaphore_prefix, permit_prefix, latch_prefix, guard_prefix, sub];
    // The key is unique: no prefix has a control character, `sub` is the last part, and no signed
    // JSON object begins with a line break.
    let parts = parts.map(|part| part.as_deref().unwrap_or_default());
    ClientKey::new(&format!("\n{}", parts.join("\n")))
}

/// Returns the prefix of each kind of object. No name may begin with two of them.
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

/// The reason why a token is refused. Details are reported only for a token that was signed with
/// one of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    Claims,
    Early,
    Expired,
    Long,
    Unknown,
}

impl Rejection {
    /// Returns the kind of the failure, for metrics.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Claims => "token-claims",
            Self::Early => "token-early",
            Self::Expired => "token-expired",
            Self::Long => "token-long",
            Self::Unknown => "token-unknown",
        }
    }

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

/// The reason why keys cannot be used, or a token cannot be signed. Never contains a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScopeKeyError {
    /// No key was given.
    #[error("a key is needed: --scope-key-file or EDGELATCH_SCOPE_KEYS")]
    None,
    /// A key has less than 32 bytes, so it could be guessed.
    #[error("a key for scoped tokens must have 32 bytes or more")]
    Short,
    /// The token names no right.
    #[error("a scoped token needs a right, such as `hold`")]
    NoRight,
    /// The token names no prefix.
    #[error("a scoped token needs a prefix for one kind of object")]
    NoPrefix,
    /// One prefix begins with another, so a name would belong to two kinds of objects.
    #[error("no prefix of a scoped token may begin with another of its prefixes")]
    Overlap,
    /// The token has more than 4096 bytes.
    #[error("a scoped token must not have more than 4096 bytes")]
    Long,
    /// Creating the signature failed.
    #[error("the scoped token cannot be signed")]
    Signing,
    /// A claim has a value that no gateway accepts.
    #[error("no such scoped token: {0}")]
    Token(#[from] InvalidOption),
}
