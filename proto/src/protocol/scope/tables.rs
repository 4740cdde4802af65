//! The keys and arguments of each script, as its header documents them.

use core::time::Duration;

use super::layout::{Arg, Key, Layout};
use super::{ObjectKind, Right};
use crate::protocol::calls::{FairReadWriteSettings, FairSettings};
use crate::protocol::key;
use crate::timing::{FIRST_HORIZON, GuardMemory, HORIZON, ONCE_WINDOW, ROUND_MAX, TOKEN_KEPT};

/// Returns the layout of the script of this name; `operation` (ARGV 6) selects one for scripts with
/// several operations.
pub(super) fn layout(script: &str, operation: &str) -> Option<Layout> {
    let lock = || locks(script).or_else(|| fair(script)).or_else(|| sides(script));
    lock()
        .or_else(|| groups(script))
        .or_else(|| fair_read_write(script, operation))
        .map(|layout| layout.of(ObjectKind::Lock))
        .or_else(|| semaphores(script, operation).map(|layout| layout.of(ObjectKind::Semaphore)))
        .or_else(|| permits(script, operation).map(|layout| layout.of(ObjectKind::Permits)))
        .or_else(|| latches(script, operation).map(|layout| layout.of(ObjectKind::Latch)))
        .or_else(|| (script == "cancel").then(cancel))
}

const fn ms(time: Duration) -> u64 {
    time.as_millis() as u64
}

/// The longest time that Redis remembers a request beyond its bound.
pub(super) const KEEP_MAX: u64 = ms(FIRST_HORIZON);
const INT_MAX: u64 = 0x7fff_ffff;
const NUMBER_MAX: u64 = (1 << 53) - 1;

const PLAIN: Arg = Arg::Owner(&[""]);
const WRITER: Arg = Arg::Owner(&[":write"]);
const LEASE: Arg = Arg::Lease(None);
const FLAG: Arg = Arg::Is(&["0", "1"]);
const ANNOUNCED: Arg = Arg::Is(&["1"]);
const TOKEN: Arg = Arg::UpTo(NUMBER_MAX);
const KEPT: Arg = Arg::Exactly(ms(TOKEN_KEPT));
const WINDOW: Arg = Arg::Exactly(ms(ONCE_WINDOW));
const PREVIOUS_KEPT: Arg = Arg::Exactly(ms(ROUND_MAX) + ms(HORIZON));
/// The longest lease, and the error of an uptime in whole seconds.
const DELAY: Arg = Arg::UpTo(86_400_000 + 1000);
const PERMITS: Arg = Arg::UpTo(INT_MAX);
const LIFE_OR_NONE: Arg = Arg::Life { min: 1, or_empty: true };
/// The time that a fence remembers its newest write. If it ends early, a stale write passes.
const MEMORY: Arg = Arg::Life { min: ms(GuardMemory::MIN), or_empty: false };
const FORCE: Option<Right> = Some(Right::Force);
const MANAGE: Option<Right> = Some(Right::Manage);

fn locks(script: &str) -> Option<Layout> {
    use Key::{Latch, Name, Of, Record};
    let layout = match script {
        "lock_acquire" => Layout::new(
            &[Latch],
            &[
                PLAIN,
                LEASE,
                FLAG,
                KEPT,
                Arg::Kinds,
                Arg::Maybe(&TOKEN),
                Arg::Maybe(&DELAY),
                Arg::Channels,
            ],
        )
        .each(&[Name, Of(key::token)])
        .min_args(4),
        "lock_raise" => {
            let layout = Layout::new(&[Latch], &[PLAIN, Arg::Stored, KEPT]);
            layout.each(&[Name, Of(key::token)]).right(Some(Right::Majority))
        }
        "lock_renew" => {
            Layout::new(&[Latch], &[Arg::Owner(&["", ":write"]), LEASE, TOKEN]).each(&[Name])
        }
        "lock_release" => Layout::new(&[Latch], &[PLAIN]).each(&[Name, Of(key::channel)]),
        "lock_force_release" => {
            Layout::new(&[Record, Name, Of(key::channel)], &[WINDOW]).right(FORCE)
        }
        "lock_inspect" => Layout::new(&[Name, Of(key::token)], &[Arg::Maybe(&PLAIN)]),
        _ => return None,
    };
    Some(layout)
}

