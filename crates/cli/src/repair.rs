//! `larimar repair`: shows what is wrong with a data directory and repairs what can be repaired without losing intact
//! data.

use std::path::Path;

use crate::settings::Resolved;
use crate::settings::engine::EngineChoice;
use anyhow::{Context, bail, ensure};
use larimar_engine::{Clock, SystemClock};
use larimar_engine_local::repair::{self, Action};

/// Repairs the configured data directory and prints what was found and done.
pub(crate) fn run(resolved: &Resolved, force: bool) -> anyhow::Result<()> {
    let folder = folder(resolved)?;
    let done = repair::repair(folder, force).with_context(|| format!("cannot repair {}", folder.display()))?;
    println!("{done}");
    match done.action {
        Action::None | Action::Cut { .. } | Action::Accepted | Action::Salvaged(_) => Ok(()),
        Action::Refused { .. } | Action::Unforced | Action::Newer => bail!("{} is not repaired", folder.display()),
    }
}

/// Lets the versions of the data directory continue at the present time.
pub(crate) fn reset_clock(resolved: &Resolved) -> anyhow::Result<()> {
    let folder = folder(resolved)?;
    let reset = repair::reset_clock(folder, SystemClock.now());
    println!("{}", reset.with_context(|| format!("cannot reset the clock of {}", folder.display()))?);
    Ok(())
}

fn folder(resolved: &Resolved) -> anyhow::Result<&Path> {
    if let EngineChoice::Postgres(url) = &resolved.settings.engine {
        let expected = "local for this command, since a database is repaired by its own tools";
        return Err(resolved.refused("engine", expected, &url.to_string()).into());
    }
    let folder = &resolved.settings.data_dir;
    ensure!(folder.is_dir(), "there is no directory {}, as the setting data_dir says", folder.display());
    Ok(folder)
}
