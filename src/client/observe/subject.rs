//! The subjects of observations: the kind and name of a lock, and the address of its gateway.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::super::lock::Lock;
use crate::error::{AcquireError, FailureKind, LossReason, ReleaseError};
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::Target;

/// The address of a gateway.
pub(in super::super) struct Address {
    /// The host, with its port if the address has one.
    pub(in super::super) authority: String,
    pub(in super::super) host: String,
    pub(in super::super) port: Option<u16>,
}

impl Address {
    pub(super) fn new(authority: &str) -> Arc<Self> {
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()),
            _ => (authority, None),
        };
        Arc::new(Self { authority: authority.into(), host: host.into(), port })
    }
}

/// A lock of any kind, or permits.
pub(in super::super) struct Subject {
    /// The name of the method that creates such an object in JavaScript, so that spans and metrics
    /// of both libraries can be compared.
    pub(in super::super) kind: &'static str,
    /// `None` if the client redacts names.
    pub(in super::super) name: Option<String>,
    /// The gateway; the first one of a lock that has several.
    pub(in super::super) address: Arc<Address>,
}

impl Subject {
    pub(super) fn of<T: Transport, H: Host>(lock: &Lock<T, H>) -> Arc<Self> {
        let spec = &lock.spec;
        let kind = match (spec.only(), spec.first()) {
            (None, _) if spec.is_majority() => "redLock",
            (None, _) => "multiLock",
            (_, Target::Lock(_)) => "lock",
            (_, Target::Fair(_)) => "fairLock",
            (_, Target::FairReadWrite(_)) => "fairReadWriteLock",
            (_, Target::Group(_)) => "groupLock",
            (_, Target::Semaphore(_)) => "semaphore",
            (_, Target::Permits(_)) => "permitExpirableSemaphore",
            (_, Target::Read(_)) => "read",
            (_, Target::Write(_)) => "write",
        };
        let names = || spec.names().map(LockName::as_str).collect::<Vec<_>>().join(", ");
        let gateway = spec.endpoints().into_iter().next();
        let address = gateway
            .and_then(|id| lock.shared.endpoints.get(id.0 as usize))
            .map_or_else(|| Address::new(""), |endpoint| Arc::clone(&endpoint.observed.address));
        Arc::new(Self { kind, name: (!lock.redacts).then(names), address })
    }
}

/// The object in a message: `lock "invoice:42" at locks.example.com`.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind)?;
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        write!(f, " at {}", self.address.authority)
    }
}

/// The end of an acquisition.
#[derive(Clone, Copy)]
pub(in super::super) enum Ending<'a> {
    /// With this fencing token.
    Granted(Option<u64>),
    /// With an error.
    Failed(&'a AcquireError),
    /// Its future was dropped.
    Dropped,
}

impl Ending<'_> {
    /// The code of the error, as JavaScript's errors have it; `None` after a grant.
    pub(in super::super) const fn error_type(self) -> Option<&'static str> {
        let error = match self {
            Self::Granted(_) => return None,
            Self::Failed(error) => error,
            Self::Dropped => return Some("cancelled"),
        };
        Some(match error {
            AcquireError::InvalidOption(_) => "invalid-option",
            AcquireError::Busy { .. } => "wait-timeout",
            AcquireError::NotSetUp => "not-set-up",
            AcquireError::QueueFull => "queue-full",
            AcquireError::HeldAlready | AcquireError::SelfDeadlock => "reentrancy",
            AcquireError::Cancelled { .. } => "cancelled",
            AcquireError::Refused(_)
            | AcquireError::NotReplicated { .. }
            | AcquireError::TokenRegressed { .. } => "gateway-refused",
            AcquireError::Unreachable(_) | AcquireError::NoEntropy => "gateway-unreachable",
            AcquireError::TooSlow => "gateway-too-slow",
            // A case that is newer than this list counts as unknown.
            _ => "outcome-unknown",
        })
    }
}

/// The code of the error of a release.
pub(super) const fn release_error(error: &ReleaseError) -> &'static str {
    match error {
        ReleaseError::Refused(_) => "gateway-refused",
        _ => "outcome-unknown",
    }
}

pub(in super::super) const fn loss(reason: LossReason) -> &'static str {
    match reason {
        LossReason::Expired => "expired",
        LossReason::Gone => "gone",
        LossReason::Stolen => "stolen",
    }
}

/// The type of a request's failure: a word, or the status of the response.
pub(super) fn failure(kind: FailureKind) -> String {
    match kind {
        FailureKind::NotSent => "not-sent".to_owned(),
        FailureKind::Broken => "broken".to_owned(),
        FailureKind::TimedOut => "timeout".to_owned(),
        FailureKind::Redirected => "redirected".to_owned(),
        FailureKind::TooLarge => "too-large".to_owned(),
        _ => "other".to_owned(),
    }
}
