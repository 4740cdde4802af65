//! The wall clock.

use std::time::{Duration, SystemTime};

/// Returns the present time. Called only at the edges; functions that compute with the time get it
/// as an argument.
#[expect(clippy::disallowed_methods, reason = "a person and a command read times of this clock")]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// Returns the time since 1970; zero for an earlier time.
pub(crate) fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Returns a time in UTC, such as `2026-11-26T01:02:03Z`.
pub(crate) fn text(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}

/// Returns a duration for people, such as `1m 5s`: whole seconds, or milliseconds below 10 s.
pub(crate) fn short(time: Duration) -> String {
    if time >= Duration::from_secs(10) {
        return seconds(time);
    }
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    humantime::format_duration(Duration::from_millis(millis)).to_string()
}

/// Returns a duration in whole seconds for people.
pub(crate) fn seconds(time: Duration) -> String {
    humantime::format_duration(Duration::from_secs(time.as_secs())).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_times_have_milliseconds_and_long_ones_do_not() {
        assert_eq!(short(Duration::from_micros(1_500_999)), "1s 500ms");
        assert_eq!(short(Duration::from_millis(65_432)), "1m 5s");
        assert_eq!(short(Duration::ZERO), "0s");
        assert_eq!(seconds(Duration::from_millis(1_999)), "1s");
    }

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(
            text(SystemTime::UNIX_EPOCH + Duration::from_millis(1_999)),
            "1970-01-01T00:00:01Z"
        );
    }
}
