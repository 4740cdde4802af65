//! The results of a suite's tests, read from the JUnit files that cargo-nextest and Node write.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::ops::AddAssign;
use std::path::Path;
use std::time::Duration;

use anstream::adapter::strip_str;
use anyhow::{Context as _, Result, ensure};
use roxmltree::{Document, Node};

use crate::process::Interrupted;

/// The number of slowest tests that are listed for a suite.
const SLOWEST: usize = 10;
/// The number of lines of a failure that are printed; the log has all of them.
const MESSAGE_LINES: usize = 40;

/// The separator between the names of a group, of a group in it, and of a test.
pub(crate) const LEVEL: &str = " > ";

/// The tests of a suite.
#[derive(Default, Debug)]
pub(crate) struct Report {
    pub(crate) cases: Vec<Case>,
}

/// One test.
#[derive(Debug)]
pub(crate) struct Case {
    /// The test binary or file; may be empty.
    pub(crate) group: String,
    pub(crate) name: String,
    /// The name with which `--only` selects the test.
    pub(crate) id: String,
    pub(crate) time: Duration,
    pub(crate) outcome: Outcome,
    /// Whether it can be run alone. A failure outside of any test, such as in a build, cannot.
    pub(crate) is_test: bool,
}

/// How a test ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Passed,
    /// The reason, as the test runner reports it.
    Failed(String),
    Skipped,
}

/// The numbers of tests that passed, failed and were skipped.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Report {
    /// A report of one test.
    pub(crate) fn of(name: &str, time: Duration, outcome: Outcome) -> Self {
        Self { cases: vec![Case::new(name, time, outcome, true)] }
    }

    /// A report of a failure outside of any test.
    pub(crate) fn of_failure(name: &str, reason: String) -> Self {
        Self { cases: vec![Case::new(name, Duration::ZERO, Outcome::Failed(reason), false)] }
    }

    /// Makes a report without a test, and an error, a failure outside of any test; except for the
    /// error that the user has ended this program.
    pub(crate) fn from_result(name: &str, result: Result<Self>) -> Result<Self> {
        match result.and_then(Self::not_empty) {
            Err(error) if !error.is::<Interrupted>() => {
                Ok(Self::of_failure(name, format!("{error:#}")))
            }
            result => result,
        }
    }

    /// Removes the JUnit file of an earlier run, which must not be taken for the next one's.
    pub(crate) fn discard(file: &Path) -> Result<()> {
        match fs::remove_file(file) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", file.display()))
            }
            _ => Ok(()),
        }
    }

    /// Reads a JUnit file.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file)
            .with_context(|| format!("the tests wrote no report {}", file.display()))?;
        Self::parse(&text).with_context(|| format!("{} is not readable", file.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        // Node copies the colours of a message into its report, where XML allows no escape
        // character.
        let text = strip_str(text).to_string();
        let document = Document::parse(&text)?;
        let is_case = |node: &Node<'_, '_>| node.has_tag_name("testcase");
        let cases = document.descendants().filter(is_case).map(Case::parse).collect();
        Ok(Self { cases })
    }

    /// Makes `--only` select each test by its groups and its name, for groups that have tests of
    /// the same name.
    pub(crate) fn selected_by_path(mut self) -> Self {
        for case in self.cases.iter_mut().filter(|case| !case.group.is_empty()) {
            case.id = format!("{}{LEVEL}{}", case.group, case.name);
        }
        self
    }

    /// Marks tests that cannot be run alone, so that the whole suite repeats a failure.
    pub(crate) fn inseparable(mut self, is_inseparable: impl Fn(&Case) -> bool) -> Self {
        for case in &mut self.cases {
            case.is_test &= !is_inseparable(case);
        }
        self
    }

    /// Fails if the report has no test: a suite that runs nothing has not passed.
    pub(crate) fn not_empty(self) -> Result<Self> {
        ensure!(!self.cases.is_empty(), "no test was run");
        Ok(self)
    }

    /// Returns the numbers of tests that passed, failed and were skipped.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for case in &self.cases {
            match case.outcome {
                Outcome::Passed => counts.passed += 1,
                Outcome::Failed(_) => counts.failed += 1,
                Outcome::Skipped => counts.skipped += 1,
            }
        }
        counts
    }

    /// Returns the sum of the times of all tests.
    pub(crate) fn time(&self) -> Duration {
        self.cases.iter().map(|case| case.time).sum()
    }

    /// Returns the slowest tests, slowest first.
    pub(crate) fn slowest(&self) -> Vec<&Case> {
        let mut cases: Vec<&Case> = self.cases.iter().collect();
        cases.sort_by_key(|case| std::cmp::Reverse(case.time));
        cases.truncate(SLOWEST);
        cases
    }

    /// Returns the tests that failed, each with its reason.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (&Case, &str)> {
        self.cases.iter().filter_map(|case| match &case.outcome {
            Outcome::Failed(reason) => Some((case, reason.as_str())),
            Outcome::Passed | Outcome::Skipped => None,
        })
    }
}

