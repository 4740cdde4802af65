//! The clocks of a conversation, two of the host and the one of Redis; and the durations that most
//! tests need.

use std::time::Duration;

use edgelatch_proto::protocol::reply::ServerClock;
use edgelatch_proto::time::Instant;

/// Redis' clock when a conversation begins, in milliseconds since 1970.
pub(crate) const SERVER_START: u64 = 1_700_000_000_000;

/// The two clocks of the host when a conversation begins. They share no epoch with Redis' clock.
pub(crate) const START: Instant = Instant::from_millis(START_MONOTONIC, START_WALL);
const START_MONOTONIC: u64 = 5_000;
const START_WALL: u64 = 9_000_000;

/// The default lease, in milliseconds.
pub(crate) const LEASE_MS: u64 = 30_000;

/// How long a holder relies on the default lease after its request was sent, in milliseconds.
pub(crate) const TRUSTED_MS: u64 = trusted_ms(LEASE_MS);

/// How long a holder relies on a lease after its request was sent: the allowance for drift is 1 %
/// and 2 ms.
pub(crate) const fn trusted_ms(lease_ms: u64) -> u64 {
    lease_ms - lease_ms / 100 - 2
}

/// The default time of an attempt, in milliseconds.
pub(crate) const ATTEMPT_MS: u64 = 5_000;

/// How long after the end of its wait a request may still be executed, in milliseconds.
pub(crate) const HORIZON_MS: u64 = 90_000;

/// How long a copy of a request without a bound may still arrive, in milliseconds; Redis remembers
/// the request at least as long.
pub(crate) const UNBOUNDED_MS: u64 = 600_000;

/// How long a wait uses one owner, in milliseconds: a round.
pub(crate) const ROUND_MS: u64 = 600_000;

/// Redis' clock, as a client knows it after a reply at [`START`].
pub(crate) const fn known_clock() -> ServerClock {
    ServerClock::new(SERVER_START, START)
}

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Upper bound on how long a hold still exists that ends `until_ms` after a reading of Redis'
/// clock. `passed` is the client's time since that reading.
///
/// The client's clock may run 1 % and 2 ms fast. The function therefore subtracts this drift from
/// `passed`, and adds the drift of the rest to the rest.
pub(crate) fn held_at_most(until_ms: u64, passed: Duration) -> Duration {
    let drift = |time: Duration| time / 100 + ms(2);
    let left = ms(until_ms) - passed.saturating_sub(drift(passed));
    left + drift(left)
}

/// How far each clock has advanced since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clocks {
    monotonic_ms: u64,
    wall_ms: i64,
    server_ms: u64,
}

impl Clocks {
    /// The time on the host's clocks.
    pub(crate) fn now(&self) -> Instant {
        let wall_ms = START_WALL.checked_add_signed(self.wall_ms).unwrap();
        Instant::from_millis(START_MONOTONIC + self.monotonic_ms, wall_ms)
    }

    /// The time on Redis' clock, in milliseconds since 1970.
    pub(crate) const fn server_ms(&self) -> u64 {
        SERVER_START + self.server_ms
    }

    /// The duration of the conversation so far, by Redis' clock, in milliseconds.
    pub(crate) const fn elapsed_ms(&self) -> u64 {
        self.server_ms
    }

    /// Advances all clocks alike.
    pub(crate) fn advance(&mut self, ms: u64) {
        self.server_ms += ms;
        self.advance_host(ms, i64::try_from(ms).unwrap());
    }

    /// Advances the host's clocks by different amounts, or sets its wall clock back. Redis' clock
    /// stands still.
    pub(crate) const fn advance_host(&mut self, monotonic_ms: u64, wall_ms: i64) {
        self.monotonic_ms += monotonic_ms;
        self.wall_ms += wall_ms;
    }

    /// Advances all clocks alike until one of the host's two clocks reads `deadline`.
    pub(crate) fn advance_to(&mut self, deadline: Instant) {
        self.advance(u64::try_from(self.now().until(deadline).as_millis()).unwrap());
    }
}
