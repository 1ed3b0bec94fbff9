//! `docs/compat.md`: a matrix of scenarios and SDKs for each service, made from what the suites reported.
//!
//! The page is a function of `scenarios.toml`, `docs/compat-gaps.md` and the results, without dates or machine names,
//! so a stale one is found by comparing text. A suite that did not run keeps its committed column: `page` reads a page
//! back as well as it writes one.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::say;
use crate::sdk::{Column, Sdk, Service};
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
    #[serde(default)]
    pub(crate) service: Service,
    title: String,
    guide: Vec<String>,
}

#[cfg(test)]
impl Scenario {
    pub(crate) fn example(id: &str, service: Service) -> Self {
        Self { id: id.to_owned(), service, title: format!("What {id} | shows"), guide: Vec::new() }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioList {
    scenario: Vec<Scenario>,
}

/// A column for each service and SDK whose results are known.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Matrix(BTreeMap<(Service, Sdk), Column>);

impl Matrix {
    pub(crate) fn insert(&mut self, service: Service, sdk: Sdk, column: Column) {
        self.0.insert((service, sdk), column);
    }

    /// The columns for one service, in the SDKs' order.
    fn of(&self, service: Service) -> Vec<(Sdk, &Column)> {
        let columns = self.0.iter().filter(|((of, _), _)| *of == service);
        columns.map(|((_, sdk), column)| (*sdk, column)).collect()
    }

    /// Takes the columns that this matrix lacks from another.
    pub(crate) fn fill_from(&mut self, other: Self) {
        for (place, column) in other.0 {
            self.0.entry(place).or_insert(column);
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

/// Checks that the committed page is what its inputs render to, so neither was edited alone.
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
        say!("{PAGE}:{}\n-{before}\n+{now}", index + 1);
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
        new.insert(Service::Table, Sdk::Go, column("2"));
        let mut old = Matrix::default();
        for (service, sdk) in [(Service::Table, Sdk::Go), (Service::Blob, Sdk::Go), (Service::Table, Sdk::Java)] {
            old.insert(service, sdk, column("1"));
        }
        new.fill_from(old);
        let versions: Vec<_> = new.0.values().map(|column| column.version.as_str()).collect();
        assert_eq!(versions, ["2", "1", "1"]);
    }
}
