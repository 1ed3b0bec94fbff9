//! The check of the files in `deploy/`: their schemas, the settings they name, and what must agree between them.
//!
//! The work is done in Python by `deploy/check`, whose packages bring the schemas of Compose and Kubernetes along; they
//! are installed into the checkout as the Python SDK's are. Where they cannot be installed, the check counts as skipped. The
//! machine's own `kubectl`, `haproxy` and `promtool` read the files too, if they are there; none of them talks to anything.
//! `tests/programs/prometheus` runs a Prometheus.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::gate::{step, succeeds};
use crate::sdk::install::{self, Packages};
use crate::shell::{self, Repo};
use crate::tally::Tally;

const FOLDER: &str = "deploy/check";
const NAME: &str = "files in deploy/";
const TOOLS: [&str; 3] = ["kubectl", "haproxy", "promtool"];

/// Checks the files with the built server, which knows its settings.
pub(crate) fn check(repo: &Repo, server: Option<&Path>) -> Tally {
    let mut tally = Tally::default();
    let Some(server) = server else {
        tally.fail(format!("{NAME}: there is no server to read their settings"));
        return tally;
    };
    let Some(mut command) = python(repo, &mut tally) else { return tally };
    command.arg("check.py").arg("--larimar").arg(server);
    for tool in TOOLS {
        if shell::on_path(tool) {
            command.args(["--tool", tool]);
        } else {
            tally.skip(&format!("{NAME} as {tool} reads them"), &format!("no '{tool}' on this machine"));
        }
    }
    step(&mut tally, NAME, || succeeds(&mut command));
    tally
}

/// Checks that the check finds mistakes.
pub(crate) fn check_of_the_check(repo: &Repo) -> Tally {
    let mut tally = Tally::default();
    if let Some(mut command) = python(repo, &mut tally) {
        let tests = command.args(["-m", "unittest", "--quiet"]);
        step(&mut tally, "the check of deploy/ can fail", || succeeds(tests));
    }
    tally
}

/// Python with the packages of the check; if there is none, that counts as a skip.
fn python(repo: &Repo, tally: &mut Tally) -> Option<Command> {
    if !shell::on_path("python3") {
        tally.skip(NAME, "no 'python3' on this machine");
        return None;
    }
    if let Err(error) = install(repo) {
        tally.skip(NAME, &format!("cannot install what the check needs: {error:#}"));
        return None;
    }
    Some(repo.command(repo.path(FOLDER).join(install::PYTHON), FOLDER))
}

/// Installs the packages of the check.
pub(crate) fn install(repo: &Repo) -> Result<()> {
    install::python(repo, FOLDER, Packages::WithDependencies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_server_nothing_is_called_checked() {
        let repo = Repo { root: std::env::temp_dir() };
        assert_eq!(check(&repo, None).to_string(), "0 passed, 1 failed, 0 skipped");
    }
}
