//! The claims of a scoped token.

use std::fmt;
use std::marker::PhantomData;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use edgelatch_proto::protocol::scope::{PEER_SKEW_DEFAULT, Right};
use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The rights of a scoped token, and its lifetime, before it is signed.
///
/// [`ScopedToken::new`] sets the least rights: to hold locks whose names begin with one prefix. Any
/// library for JSON Web Tokens can sign the same claims by HS256; the gateway's README lists them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ScopedToken {
    /// The prefixes of the names that it may be used for.
    pub names: ScopedNames,
    /// Its rights. Default [`Right::Hold`] alone.
    pub rights: Vec<Right>,
    /// The names of objects that it may create without an end: fenced locks, permits, latches,
    /// guarded keys. None by default.
    pub lasting: Vec<String>,
    /// The longest lease that it may request: 100 ms to 24 h.
    pub max_lease: Duration,
    /// The clock skew of Redisson's clients that its group locks and permits must tolerate: 0 to 60
    /// s. Default 1 s, as in edgelatch's clients.
    pub peer_skew: Duration,
    /// The claim `sub`, which identifies its user: tokens with the same prefixes and subject are
    /// one client and share its limits. `None` by default: the token is a client of its own.
    pub subject: Option<String>,
    /// How long it is valid after its signing, in whole seconds. A gateway accepts at most 24 h
    /// unless configured otherwise.
    pub lives: Duration,
}

/// The prefixes of the names that a token may be used for, by kind of object. `None` allows no
/// object of that kind.
///
/// No prefix may begin with another one, so that no name belongs to two kinds: in Redis a latch
/// looks like a semaphore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopedNames {
    /// Locks of all kinds.
    pub locks: Option<String>,
    /// Semaphores.
    pub semaphores: Option<String>,
    /// Permit-expirable semaphores.
    pub permits: Option<String>,
    /// Count-down latches.
    pub latches: Option<String>,
    /// Guarded keys, which belong to the application.
    pub guarded: Option<String>,
}

impl ScopedToken {
    /// Creates a token that may hold locks whose names begin with `prefix`.
    #[must_use]
    pub fn new(prefix: impl Into<String>, max_lease: Duration, lives: Duration) -> Self {
        let names = ScopedNames { locks: Some(prefix.into()), ..ScopedNames::default() };
        Self::of(names, max_lease, lives)
    }

    /// Creates a token that may hold objects with these names.
    #[must_use]
    pub fn of(names: ScopedNames, max_lease: Duration, lives: Duration) -> Self {
        let (rights, lasting) = (vec![Right::Hold], Vec::new());
        let (peer_skew, subject) = (PEER_SKEW_DEFAULT, None);
        Self { names, rights, lasting, max_lease, peer_skew, subject, lives }
    }

    pub(super) fn claims(&self, now: SystemTime) -> Claims {
        let ScopedNames { locks, semaphores, permits, latches, guarded } = self.names.clone();
        Claims {
            prefix: locks,
            semaphore_prefix: semaphores,
            permit_prefix: permits,
            latch_prefix: latches,
            guard_prefix: guarded,
            rights: Some(self.rights.iter().map(|right| right.name().to_owned()).collect()),
            lasting: self.lasting.clone(),
            max_lease_ms: millis(self.max_lease),
            peer_skew_ms: Some(millis(self.peer_skew)),
            exp: seconds(now).saturating_add(self.lives.as_secs()),
            nbf: None,
            sub: self.subject.clone(),
            ..Claims::default()
        }
    }
}

/// The claims as they are signed. Unknown claims are refused, so that a misspelt claim is not taken
/// for an absent one.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Claims {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) semaphore_prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) permit_prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) latch_prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) guard_prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rights: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) lasting: Vec<String>,
    pub(super) max_lease_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) peer_skew_ms: Option<u64>,
    /// When it expires, in seconds since 1970.
    pub(super) exp: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) nbf: Option<u64>,
    /// A claim of earlier versions. It gives no right.
    #[serde(default, skip_serializing)]
    #[expect(dead_code, reason = "accepted without effect")]
    force: Option<bool>,
    /// A registered claim (RFC 7519, 4.1) that restricts nothing, as `iat` and `jti` below. `aud`
    /// is refused, since it may name another gateway.
    #[serde(default, skip_serializing)]
    #[expect(dead_code, reason = "accepted without effect")]
    iss: Option<IgnoredAny>,
    /// The user of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sub: Option<String>,
    #[serde(default, skip_serializing)]
    #[expect(dead_code, reason = "accepted without effect")]
    iat: Option<IgnoredAny>,
    #[serde(default, skip_serializing)]
    #[expect(dead_code, reason = "accepted without effect")]
    jti: Option<IgnoredAny>,
}

impl Claims {
    /// Parses a JSON object. `None` for anything else, such as an array with the claims in their
    /// order.
    pub(super) fn parse(json: &str) -> Option<Self> {
        serde_json::from_str::<Object<Self>>(json).ok().map(|object| object.0)
    }
}

/// A value that must be a JSON object. The implementation that serde derives accepts an array as
/// well.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MapOnly<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for MapOnly<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(MapOnly(PhantomData))
    }
}

pub(super) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_an_object_of_known_names() {
        let parse = |json: &str| Claims::parse(json).is_some();
        assert!(parse(r#"{"prefix":"a:","maxLeaseMs":1000,"exp":1,"iat":1.5,"sub":"user 7"}"#));
        for refused in [
            r#"["a:",null,null,null,null,null,[],1000,null,1]"#,
            r#"{"prefix":"a:","maxLeaseMs":1000,"exp":1,"right":["hold"]}"#,
            r#"{"prefix":"a:","maxLeaseMs":1000,"exp":1,"aud":"x"}"#,
            r#"{"prefix":"a:","prefix":"b:","maxLeaseMs":1000,"exp":1}"#,
            r#"{"prefix":"a:","exp":1}"#,
            "{}",
            "7",
        ] {
            assert!(!parse(refused), "{refused}");
        }
    }
}
