//! Brings a suite's packages into the checkout: a virtual environment for Python, `node_modules` for JavaScript.
//!
//! Go and Maven fetch into their own caches when they run. A stamp keeps the list that was installed, so a second run
//! installs nothing.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::Sdk;
use crate::gate::succeeds;
use crate::shell::Repo;

/// The interpreter with the suite's packages, from the suite's folder.
pub(crate) const PYTHON: &str = ".venv/bin/python";

pub(super) fn install(repo: &Repo, sdk: Sdk) -> Result<()> {
    match sdk {
        Sdk::Python => python(repo, &sdk.folder(), Packages::WithDependencies),
        Sdk::Javascript | Sdk::JavascriptLegacy => javascript(repo, &sdk.folder()),
        Sdk::Go | Sdk::Java => Ok(()),
    }
}

/// Whether pip also installs the dependencies of the listed packages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packages {
    WithDependencies,
    /// Only the listed packages.
    Listed,
}

pub(crate) fn python(repo: &Repo, folder: &str, packages: Packages) -> Result<()> {
    let path = repo.path(folder);
    unless_stamped(&path.join("requirements.txt"), &path.join(".venv/installed"), || {
        succeeds(repo.command("python3", folder).args(["-m", "venv", "--clear", ".venv"]))?;
        let mut pip = repo.command(path.join(PYTHON), folder);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"]);
        if packages == Packages::Listed {
            pip.arg("--no-deps");
        }
        succeeds(&mut pip)
    })
}

fn javascript(repo: &Repo, folder: &str) -> Result<()> {
    npm(repo, folder, &["ci"])
}

/// Installs the packages that the lock file names, by this command of npm.
pub(crate) fn npm(repo: &Repo, folder: &str, command: &[&str]) -> Result<()> {
    let path = repo.path(folder);
    unless_stamped(&path.join("package-lock.json"), &path.join("node_modules/.installed"), || {
        succeeds(repo.command("npm", folder).args(command).args(["--no-audit", "--no-fund", "--loglevel=error"]))
    })
}

/// Does the work unless the stamp shows that it was done for the same list.
fn unless_stamped(list: &Path, stamp: &Path, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let wanted = fs::read(list).with_context(|| format!("read {}", list.display()))?;
    if fs::read(stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    work()?;
    fs::write(stamp, wanted).with_context(|| format!("write {}", stamp.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_installed_once_and_again_when_it_changes() {
        let folder = std::env::temp_dir().join(format!("larimar-xtask-stamp-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("create");
        let (list, stamp) = (folder.join("list"), folder.join("stamp"));
        let mut runs = 0;
        let mut install = |contents: &str| {
            fs::write(&list, contents).expect("write");
            unless_stamped(&list, &stamp, || {
                runs += 1;
                Ok(())
            })
            .expect("installs");
            runs
        };
        assert_eq!([install("a"), install("a"), install("b"), install("b")], [1, 1, 2, 2]);
        let failed = unless_stamped(&list, &folder.join("other"), || anyhow::bail!("offline"));
        assert!(failed.is_err() && !folder.join("other").exists());
        fs::remove_dir_all(&folder).expect("remove");
    }
}
