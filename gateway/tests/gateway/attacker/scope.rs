//! Random scoped tokens, and the keys that each may change, computed from Redisson's key layout and
//! not by the product's own code.

use std::collections::BTreeSet;
use std::time::Duration;

use edgelatch::LockName;
use edgelatch_gateway::{ScopeKeys, ScopedNames, ScopedToken};
use edgelatch_proto::protocol::scope::ObjectKind::{self, Guard, Latch, Lock, Permits, Semaphore};
use edgelatch_proto::protocol::scope::Right;
use fastrand::Rng;

use super::form::{Form, forms};
use crate::scopes::KEY;

pub(crate) const KINDS: [ObjectKind; 5] = [Lock, Semaphore, Permits, Latch, Guard];

/// The prefixes: with a separator, without one, with a hash tag, and with the beginning of a hash
/// tag.
const SHAPES: [[&str; 5]; 4] = [
    ["app:l:", "app:s:", "app:p:", "app:c:", "app:g:"],
    ["app:l", "app:s", "app:p", "app:c", "app:g"],
    ["{app:ol}:", "{app:os}:", "{app:op}:", "{app:oc}:", "{app:og}:"],
    ["app:{l", "app:{s", "app:{p", "app:{c", "app:{g"],
];
/// The number of these rows without a hash tag.
const UNTAGGED: usize = 2;

/// The claims of one scoped token.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    pub(crate) prefixes: Vec<(ObjectKind, String)>,
    pub(crate) rights: BTreeSet<Right>,
    pub(crate) lasting: Vec<String>,
    /// In milliseconds, as `peer_skew`.
    pub(crate) max_lease: u64,
    pub(crate) peer_skew: u64,
    /// Whether some names have a hash tag.
    has_tags: bool,
}

impl Scope {
    pub(crate) fn random(rng: &mut Rng, has_tags: bool, round: usize) -> Self {
        let shapes = if has_tags { &SHAPES[..] } else { &SHAPES[..UNTAGGED] };
        let shape = shapes[rng.usize(..shapes.len())];
        let kinds = KINDS.into_iter().zip(shape.map(str::to_owned));
        let mut prefixes: Vec<_> = kinds.filter(|_| rng.u8(..8) > 0).collect();
        if prefixes.is_empty() {
            prefixes.push((Lock, shape[0].to_owned()));
        }
        // Each round lacks another right, so that calls are refused for lack of it.
        let lacking = Right::ALL.get(round % (Right::ALL.len() + 2));
        let has = |right: &Right| Some(right) != lacking && rng.u8(..8) > 0;
        let mut rights: BTreeSet<Right> = Right::ALL.into_iter().filter(has).collect();
        if rights.is_empty() {
            rights.insert(Right::Hold);
        }
        let mut scope =
            Self { prefixes, rights, lasting: Vec::new(), max_lease: 0, peer_skew: 1000, has_tags };
        let kinds = scope.prefixes.clone().into_iter();
        let lasting = kinds
            .filter(|_| rng.bool())
            .flat_map(|(kind, _)| scope.names(kind).into_iter().take(2));
        scope.lasting = lasting.collect();
        scope.max_lease = [100, 5000, 60_000][rng.usize(..3)];
        scope.peer_skew = [0, 1000, 60_000][rng.usize(..3)];
        scope
    }

    /// Returns the scope of a token for every kind of object, with an empty `lasting`.
    pub(crate) fn whole(rights: [Right; 2], max_lease: u64, peer_skew: u64) -> Self {
        let prefixes = KINDS.into_iter().zip(SHAPES[0].map(str::to_owned)).collect();
        let (rights, lasting) = (rights.into(), Vec::new());
        Self { prefixes, rights, lasting, max_lease, peer_skew, has_tags: true }
    }

    /// Returns a name of this kind, with an end that [`names`](Self::names) does not use.
    pub(crate) fn name(&self, kind: ObjectKind, ending: &str) -> String {
        [self.prefix(kind).unwrap_or_default(), ending].concat()
    }

    /// Returns the signed token.
    pub(crate) fn token(&self) -> String {
        let prefix = |kind| self.prefix(kind).map(str::to_owned);
        let names = ScopedNames {
            locks: prefix(Lock),
            semaphores: prefix(Semaphore),
            permits: prefix(Permits),
            latches: prefix(Latch),
            guarded: prefix(Guard),
        };
        let lease = Duration::from_millis(self.max_lease);
        let mut token = ScopedToken::of(names, lease, Duration::from_secs(3600));
        token.rights = self.rights.iter().copied().collect();
        token.lasting = self.lasting.clone();
        token.peer_skew = Duration::from_millis(self.peer_skew);
        ScopeKeys::new([KEY]).unwrap().sign(&token).unwrap()
    }

    pub(crate) fn has(&self, right: Right) -> bool {
        self.rights.contains(&right)
    }

    /// Whether the token may be used for an object of this kind and name.
    pub(crate) fn covers(&self, kind: ObjectKind, name: &str) -> bool {
        self.prefix(kind).is_some_and(|prefix| name.starts_with(prefix))
    }

    fn prefix(&self, kind: ObjectKind) -> Option<&str> {
        self.prefixes.iter().find(|(of, _)| *of == kind).map(|(_, prefix)| prefix.as_str())
    }

    /// Returns the names in use for a kind: names of held objects (see `victims`), free ones, and
    /// ones that look like other keys.
    pub(crate) fn names(&self, kind: ObjectKind) -> Vec<String> {
        let Some(prefix) = self.prefix(kind) else { return Vec::new() };
        let is_open = prefix.contains('{') && !prefix.contains('}');
        let close = if is_open { "}" } else { "" };
        let held: &[_] = match kind {
            Lock => &["plain", "fair", "fair-rw", "read", "write", "group", "a:timeout"],
            _ => &["plain", "a:timeout"],
        };
        let free: &[_] =
            if self.has_tags { &["free", "{x}a-free", "{x}b-free"] } else { &["free", "a-free"] };
        let endings = held.iter().chain(free);
        let names = endings.map(|ending| format!("{prefix}{ending}{close}"));
        names.filter(|name| LockName::parse(name).is_ok()).collect()
    }

    /// Returns the kind and name of the object that a key belongs to, and the key's purpose. `None`
    /// for keys that the token must not change.
    pub(crate) fn owner_of(&self, key: &str) -> Option<(ObjectKind, String, Form)> {
        let forms = forms(key);
        // All names with a hash tag share it, whatever their prefixes; the checker looks at its
        // members.
        if let [(Form::Registry, _)] = forms.as_slice() {
            return self.prefix(Lock).map(|_| (Lock, String::new(), Form::Registry));
        }
        let covers =
            |prefix: &str, names: &[String]| names.iter().any(|name| name.starts_with(prefix));
        self.prefixes.iter().find_map(|(kind, prefix)| {
            // A name that looks like a key of another object is only covered if that object's name
            // is.
            let is_reached = |form: Form, names: &[String]| match form {
                Form::Bare => forms.iter().all(|(_, names)| covers(prefix, names)),
                _ => covers(prefix, names),
            };
            let mut found = forms.iter().filter(|(form, _)| form.is_of(*kind));
            let (form, names) = found.find(|(form, names)| is_reached(*form, names))?;
            let name = names.iter().find(|name| name.starts_with(prefix.as_str()))?;
            Some((*kind, name.clone(), *form))
        })
    }
}
