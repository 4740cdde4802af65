//! Runs a round of each kind, as the page does: the Worker names the contenders, and Redis records
//! the entries.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::at_once;

const KINDS: [&str; 6] = ["lock", "readers", "fair", "permits", "latch", "pairs"];
const HOLD_MS: u32 = 500;
/// The longest lease that the Worker accepts, so that a slow machine does not lose one.
const LEASE_MS: u32 = 15_000;

/// Runs the rounds one after the other, prints a line for each, and returns the problems.
pub(super) fn all(http: &ureq::Agent, url: &str) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for kind in KINDS {
        let (sentence, wrong) =
            round(http, url, kind).with_context(|| format!("round of {kind}"))?;
        println!("{kind:<8} {sentence}");
        problems.extend(wrong.into_iter().map(|problem| format!("{kind}: {problem}")));
    }
    Ok(problems)
}

/// Returns the verdict of Redis in a sentence, and the problems.
fn round(http: &ureq::Agent, url: &str, kind: &str) -> Result<(String, Vec<String>)> {
    // The redis-server is private, so the name only has to be unique in it.
    let run = format!("once-{kind}");
    let times = format!("holdMs={HOLD_MS}&leaseMs={LEASE_MS}");
    let answer = get(http, &format!("{url}/api/cast?kind={kind}&run={run}&{times}"))?;
    let cast = answer.get("cast").and_then(Value::as_array).context("no cast")?.clone();
    let ends = at_once(cast.into_iter().map(|one| {
        let (http, url) = (http.clone(), format!("{url}/api/contend"));
        move || contend(&http, &url, &one)
    }))?;
    let verdict = get(http, &format!("{url}/api/verdict?kind={kind}&run={run}"))?;
    let sentence = text(&verdict, "sentence")?.to_owned();
    let mut problems: Vec<String> = ends.into_iter().flatten().collect();
    if verdict.get("isKept") != Some(&Value::Bool(true)) {
        problems.push(sentence.clone());
    }
    Ok((sentence, problems))
}

/// Runs one contender to its end, and returns its problem, if it has one.
fn contend(http: &ureq::Agent, url: &str, one: &Value) -> Result<Option<String>> {
    let (name, query) = (text(one, "name")?, text(one, "query")?);
    let mut response = http
        .post(&format!("{url}?{query}"))
        .send_empty()
        .with_context(|| format!("the Worker did not answer {name}"))?;
    let status = response.status();
    let story =
        response.body_mut().read_to_string().with_context(|| format!("{name} broke off"))?;
    ensure!(status.is_success(), "the Worker answered {name} {status}: {story}");
    Ok(problem(&story).map(|problem| format!("{name} {problem}")))
}

/// Returns the problem of a stream of events: it must end with a release, or with a contender that
/// left.
fn problem(story: &str) -> Option<String> {
    // Empty lines only keep the connection alive.
    let Some(last) = story.lines().rev().find(|line| !line.is_empty()) else {
        return Some("said nothing".to_owned());
    };
    let event: Value = serde_json::from_str(last).unwrap_or_default();
    match event.get("event").and_then(Value::as_str) {
        Some("released" | "left") => None,
        _ => Some(format!("ended with {last}")),
    }
}

fn get(http: &ureq::Agent, url: &str) -> Result<Value> {
    let mut response = http.get(url).call().context("the Worker did not answer")?;
    let status = response.status();
    let body: Value = response.body_mut().read_json().context("the Worker answered no JSON")?;
    ensure!(status.is_success(), "the Worker answered {status}: {body}");
    Ok(body)
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value.get(key).and_then(Value::as_str).with_context(|| format!("no text `{key}` in {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_that_ends_with_a_release_is_right() {
        assert_eq!(problem("\n{\"event\":\"held\"}\n\n{\"event\":\"released\"}\n\n"), None);
        assert_eq!(problem("{\"event\":\"left\"}\n"), None);
    }

    #[test]
    fn a_story_that_ends_otherwise_is_wrong() {
        for story in
            ["", "\n\n", "{\"event\":\"held\"}\n", "{\"event\":\"lost\"}\n", "{\"event\":\"rel"]
        {
            assert!(problem(story).is_some(), "{story}");
        }
        let failed = problem("{\"event\":\"error\",\"message\":\"no\"}\n").unwrap_or_default();
        assert!(failed.contains("\"no\""), "{failed}");
    }
}
