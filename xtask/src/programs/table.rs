//! The table of programs in `README.md`: one row for each that is known to run, made from what the scripts reported.
//!
//! A program that did not run keeps its committed row, so a machine that lacks some does not make the table stale.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum as _;

use super::Program;
use crate::shell::Repo;

const PAGE: &str = "README.md";
const BEGIN: &str = "<!-- programs: made by `cargo xtask programs --bless` -->\n";
const END: &str = "<!-- end of programs -->\n";
const HEAD: &str = "| program | what is run | name | in the run |\n|---|---|---|---|\n";
const BLESS_HINT: &str = "is stale: run `cargo xtask programs --bless` and commit it";

/// The line in which a script reports its program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// Name and version.
    program: String,
    what: String,
}

impl Row {
    /// Reads `NAME VERSION: WHAT`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (program, what) = text.split_once(": ")?;
        let is_cell = |text: &str| !text.is_empty() && !text.contains('|');
        (is_cell(program) && is_cell(what)).then(|| Self { program: program.to_owned(), what: what.to_owned() })
    }

    fn line(&self, program: Program) -> String {
        let run = if program.takes_seconds() { "always" } else { "with `--full`" };
        format!("| {} | {} | `{}` | {run} |\n", self.program, self.what, program.name())
    }
}

/// Compares the table with the results of this run, or rewrites it.
pub(super) fn refresh(repo: &Repo, rows: &[(Program, Row)], bless: bool) -> Result<()> {
    let path = repo.path(PAGE);
    let page = fs::read_to_string(&path).with_context(|| format!("read {PAGE}"))?;
    let (before, rest) = page.split_once(BEGIN).with_context(|| format!("{PAGE} has no line {BEGIN}"))?;
    let (table, after) = rest.split_once(END).with_context(|| format!("{PAGE} has no line {END}"))?;
    let fresh = updated(table, rows);
    if fresh == table {
        return Ok(());
    }
    ensure!(bless, "the table of programs in {PAGE} {BLESS_HINT}");
    fs::write(&path, [before, BEGIN, &fresh, END, after].concat()).with_context(|| format!("write {PAGE}"))
}

/// The table with new rows for the programs that ran, in the order of the programs.
fn updated(table: &str, rows: &[(Program, Row)]) -> String {
    let mut fresh = HEAD.to_owned();
    for program in Program::value_variants() {
        let name = format!("| `{}` |", program.name());
        let old = table.lines().find(|line| line.contains(&name));
        let new = rows.iter().find(|(ran, _)| ran == program).map(|(_, row)| row.line(*program));
        match (old, new) {
            (Some(old), Some(new)) if !program.is_pinned() && unversioned(old) == unversioned(new.trim_end()) => {
                writeln!(fresh, "{old}").expect("a string takes all");
            }
            (_, Some(new)) => fresh.push_str(&new),
            (Some(old), None) => writeln!(fresh, "{old}").expect("a string takes all"),
            (None, None) => {}
        }
    }
    fresh
}

/// A row without the version, which the system's packages decide.
fn unversioned(line: &str) -> String {
    let is_version = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('.');
    line.split(' ').filter(|word| !is_version(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> Row {
        Row::parse(text).expect("a row")
    }

    #[test]
    fn programs_that_did_not_run_keep_their_rows() {
        let first =
            updated("", &[(Program::Az, row("az 2.1: commands")), (Program::Restic, row("restic 0.14.0: files"))]);
        let lines = "| az 2.1 | commands | `az` | with `--full` |\n| restic 0.14.0 | files | `restic` | always |\n";
        assert_eq!(first, format!("{HEAD}{lines}"));
        assert_eq!(updated(&first, &[]), first);
        let celery = updated(&first, &[(Program::Celery, row("celery 5: tasks"))]);
        assert_eq!(celery.lines().count(), first.lines().count() + 1);
    }

    #[test]
    fn another_version_is_a_change_only_where_the_repository_names_it() {
        let first =
            updated("", &[(Program::Az, row("az 2.1: commands")), (Program::Restic, row("restic 0.14.0: files"))]);
        assert_eq!(updated(&first, &[(Program::Restic, row("restic 0.16.4: files"))]), first);
        assert_ne!(updated(&first, &[(Program::Restic, row("restic 0.16.4: other files"))]), first);
        assert_ne!(updated(&first, &[(Program::Az, row("az 2.2: commands"))]), first);
    }

    #[test]
    fn other_lines_are_no_rows() {
        for text in ["", "az 2.1", "az 2.1: ", "az | 2.1: commands"] {
            assert_eq!(Row::parse(text), None, "{text}");
        }
    }
}
