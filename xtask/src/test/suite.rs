//! What a suite is, and how much of it a run wants.

use anyhow::Result;

use super::report::Report;
use super::session::Session;
use crate::setup::Need;

/// How much is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extent {
    /// What a contributor needs before a pull request: minutes.
    Quick,
    /// Everything there is, with the large inputs: what CI runs.
    Full,
}

/// A part of the tests with a name, a time and counts of its own.
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    /// What it shows, in a few words.
    pub(crate) about: &'static str,
    /// The smallest extent that runs it.
    pub(crate) from: Extent,
    /// What has to be on the machine.
    pub(crate) needs: &'static [Need],
    pub(crate) work: Work,
}

/// What runs a suite.
pub(crate) enum Work {
    /// Test binaries, run by cargo-nextest together with those of the other suites.
    Nextest(Binaries),
    /// A function of its own.
    Task(fn(&Session<'_>) -> Result<Report>),
}

/// Which Rust tests belong to a suite.
pub(crate) struct Binaries {
    /// Their binaries, as nextest names them.
    pub(crate) ids: &'static [&'static str],
    /// The tests of these binaries that belong to the suite.
    pub(crate) tests: Tests,
    /// A nextest filter expression for the tests that only a full run includes; empty if there are
    /// none.
    pub(crate) only_full: &'static str,
    /// How a full run builds them. A quick run builds everything in the dev profile.
    pub(crate) full_profile: Profile,
}

/// The tests of a binary that belong to a suite, where two suites share the binary.
#[derive(Clone, Copy)]
pub(crate) enum Tests {
    All,
    /// Those of this module.
    Inside(&'static str),
    /// Those of every other module.
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
    /// How scripts are told.
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
