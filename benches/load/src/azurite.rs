//! Azurite, the emulator we compare with: installed from npm on first use, into the build folder.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::target::Service;

/// The release that is compared; the client's tests run against the same.
pub(crate) const VERSION: &str = include_str!("../../../tests/azurite.version").trim_ascii();

/// How often it saves its data while there are changes; it answers nothing meanwhile. A measurement of
/// writes has to be as long, or it is luck whether a save falls into it.
pub(crate) const SAVE_PERIOD: Duration = Duration::from_secs(5);

/// Installs Azurite below `folder` unless that release is there.
pub(crate) fn install(folder: &Path) -> anyhow::Result<()> {
    let manifest = folder.join("node_modules/azurite/package.json");
    if std::fs::read_to_string(&manifest).is_ok_and(|text| text.contains(&format!("\"version\": \"{VERSION}\""))) {
        return Ok(());
    }
    println!("installing Azurite {VERSION} from npm");
    std::fs::create_dir_all(folder)?;
    let status = Command::new("npm")
        .args(["install", &format!("azurite@{VERSION}"), "--no-audit", "--no-fund", "--loglevel", "error", "--prefix"])
        .arg(folder)
        .status()
        .context("running npm")?;
    ensure!(status.success(), "npm could not install Azurite");
    Ok(())
}

/// The script that runs one of its services.
pub(crate) fn program(folder: &Path, service: Service) -> PathBuf {
    folder.join(format!("node_modules/.bin/azurite-{}", service.name()))
}
