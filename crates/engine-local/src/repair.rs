//! Shows what is wrong with a data directory and repairs it: `larimar repair`.
//!
//! It asks what the server asks at its start (`store/check.rs`), and reads every byte besides. What is done depends on
//! what is lost by it, and nothing that is lost is lost without `--force`:
//!
//! - Damage after the last intact commit of a journal concerns only the last one written, which may never have been
//!   acknowledged; it is cut off. Damage before intact commits is cut when forced, and they are lost.
//! - A missing journal, or the missing end of one, is accepted when forced.
//! - Missing or damaged tables, manifests and marks: when forced, a new store is built of what can be read
//!   (`repair/salvage.rs`).
//!
//! Files that are replaced are kept in a directory `damaged-<n>`. A write that was only incomplete needs no repair.

mod clock;
mod rows;
mod salvage;

use std::fmt;
use std::path::{Path, PathBuf};

pub use clock::{ClockReset, reset_clock};
pub use salvage::Salvage;

use crate::catalogue::{FORMAT, FORMAT_KEY, RELEASE_KEY, refuse_format};
use crate::restoring;
use crate::store::StoreError;
use crate::store::check::{self, BLOBS, Check, Depth, Finding, Kind, check_blobs};
use crate::store::fjall::{STORE, cut, lock};
use crate::store::inventory::{self, Inventory};
use crate::store::journal::{self, Damage, Inspection, State, Tail};

/// What a repair found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// The journals as they were found.
    pub found: Inspection,
    /// What else was found wrong.
    pub findings: Vec<Finding>,
    /// What was done.
    pub action: Action,
}

/// What a repair did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Nothing: the store opens as it is.
    None,
    /// Nothing: a later release wrote the store.
    Newer,
    /// Nothing yet: what was found costs data, and it was not forced.
    Unforced,
    /// Nothing yet: intact commits after the damage would be lost, and it was not forced.
    Refused {
        /// The damage.
        damage: Damage,
        /// How many intact commits come after it.
        commits_lost: u64,
    },
    /// The journals were cut at the damage.
    Cut {
        /// The damage.
        damage: Damage,
        /// How many intact commits came after it.
        commits_lost: u64,
        /// The directory with copies of the journals as they were.
        copies: PathBuf,
    },
    /// What is missing was accepted as lost; the rest is as it was.
    Accepted,
    /// A new store was built of what could be read.
    Salvaged(Salvage),
}

/// Inspects the journals below a data directory without changing anything.
pub fn inspect(folder: &Path) -> Result<Inspection, StoreError> {
    let path = folder.join(STORE);
    journal::inspect(&path).map_err(|source| StoreError::io(&path, source))
}

/// Repairs a data directory; loses nothing unless forced.
pub fn repair(folder: &Path, force: bool) -> Result<Repair, StoreError> {
    let io = |source| StoreError::io(folder, source);
    restoring::refuse(folder)?;
    if !is_data_folder(folder).map_err(io)? {
        return Err(no_store(folder));
    }
    let _lock = lock(folder)?;
    salvage::resume(folder)?;
    let mut check = check::check(folder, Depth::Everything).map_err(io)?;
    if !check.is_new && check.findings.is_empty() {
        check.findings.extend(check_format(folder, &check).map_err(io)?);
    }
    let action = if check.findings.is_empty() {
        repair_journals(folder, &check.journals, force)?
    } else if check.findings.iter().any(|finding| finding.kind == Kind::Newer) {
        Action::Newer
    } else if !force {
        Action::Unforced
    } else if check.findings.iter().all(|finding| finding.is_acceptable) {
        accept(folder, &check).map_err(io)?;
        Action::Accepted
    } else {
        Action::Salvaged(salvage::salvage(folder, &check)?)
    };
    if matches!(action, Action::Cut { .. } | Action::Accepted | Action::Salvaged(_)) {
        end_archive(folder).map_err(io)?;
    }
    Ok(Repair { found: check.journals, findings: check.findings, action })
}

