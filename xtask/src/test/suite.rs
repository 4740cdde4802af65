//! A suite, and the extent of a run.

use anyhow::Result;

use super::report::Report;
use super::session::Session;
use crate::setup::Need;

/// The extent of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extent {
    /// The suites that a contributor runs before a pull request: minutes.
    Quick,
    /// All suites, with the large inputs: what CI runs.
    Full,
}

/// A part of the tests with a name, a time and counts of its own.
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    /// What the suite shows, in a few words.
    pub(crate) about: &'static str,
    /// The smallest extent that runs it.
    pub(crate) from: Extent,
    /// The programs that must be on the machine.
    pub(crate) needs: &'static [Need],
    pub(crate) work: Work,
}

/// How a suite is run.
pub(crate) enum Work {
    /// Test binaries, run by cargo-nextest together with those of the other suites.
    Nextest(Binaries),
    /// A function.
    Task(fn(&Session<'_>) -> Result<Report>),
}

/// The Rust tests of a suite.
pub(crate) struct Binaries {
    /// The binaries, as nextest names them.
    pub(crate) ids: &'static [&'static str],
    /// The tests of these binaries that belong to the suite.
    pub(crate) tests: Tests,
    /// A nextest filter expression for the tests that only a full run includes; empty if there are
    /// none.
    pub(crate) only_full: &'static str,
    /// The profile of a full run. A quick run builds everything in the dev profile.
    pub(crate) full_profile: Profile,
}

/// The tests of a binary that belong to a suite, where two suites share the binary.
#[derive(Clone, Copy)]
pub(crate) enum Tests {
    All,
    /// The tests of this module.
    Inside(&'static str),
    /// The tests of every other module.
    Outside(&'static str),
}

/// A cargo profile that tests are built in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Profile {
    Dev,
    /// For searches that are bound by the processor.
    Release,
}

impl Extent {
    /// Returns the name of the extent for scripts.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }

    /// Whether a run of this extent includes what belongs to `from`.
    pub(crate) fn includes(self, from: Self) -> bool {
        self == Self::Full || from == Self::Quick
    }
}

impl Binaries {
    /// The profile for a run of this extent.
    pub(crate) fn profile(&self, extent: Extent) -> Profile {
        if extent == Extent::Full { self.full_profile } else { Profile::Dev }
    }

    /// Whether a test of a binary belongs to the suite.
    pub(crate) fn contains(&self, binary: &str, test: &str) -> bool {
        let is_inside = match self.tests {
            Tests::All => true,
            Tests::Inside(module) => test.starts_with(module),
            Tests::Outside(module) => !test.starts_with(module),
        };
        self.ids.contains(&binary) && is_inside
    }

    /// The nextest filter expression for a run of this extent.
    pub(crate) fn filter(&self, extent: Extent) -> String {
        let ids: Vec<String> = self.ids.iter().map(|id| format!("binary_id(={id})")).collect();
        let all = match self.tests {
            Tests::All => ids.join(" | "),
            Tests::Inside(module) => format!("({}) & test(/^{module}/)", ids.join(" | ")),
            Tests::Outside(module) => format!("({}) - test(/^{module}/)", ids.join(" | ")),
        };
        if extent == Extent::Full || self.only_full.is_empty() {
            format!("({all})")
        } else {
            format!("(({all}) - ({}))", self.only_full)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARED: Binaries = Binaries {
        ids: &["package::binary"],
        tests: Tests::Inside("binary::module::"),
        only_full: "",
        full_profile: Profile::Release,
    };

    #[test]
    fn two_suites_share_the_tests_of_one_binary() {
        let rest = Binaries { tests: Tests::Outside("binary::module::"), ..SHARED };
        for (test, is_inside) in [("binary::module::test", true), ("binary::test", false)] {
            assert_eq!(SHARED.contains("package::binary", test), is_inside);
            assert_eq!(rest.contains("package::binary", test), !is_inside);
        }
        assert!(!SHARED.contains("package::another", "binary::module::test"));
        let filter = SHARED.filter(Extent::Quick);
        assert_eq!(filter, "((binary_id(=package::binary)) & test(/^binary::module::/))");
    }
}
