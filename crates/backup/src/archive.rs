//! The archive: every commit, in order, beside the backups of a place.
//!
//! Commits come from the engine through a mailbox (`mailbox.rs`). A thread writes them to the spool in the data directory
//! (`spooler.rs`, `spool.rs`), and the archiver ([`Archiver`]) makes segments of them (`segment.rs`) with the payloads that
//! they point to (`compose.rs`), in the lines of the place (`line.rs`). Nothing on this way makes a write wait: where it
//! cannot keep up, the line ends, and another begins with a full backup (`base.rs`). The reasons are in decision 45.

mod archiver;
mod base;
mod compose;
pub(crate) mod line;
pub(crate) mod lines;
mod mailbox;
pub(crate) mod moment;
mod other_lines;
pub(crate) mod reach;
mod recover;
pub(crate) mod replay;
pub(crate) mod segment;
mod spool;
mod spooler;
mod status;
#[cfg(test)]
mod tests;
mod upload;

pub use archiver::{ArchiveSettings, Archiver};
pub use mailbox::CommitMailbox;
pub use status::ArchiveStatus;