fn fair(script: &str) -> Option<Layout> {
    use Key::{Latch, Name, Of, OtherLatch, Record};
    const SETTINGS: FairSettings = FairSettings::DEFAULT;
    const LIFE: Arg = exactly(60_000, ms(SETTINGS.life));
    // A waiter widens its skew after a restored place: the limit allows that once.
    const SKEW: Arg = Arg::Setting { max: 3_600_000, scoped: (0, 4 * ms(SETTINGS.skew)) };
    const SHORT: Arg = exactly(60_000, ms(SETTINGS.short));
    const LONG: Arg = exactly(600_000, ms(SETTINGS.long));
    const ALLOWANCE: Arg = Arg::Setting { max: 86_400_000, scoped: (0, ms(SETTINGS.allowance)) };
    const fn exactly(max: u64, scoped: u64) -> Arg {
        Arg::Setting { max, scoped: (scoped, scoped) }
    }
    const QUEUE: Key = Of(key::queue);
    const TIMEOUTS: Key = Of(key::timeouts);
    const BEATS: Key = Of(key::beats);
    const ARRIVALS: Key = Of(key::arrivals);
    const WATCH: Key = Of(key::watch);
    const CHANNEL: Key = Of(key::channel);
    const PREVIOUS: Arg = Arg::Maybe(&Arg::Other(""));
    let layout = match script {
        "fair_acquire" => Layout::new(
            &[Latch, Name, QUEUE, TIMEOUTS, BEATS, ARRIVALS, WATCH, CHANNEL, Of(key::token)],
            &[
                PLAIN,
                LIFE,
                SKEW,
                SHORT,
                LONG,
                Arg::UpTo(u32::MAX as u64),
                LEASE,
                FLAG,
                ALLOWANCE,
                KEPT,
                PREVIOUS,
                PREVIOUS_KEPT,
            ],
        )
        .more(&[OtherLatch]),
        "fair_release" => Layout::new(
            &[Latch, Name, QUEUE, TIMEOUTS, BEATS, ARRIVALS, WATCH, CHANNEL],
            &[PLAIN, LIFE, SKEW, SHORT, LONG, PREVIOUS, PREVIOUS_KEPT],
        )
        .more(&[OtherLatch]),
        "fair_force_release" => Layout::new(
            &[Record, Name, QUEUE, TIMEOUTS, BEATS, ARRIVALS, WATCH, CHANNEL],
            &[WINDOW, LIFE, SKEW, SHORT, LONG],
        )
        .right(FORCE),
        "fair_queue" => {
            Layout::new(&[Name, QUEUE, TIMEOUTS, BEATS], &[Arg::Maybe(&PLAIN), Arg::UpTo(16)])
        }
        _ => return None,
    };
    Some(layout)
}

