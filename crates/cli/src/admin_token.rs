//! The token of the admin endpoint, before the server starts: as configured, or as a file that it creates.
//!
//! A data directory has a token of its own, which is kept over restarts. Servers without one, in memory or over a
//! database, make a new token at each start and write it where commands of the same user find it
//! (`larimar_tool::admin`). A token that cannot be written does not stop a server: a full disk must not.

use crate::settings::{ADMIN_TOKEN, Resolved, Settings};
use anyhow::Context;
use larimar_server::AdminToken;
use larimar_tool::admin;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The token of a server that is about to start.
pub(crate) struct ServerToken {
    /// None if it could not be written; accounts' keys still count then.
    pub(crate) token: Option<AdminToken>,
    /// Where users find it, for the banner.
    pub(crate) shown: String,
    /// The file that goes when the server ends.
    _runtime_file: Option<RuntimeFile>,
}

/// A file that is removed with this value.
struct RuntimeFile(PathBuf);

impl Drop for RuntimeFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Finds or makes the token of a server whose admin endpoint has this port.
pub(crate) fn prepare(resolved: &Resolved, port: u16) -> anyhow::Result<ServerToken> {
    let settings = &resolved.settings;
    let runtime = runtime_directory();
    // A server that did not end cleanly may have left its file; the port is this server's now.
    let runtime_file = runtime.as_deref().map(|directory| admin::runtime_file(directory, port));
    if let (Some(directory), Some(file)) = (&runtime, &runtime_file)
        && admin::is_private(directory).unwrap_or(false)
    {
        let _ = std::fs::remove_file(file);
    }
    if let Some((token, shown)) = configured(resolved)? {
        return Ok(ServerToken { token: Some(token), shown, _runtime_file: None });
    }
    let written = match (runtime, runtime_file) {
        _ if settings.has_data_dir() => keep(&settings.data_dir),
        (Some(directory), Some(file)) => make(&directory, &file),
        _ => Ok(None),
    };
    let (token, file) = match written {
        Ok(Some(written)) => written,
        Ok(None) => return Ok(without("there is no place for it; set admin_token or admin_token_file")),
        Err(error) if error.is::<NotAToken>() => return Err(error),
        Err(error) => return Ok(without(&format!("{error:#}"))),
    };
    let shown = format!("in the file {}", file.display());
    let removed = (!settings.has_data_dir()).then(|| RuntimeFile(file));
    Ok(ServerToken { token: Some(token), shown, _runtime_file: removed })
}

/// The token of the server that the settings describe, if it is found.
pub(crate) fn of_server(resolved: &Resolved) -> anyhow::Result<Option<String>> {
    let Settings { admin_token, admin_token_file, data_dir, admin_port, .. } = &resolved.settings;
    let found = match (admin_token, admin_token_file) {
        (Some(token), _) => return Ok(Some(token.0.clone())),
        (None, Some(file)) => admin::read_token(file),
        (None, None) => admin::find_token(runtime_directory().as_deref(), data_dir, *admin_port),
    };
    found.context("the admin token cannot be read")
}

/// The token of the settings, and where it comes from.
fn configured(resolved: &Resolved) -> anyhow::Result<Option<(AdminToken, String)>> {
    let Settings { admin_token, admin_token_file, .. } = &resolved.settings;
    match (admin_token, admin_token_file) {
        (Some(text), _) => {
            let token = AdminToken::new(&text.0).context("the setting was checked when it was read")?;
            Ok(Some((token, format!("not shown; it comes from {}", resolved.source("admin_token")))))
        }
        (None, Some(file)) => {
            let refused = |found: &str| {
                let found = format!("{}: {found}", file.display());
                resolved.refused("admin_token_file", &format!("the path of a file with {ADMIN_TOKEN}"), &found)
            };
            let text = admin::read_token(file).map_err(|error| refused(&error.to_string()))?;
            let text = text.ok_or_else(|| refused("there is no such file"))?;
            let token = AdminToken::new(&text).map_err(|_| refused("something else (not shown)"))?;
            Ok(Some((token, format!("in the file {}", file.display()))))
        }
        (None, None) => Ok(None),
    }
}

