//! Runs tests in Go, and reads the results that `go test -json` prints.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use super::report::{Outcome, Report};
use super::session::Session;
use crate::progress::read;

/// The separator between the names of a test and of a test in it.
const LEVEL: char = '/';

/// Runs the `go test` of this command, which needs neither `-json` nor a selection.
pub(super) fn test(session: &Session<'_>, command: &mut Command) -> Result<Report> {
    command.args(["-json", "-count=1"]);
    if let Some(id) = session.only {
        command.args(["-run", &pattern(id)]);
    }
    session.tests_read_by(|log| Ok(parse(&read(log))), "go test", command)
}

/// A test that was started.
#[derive(Default)]
struct Test {
    output: String,
    time: Duration,
    outcome: Option<Outcome>,
}

/// Returns the results in the output of `go test -json`, of the tests that consist of no others.
fn parse(output: &str) -> Report {
    let mut tests: BTreeMap<String, Test> = BTreeMap::new();
    let events = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    for event in events {
        let text = |field: &str| event.get(field).and_then(Value::as_str);
        let Some(name) = text("Test") else { continue };
        let test = tests.entry(name.to_owned()).or_default();
        test.output += text("Output").unwrap_or_default();
        test.outcome = match text("Action") {
            Some("pass") => Some(Outcome::Passed),
            Some("fail") => Some(Outcome::Failed(test.output.trim_end().to_owned())),
            Some("skip") => Some(Outcome::Skipped),
            _ => continue,
        };
        let seconds = event.get("Elapsed").and_then(Value::as_f64).unwrap_or_default();
        test.time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    }
    let mut report = Report::default();
    for (name, test) in &tests {
        // A test that never ended, because the program did.
        let unfinished = || Outcome::Failed(test.output.clone());
        let outcome = test.outcome.clone().unwrap_or_else(unfinished);
        let parts = tests.iter().filter(|(other, _)| is_part(other, name));
        let fails = |(_, part): (&String, &Test)| part.outcome != Some(Outcome::Passed);
        let mut parts = parts.peekable();
        // A test fails with its parts, and may fail by itself.
        let is_counted = match outcome {
            Outcome::Failed(_) => !parts.any(fails),
            Outcome::Passed | Outcome::Skipped => parts.peek().is_none(),
        };
        if is_counted {
            report += Report::of(name, test.time, outcome);
        }
    }
    report
}

/// Whether a test is a part of another one.
fn is_part(test: &str, of: &str) -> bool {
    test.strip_prefix(of).is_some_and(|rest| rest.starts_with(LEVEL))
}

/// Returns the argument of `-run` that selects only the test of this name.
fn pattern(id: &str) -> String {
    let levels: Vec<String> = id.split(LEVEL).map(|name| format!("^{name}$")).collect();
    levels.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::report::{Case, Counts};
    use super::*;

    const OUTPUT: &str = r#"go: downloading a module
{"Action":"run","Package":"p","Test":"TestAlone"}
{"Action":"output","Package":"p","Test":"TestAlone","Output":"=== RUN   TestAlone\n"}
{"Action":"pass","Package":"p","Test":"TestAlone","Elapsed":0.5}
{"Action":"run","Package":"p","Test":"TestParts"}
{"Action":"run","Package":"p","Test":"TestParts/one"}
{"Action":"run","Package":"p","Test":"TestParts/two"}
{"Action":"output","Package":"p","Test":"TestParts/two","Output":"    a_test.go:7: accepted\n"}
{"Action":"fail","Package":"p","Test":"TestParts/two","Elapsed":0.25}
{"Action":"pass","Package":"p","Test":"TestParts/one","Elapsed":0}
{"Action":"fail","Package":"p","Test":"TestParts","Elapsed":0.25}
{"Action":"fail","Package":"p","Elapsed":0.8}
"#;

    #[test]
    fn each_test_counts_once_with_its_time_and_reason() {
        let report = parse(OUTPUT);
        assert_eq!(report.counts(), Counts { passed: 2, failed: 1, skipped: 0 });
        assert_eq!(report.time(), Duration::from_millis(750));
        let failures: Vec<_> =
            report.failures().map(|(case, reason)| (case.title(), reason)).collect();
        assert_eq!(failures, [("TestParts/two".to_owned(), "    a_test.go:7: accepted")]);
    }

    #[test]
    fn a_test_that_fails_beside_its_parts_counts() {
        let passed = OUTPUT.replace(
            r#""fail","Package":"p","Test":"TestParts/two""#,
            r#""pass","Package":"p","Test":"TestParts/two""#,
        );
        let report = parse(&passed);
        let names: Vec<String> = report.cases.iter().map(Case::title).collect();
        assert_eq!(names, ["TestAlone", "TestParts", "TestParts/one", "TestParts/two"]);
        assert_eq!(report.counts(), Counts { passed: 3, failed: 1, skipped: 0 });
    }

    #[test]
    fn a_test_that_never_ended_has_failed() {
        let end = OUTPUT.find(r#"{"Action":"pass","Package":"p","Test":"TestAlone""#).unwrap();
        assert_eq!(parse(&OUTPUT[..end]).counts(), Counts { passed: 0, failed: 1, skipped: 0 });
    }

    #[test]
    fn a_part_of_a_test_is_selected_by_its_path() {
        assert_eq!(pattern("TestAlone"), "^TestAlone$");
        assert_eq!(pattern("TestParts/one"), "^TestParts$/^one$");
    }
}
