//! The data directory before the engine opens it: it has to be ours or empty, and readable by its owner alone.

use crate::settings::{Resolved, SettingsError};
use anyhow::Context;
use std::path::Path;

/// Lets every file that the process makes be readable by its owner alone: 0600, and directories 0700.
pub(crate) fn make_files_private() {
    #[cfg(unix)]
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
}

/// Refuses a directory that holds the files of something else, and takes the rights of others away from one of ours.
pub(crate) fn prepare(resolved: &Resolved) -> anyhow::Result<()> {
    let directory = &resolved.settings.data_dir;
    check(resolved, directory)?;
    if !directory.is_dir() {
        return Ok(());
    }
    let close = close(directory);
    close.with_context(|| format!("cannot make {} private, as the setting data_dir says", directory.display()))
}

fn check(resolved: &Resolved, directory: &Path) -> Result<(), SettingsError> {
    // The engine reports anything else that is wrong with it.
    let Ok(entries) = std::fs::read_dir(directory) else { return Ok(()) };
    let names: Vec<_> = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    // What shows that a store is, or was, here; whether it is whole is for the engine to say.
    if larimar_engine_local::repair::is_data_folder(directory).unwrap_or(false) {
        return Ok(());
    }
    let is_ours = |name: &str| OURS.contains(&name) || name.starts_with('.') || name.starts_with("damaged-");
    match names.iter().find(|name| !is_ours(name)) {
        Some(other) => Err(resolved.refused_because(
            "data_dir",
            format!(
                "{} is neither empty nor a data directory of Larimar: it holds {other:?}; give another directory",
                directory.display()
            ),
        )),
        None => Ok(()),
    }
}

/// Takes the rights of the group and of others away: from all that is inside, then from the directory itself. Where the
/// directory is closed, nothing inside can be reached, so only the top of it is looked at again.
#[cfg(unix)]
fn close(directory: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let is_open = |path: &Path| Ok::<_, std::io::Error>(path.symlink_metadata()?.permissions().mode() & OTHERS != 0);
    if is_open(directory)? {
        close_inside(directory, usize::MAX)?;
        let mode = directory.metadata()?.permissions().mode() & !OTHERS;
        match std::fs::set_permissions(directory, std::fs::Permissions::from_mode(mode)) {
            // A volume that is mounted for a group belongs to another user.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                tracing::warn!(directory = %directory.display(), "others may read the data directory, which is not ours to change");
            }
            changed => changed?,
        }
        return Ok(());
    }
    close_inside(directory, CLOSED_LEVELS)
}

#[cfg(unix)]
fn close_inside(directory: &Path, levels: usize) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        // Links are not followed: what they point to may not be ours.
        if metadata.is_symlink() {
            continue;
        }
        if metadata.is_dir() && levels > 1 && entry.file_name() != "lost+found" {
            close_inside(&entry.path(), levels - 1)?;
        }
        let mode = metadata.permissions().mode();
        if mode & OTHERS != 0 {
            let changed = std::fs::set_permissions(entry.path(), std::fs::Permissions::from_mode(mode & !OTHERS));
            if let Err(error) = changed {
                tracing::warn!(path = %entry.path().display(), %error, "others may read this file of the data directory");
            }
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn close(_directory: &Path) -> std::io::Result<()> {
    Ok(())
}

/// What the group and others may do.
#[cfg(unix)]
const OTHERS: u32 = 0o077;
/// Levels that are looked at in a directory that is closed already: files of the store and the packs of blobs, not each
/// blob.
#[cfg(unix)]
const CLOSED_LEVELS: usize = 3;
/// What may be in a directory before there is a store.
const OURS: [&str; 12] = [
    "admin-token",
    "admin-token.unfinished",
    "lock",
    "blobs",
    "reserve",
    "probe",
    "watermark",
    "store.unfinished",
    "repair.unfinished",
    "restore.unfinished",
    "lost+found",
    "larimar.toml",
];