/// A file in the place of a token that holds none.
#[derive(Debug, thiserror::Error)]
#[error("{}: expected an admin token, {ADMIN_TOKEN}; remove the file and the server creates another", .0.display())]
struct NotAToken(PathBuf);

/// A token and its file.
type Written = Option<(AdminToken, PathBuf)>;

/// The token of a data directory, which is made if there is none.
fn keep(data_dir: &Path) -> anyhow::Result<Written> {
    let file = data_dir.join(admin::TOKEN_FILE);
    let found = admin::read_token(&file).with_context(|| format!("cannot read {}", file.display()))?;
    match found {
        Some(text) => {
            let token = AdminToken::new(&text).map_err(|_| NotAToken(file.clone()))?;
            Ok(Some((token, file)))
        }
        None => write_new(&file).map(Some),
    }
}

/// A new token in the runtime directory.
fn make(directory: &Path, file: &Path) -> anyhow::Result<Written> {
    let shown = directory.display();
    // The mask of the process keeps it from others.
    std::fs::create_dir_all(directory).with_context(|| format!("cannot create {shown}"))?;
    if !admin::is_private(directory).with_context(|| format!("cannot read {shown}"))? {
        anyhow::bail!("{shown} is not a directory that this user alone can use");
    }
    write_new(file).map(Some)
}

/// Writes a new token to a file. The file is whole or not there.
fn write_new(file: &Path) -> anyhow::Result<(AdminToken, PathBuf)> {
    let text = AdminToken::generate().context("no token could be made")?;
    let mut unfinished = file.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let write = || {
        let _ = std::fs::remove_file(&unfinished);
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut opened = options.open(&unfinished)?;
        writeln!(opened, "{text}")?;
        opened.sync_all()?;
        std::fs::rename(&unfinished, file)
    };
    write().with_context(|| format!("cannot write {}", file.display()))?;
    Ok((AdminToken::new(&text).context("generated tokens are tokens")?, file.to_owned()))
}

fn without(reason: &str) -> ServerToken {
    tracing::warn!(reason, "there is no admin token; only accounts' keys open the admin endpoint");
    ServerToken { token: None, shown: "none".to_owned(), _runtime_file: None }
}

/// The directory of tokens that belong to no data directory.
#[expect(clippy::disallowed_methods, reason = "the runtime directory is the environment's to name")]
fn runtime_directory() -> Option<PathBuf> {
    admin::runtime_directory(|name| std::env::var_os(name))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_data_directory_keeps_its_token_for_its_owner_alone() {
        let folder = tempfile::tempdir().expect("a directory");
        let (_, file) = keep(folder.path()).expect("a place").expect("a token");
        let text = std::fs::read_to_string(&file).expect("a file");
        assert_eq!(file.metadata().expect("a file").permissions().mode() & 0o777, 0o600);
        keep(folder.path()).expect("a place").expect("a token");
        assert_eq!(std::fs::read_to_string(&file).expect("a file"), text);
        std::fs::write(&file, "short\n").expect("a file");
        let error = keep(folder.path()).expect_err("no token");
        assert!(error.is::<NotAToken>() && !error.to_string().contains("short"), "{error}");
    }

    #[test]
    fn a_directory_that_others_can_use_gets_no_token() {
        let folder = tempfile::tempdir().expect("a directory");
        let (directory, link) = (folder.path().join("runtime"), folder.path().join("link"));
        let file = admin::runtime_file(&directory, 1);
        std::fs::create_dir(&directory).expect("a directory");
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o755)).expect("a mode");
        assert!(make(&directory, &file).is_err() && !file.exists());
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o700)).expect("a mode");
        std::os::unix::fs::symlink(&directory, &link).expect("a link");
        assert!(make(&link, &admin::runtime_file(&link, 1)).is_err() && !file.exists());
        assert!(make(&directory, &file).is_ok() && file.exists());
        drop(RuntimeFile(file.clone()));
        assert!(!file.exists());
    }
}
