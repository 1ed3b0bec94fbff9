//! `larimar backup` and `larimar restore`.
//!
//! A backup is taken by the server (`backup/served.rs`): the command starts it, waits, and shows how far it is. `verify`
//! and `restore` need no server: they read the place of the backups.

mod archive;
mod into_server;
mod list;
mod restore;
mod served;
mod served_restores;

pub(crate) use into_server::{IntoServer, SingleRequest};
pub(crate) use restore::{Restore, read_time};
pub(crate) use served::ServedBackups;
pub(crate) use served_restores::ServedRestores;

use crate::own_server::OwnServer;
use crate::settings::{Resolved, Settings, SettingsError};
use crate::signals::{EXIT_INTERRUPTED, Runtime};
use anyhow::{Context, bail, ensure};
use larimar_backup::{
    BackupError, Generation, JobState, JobStatus, Keep, Key, Place, Rate, Removed, Removing, Totals, Writers, remove,
    remove_damaged, verify,
};
use larimar_tool::admin::AdminAnswer;
use larimar_tool::location::{Location, NO_CREDENTIALS, holds_credentials};
use larimar_tool::output::escape;
use std::io::{IsTerminal, Write as _};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// What to do about backups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Backup {
    /// Take one.
    Take { to: String, rate: Rate },
    /// Show what the last one is doing, or did.
    Status,
    /// Cancel the one that runs.
    Cancel,
    /// Read them back.
    Verify { from: String, generation: Option<String>, is_removing: bool },
    /// Remove some of them, and what nothing needs any more.
    Remove { from: String, generations: Vec<String>, options: RemoveOptions },
    /// Remove those that the settings do not keep.
    Prune { from: String, options: RemoveOptions },
    /// Make a key file.
    Key { file: PathBuf },
    /// List them, and the moments that can be restored.
    List { from: String },
}

/// How backups are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RemoveOptions {
    /// Only shows what would be removed.
    pub(crate) is_dry: bool,
    /// Nothing writes to the object store.
    pub(crate) is_idle: bool,
}

/// Runs the command.
pub(crate) fn run(resolved: &Resolved, backup: &Backup, runtime: Runtime) -> anyhow::Result<()> {
    runtime.block_on(async |mut signals| {
        let is_server_s = matches!(backup, Backup::Take { .. });
        tokio::select! {
            done = run_one(resolved, backup) => done,
            _ = signals.end() => {
                end_line();
                if is_server_s {
                    eprintln!(
                        "larimar: interrupted; the server goes on with the backup: `larimar backup status` shows it, \
                         `larimar backup cancel` ends it"
                    );
                }
                std::process::exit(EXIT_INTERRUPTED);
            }
        }
    })
}

async fn run_one(resolved: &Resolved, backup: &Backup) -> anyhow::Result<()> {
    match backup {
        Backup::Take { to, rate } => take(resolved, to, *rate).await,
        Backup::Status => {
            let status = read(&OwnServer::find(resolved)?.get("/backup").await?)?;
            print(&shown(&status))
        }
        Backup::Cancel => {
            let answer = OwnServer::find(resolved)?.delete("/backup").await?;
            if answer.status == 404 {
                bail!("{}", answer.text.trim_end());
            }
            print(&shown(&read(&answer)?))
        }
        Backup::Verify { from, generation, is_removing } => {
            verify_all(&readable_place(resolved, from)?, generation.as_deref(), *is_removing).await
        }
        Backup::Remove { from, generations, options } => {
            remove_some(&readable_place(resolved, from)?, &Removing::Named(generations.clone()), *options).await
        }
        Backup::Prune { from, options } => {
            let Settings { backup_keep_time: time, backup_keep_count: count, .. } = resolved.settings;
            let keep = Keep { time, count };
            ensure!(keep.is_set(), "nothing says which backups to keep: give --keep-time, --keep-count or both");
            remove_some(&readable_place(resolved, from)?, &Removing::Surplus(keep), *options).await
        }
        Backup::Key { file } => make_key(file),
        Backup::List { from } => list::list(&readable_place(resolved, from)?).await,
    }
}

