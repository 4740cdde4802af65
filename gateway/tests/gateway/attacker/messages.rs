//! Checks the messages that requests with a scoped token publish: each is on a channel of a name
//! that the token covers, and of a form that the library publishes there.
//!
//! Channels are parsed by Redisson's layout, without the product's own code.

use std::fmt;

use edgelatch_proto::protocol::scope::ObjectKind::{self, Latch, Lock, Permits, Semaphore};
use edgelatch_proto::protocol::scope::Right;

use super::form::{names, without_owner};
use super::scope::Scope;

/// The shortest lease, in milliseconds.
const LEASE_MIN: u64 = 100;
/// A published grant is the lease in milliseconds times this, and the number of listeners.
const LISTENERS: u64 = 1000;
/// The most listeners that a semaphore's message counts, in zeros.
const ZEROS_MAX: usize = 20;

/// A message, as a subscriber received it.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) channel: String,
    pub(crate) text: String,
}

/// The purpose of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    /// Releases and grants of a plain lock; releases of a group.
    Lock,
    /// The turn of one waiter of a fair lock.
    Waiter,
    /// The turn of one waiter of a fair read-write lock, or the end of a hold.
    Owner,
    /// Releases and grants of a read-write lock.
    Sides,
    /// Permits of a semaphore of either kind.
    Permits,
    /// A count-down latch.
    Latch,
}

impl Purpose {
    pub(crate) const ALL: [Self; 6] =
        [Self::Lock, Self::Waiter, Self::Owner, Self::Sides, Self::Permits, Self::Latch];

    fn kinds(self) -> &'static [ObjectKind] {
        match self {
            Self::Lock | Self::Waiter | Self::Owner | Self::Sides => &[Lock],
            Self::Permits => &[Semaphore, Permits],
            Self::Latch => &[Latch],
        }
    }

    /// Whether the library publishes such a text on a channel with this purpose, for a client whose
    /// leases have at most this many milliseconds.
    fn has_form(self, text: &str, max_lease: u64) -> bool {
        let number: Option<u64> = text.parse().ok().filter(|n: &u64| n.to_string() == text);
        let is_grant = || {
            let lease = number.map(|number| number / LISTENERS);
            lease.is_some_and(|lease| (LEASE_MIN..=max_lease).contains(&lease))
        };
        match self {
            Self::Waiter => text == "0",
            Self::Lock => text == "0" || is_grant(),
            Self::Sides => matches!(text, "0" | "1") || is_grant(),
            Self::Owner | Self::Latch => matches!(text, "0" | "1"),
            Self::Permits => {
                let is_count = number.is_some_and(|n| (1..=i32::MAX as u64).contains(&n));
                let is_taken = text.bytes().all(|byte| byte == b'0');
                is_count || is_taken && (1..=ZEROS_MAX).contains(&text.len())
            }
        }
    }
}

/// Returns the purpose of a channel, and the names whose channel it may be.
fn parse(channel: &str) -> Option<(Purpose, Vec<String>)> {
    if let Some(rest) = channel.strip_prefix("redisson_countdownlatch__channel__{") {
        return rest.strip_suffix('}').map(|name| (Purpose::Latch, vec![name.to_owned()]));
    }
    if let Some(rest) = channel.strip_prefix("redisson_lock__channel:") {
        return Some(match without_owner(rest) {
            Some(rest) => (Purpose::Waiter, names(rest)),
            None => (Purpose::Lock, names(rest)),
        });
    }
    if let Some(rest) = channel.strip_prefix("el:") {
        return without_owner(rest).map(|rest| (Purpose::Owner, names(rest)));
    }
    let sides = channel.strip_prefix("redisson_rwlock:").map(|rest| (Purpose::Sides, names(rest)));
    let permits =
        || channel.strip_prefix("redisson_sc:").map(|rest| (Purpose::Permits, names(rest)));
    sides.or_else(permits)
}

/// Returns the purpose of a message's channel, or an error unless the token's client may cause the
/// message.
pub(crate) fn check(message: &Message, scope: &Scope) -> Result<Purpose, Broken> {
    let broken = |what| Broken { what, message: message.clone() };
    let Some((purpose, names)) = parse(&message.channel) else {
        return Err(broken("no channel of an object"));
    };
    let covers = |kind: &ObjectKind| names.iter().any(|name| scope.covers(*kind, name));
    if !purpose.kinds().iter().any(covers) {
        return Err(broken("the channel is out of reach"));
    }
    if !purpose.has_form(&message.text, scope.max_lease) {
        return Err(broken("the library publishes no such message"));
    }
    let changes_latches = [Right::Count, Right::Manage].iter().any(|right| scope.has(*right));
    if purpose == Purpose::Latch && !changes_latches {
        return Err(broken("a latch changed without the right for it"));
    }
    Ok(purpose)
}

/// A message that the token's client must not cause.
#[derive(Debug)]
pub(crate) struct Broken {
    what: &'static str,
    message: Message,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.what, self.message)
    }
}

/// The check finds each sort of forbidden message.
#[test]
fn a_message_that_is_foreign_or_forged_is_found() {
    let scope = Scope::whole([Right::Hold, Right::Manage], 60_000, 1000);
    let holds_only = Scope::whole([Right::Hold, Right::Force], 60_000, 1000);
    let owner = "01010101-0101-8101-8101-010101010101:1";
    let with = |scope: &Scope, channel: &str, text: &str| {
        check(&Message { channel: channel.to_owned(), text: text.to_owned() }, scope).ok()
    };
    let purpose = |channel: &str, text: &str| with(&scope, channel, text);
    let lock = "redisson_lock__channel:{app:l:a}";
    assert_eq!(purpose(lock, "0"), Some(Purpose::Lock));
    assert_eq!(purpose(lock, "60000001"), Some(Purpose::Lock));
    for text in ["60001000", "99999", "1", "00", "", "-1", "x", "18446744073709551616"] {
        assert_eq!(purpose(lock, text), None, "{text}");
    }
    let waiter = format!("{lock}:{owner}");
    assert_eq!((purpose(&waiter, "0"), purpose(&waiter, "1")), (Some(Purpose::Waiter), None));
    let holder = format!("el:{{app:l:a}}:{owner}");
    assert_eq!([purpose(&holder, "0"), purpose(&holder, "1")], [Some(Purpose::Owner); 2]);
    assert_eq!(purpose(&holder, "2"), None);
    assert_eq!(purpose("redisson_rwlock:{app:l:a}", "1"), Some(Purpose::Sides));
    assert_eq!(purpose("redisson_sc:{app:p:a}", "000"), Some(Purpose::Permits));
    assert_eq!(purpose("redisson_sc:{app:s:a}", "7"), Some(Purpose::Permits));
    for text in ["-1", "2147483648", "07", "", "000000000000000000000"] {
        assert_eq!(purpose("redisson_sc:{app:s:a}", text), None, "{text}");
    }
    let latch = "redisson_countdownlatch__channel__{app:c:a}";
    assert_eq!(purpose(latch, "1"), Some(Purpose::Latch));
    assert_eq!(with(&holds_only, latch, "1"), None);
    for channel in [
        "redisson_lock__channel:{app:other}",
        "redisson_lock__channel:{app:s:a}",
        "redisson_sc:{app:l:a}",
        "redisson_countdownlatch__channel__{app:l:a}",
        "app:l:a",
        "__keyspace@0__:app:l:a",
    ] {
        assert_eq!(purpose(channel, "0"), None, "{channel}");
    }
}
