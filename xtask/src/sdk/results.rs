//! What a suite reports: one JSON line per scenario, folded into a column of each service's matrix.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::{Sdk, Service};
use crate::compat::Scenario;
use crate::tally::Tally;

/// One line of a results file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    sdk: String,
    version: String,
    scenario: String,
    outcome: String,
    #[serde(default)]
    detail: Option<String>,
}

/// How a scenario came out; later variants outweigh earlier ones when a scenario is reported twice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// The SDK has nothing to show it with, and why.
    Absent(String),
    Passed,
    Failed(String),
}

/// One SDK's outcomes for one service, and the version of its package for that.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) version: String,
    pub(crate) outcomes: BTreeMap<String, Outcome>,
}

/// What one suite reported: a column for each service.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Report {
    sdk: Sdk,
    pub(super) columns: BTreeMap<Service, Column>,
}

impl Report {
    /// Reads a results file; one that is absent, empty or malformed is an error.
    pub(super) fn read(path: &Path, sdk: Sdk, scenarios: &[Scenario]) -> Result<Self> {
        let text = fs::read_to_string(path).context("the suite wrote no results")?;
        Self::parse(&text, sdk, scenarios)
    }

    fn parse(text: &str, sdk: Sdk, scenarios: &[Scenario]) -> Result<Self> {
        let mut columns: BTreeMap<Service, Column> = BTreeMap::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let line: Line =
                serde_json::from_str(line).with_context(|| format!("a result that cannot be parsed: {line}"))?;
            ensure!(line.sdk == sdk.name(), "a result of {} in the results of {sdk}", line.sdk);
            let scenario = scenarios.iter().find(|scenario| scenario.id == line.scenario);
            let service = scenario.with_context(|| format!("{} is not in scenarios.toml", line.scenario))?.service;
            ensure!(sdk.package(service).is_some(), "{sdk} has no package for {}", line.scenario);
            let detail = line.detail.unwrap_or_default();
            let outcome = match line.outcome.as_str() {
                "passed" => Outcome::Passed,
                "failed" => Outcome::Failed(detail),
                "skipped" => Outcome::Absent(detail),
                other => anyhow::bail!("scenario {} came out as {other:?}", line.scenario),
            };
            let column = columns.entry(service).or_default();
            let before = column.outcomes.remove(&line.scenario);
            let worst = before.map_or(outcome.clone(), |before| before.max(outcome));
            column.outcomes.insert(line.scenario, worst);
            column.version = line.version;
        }
        ensure!(!columns.is_empty(), "the suite wrote no results");
        Ok(Self { sdk, columns })
    }

    pub(super) fn has_failures(&self) -> bool {
        let mut outcomes = self.columns.values().flat_map(|column| column.outcomes.values());
        outcomes.any(|outcome| matches!(outcome, Outcome::Failed(_)))
    }

    /// Counts every scenario of the services that the SDK has a package for; one without a result is a failure.
    pub(super) fn count(&self, scenarios: &[Scenario], tally: &mut Tally) {
        let sdk = self.sdk;
        for Scenario { id, service, .. } in scenarios.iter().filter(|scenario| sdk.package(scenario.service).is_some())
        {
            match self.columns.get(service).and_then(|column| column.outcomes.get(id)) {
                Some(Outcome::Passed) => tally.pass(),
                Some(Outcome::Absent(why)) => tally.skip(&format!("{sdk} scenario {id}"), first_line(why)),
                Some(Outcome::Failed(why)) => tally.fail(format!("{sdk} scenario {id}: {}", first_line(why))),
                None => tally.fail(format!("{sdk} scenario {id}: the suite did not run it")),
            }
        }
    }
}

pub(crate) fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULTS: &str = r#"
        {"sdk":"go","version":"1.4.1","scenario":"paging","outcome":"passed","detail":""}
        {"sdk":"go","version":"1.4.1","scenario":"acl","outcome":"skipped","detail":"no such call"}
        {"sdk":"go","version":"1.4.1","scenario":"upserts","outcome":"passed"}
        {"sdk":"go","version":"1.4.1","scenario":"upserts","outcome":"failed","detail":"412\nmore"}
        {"sdk":"go","version":"2.0.0","scenario":"message-peek","outcome":"passed"}
    "#;

    fn scenarios() -> Vec<Scenario> {
        let table = ["paging", "acl", "upserts", "select"].map(|id| Scenario::example(id, Service::Table));
        table.into_iter().chain([Scenario::example("message-peek", Service::Queue)]).collect()
    }

    #[test]
    fn results_become_a_column_for_each_service_and_the_worst_outcome_counts() {
        let report = Report::parse(RESULTS, Sdk::Go, &scenarios()).expect("parses");
        let table = &report.columns[&Service::Table];
        assert_eq!(table.version, "1.4.1");
        assert_eq!(table.outcomes["paging"], Outcome::Passed);
        assert_eq!(table.outcomes["acl"], Outcome::Absent("no such call".into()));
        assert_eq!(table.outcomes["upserts"], Outcome::Failed("412\nmore".into()));
        assert!(report.has_failures());
        let queue = &report.columns[&Service::Queue];
        assert_eq!((queue.version.as_str(), queue.outcomes.len()), ("2.0.0", 1));
    }

    #[test]
    fn every_scenario_counts_once() {
        let report = Report::parse(RESULTS, Sdk::Go, &scenarios()).expect("parses");
        let mut tally = Tally::default();
        report.count(&scenarios(), &mut tally);
        assert_eq!(tally.to_string(), "2 passed, 2 failed, 1 skipped");
    }

    #[test]
    fn services_without_a_package_do_not_count() {
        let results = r#"{"sdk":"javascript-legacy","version":"2","scenario":"paging","outcome":"passed"}"#;
        let scenarios = ["paging", "message-peek"]
            .map(|id| Scenario::example(id, if id == "paging" { Service::Table } else { Service::Queue }));
        let report = Report::parse(results, Sdk::JavascriptLegacy, &scenarios).expect("parses");
        let mut tally = Tally::default();
        report.count(&scenarios, &mut tally);
        assert_eq!(tally.to_string(), "1 passed, 0 failed, 0 skipped");
        let foreign = results.replace("paging", "message-peek");
        assert!(Report::parse(&foreign, Sdk::JavascriptLegacy, &scenarios).is_err());
    }

    #[test]
    fn results_that_cannot_be_trusted_are_errors() {
        let bad = [
            "",
            "not json",
            r#"{"sdk":"java","version":"1","scenario":"paging","outcome":"passed"}"#,
            r#"{"sdk":"go","version":"1","scenario":"paging","outcome":"maybe"}"#,
            r#"{"sdk":"go","scenario":"paging","outcome":"passed"}"#,
            r#"{"sdk":"go","version":"1","scenario":"of-nobody","outcome":"passed"}"#,
        ];
        for text in bad {
            assert!(Report::parse(text, Sdk::Go, &scenarios()).is_err(), "{text}");
        }
    }
}
