//! Why a backup, its verification or a restore failed.

use crate::archive::moment::Unreachable;
use larimar_engine::{Fault, ReadError, WriteError};
use tokio::task::JoinError;

/// Why a backup, its verification or a restore failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The place of the backup could not be read or written.
    #[error("{what}: {reason}")]
    Place {
        /// The file or object.
        what: String,
        /// What the system or the store said.
        reason: String,
    },
    /// A file of the backup is missing.
    #[error("{0} is missing from the backup")]
    Missing(String),
    /// A file of the backup is not what was written.
    #[error("{what} is damaged: {reason}")]
    Damaged {
        /// The file or object.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The place holds something else.
    #[error("{0} is neither empty nor a place of Larimar's backups: give another directory")]
    NotOurs(String),
    /// Backups are there, and the file that marks their place is not.
    #[error(
        "{0} is missing, though backups are beside it: the file marks the place and says whether it is encrypted; copy it from          another copy of the place, or see \"A lost mark\" in docs/backup.md"
    )]
    NoMark(String),
    /// The place is encrypted, and there is no key.
    #[error("{0} is encrypted: give the key file, with --key-file or as backup_key_file of the server")]
    NeedsKey(String),
    /// The place is encrypted with another key.
    #[error("{0} is encrypted with another key than that of the key file")]
    WrongKey(String),
    /// There is a key, and the place is not encrypted.
    #[error(
        "{0} is not encrypted, and a key file is given (--key-file or backup_key_file): give an encrypted or an empty place, \
         or leave the key file out"
    )]
    NotEncrypted(String),
    /// The place holds no backup.
    #[error("there is no backup in {0}")]
    NoBackup(String),
    /// The place holds backups, but not this one.
    #[error("there is no generation {} in the backup; there are: {}", .name.escape_debug(), .there.join(", "))]
    NoGeneration {
        /// The generation that was asked for.
        name: String,
        /// Those that there are.
        there: Vec<String>,
    },
    /// A later release wrote the backup.
    #[error("{what} has format {format}, which a later release of Larimar writes; use that release")]
    Newer {
        /// The file or object.
        what: String,
        /// The number of its format.
        format: u32,
    },
    /// What was asked for is not possible; the text says why.
    #[error("{0}")]
    Refused(String),
    /// Another process writes to the place.
    #[error("another backup is being written to {0}")]
    Busy(String),
    /// Another process archives to the place.
    #[error("another server archives to {0}: give each server its own place")]
    BusyArchive(String),
    /// The place cannot restore this moment.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// A server archives to the place.
    #[error(
        "a server archives to {0}, and removes old backups there itself: give it the settings backup_keep_time and \
         backup_keep_count"
    )]
    Archiving(String),
    /// Something of the server that removes reads or writes backups for long.
    #[error(
        "a restore into this server reads backups, or the archive waits for {0}: old backups are removed after the next one"
    )]
    InUse(String),
    /// An object store cannot be locked against writers.
    #[error(
        "{0} cannot be locked while chunks are removed: give the server the settings backup_keep_time and backup_keep_count, \
         or make sure that no backup is taken and nothing archived there, and give --idle"
    )]
    NotLocked(String),
    /// No backup would be left.
    #[error("no backup would be left in {0}: to give up all of them, delete the place itself")]
    LastBackup(String),
    /// What is to be kept is damaged, so it is not known what it needs.
    #[error(
        "nothing was removed, because {file}, which is kept, is damaged: {source}; \
         see `larimar backup verify`, and `larimar backup remove` for a damaged backup"
    )]
    KeptDamaged {
        /// The generation or segment.
        file: String,
        /// What is wrong with it.
        source: Box<Self>,
    },
    /// The store failed.
    #[error(transparent)]
    Engine(#[from] Fault),
}

impl BackupError {
    /// A thread or a task that ended in a panic.
    #[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
    pub(crate) fn thread(error: JoinError) -> Self {
        Self::Place { what: "a thread".to_owned(), reason: error.to_string() }
    }

    pub(crate) fn damaged(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Damaged { what: what.into(), reason: reason.into() }
    }

    /// The same of a file that is kept while others are removed.
    pub(crate) fn of_kept(self, file: &str) -> Self {
        match self {
            Self::Missing(_) | Self::Damaged { .. } | Self::Newer { .. } => {
                Self::KeptDamaged { file: file.to_owned(), source: Box::new(self) }
            }
            other => other,
        }
    }
}

impl From<ReadError> for BackupError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Fault(fault) => Self::Engine(fault),
            other @ ReadError::SpaceGone => Self::Engine(Fault::Unavailable(other.to_string())),
        }
    }
}

impl From<WriteError> for BackupError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Fault(fault) => Self::Engine(fault),
            other => Self::Engine(Fault::Unavailable(other.to_string())),
        }
    }
}
