//! `docs/compat.md`: the matrix of scenarios and SDKs, made from what the suites reported.
//!
//! The page is a function of `scenarios.toml`, `docs/compat-gaps.md` and the results, without dates or machine names,
//! so a stale one is found by comparing text. A suite that did not run keeps its committed column: `page` reads a page
//! back as well as it writes one.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::sdk::{Column, Sdk};
use crate::shell::Repo;

mod page;

pub(crate) const PAGE: &str = "docs/compat.md";
const GAPS: &str = "docs/compat-gaps.md";
const SCENARIOS: &str = "tests/sdk/scenarios.toml";
const BLESS_HINT: &str = "run `cargo xtask test --bless` (or `cargo xtask sdk <name> --bless`) and commit it";

/// One scenario of the list that every suite runs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    pub(crate) id: String,
    title: String,
    guide: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioList {
    scenario: Vec<Scenario>,
}

/// A column for each SDK whose results are known.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Matrix(BTreeMap<Sdk, Column>);

impl Matrix {
    pub(crate) fn insert(&mut self, sdk: Sdk, column: Column) {
        self.0.insert(sdk, column);
    }

    /// Takes the columns that this matrix lacks from another.
    fn fill_from(&mut self, other: Self) {
        for (sdk, column) in other.0 {
            self.0.entry(sdk).or_insert(column);
        }
    }
}

pub(crate) fn scenarios(repo: &Repo) -> Result<Vec<Scenario>> {
    let text = fs::read_to_string(repo.path(SCENARIOS)).with_context(|| format!("read {SCENARIOS}"))?;
    let list: ScenarioList = toml::from_str(&text).with_context(|| format!("parse {SCENARIOS}"))?;
    Ok(list.scenario)
}

/// Renders the page with new results and compares it with the committed one, or rewrites that.
pub(crate) fn refresh(repo: &Repo, mut results: Matrix, bless: bool) -> Result<()> {
    let committed = fs::read_to_string(repo.path(PAGE)).unwrap_or_default();
    results.fill_from(page::parse(&committed));
    let rendered = page::render(&scenarios(repo)?, &results, &gaps(repo)?);
    if bless {
        return fs::write(repo.path(PAGE), rendered).with_context(|| format!("write {PAGE}"));
    }
    compare(&committed, &rendered)
}

/// The committed page is what its own inputs render to: nobody edited it, or its inputs, alone.
pub(crate) fn check_rendering(repo: &Repo) -> Result<()> {
    refresh(repo, Matrix::default(), false)
}

fn gaps(repo: &Repo) -> Result<String> {
    fs::read_to_string(repo.path(GAPS)).with_context(|| format!("read {GAPS}"))
}

fn compare(committed: &str, rendered: &str) -> Result<()> {
    ensure!(!committed.is_empty(), "is missing; {BLESS_HINT}");
    let lines = committed.lines().zip(rendered.lines()).enumerate();
    let first = lines.into_iter().find(|(_, (before, now))| before != now);
    if let Some((index, (before, now))) = first {
        println!("{PAGE}:{}\n-{before}\n+{now}", index + 1);
    }
    ensure!(committed == rendered, "is stale; {BLESS_HINT}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_or_different_page_is_refused_with_a_hint() {
        assert!(compare("same\n", "same\n").is_ok());
        for (committed, rendered) in [("", "new\n"), ("old\n", "new\n"), ("a\n", "a\nb\n")] {
            let error = compare(committed, rendered).expect_err("differs").to_string();
            assert!(error.contains("--bless"), "{error}");
        }
    }

    #[test]
    fn new_results_replace_their_own_column_only() {
        let column = |version: &str| Column { version: version.to_owned(), outcomes: BTreeMap::new() };
        let mut new = Matrix::default();
        new.insert(Sdk::Go, column("2"));
        let mut old = Matrix::default();
        old.insert(Sdk::Go, column("1"));
        old.insert(Sdk::Java, column("1"));
        new.fill_from(old);
        assert_eq!(new.0[&Sdk::Go].version, "2");
        assert_eq!(new.0[&Sdk::Java].version, "1");
    }
}
