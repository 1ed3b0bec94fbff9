//! Advisories about dependencies: `cargo deny check advisories` by `deny.toml`, where its database is available.

use std::process::Stdio;

use anyhow::{Result, ensure};

use crate::gate::step;
use crate::shell::{self, Repo, STEP_TIME_MAX};
use crate::tally::Tally;

/// Checks every dependency against the advisories. Without the tool or its database this is skipped, in a line.
pub(crate) fn check(repo: &Repo, tally: &mut Tally) {
    check_with(repo, "deny", tally);
}

fn check_with(repo: &Repo, tool: &str, tally: &mut Tally) {
    let works = |arguments: &[&str]| {
        let mut command = repo.cargo(&[&[tool], arguments].concat());
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    if !works(&["--version"]) {
        return tally.skip("advisories", "cargo-deny is not installed");
    }
    if !works(&["fetch", "db"]) {
        return tally.skip("advisories", "the advisory database cannot be fetched");
    }
    step(tally, "advisories", || -> Result<()> {
        let status = shell::run(&mut repo.cargo(&[tool, "check", "advisories"]), STEP_TIME_MAX)?;
        ensure!(status.success(), "a dependency has an advisory");
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_tool_the_step_is_skipped() {
        let (repo, mut tally) = (Repo::find().expect("the checkout"), Tally::default());
        check_with(&repo, "no-such-tool-as-this", &mut tally);
        assert_eq!(tally.to_string(), "0 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn the_policy_has_advisories() {
        let repo = Repo::find().expect("the checkout");
        let policy = std::fs::read_to_string(repo.path("deny.toml")).expect("deny.toml");
        let policy: toml::Table = toml::from_str(&policy).expect("TOML");
        assert!(policy.contains_key("advisories"));
    }
}
