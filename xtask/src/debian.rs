//! Debian's packages, for what tests need and the machine lacks: installed if we are root where there are any.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::gate;
use crate::shell::{self, Repo};

/// Whether packages may be installed here; the error says why not.
pub(crate) fn may_install() -> Result<()> {
    ensure!(shell::on_path("apt-get"), "it is not on this machine, and neither is apt-get");
    let user = shell::output_of(Command::new("id").arg("-u"))?;
    ensure!(user.trim_ascii() == b"0", "it is not on this machine, and only root may install it");
    Ok(())
}

/// Installs packages, without what they only recommend.
pub(crate) fn install(repo: &Repo, packages: &[&str]) -> Result<()> {
    may_install()?;
    // Existing configuration stays as it is; dpkg must not prompt.
    let install = ["install", "-y", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold"];
    for arguments in [["update"].as_slice(), &[install.as_slice(), packages].concat()] {
        let mut apt = repo.command("apt-get", ".");
        let ended = gate::succeeds(apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive"));
        ended.with_context(|| format!("install {}", packages.join(" ")))?;
    }
    Ok(())
}