/// Removes commits that wait for the archive: a store that has lost rows must not go on in the same line.
fn end_archive(folder: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(folder.join(SPOOL)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether a directory holds anything of ours, by what is in it and not by names alone. Any other directory is left as it is,
/// without even a lock.
pub fn is_data_folder(folder: &Path) -> std::io::Result<bool> {
    let blobs = folder.join(BLOBS);
    let has_blobs = blobs.join("packs").is_dir() && blobs.join("files").is_dir() || blobs.join("files/00").is_dir();
    Ok(has_blobs
        || Inventory::is_there(folder)?
        || check::is_store(&folder.join(STORE))?
        || folder.join(salvage::REPAIRED).try_exists()?)
}

fn no_store(folder: &Path) -> StoreError {
    let none = "there is no store of Larimar in this folder, nor a trace of one; nothing was changed";
    StoreError::io(folder, std::io::Error::new(std::io::ErrorKind::NotFound, none))
}

/// The server also looks at the record of the format, once the store is open.
fn check_format(folder: &Path, check: &Check) -> std::io::Result<Option<Finding>> {
    let rows = rows::RawRows::open(&folder.join(STORE), &check.journals)?;
    let (mut format, mut release) = (None, None);
    for (key, value) in rows.take_while(|(key, _)| key[..] <= *RELEASE_KEY) {
        if key[..] == *FORMAT_KEY {
            format = Some(value);
        } else if key[..] == *RELEASE_KEY {
            release = Some(value);
        }
    }
    Ok(format.and_then(|format| refuse_format(&format, release.as_deref())))
}

fn repair_journals(folder: &Path, found: &Inspection, force: bool) -> Result<Action, StoreError> {
    let damage = match &found.state {
        State::Intact | State::Torn => return Ok(Action::None),
        State::DamagedTail(damage) | State::DamagedMiddle(damage) => damage.clone(),
    };
    let commits_lost = commits_after(found, &damage);
    if commits_lost > 0 && !force {
        return Ok(Action::Refused { damage, commits_lost });
    }
    let copies = cut_at(folder, found, &damage).map_err(|source| StoreError::io(folder, source))?;
    Ok(Action::Cut { damage, commits_lost, copies })
}

/// Makes what is there the whole store: what the inventory also names is given up.
fn accept(folder: &Path, check: &Check) -> std::io::Result<()> {
    let known = Inventory::read(folder).ok().flatten();
    let journals = &check.journals.journals;
    let number = match journals.last() {
        Some(journal) => journal.number,
        None => {
            // An empty one, as after a clean stop.
            let number = known.as_ref().map_or(0, |inventory| inventory.journal);
            let path = folder.join(STORE).join(format!("{number}.jnl"));
            std::fs::File::create_new(path)?.sync_all()?;
            inventory::sync_folder(&folder.join(STORE))?;
            number
        }
    };
    let sealed = journals.iter().filter(|journal| journal.number < number);
    let inventory = Inventory {
        format: FORMAT,
        release: env!("CARGO_PKG_VERSION").to_owned(),
        journal: number,
        sealed: sealed.map(|journal| (journal.number, journal.last_seqno.unwrap_or(0))).collect(),
        // Blobs that are whole stay known, so that they are missed if they go later.
        has_blobs: check_blobs(&folder.join(BLOBS)).is_none(),
    };
    inventory.write(folder)?;
    inventory::forget_watermark(folder)
}

fn commits_after(found: &Inspection, damage: &Damage) -> u64 {
    let from = found.journals.iter().position(|journal| journal.path == damage.path).unwrap_or(0);
    let in_tail = |tail: &Tail| match tail {
        Tail::Damaged { intact_after, .. } => *intact_after,
        Tail::Empty | Tail::Torn => 0,
    };
    let after = |(index, journal): (usize, &journal::Journal)| {
        // Where numbers go backwards the damage may be anywhere in the journal; all of it stays.
        let whole = if index == from { 0 } else { journal.batches };
        whole + in_tail(&journal.tail)
    };
    found.journals.iter().enumerate().skip(from).map(after).sum()
}

/// Copies the damaged journal and all later ones, then cuts it and empties them.
fn cut_at(folder: &Path, found: &Inspection, damage: &Damage) -> std::io::Result<PathBuf> {
    let copies = fresh_folder(folder)?;
    let from = found.journals.iter().position(|journal| journal.path == damage.path).unwrap_or(0);
    let journals = &found.journals[from..];
    for journal in journals {
        if let Some(name) = journal.path.file_name() {
            let copy = copies.join(name);
            std::fs::copy(&journal.path, &copy)?;
            std::fs::File::open(&copy)?.sync_all()?;
        }
    }
    std::fs::File::open(&copies)?.sync_all()?;
    // Last first, so that an interruption leaves a state that another repair understands.
    for (index, journal) in journals.iter().enumerate().rev() {
        cut(&journal.path, if index == 0 { damage.offset } else { 0 })?;
    }
    inventory::forget_watermark(folder)?;
    Ok(copies)
}

fn fresh_folder(folder: &Path) -> std::io::Result<PathBuf> {
    for number in 1..=FOLDERS_MAX {
        let path = folder.join(format!("damaged-{number}"));
        match std::fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::Error::other("there are too many folders of copies from earlier repairs"))
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for journal in &self.found.journals {
            let journal::Journal { path, file_bytes, intact_bytes, batches, .. } = journal;
            write!(f, "{}: {batches} commits in {intact_bytes} of {file_bytes} bytes, then ", path.display())?;
            match &journal.tail {
                Tail::Empty => writeln!(f, "nothing")?,
                Tail::Torn => writeln!(
                    f,
                    "a commit that was cut short: it was not acknowledged if the machine stopped in the middle of it; \
                     at most that one is missing"
                )?,
                Tail::Damaged { reason, intact_after } => {
                    writeln!(f, "damage ({reason}), then {intact_after} intact commits")?;
                }
            }
        }
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        write!(f, "{}", self.action)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(f, "nothing to repair: the store opens as it is"),
            Self::Newer => write!(f, "nothing was changed: a later release wrote the store, and opens it"),
            Self::Unforced => write!(
                f,
                "nothing was changed: restore a backup, or repeat with --force to give up what is lost and keep the \
                 rest; the damaged store is kept beside it"
            ),
            Self::Refused { damage, commits_lost } => write!(
                f,
                "nothing was changed: cutting at the damage ({damage}) would lose {commits_lost} intact commits \
                 after it; restore a backup, or repeat with --force to lose them"
            ),
            Self::Cut { damage, commits_lost, copies } => write!(
                f,
                "cut at the damage ({damage}); {commits_lost} intact commits after it were dropped; \
                 the journals as they were are in {}",
                copies.display()
            ),
            Self::Accepted => write!(f, "what is missing was given up; the store opens with the rest"),
            Self::Salvaged(salvage) => salvage.fmt(f),
        }
    }
}

impl fmt::Display for Salvage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, blocks_lost, tables_lost, rows_without_space, original } = self;
        write!(f, "a new store holds the {rows} rows and records that could be read; ")?;
        match (tables_lost, blocks_lost) {
            (0, 0) => write!(f, "every table and journal that was there could be read; ")?,
            _ => write!(
                f,
                "{tables_lost} table files and {blocks_lost} blocks of others could not; rows in them are lost, or \
                 appear as they were before their last change; "
            )?,
        }
        if *rows_without_space > 0 {
            write!(f, "{rows_without_space} rows belong to tables, queues or containers whose names are lost; ")?;
        }
        write!(f, "the damaged store is in {}", original.display())
    }
}

const FOLDERS_MAX: usize = 1000;
/// Where commits wait for the archive.
const SPOOL: &str = "spool";