fn fair_read_write(script: &str, operation: &str) -> Option<Layout> {
    use Key::{Latch, Of, OtherLatch, Record};
    const SETTINGS: FairReadWriteSettings = FairReadWriteSettings::DEFAULT;
    const LIFE: Arg = Arg::Setting { max: 60_000, scoped: (ms(SETTINGS.life), ms(SETTINGS.life)) };
    const MAX_HOLDERS: Arg = up_to(SETTINGS.max_holders);
    const MAX_WAITERS: Arg = up_to(SETTINGS.max_waiters);
    const fn up_to(scoped: u32) -> Arg {
        let max = FairReadWriteSettings::MEMBERS_MAX as u64;
        Arg::Setting { max, scoped: (1, scoped as u64) }
    }
    const HOLDERS: Key = Of(key::fair_rw_holders);
    const QUEUE: Key = Of(key::fair_rw_queue);
    const WRITERS: Key = Of(key::fair_rw_writers);
    const BEATS: Key = Of(key::fair_rw_beats);
    const LAST: Key = Of(key::fair_rw_last);
    const NAMES: Key = Of(key::fair_rw_names);
    const ENDS: Key = Of(key::fair_rw_ends);
    const SEND: Arg = Arg::UpTo(u32::MAX as u64);
    const ANY: Arg = Arg::Member(&['s', 'x']);
    const PREVIOUS: Arg = Arg::Maybe(&Arg::OtherMember);
    const KEYS: &[Key] = &[Latch, HOLDERS, QUEUE, WRITERS, BEATS, LAST, NAMES, ENDS];
    const WAITS: &[Arg] = &[
        ANY,
        Arg::Is(&["wait", "last"]),
        LIFE,
        MAX_HOLDERS,
        MAX_WAITERS,
        SEND,
        LEASE,
        KEPT,
        PREVIOUS,
        PREVIOUS_KEPT,
    ];
    const STEALS: &[Arg] = &[
        Arg::Member(&['x']),
        Arg::Is(&["steal"]),
        LIFE,
        MAX_HOLDERS,
        MAX_WAITERS,
        SEND,
        LEASE,
        KEPT,
        PREVIOUS,
        PREVIOUS_KEPT,
    ];
    let layout = match (script, operation) {
        ("fair_rw_acquire", "steal") => Layout::new(KEYS, STEALS).more(&[OtherLatch]).right(FORCE),
        ("fair_rw_acquire", _) => Layout::new(KEYS, WAITS).more(&[OtherLatch]),
        ("fair_rw_release", _) => {
            let layout = Layout::new(KEYS, &[ANY, MAX_HOLDERS, PREVIOUS, PREVIOUS_KEPT]);
            layout.more(&[OtherLatch])
        }
        ("fair_rw_renew", _) => Layout::new(KEYS, &[ANY, LEASE, TOKEN]),
        ("fair_rw_force_release", _) => {
            const KEYS: &[Key] = &[Record, HOLDERS, QUEUE, WRITERS, BEATS, LAST, NAMES, ENDS];
            Layout::new(KEYS, &[WINDOW, MAX_HOLDERS]).right(FORCE)
        }
        ("fair_rw_inspect", _) => {
            Layout::new(&[HOLDERS, QUEUE, WRITERS, BEATS, LAST], &[Arg::Maybe(&ANY)])
        }
        // `fair_rw_query` shows all names of a hash tag, which no prefix covers.
        _ => return None,
    };
    Some(layout)
}

fn sides(script: &str) -> Option<Layout> {
    use Key::{Latch, Name, Of, OtherLatch, OtherReadTimeout, ReadTimeout, Record};
    const SIDE: Arg = Arg::Is(&["read", "write"]);
    const READERS: Arg = Arg::Of(key::read_timeouts);
    const TOKEN_KEY: Key = Of(key::token);
    const EPOCH: Key = Of(key::epoch);
    const WANT: Key = Of(key::want);
    const CHANNEL: Key = Of(key::rw_channel);
    let layout = match script {
        "read_acquire" => Layout::new(
            &[Latch, Name, ReadTimeout, TOKEN_KEY, EPOCH, WANT],
            &[PLAIN, LEASE, FLAG, KEPT, Arg::Maybe(&Arg::Other(":write"))],
        )
        .more(&[OtherLatch]),
        "read_renew" => Layout::new(&[Latch, Name, ReadTimeout, EPOCH], &[PLAIN, LEASE, TOKEN]),
        "read_release" => Layout::new(&[Latch, Name, ReadTimeout, CHANNEL], &[PLAIN, READERS]),
        "write_acquire" => Layout::new(
            &[Latch, Name, TOKEN_KEY, WANT, CHANNEL],
            &[WRITER, LEASE, FLAG, KEPT, READERS, Arg::Maybe(&Arg::UpTo(5000)), ANNOUNCED],
        )
        .min_args(6),
        "write_release" => {
            Layout::new(&[Latch, Name, CHANNEL, TOKEN_KEY, EPOCH, WANT], &[WRITER, READERS, KEPT])
                .more(&[OtherLatch, OtherReadTimeout])
        }
        "rw_force_release" => Layout::new(&[Record, Name, CHANNEL], &[WINDOW, SIDE]).right(FORCE),
        "rw_inspect" => {
            Layout::new(&[Name, TOKEN_KEY], &[Arg::Maybe(&Arg::Owner(&["", ":write"])), SIDE])
                .more(&[ReadTimeout])
        }
        _ => return None,
    };
    Some(layout)
}

