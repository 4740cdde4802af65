//! The channels that waiters subscribe to, and the messages on them.

use alloc::string::String;
use core::fmt;
use core::time::Duration;

use crate::protocol::script::Publish;
use crate::timing::LeaseTime;

/// A channel of Redis, and the waiters of a client that a message on it wakes.
///
/// It is never a pattern: Redis counts a subscriber of a pattern as a listener of every matching
/// channel, and a fair lock would regard a dead waiter of Redisson's as alive (F8).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Topic {
    channel: String,
    publish: Publish,
    wake_policy: WakePolicy,
}

/// The waiters of one client that a message wakes. The other waiters retry at their own times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WakePolicy {
    /// One waiter: its grant excludes the others.
    One,
    /// One waiter, and after it the next ones whose permits may still be available. The number is
    /// that of the permits which this waiter requests.
    Permits(u32),
    /// All waiters.
    All,
}

/// Omits the channel: it contains a name, and may contain an owner.
impl fmt::Debug for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Topic").field("wake_policy", &self.wake_policy).finish_non_exhaustive()
    }
}

impl Topic {
    pub(super) const fn new(channel: String, publish: Publish, wake_policy: WakePolicy) -> Self {
        Self { channel, publish, wake_policy }
    }

    /// The channel.
    pub fn channel(&self) -> &str {
        &self.channel
    }

    /// The waiters that a message wakes.
    pub const fn wake_policy(&self) -> WakePolicy {
        self.wake_policy
    }

    /// The Redis command that subscribes to it, in lower case.
    pub const fn verb(&self) -> &'static str {
        match self.publish {
            Publish::Sharded => "ssubscribe",
            Publish::Plain | Publish::Both => "subscribe",
        }
    }
}

/// A published message, reduced to the number at its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The number; 0 if there is none.
    pub number: u64,
    /// The number of its digits.
    pub digits: u8,
}

impl Message {
    /// Parses a message, with or without quotation marks around it.
    pub fn read(payload: &[u8]) -> Self {
        let text = payload.strip_prefix(b"\"").unwrap_or(payload).iter().copied();
        text.take_while(u8::is_ascii_digit).fold(
            Self::default(),
            |Self { number, digits }, digit| Self {
                number: number.saturating_mul(10).saturating_add(u64::from(digit - b'0')),
                digits: digits.saturating_add(1),
            },
        )
    }
}

/// The content of a published grant, after which a retry is useless for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantNotice {
    /// The lease that was granted; `None` for permits, which many hold.
    pub lease: Option<Duration>,
    /// The number of listening clients at that time; `None` if Redis did not report it.
    pub listeners: Option<u32>,
}

impl GrantNotice {
    /// The factor of the lease in the message; smaller values are the number of listeners.
    const LISTENERS: u64 = 1000;

    /// Parses a message for waiters of this kind. `None` means that it is no grant, so that a retry
    /// may succeed. For permits the message is the number of available permits: none, in as many
    /// zeros as there are listeners. Otherwise it is the lease and the number of listeners.
    /// Redisson's numbers are smaller than the number of the shortest lease, so none of them is
    /// parsed as a grant.
    pub fn read(Message { number, digits }: Message, wakes: WakePolicy) -> Option<Self> {
        if matches!(wakes, WakePolicy::Permits(_)) {
            let listeners = Some(digits.into());
            return (number == 0).then_some(Self { lease: None, listeners });
        }
        let lease = Duration::from_millis(number / Self::LISTENERS);
        let listeners = u32::try_from(number % Self::LISTENERS).ok().filter(|count| *count > 0);
        LeaseTime::new(lease).ok().map(|lease| Self { lease: Some(lease.get()), listeners })
    }
}
