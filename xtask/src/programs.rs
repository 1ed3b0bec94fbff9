//! Programs that others wrote, run against the built server: each is a script in `tests/programs/<name>`.
//!
//! A program that this machine does not have and that cannot be installed into the checkout is skipped, loudly, and
//! never counts as passed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::ValueEnum;

use crate::debian;
use crate::gate;
use crate::sdk::install::{self, Packages};
use crate::sdk::{Server, WorkFolder};
use crate::shell::{self, Repo};
use crate::tally::Tally;

const SCRIPT: &str = "run.py";
const PROGRAM_TIME_MAX: Duration = Duration::from_secs(15 * 60);

/// The names are the folders below `tests/programs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Program {
    /// The Azure CLI, installed from its packages
    Az,
    /// rclone, as the machine has it or Debian's package brings it
    Rclone,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Self::Az => "az",
            Self::Rclone => "rclone",
        }
    }

    fn folder(self) -> String {
        format!("tests/programs/{}", self.name())
    }

    /// The interpreter to run the script with, or why there is none.
    fn interpreter(self, repo: &Repo) -> Result<PathBuf> {
        ensure!(shell::on_path("python3"), "no 'python3' on this machine");
        match self {
            Self::Az => {
                install::python(repo, &self.folder(), Packages::Listed)?;
                Ok(repo.path(&self.folder()).join(install::PYTHON))
            }
            Self::Rclone => {
                if !shell::on_path("rclone") {
                    debian::install(repo, &["rclone"])?;
                    ensure!(shell::on_path("rclone"), "its package brought no 'rclone'");
                }
                Ok("python3".into())
            }
        }
    }
}

/// `cargo xtask programs …`.
pub(crate) fn command(repo: &Repo, programs: &[Program]) -> Result<Tally> {
    let binary = gate::build_server(repo, &["build", "--package", "larimar"])?;
    let programs = if programs.is_empty() { Program::value_variants() } else { programs };
    Ok(run(repo, programs, &binary))
}

/// Runs programs one after the other, each against a server of its own.
pub(crate) fn run(repo: &Repo, programs: &[Program], binary: &Path) -> Tally {
    let mut tally = Tally::default();
    for program in programs {
        let name = program.name();
        match program.interpreter(repo) {
            Ok(interpreter) => gate::step(&mut tally, name, || run_script(repo, *program, &interpreter, binary)),
            Err(error) => tally.skip(name, &format!("{error:#}")),
        }
    }
    tally
}

fn run_script(repo: &Repo, program: Program, interpreter: &Path, binary: &Path) -> Result<()> {
    let work = WorkFolder::create(program.name())?;
    let mut command = repo.command(interpreter, &program.folder());
    command.arg(SCRIPT).env("TMPDIR", &work.0);
    let mut worked = false;
    Server::run(binary, &work.0, None, |endpoints| {
        worked = shell::run(endpoints.tell(&mut command), PROGRAM_TIME_MAX)?.success();
        Ok(worked)
    })?;
    ensure!(worked, "did not work as it should");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_its_script() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the checkout").to_owned();
        let repo = Repo { root };
        for program in Program::value_variants() {
            assert!(repo.path(&program.folder()).join(SCRIPT).is_file(), "{program:?}");
        }
    }
}
