//! `larimar repair`: shows the damage of a data folder and mends what can be mended without losing intact data.

use crate::settings::Resolved;
use crate::settings::engine::EngineChoice;
use anyhow::{Context, bail, ensure};
use larimar_engine_local::repair::{Action, repair};

/// Repairs the data folder of the settings and tells what was found and done.
pub(crate) fn run(resolved: &Resolved, force: bool) -> anyhow::Result<()> {
    if let EngineChoice::Postgres(url) = &resolved.settings.engine {
        let expected = "local for this command, since a database is mended by its own tools";
        return Err(resolved.refused("engine", expected, &url.to_string()).into());
    }
    let folder = &resolved.settings.data_dir;
    ensure!(folder.is_dir(), "there is no folder {}, as the setting data_dir says", folder.display());
    let done = repair(folder, force).with_context(|| format!("cannot repair {}", folder.display()))?;
    println!("{done}");
    match done.action {
        Action::None | Action::Cut { .. } => Ok(()),
        Action::Refused { .. } => bail!("{} is not repaired", folder.display()),
    }
}