fn groups(script: &str) -> Option<Layout> {
    use Key::{Latch, Name, Of, Record};
    const CHANNEL: Key = Of(key::channel);
    let layout = match script {
        "group_acquire" => Layout::new(
            &[Latch, Name, Of(key::token)],
            &[PLAIN, LEASE, FLAG, KEPT, Arg::PeerSkew, Arg::Fields],
        ),
        "group_renew" => {
            Layout::new(&[Latch, Name], &[PLAIN, LEASE, TOKEN, Arg::PeerSkew, Arg::Fields])
        }
        "group_release" => Layout::new(&[Latch, Name, CHANNEL], &[PLAIN, Arg::Fields]),
        "group_force_release" => {
            Layout::new(&[Record, Name, CHANNEL], &[WINDOW, Arg::Fields]).right(FORCE)
        }
        "group_inspect" => {
            Layout::new(&[Of(key::token), Name], &[Arg::Maybe(&PLAIN), Arg::PeerSkew, Arg::Fields])
        }
        _ => return None,
    };
    Some(layout)
}

fn semaphores(script: &str, what: &str) -> Option<Layout> {
    use Key::{Latch, Name, Of, Record};
    const HOLDS: Key = Of(key::holds);
    const CHANNEL: Key = Of(key::permits_channel);
    const LASTING: Arg = Arg::Lease(Some(""));
    let change = |args| Layout::new(&[Record, Name, HOLDS, CHANNEL], args);
    let layout = match (script, what) {
        ("semaphore_acquire", _) => Layout::new(
            &[Latch, Name, HOLDS, CHANNEL, Of(key::own_token)],
            &[PLAIN, LASTING, FLAG, KEPT, Arg::Positive(INT_MAX), ANNOUNCED],
        )
        .min_args(5),
        ("semaphore_renew", _) => Layout::new(&[Latch, HOLDS], &[TOKEN, LASTING, PLAIN, PERMITS]),
        ("semaphore_release", _) => Layout::new(&[Latch, Name, HOLDS, CHANNEL], &[PLAIN, PERMITS]),
        ("semaphore_inspect", _) => {
            Layout::new(&[Of(key::own_token), Name, HOLDS], &[Arg::Maybe(&PLAIN), PERMITS])
        }
        ("semaphore_change", "add") => {
            change(&[WINDOW, Arg::Is(&["add"]), Arg::Int]).right(MANAGE).lasting()
        }
        ("semaphore_change", "addx") => {
            change(&[WINDOW, Arg::Is(&["addx"]), PERMITS]).right(MANAGE)
        }
        ("semaphore_change", "drain") => {
            change(&[WINDOW, Arg::Is(&["drain"]), Arg::UpTo(0)]).right(MANAGE)
        }
        ("semaphore_change", "set") => {
            change(&[WINDOW, Arg::Is(&["set"]), PERMITS, LIFE_OR_NONE]).right(MANAGE)
        }
        ("semaphore_change", "clear") => change(&[WINDOW, Arg::Is(&["clear"])]).right(FORCE),
        _ => return None,
    };
    Some(layout)
}

