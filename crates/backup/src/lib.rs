//! Backups: the whole store of an engine at one moment, in a directory or an object store.
//!
//! [`back_up`] (`take.rs`) walks a snapshot in key order. Rows, and small payloads of blobs before the rows that point to
//! them, become one stream of records (`record.rs`), which is cut into data chunks (`cutter.rs`); a large payload is cut
//! into pieces of its own. Chunks are named by the SHA-256 of their bytes (`chunk.rs`), so what a place ([`Place`]) has is
//! not sent again. An index lists the chunks in order (`index.rs`), and the generation ([`Generation`]), written last,
//! lists the chunks of the index. [`verify()`] reads all of it back; [`restore()`] fills an engine from it, and
//! [`restore_to`] builds a data directory from it and the commits of the archive up to a [`Moment`] (decision 46).
//! [`remove`] removes old backups. [`BackupJob`] runs backups in a server. The format is drawn in docs/format.md, the
//! reasons are in decision 44.

mod addresses;
mod archive;
mod buffers;
mod chunk;
mod cutter;
mod encryption;
mod error;
mod generation;
mod index;
mod job;
mod pace;
mod payloads;
mod place;
mod record;
mod removal;
mod restore;
mod retention;
mod sealed;
mod sender;
mod single;
mod single_job;
mod slices;
mod take;
mod tally;
mod verify;

pub use archive::lines::{ArchiveLine, Moments, archive_lines};
pub use archive::moment::{Moment, Unreachable};
pub use archive::replay::{Archived, Plan};
pub use archive::{ArchiveSettings, ArchiveStatus, Archiver, CommitMailbox};
pub use encryption::{Key, KeyFileError};
pub use error::BackupError;
pub use generation::{Generation, Totals};
pub use job::{BackupJob, JobState, JobStatus, Refused};
pub use pace::Rate;
pub use place::Place;
pub use removal::{Removed, Removing, Writers, remove};
pub use restore::{restore, restore_to, room_needed};
pub use retention::Keep;
pub use single::Wanted;
pub use single_job::{SingleJob, SingleStatus};
pub use take::back_up;
pub use verify::{Problem, remove_damaged, verify};
