//! Installs a Java compiler and Maven, for the peer that runs Redisson.

use std::process::Command;

use crate::place::which;
use crate::progress::output_of;

/// Their packages in Debian and its derivatives; without graphics.
pub(crate) const PACKAGES: &[&str] = &["default-jdk-headless", "maven"];
/// The oldest Java version that compiles the peer.
const OLDEST: u32 = 17;

/// Returns whether both are installed, and Java is new enough.
pub(crate) fn is_there() -> bool {
    let version = output_of(Command::new("javac").arg("-version"));
    which("mvn").is_some()
        && version.is_ok_and(|text| release(&text).is_some_and(|release| release >= OLDEST))
}

/// Returns the release in a version such as `javac 17.0.15`.
fn release(version: &str) -> Option<u32> {
    version.split_whitespace().nth(1)?.split(['.', '-']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_read_from_what_the_compiler_says() {
        assert_eq!(release("javac 17.0.15\n"), Some(17));
        assert_eq!(release("javac 21\n"), Some(21));
        assert_eq!(release("javac 25-ea\n"), Some(25));
        assert_eq!(release("javac 1.8.0_392\n"), Some(1));
        assert_eq!(release("nothing"), None);
    }
}
