//! A suite, and the extent of a run.

use anyhow::Result;

use super::node::Fixture;
use super::report::Report;
use super::session::Session;
use crate::setup::Tool;

/// The extent of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Extent {
    /// The suites that a contributor runs before a pull request: minutes.
    Quick,
    /// All suites, with the large inputs, as in CI.
    Full,
}

/// A part of the tests with a name, a time and counts of its own.
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    /// A description of a few words.
    pub(crate) about: &'static str,
    /// The smallest extent that runs it.
    pub(crate) from: Extent,
    pub(crate) work: Work,
}

/// How a suite is run, and what it needs.
pub(crate) enum Work {
    /// Test binaries, run by cargo-nextest together with those of the other suites, and programs.
    Nextest(Binaries, &'static [Tool]),
    /// A file of tests, run by Node, and fixtures.
    Node(&'static str, &'static [Fixture]),
    /// A function, and programs.
    Task(fn(&Session<'_>) -> Result<Report>, &'static [Tool]),
}

/// The Rust tests of a suite.
pub(crate) struct Binaries {
    /// The binaries, as nextest names them.
    ids: &'static [&'static str],
    /// The beginning of the names of the tests of a module; empty unless two suites share a binary.
    module: &'static str,
    /// Whether the tests of that module belong to the suite, or those of every other module.
    is_inside: bool,
    /// A nextest filter expression for the tests that only a full run includes; empty if there are
    /// none.
    only_full: &'static str,
    /// The profile of a full run. A quick run builds everything in the dev profile.
    full_profile: Profile,
}

/// A cargo profile that tests are built in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Profile {
    Dev,
    /// For searches that are bound by the processor.
    Release,
}

impl Suite {
    /// A suite of every run.
    pub(super) const fn quick(name: &'static str, about: &'static str, work: Work) -> Self {
        Self { name, about, from: Extent::Quick, work }
    }

    /// A suite that only a full run includes.
    pub(super) const fn full(name: &'static str, about: &'static str, work: Work) -> Self {
        Self { name, about, from: Extent::Full, work }
    }

    /// Returns the programs that must be on the machine.
    pub(crate) fn tools(&self) -> Vec<Tool> {
        match self.work {
            Work::Nextest(_, tools) => [&[Tool::Nextest], tools].concat(),
            Work::Node(_, fixtures) => {
                let of_fixtures = fixtures.iter().flat_map(|fixture| fixture.tools());
                [Tool::NpmTools].iter().chain(of_fixtures).copied().collect()
            }
            Work::Task(_, tools) => tools.to_vec(),
        }
    }
}

impl Binaries {
    pub(super) const fn new(ids: &'static [&'static str]) -> Self {
        Self { ids, module: "", is_inside: true, only_full: "", full_profile: Profile::Dev }
    }

    /// Only the tests of this module belong to the suite.
    pub(super) const fn inside(self, module: &'static str) -> Self {
        Self { module, is_inside: true, ..self }
    }

    /// Only the tests of every other module belong to the suite.
    pub(super) const fn outside(self, module: &'static str) -> Self {
        Self { module, is_inside: false, ..self }
    }

    /// Only a full run includes the tests of this nextest filter expression.
    pub(super) const fn only_in_full(self, filter: &'static str) -> Self {
        Self { only_full: filter, ..self }
    }

    /// A full run builds the tests for release.
    pub(super) const fn optimized(self) -> Self {
        Self { full_profile: Profile::Release, ..self }
    }

    /// The names of the binaries in the package with the integration tests.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.ids.iter().filter_map(|id| Some(id.split_once("::")?.1))
    }

    /// The profile for a run of this extent.
    pub(crate) fn profile(&self, extent: Extent) -> Profile {
        if extent == Extent::Full { self.full_profile } else { Profile::Dev }
    }

    /// Whether a test of a binary belongs to the suite.
    pub(crate) fn contains(&self, binary: &str, test: &str) -> bool {
        self.ids.contains(&binary) && test.starts_with(self.module) == self.is_inside
    }

    /// The nextest filter expression for a run of this extent.
    pub(crate) fn filter(&self, extent: Extent) -> String {
        let ids: Vec<String> = self.ids.iter().map(|id| format!("binary_id(={id})")).collect();
        let (ids, operator) = (ids.join(" | "), if self.is_inside { '&' } else { '-' });
        let all = format!("(({ids}) {operator} test(/^{}/))", self.module);
        if extent == Extent::Full || self.only_full.is_empty() {
            all
        } else {
            format!("({all} - ({}))", self.only_full)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_suites_share_the_tests_of_one_binary() {
        let shared = Binaries::new(&["package::binary"]).inside("binary::module::");
        let rest = Binaries::new(&["package::binary"]).outside("binary::module::");
        for (test, is_inside) in [("binary::module::test", true), ("binary::test", false)] {
            assert_eq!(shared.contains("package::binary", test), is_inside);
            assert_eq!(rest.contains("package::binary", test), !is_inside);
        }
        assert!(!shared.contains("package::another", "binary::module::test"));
        let filter = shared.filter(Extent::Quick);
        assert_eq!(filter, "((binary_id(=package::binary)) & test(/^binary::module::/))");
    }
}
