//! Mends a store that refuses to open because its journal is damaged: `larimar repair`.
//!
//! Damage after the last intact commit can only concern the last one written, which may never have been
//! acknowledged (a loss of power while it was on its way to disk); it is cut off, and a copy is kept. Damage
//! before intact commits means that acknowledged writes are unreadable; cutting there loses the later ones
//! too, so that is done only when forced. A write that was merely cut short needs no repair.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::store::StoreError;
use crate::store::fjall::{STORE, cut, lock};
use crate::store::journal::{self, Damage, Inspection, State, Tail};

/// What a repair found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// The journals as they were found.
    pub found: Inspection,
    /// What was done.
    pub action: Action,
}

/// What a repair did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Nothing: the store opens as it is.
    None,
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
        /// The folder with copies of the journals as they were.
        copies: PathBuf,
    },
}

/// Looks at the journals below a data folder without changing anything.
pub fn inspect(folder: &Path) -> Result<Inspection, StoreError> {
    let path = folder.join(STORE);
    journal::inspect(&path).map_err(|source| StoreError::io(&path, source))
}

/// Mends the journals below a data folder; refuses to lose intact commits unless forced.
pub fn repair(folder: &Path, force: bool) -> Result<Repair, StoreError> {
    let _lock = lock(folder)?;
    let found = inspect(folder)?;
    let damage = match &found.state {
        State::Intact | State::Torn => return Ok(Repair { found, action: Action::None }),
        State::DamagedTail(damage) | State::DamagedMiddle(damage) => damage.clone(),
    };
    let commits_lost = commits_after(&found, &damage);
    if commits_lost > 0 && !force {
        return Ok(Repair { found, action: Action::Refused { damage, commits_lost } });
    }
    let copies = cut_at(folder, &found, &damage).map_err(|source| StoreError::io(folder, source))?;
    Ok(Repair { found, action: Action::Cut { damage, commits_lost, copies } })
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
                Tail::Torn => writeln!(f, "a commit that was cut short and never acknowledged")?,
                Tail::Damaged { reason, intact_after } => {
                    writeln!(f, "damage ({reason}), then {intact_after} intact commits")?;
                }
            }
        }
        match &self.action {
            Action::None => write!(f, "nothing to repair: the store opens as it is"),
            Action::Refused { damage, commits_lost } => write!(
                f,
                "nothing was changed: cutting at the damage ({damage}) would lose {commits_lost} intact commits \
                 after it; restore a backup, or repeat with --force to lose them"
            ),
            Action::Cut { damage, commits_lost, copies } => write!(
                f,
                "cut at the damage ({damage}); {commits_lost} intact commits after it were dropped; \
                 the journals as they were are in {}",
                copies.display()
            ),
        }
    }
}

const FOLDERS_MAX: usize = 1000;
