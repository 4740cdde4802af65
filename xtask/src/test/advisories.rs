//! Checks the dependencies against published advisories. This needs the network: if a server does
//! not respond, the check is reported as skipped.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::report::Report;
use super::session::Session;
use crate::progress::output_of;

/// The severities that fail the check; npm reports lower ones only.
const SEVERE: [&str; 2] = ["high", "critical"];

/// Checks the advisories of Rust's crates.
pub(crate) fn crates(session: &Session<'_>) -> Result<Report> {
    let what = "cargo deny check advisories";
    let workspace = session.workspace;
    if let Err(error) = output_of(&mut workspace.command("cargo deny fetch db")) {
        return Ok(unavailable(what, &error.to_string()));
    }
    session.check(what, &mut workspace.command("cargo deny --offline check advisories"))
}

/// Checks npm's advisories about the tools. The package itself has no dependencies.
pub(crate) fn npm(session: &Session<'_>) -> Result<Report> {
    let what = "npm audit --audit-level=high";
    let mut audit = session.workspace.command(what);
    audit.args(["--json", "--package-lock-only"]);
    // Without retries, so that the check does not take minutes.
    audit.args(["--fetch-retries=0", "--fetch-timeout=20000"]);
    let output =
        audit.current_dir(session.workspace.root.join("xtask/tools")).output().context("no npm")?;
    match severe(&String::from_utf8_lossy(&output.stdout))? {
        Some(problems) => Ok(session.finding(what, &problems)),
        None => Ok(unavailable(what, "the registry does not answer")),
    }
}

/// Returns the packages with a severe advisory; `None` if the registry did not respond.
fn severe(report: &str) -> Result<Option<Vec<String>>> {
    let report: Value = serde_json::from_str(report).context("npm audit gave no JSON")?;
    let Some(found) = report.get("vulnerabilities").and_then(Value::as_object) else {
        ensure!(report.get("error").is_some(), "npm audit said something else than what it found");
        return Ok(None);
    };
    let severe = found.iter().filter_map(|(name, package)| {
        let severity = package.get("severity")?.as_str()?;
        SEVERE.contains(&severity).then(|| format!("{name}: {severity}"))
    });
    Ok(Some(severe.collect()))
}

fn unavailable(what: &str, why: &str) -> Report {
    println!("  skipped: {what}: {}", why.lines().next().unwrap_or_default());
    Report::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_severe_advisories_are_findings() {
        let report = r#"{"auditReportVersion": 2, "vulnerabilities": {
            "a": {"severity": "critical"}, "b": {"severity": "moderate"}, "c": {"severity": "high"}}}"#;
        let found = severe(report).expect("a report").expect("an answer");
        assert_eq!(found, ["a: critical", "c: high"]);
        let none = r#"{"auditReportVersion": 2, "vulnerabilities": {}}"#;
        assert_eq!(severe(none).expect("a report"), Some(Vec::new()));
    }

    #[test]
    fn a_registry_that_does_not_answer_is_no_finding_and_no_clean_bill() {
        let report =
            r#"{"message": "405 Method Not Allowed", "error": {"summary": "", "detail": ""}}"#;
        assert_eq!(severe(report).expect("a report"), None);
    }

    #[test]
    fn an_unreadable_report_is_a_failure() {
        for report in ["", "null", "{}", "[]", r#"{"vulnerabilities": 1}"#] {
            assert!(severe(report).is_err(), "{report}");
        }
    }
}
