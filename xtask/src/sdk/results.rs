//! What a suite reports: one JSON line per scenario, folded into a column of the matrix.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::Sdk;
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

/// One SDK's outcomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) version: String,
    pub(crate) outcomes: BTreeMap<String, Outcome>,
}

impl Column {
    /// Reads a results file; one that is absent, empty or malformed is an error.
    pub(super) fn read(path: &Path, sdk: Sdk) -> Result<Self> {
        let text = fs::read_to_string(path).context("the suite wrote no results")?;
        Self::parse(&text, sdk)
    }

    fn parse(text: &str, sdk: Sdk) -> Result<Self> {
        let mut column = Self { version: String::new(), outcomes: BTreeMap::new() };
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let line: Line = serde_json::from_str(line).with_context(|| format!("a result nobody can read: {line}"))?;
            ensure!(line.sdk == sdk.name(), "a result of {} in the results of {sdk}", line.sdk);
            let detail = line.detail.unwrap_or_default();
            let outcome = match line.outcome.as_str() {
                "passed" => Outcome::Passed,
                "failed" => Outcome::Failed(detail),
                "skipped" => Outcome::Absent(detail),
                other => anyhow::bail!("scenario {} came out as {other:?}", line.scenario),
            };
            let before = column.outcomes.remove(&line.scenario);
            let worst = before.map_or(outcome.clone(), |before| before.max(outcome));
            column.outcomes.insert(line.scenario, worst);
            column.version = line.version;
        }
        ensure!(!column.outcomes.is_empty(), "the suite wrote no results");
        Ok(column)
    }

    pub(super) fn has_failures(&self) -> bool {
        self.outcomes.values().any(|outcome| matches!(outcome, Outcome::Failed(_)))
    }

    /// Counts every scenario of the list; one without a result, or a result without a scenario, is a failure.
    pub(super) fn count<'a>(&self, sdk: Sdk, scenarios: impl Iterator<Item = &'a str>, tally: &mut Tally) {
        let mut strangers = self.outcomes.clone();
        for id in scenarios {
            match strangers.remove(id) {
                Some(Outcome::Passed) => tally.pass(),
                Some(Outcome::Absent(why)) => tally.skip(&format!("{sdk} scenario {id}"), first_line(&why)),
                Some(Outcome::Failed(why)) => tally.fail(format!("{sdk} scenario {id}: {}", first_line(&why))),
                None => tally.fail(format!("{sdk} scenario {id}: the suite did not run it")),
            }
        }
        for id in strangers.keys() {
            tally.fail(format!("{sdk} scenario {id}: it is not in scenarios.toml"));
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
    "#;

    #[test]
    fn results_become_a_column_and_the_worst_outcome_counts() {
        let column = Column::parse(RESULTS, Sdk::Go).expect("parses");
        assert_eq!(column.version, "1.4.1");
        assert_eq!(column.outcomes["paging"], Outcome::Passed);
        assert_eq!(column.outcomes["acl"], Outcome::Absent("no such call".into()));
        assert_eq!(column.outcomes["upserts"], Outcome::Failed("412\nmore".into()));
        assert!(column.has_failures());
    }

    #[test]
    fn every_scenario_counts_once() {
        let column = Column::parse(RESULTS, Sdk::Go).expect("parses");
        let mut tally = Tally::default();
        column.count(Sdk::Go, ["paging", "acl", "upserts", "select"].into_iter(), &mut tally);
        assert_eq!(tally.to_string(), "1 passed, 2 failed, 1 skipped");
        let mut tally = Tally::default();
        column.count(Sdk::Go, ["paging", "acl"].into_iter(), &mut tally);
        assert_eq!(tally.to_string(), "1 passed, 1 failed, 1 skipped");
    }

    #[test]
    fn results_that_cannot_be_trusted_are_errors() {
        let bad = [
            "",
            "not json",
            r#"{"sdk":"java","version":"1","scenario":"paging","outcome":"passed"}"#,
            r#"{"sdk":"go","version":"1","scenario":"paging","outcome":"maybe"}"#,
            r#"{"sdk":"go","scenario":"paging","outcome":"passed"}"#,
        ];
        for text in bad {
            assert!(Column::parse(text, Sdk::Go).is_err(), "{text}");
        }
    }
}
