//! What those who wait can listen to.

use alloc::string::String;
use core::fmt;
use core::time::Duration;

use crate::protocol::script::Publish;
use crate::timing::LeaseTime;

/// A channel of Redis, and who of those who listen to it is woken by a message.
///
/// Never a pattern: whoever listens by one counts as a listener of every channel that fits it, and
/// a fair lock would take a dead waiter of Redisson's for a live one (F8).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Topic {
    channel: String,
    publish: Publish,
    wakes: Wakes,
}

/// Whom a message wakes, of those who wait in one client. What is not woken is not forgotten: it
/// asks again in its own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wakes {
    /// One: who is granted excludes the others.
    One,
    /// One, and after it the next who may still be served: this waiter wants so many permits.
    Permits(u32),
    /// Everybody.
    All,
}

/// Not the channel: it holds a name, and may hold an owner.
impl fmt::Debug for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Topic").field("wakes", &self.wakes).finish_non_exhaustive()
    }
}

impl Topic {
    pub(super) const fn new(channel: String, publish: Publish, wakes: Wakes) -> Self {
        Self { channel, publish, wakes }
    }

    /// The channel.
    pub fn channel(&self) -> &str {
        &self.channel
    }

    /// Whom a message wakes.
    pub const fn wakes(&self) -> Wakes {
        self.wakes
    }

    /// Redis' verb for listening to it.
    pub(crate) const fn verb(&self) -> &'static str {
        match self.publish {
            Publish::Sharded => "ssubscribe",
            Publish::Plain | Publish::Both => "subscribe",
        }
    }
}

/// What was published, of which the beginning counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The number; 0 for what is none.
    pub number: u64,
    /// With how many digits it is written.
    pub digits: u8,
}

impl Message {
    /// Reads a message, which may stand in quotation marks.
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

/// What a grant tells those who wait: there is nothing to ask for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The lease that was granted; `None` for permits, which many hold.
    pub lease: Option<Duration>,
    /// How many clients listened then; `None` when Redis did not say.
    pub listeners: Option<u32>,
}

impl Taken {
    /// So many values are left for the number of those who listen.
    const LISTENERS: u64 = 1000;

    /// Reads a message to those whom it wakes like this. `None`: it is no grant, so it may be worth
    /// to ask. Of permits it says how many are available: none, in as many zeros as clients
    /// listened. Of what [excludes](Wakes::One) others it is the lease and how many listened;
    /// shorter leases than there are keep Redisson's numbers apart.
    pub fn read(Message { number, digits }: Message, wakes: Wakes) -> Option<Self> {
        if matches!(wakes, Wakes::Permits(_)) {
            let listeners = Some(digits.into());
            return (number == 0).then_some(Self { lease: None, listeners });
        }
        let lease = Duration::from_millis(number / Self::LISTENERS);
        let listeners = u32::try_from(number % Self::LISTENERS).ok().filter(|count| *count > 0);
        LeaseTime::new(lease).ok().map(|lease| Self { lease: Some(lease.get()), listeners })
    }
}