fn permits(script: &str, what: &str) -> Option<Layout> {
    use Key::{Latch, Name, Of, Record};
    const HELD: Key = Of(key::held_permits);
    const CHANNEL: Key = Of(key::permits_channel);
    const LASTING: Arg = Arg::Lease(Some(""));
    const NONE: Arg = Arg::Is(&[""]);
    let change = |args| Layout::new(&[Record, Name, HELD, CHANNEL], args);
    let layout = match (script, what) {
        ("permits_acquire", _) => Layout::new(
            &[Latch, Name, HELD, CHANNEL, Of(key::own_token)],
            &[Arg::PeerSkew, LASTING, FLAG, KEPT, FLAG, Arg::Ids],
        ),
        ("permits_renew", _) => {
            Layout::new(&[Latch, HELD], &[TOKEN, LASTING, Arg::PeerSkew, Arg::Ids])
        }
        ("permits_release", _) => Layout::new(&[Latch, Name, HELD, CHANNEL], &[Arg::Ids]),
        ("permits_inspect", _) => {
            Layout::new(&[Of(key::own_token), Name, HELD], &[Arg::PeerSkew, Arg::Ids])
        }
        ("permits_change", "add") => {
            change(&[WINDOW, Arg::Is(&["add"]), Arg::Int, NONE]).right(MANAGE).lasting()
        }
        ("permits_change", "set") => {
            change(&[WINDOW, Arg::Is(&["set"]), PERMITS, NONE]).right(MANAGE).lasting()
        }
        ("permits_change", "new") => {
            change(&[WINDOW, Arg::Is(&["new"]), PERMITS, NONE]).right(MANAGE).lasting()
        }
        ("permits_change", "free") => {
            change(&[WINDOW, Arg::Is(&["free"]), Arg::UpTo(0), NONE, Arg::Ids])
        }
        ("permits_change", "lease") => {
            change(&[WINDOW, Arg::Is(&["lease"]), Arg::Lease(Some("-1")), Arg::PeerSkew, Arg::Ids])
        }
        ("permits_change", "clear") => {
            change(&[WINDOW, Arg::Is(&["clear"]), Arg::UpTo(0), NONE]).right(FORCE)
        }
        _ => return None,
    };
    Some(layout)
}

fn latches(script: &str, operation: &str) -> Option<Layout> {
    use Key::{Name, Record};
    const CHANNEL: Arg = Arg::Of(key::count_down_channel);
    const NONE: Arg = Arg::Is(&[""]);
    let change = |args| Layout::new(&[Record, Name], args);
    let layout = match (script, operation) {
        ("latch_change", "down") => {
            change(&[WINDOW, Arg::Is(&["down"]), NONE, CHANNEL]).right(Some(Right::Count))
        }
        ("latch_change", "delete") => {
            change(&[WINDOW, Arg::Is(&["delete"]), NONE, CHANNEL]).right(MANAGE)
        }
        ("latch_change", "set") => {
            change(&[WINDOW, Arg::Is(&["set"]), TOKEN, CHANNEL]).right(MANAGE).lasting()
        }
        ("latch_inspect", _) => Layout::new(&[Name], &[]),
        _ => return None,
    };
    Some(layout)
}

/// The record of a request of any object: only the client that sent the request knows its id.
fn cancel() -> Layout {
    Layout::new(&[Key::Record], &[WINDOW]).right(None)
}

/// Returns the arguments of a guard's script; `operation` (ARGV 9) selects them for the script that
/// writes.
pub(super) fn guard_args(script: &str, operation: &str) -> Option<&'static [Arg]> {
    const NUMBER: Arg = Arg::UpTo(u64::MAX);
    Some(match (script, operation) {
        ("guard_newest", _) => &[],
        ("guard_write", "set") => {
            &[Arg::Stored, PLAIN, NUMBER, MEMORY, Arg::Is(&["set"]), Arg::Value, LIFE_OR_NONE]
        }
        ("guard_write", "del" | "claim") => {
            &[Arg::Stored, PLAIN, NUMBER, MEMORY, Arg::Is(&["del", "claim"])]
        }
        _ => return None,
    })
}