/// Has the server take a backup, and waits for it.
async fn take(resolved: &Resolved, to: &str, rate: Rate) -> anyhow::Result<()> {
    let to = place("TO", to)?;
    let to = match to.as_directory() {
        // The server runs in another directory.
        Some(path) => resolved_path(path)?.to_str().context("expected a path of UTF-8")?.to_owned(),
        None => to.to_string(),
    };
    let server = OwnServer::find(resolved)?;
    // The server encrypts: a key that only the command has would be of no use.
    if resolved.settings.backup_key_file.is_some() && !read(&server.get("/backup").await?)?.is_encrypting {
        bail!(
            "backup_key_file is set for this command and not for the server, which would not encrypt: start the server \
             with it"
        );
    }
    let started = read(&server.post(&format!("/backup?to={}&rate={rate}", encoded(&to))).await?)?;
    let mut status = started.clone();
    let mut poll = Poll::new();
    while status.state == JobState::Running {
        show(&status.totals, "sent", status.totals.sent_bytes);
        poll.pause().await;
        status = read(&server.get("/backup").await.context("the backup was interrupted")?)?;
        if status.started != started.started {
            bail!("the server has begun another backup; this one has ended");
        }
    }
    end_line();
    match status.state {
        JobState::Done => print(&shown(&status)),
        JobState::Cancelled => bail!("the backup was cancelled"),
        _ => bail!("{}", status.error.unwrap_or_else(|| "the backup failed".to_owned())),
    }
}

/// An absolute path without `..`, which the server refuses: a directory that does not exist has no parent.
fn resolved_path(path: &Path) -> anyhow::Result<PathBuf> {
    let mut resolved = PathBuf::new();
    for component in std::path::absolute(path)?.components() {
        if component != Component::ParentDir {
            resolved.push(component);
            continue;
        }
        resolved = resolved.canonicalize().with_context(|| format!("cannot resolve {}", path.display()))?;
        resolved.pop();
    }
    Ok(resolved)
}

/// Reads back one generation, or all of them.
async fn verify_all(place: &Place, generation: Option<&str>, is_removing: bool) -> anyhow::Result<()> {
    let names = match generation {
        Some(name) => vec![Generation::find(place, Some(name)).await?.name()],
        None => Generation::list(place).await?,
    };
    let mut damaged = 0;
    for name in &names {
        let read = std::sync::atomic::AtomicU64::new(0);
        let progress = |bytes: u64| {
            let so_far = read.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed) + bytes;
            show(&Totals::default(), "read", so_far);
        };
        let verified = match is_removing {
            true => remove_damaged(place, name, &progress).await,
            false => verify(place, name, &progress).await,
        };
        end_line();
        let problems = match verified {
            Ok((generation, problems)) if problems.is_empty() => {
                print(&format!("{name}: whole; {}\n", counted(&generation.totals)))?;
                continue;
            }
            Ok((_, problems)) => problems,
            Err(problem) => vec![problem],
        };
        damaged += 1;
        print(&format!("{name}: damaged\n"))?;
        complain(name, &problems);
    }
    let damaged_lines = if generation.is_none() { list::verify_lines(place).await? } else { 0 };
    if damaged > 0 {
        bail!("{damaged} of {} generations cannot be restored", names.len());
    }
    if damaged_lines > 0 {
        bail!("{damaged_lines} lines of the archive are damaged");
    }
    Ok(())
}

/// Removes backups.
async fn remove_some(place: &Place, removing: &Removing, options: RemoveOptions) -> anyhow::Result<()> {
    let RemoveOptions { is_dry, is_idle } = options;
    let removed = remove(place, removing, Writers::Others { is_idle }, is_dry).await?;
    let verb = if is_dry { "would be removed" } else { "removed" };
    let generations: String = removed.generations.iter().map(|name| format!("{name}: {verb}\n")).collect();
    print(&format!("{generations}{verb}: {}\n", removed_counts(&removed)))
}

fn removed_counts(removed: &Removed) -> String {
    let Removed { generations, segments, chunks, chunk_bytes } = removed;
    let (generations, room) = (generations.len(), bytes(*chunk_bytes));
    format!("{generations} backups, {segments} segments of the archive, {chunks} chunks ({room})")
}

/// Makes a key file.
fn make_key(file: &Path) -> anyhow::Result<()> {
    let shown = file.display();
    Key::create(file).with_context(|| format!("cannot make the key file {shown}"))?;
    print(&format!(
        "{shown} is made. Start the server with the setting backup_key_file, and keep a copy of the file apart from the server \
         and the backups: without it, no backup can be read.\n"
    ))
}

/// The key of the setting backup_key_file, which encrypts backups.
pub(crate) fn key(resolved: &Resolved) -> Result<Option<Key>, SettingsError> {
    let Some(path) = &resolved.settings.backup_key_file else { return Ok(None) };
    let key = Key::read(path).map_err(|error| {
        let expected = "the path of a file with 32 bytes or 64 hexadecimal digits, made by `larimar backup key FILE`";
        resolved.refused("backup_key_file", expected, &format!("{}: {error}", path.display()))
    })?;
    Ok(Some(key))
}

