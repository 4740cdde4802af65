//! The dashboard for Grafana: its queries against the output of a gateway.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::metrics::{Scrape, start, traffic};

const DASHBOARD: &str = include_str!("../../grafana/edgelatch-gateway.json");
/// The labels that Prometheus itself adds to each series of a target.
const TARGET_LABELS: [&str; 2] = ["instance", "job"];

/// A metric in a query: its name without the prefix, and the labels that the query selects by.
struct Selector<'a> {
    name: &'a str,
    matchers: Vec<(&'a str, &'a str)>,
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns the metrics of a query in PromQL.
fn selectors(query: &str) -> Vec<Selector<'_>> {
    let selectors = query.split("edgelatch_gateway_").skip(1).map(|rest| {
        let (name, rest) = rest.split_at(rest.find(|c| !is_word(c)).unwrap_or(rest.len()));
        let braces = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let matchers = braces.map_or("", |(inside, _)| inside).split(", ");
        let matchers = matchers.filter_map(|matcher| {
            let (label, value) = matcher.split_at(matcher.find(|c| !is_word(c))?);
            Some((label, value.trim_start_matches(['=', '!', '~']).trim_matches('"')))
        });
        Selector { name, matchers: matchers.collect() }
    });
    selectors.collect()
}

/// Returns what stands between these texts, each time.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    let parts = text.split(start).skip(1).filter_map(|rest| rest.split_once(end));
    parts.map(|(inside, _)| inside).collect()
}

/// Returns the name of the metric that a sample belongs to.
fn family(name: &str) -> &str {
    let ends = ["_bucket", "_sum", "_count"];
    ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Checks that a scrape has the metric, its labels and their values, and the labels of the groups.
fn check(query: &str, selector: &Selector<'_>, groups: &[&str], scrape: &Scrape) {
    let (name, known) = (selector.name, scrape.labels());
    let labels = known.get(name).unwrap_or_else(|| panic!("{query}: no metric {name}"));
    for label in groups {
        assert!(*label == "le" || labels.contains_key(label), "{query}: no label {label}");
    }
    for (label, value) in &selector.matchers {
        if TARGET_LABELS.contains(label) {
            assert_eq!(*value, format!("${label}"));
            continue;
        }
        let values = labels.get(label).unwrap_or_else(|| panic!("{query}: no label {label}"));
        for value in value.split('|') {
            assert!(values.contains(value), "{query}: {label} is never {value}");
        }
    }
}

#[tokio::test]
async fn every_metric_and_label_of_the_dashboard_exists() {
    let env = start().await;
    let _stream = traffic(&env).await;
    let scrape = Scrape::of(&env).await;
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut shown = BTreeSet::new();
    for target in list(&dashboard["panels"]).iter().flat_map(|panel| list(&panel["targets"])) {
        let (query, legend) = (&target["expr"], &target["legendFormat"]);
        let (query, legend) = (query.as_str().unwrap(), legend.as_str().unwrap());
        let groups = between(query, " by (", ")").join(", ");
        let groups: Vec<_> = groups.split(", ").filter(|label| !label.is_empty()).collect();
        for label in between(legend, "{{", "}}") {
            assert!(groups.contains(&label), "{query}: no label {label} for the legend");
        }
        for selector in selectors(query) {
            check(query, &selector, &groups, &scrape);
            shown.insert(family(selector.name));
        }
    }
    for variable in list(&dashboard["templating"]["list"]) {
        for selector in selectors(variable["query"]["query"].as_str().unwrap_or_default()) {
            check("a variable", &selector, &[], &scrape);
        }
    }
    // No metric is without a panel.
    let known = scrape.labels();
    assert_eq!(shown, known.keys().map(|name| family(name)).collect());
}
