//! The house rules that no compiler checks; `xtask/tidy.toml` holds them as data.
//!
//! Each rule is a module below: it looks at the checkout's files and adds to `Problems`. Rules are pure functions of
//! the files, so their tests hand them texts; only `licences` asks Cargo.

use std::fmt;
use std::fs;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::compat;
use crate::say;
use crate::shell::Repo;

mod files;
mod guide;
mod licences;
mod manifests;
mod sizes;
mod source;
mod texts;

use sizes::Ratchet;

const RULES: &str = "xtask/tidy.toml";
const RATCHET: &str = "xtask/ratchet.toml";

#[derive(Deserialize)]
struct Rules {
    size: sizes::Limits,
    texts: texts::Texts,
    #[serde(flatten)]
    directions: manifests::Directions,
}

/// What is out of order, with its place.
#[derive(Debug, Default)]
struct Problems(Vec<String>);

impl Problems {
    fn add(&mut self, place: &str, what: impl fmt::Display) {
        self.0.push(format!("{place}: {what}"));
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|problem| writeln!(f, "{problem}"))
    }
}

/// Applies every rule and prints what is out of order; true if nothing is.
pub(crate) fn run(repo: &Repo, tighten: bool) -> Result<bool> {
    let rules: Rules = read_toml(repo, RULES)?;
    let ratchet: Ratchet = read_toml(repo, RATCHET)?;
    let files = files::all(repo)?;
    let measured = Ratchet::measure(&files, &rules.size);
    if tighten {
        return write_ratchet(repo, &ratchet.tightened(&measured)).map(|()| true);
    }

    let mut problems = Problems::default();
    ratchet.hold(&measured, &mut problems);
    sizes::blobs(&files, &rules.size, &mut problems);
    files::openings(&files, &mut problems);
    files::test_modules(&files, &mut problems);
    guide::numbers(&files, &mut problems);
    texts::forbidden(&files, &rules.texts, &mut problems);
    manifests::directions(&files, &rules.directions, &mut problems);
    licences::check(repo, &mut problems)?;
    if let Err(error) = compat::check_rendering(repo) {
        problems.add(compat::PAGE, format!("{error:#}"));
    }
    say!("{problems}tidy: {} files, {} problems", files.len(), problems.len());
    Ok(problems.len() == 0)
}

fn read_toml<T: for<'de> Deserialize<'de>>(repo: &Repo, path: &str) -> Result<T> {
    let text = fs::read_to_string(repo.path(path)).with_context(|| format!("read {path}"))?;
    toml::from_str(&text).with_context(|| format!("parse {path}"))
}

/// Rewrites the ratchet below its opening comment.
fn write_ratchet(repo: &Repo, ratchet: &Ratchet) -> Result<()> {
    let before = fs::read_to_string(repo.path(RATCHET))?;
    let comment: String =
        before.lines().take_while(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    fs::write(repo.path(RATCHET), format!("{comment}\n{}", toml::to_string(ratchet)?))?;
    Ok(())
}