impl AddAssign for Report {
    fn add_assign(&mut self, other: Self) {
        self.cases.extend(other.cases);
    }
}

impl Case {
    fn new(name: &str, time: Duration, outcome: Outcome, is_test: bool) -> Self {
        let name = name.to_owned();
        Self { group: String::new(), id: name.clone(), name, time, outcome, is_test }
    }

    fn parse(node: Node<'_, '_>) -> Self {
        let text = |name: &str| node.attribute(name).unwrap_or_default().to_owned();
        let seconds = text("time").parse().unwrap_or(0.0);
        let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        // Nextest groups by test binary; Node nests `describe` blocks, whose names distinguish
        // tests of the same name.
        let has = |names: &'static [&str]| {
            node.children().find(|child| names.contains(&child.tag_name().name()))
        };
        let outcome = match (has(&["failure", "error"]), has(&["skipped"])) {
            (Some(failure), _) => Outcome::Failed(message(failure)),
            (None, Some(_)) => Outcome::Skipped,
            (None, None) => Outcome::Passed,
        };
        let suites = node.ancestors().filter(|node| node.has_tag_name("testsuite"));
        let mut groups: Vec<&str> = suites.filter_map(|node| node.attribute("name")).collect();
        groups.reverse();
        Self { group: groups.join(LEVEL), ..Self::new(&text("name"), time, outcome, true) }
    }

    /// Returns the test's name with its group.
    pub(crate) fn title(&self) -> String {
        if self.group.is_empty() {
            self.name.clone()
        } else {
            format!("{} {}", self.group, self.name)
        }
    }
}

/// Returns the first lines of a test runner's message about a failure.
fn message(failure: Node<'_, '_>) -> String {
    let text = failure.text().or_else(|| failure.attribute("message")).unwrap_or("it failed");
    let lines: Vec<&str> = text.trim_end().lines().take(MESSAGE_LINES).collect();
    lines.join("\n")
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEXTEST: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="3" failures="1" errors="0" time="2.5">
  <testsuite name="edgelatch::scripts" tests="3" disabled="0" errors="0" failures="1">
    <testcase name="fair::quick" classname="edgelatch::scripts" time="0.25"/>
    <testcase name="fair::slow" classname="edgelatch::scripts" time="2.0"><system-out>x</system-out></testcase>
    <testcase name="fair::wrong" classname="edgelatch::scripts" time="0.5">
      <failure message="left is not right" type="test failure with exit code 101">thread panicked
left: 1</failure>
    </testcase>
  </testsuite>
</testsuites>"#;

    /// The output of `node --test-reporter=junit`: suites in suites, and tests outside of any.
    const NODE: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<testsuites>
  <testsuite name="programs" time="1.5" tests="1" failures="0" skipped="1">
    <testsuite name="Node" time="1.0" tests="2">
      <testcase name="works" time="0.5" classname="test"/>
    </testsuite>
    <testcase name="later" time="0.0" classname="test"><skipped type="skipped" message="true"/></testcase>
  </testsuite>
  <testcase name="alone" time="0.1" classname="test"/>
</testsuites>"#;

    #[test]
    fn a_report_of_nextest_is_read_with_times_and_reasons() {
        let report = Report::parse(NEXTEST).unwrap();
        assert_eq!(report.counts(), Counts { passed: 2, failed: 1, skipped: 0 });
        assert_eq!(report.time(), Duration::from_millis(2750));
        assert_eq!(report.slowest()[0].title(), "edgelatch::scripts fair::slow");
        let failures: Vec<_> =
            report.failures().map(|(case, reason)| (&*case.name, reason)).collect();
        assert_eq!(failures, [("fair::wrong", "thread panicked\nleft: 1")]);
    }

    #[test]
    fn a_report_of_node_is_read_with_nested_groups() {
        let report = Report::parse(NODE).unwrap();
        assert_eq!(report.counts(), Counts { passed: 2, failed: 0, skipped: 1 });
        let titles: Vec<String> = report.cases.iter().map(Case::title).collect();
        assert_eq!(titles, ["programs > Node works", "programs later", "alone"]);
        let ids = report.selected_by_path().cases.into_iter().map(|case| case.id);
        assert!(ids.eq(["programs > Node > works", "programs > later", "alone"]));
        let report = Report::parse(NODE).unwrap().inseparable(|case| case.name == "alone");
        assert!(report.cases.iter().map(|case| case.is_test).eq([true, true, false]));
    }

    #[test]
    fn the_colours_of_a_message_are_left_out() {
        let coloured = NEXTEST.replace("left: 1", "\u{1b}[31mleft: 1\u{1b}[39m");
        let report = Report::parse(&coloured).unwrap();
        let reasons: Vec<&str> = report.failures().map(|(_, reason)| reason).collect();
        assert_eq!(reasons, ["thread panicked\nleft: 1"]);
    }

    #[test]
    fn a_report_without_tests_is_an_error() {
        assert!(Report::parse("<testsuites/>").unwrap().not_empty().is_err());
        assert!(Report::parse("no report").is_err());
    }
}