/// The place that backups are read from, decrypted with the key of the settings.
pub(crate) fn readable_place(resolved: &Resolved, from: &str) -> Result<Place, SettingsError> {
    let place = place("FROM", from)?;
    Ok(match key(resolved)? {
        Some(key) => place.encrypted(&key),
        None => place,
    })
}

/// The place that an argument names.
pub(crate) fn place(argument: &'static str, text: &str) -> Result<Place, SettingsError> {
    let refused = |reason: String| SettingsError::Argument { name: argument, reason };
    // No account is asked for.
    let context = larimar_tool::Context::new(crate::environment(), Err(String::new()));
    if holds_credentials(text) {
        return Err(refused(NO_CREDENTIALS.to_owned()));
    }
    match Location::parse(text, &context) {
        Ok(Location::File(path)) if !path.as_os_str().is_empty() => Ok(Place::directory(path)),
        Ok(Location::Object { store, path, url, .. }) => Ok(Place::objects(store, path, url)),
        Err(error) if ["s3://", "az://", "gs://"].iter().any(|store| text.starts_with(store)) => {
            Err(refused(error.to_string()))
        }
        Ok(_) | Err(_) => Err(refused(format!(
            "expected a directory, or an address that starts with s3://, az:// or gs://, found '{text}'"
        ))),
    }
}

fn read(answer: &AdminAnswer) -> anyhow::Result<JobStatus> {
    match answer.status {
        200 | 202 => serde_json::from_str(&answer.text).context("the server's answer cannot be read"),
        status => bail!("the server answered {status}: {}", answer.text.trim_end()),
    }
}

/// A status as lines.
fn shown(status: &JobStatus) -> String {
    let JobStatus { state, to, generation, started, ended, totals, error, removed, removal_error, .. } = status;
    let archive = status.archive.as_ref().map(archive::shown).unwrap_or_default();
    let state = match state {
        JobState::None => return format!("no backup since the server started\n{archive}"),
        JobState::Running => "running",
        JobState::Done => "done",
        JobState::Failed => "failed",
        JobState::Cancelled => "cancelled",
    };
    let mut text = format!("{state}: backup to {to}\n");
    for (name, value) in [("generation", generation), ("started", started), ("ended", ended), ("error", error)] {
        if let Some(value) = value {
            text.push_str(&format!("{name}: {}\n", escape(value)));
        }
    }
    text.push_str(&format!("holds: {}\nsent: {}\n", counted(totals), bytes(totals.sent_bytes)));
    if let Some(removed) = removed {
        text.push_str(&format!("removed: {}\n", removed_counts(removed)));
    }
    if let Some(error) = removal_error {
        text.push_str(&format!("old backups were not removed: {}\n", escape(error)));
    }
    text.push_str(&archive);
    text
}

/// What a backup holds.
fn counted(totals: &Totals) -> String {
    let Totals { spaces, rows, row_bytes, payloads, payload_bytes, .. } = *totals;
    format!(
        "{spaces} tables, queues and containers, {rows} rows ({}), {payloads} payloads of blobs ({})",
        bytes(row_bytes),
        bytes(payload_bytes)
    )
}

fn bytes(count: u64) -> String {
    if count < 1 << 20 { format!("{count} bytes") } else { format!("{:.1} MiB", count as f64 / f64::from(1 << 20)) }
}

/// Prints lines.
fn print(text: &str) -> anyhow::Result<()> {
    crate::print(|out| out.write_all(text.as_bytes()))
}

/// Prints what is wrong with a backup or a line. Words of its files must not send commands to a terminal.
fn complain(name: &str, problems: &[BackupError]) {
    problems.iter().for_each(|problem| eprintln!("larimar: {name}: {}", escape(&problem.to_string())));
}

/// Shows how far a command is, on a terminal.
fn show(totals: &Totals, verb: &str, count: u64) {
    let mut out = std::io::stderr();
    if out.is_terminal() {
        let held = if totals.bytes() > 0 { format!("{}; ", counted(totals)) } else { String::new() };
        // Progress that cannot be printed does not stop the command.
        let _ = write!(out, "\r\x1b[K{held}{} {verb}", bytes(count));
    }
}

/// Removes the line of the progress.
fn end_line() {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
}

/// A gauge of the page of metrics.
fn family(name: &str, help: &str, value: impl std::fmt::Display) -> String {
    format!("# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n")
}

/// Text as the value of a query parameter.
fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    text.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// When a command asks again how far the server is: soon at first, since a small backup takes less than a second.
struct Poll(Duration);

impl Poll {
    const fn new() -> Self {
        Self(POLL_MIN)
    }

    async fn pause(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 + self.0 / 8).min(POLL_MAX);
    }
}

const POLL_MIN: Duration = Duration::from_millis(10);
const POLL_MAX: Duration = Duration::from_millis(200);
