//! The embedded storage engine of Larimar: one process, files on disk.
//!
//! [`LocalEngine`] fulfils the contract of `larimar-engine` on top of a [`store`]. A write goes through
//! `write.rs` and `committer.rs`, a read through `published.rs` and `snapshot.rs`; `catalogue.rs` keeps the spaces,
//! `reclaim.rs` frees dropped ones, `recovery.rs` takes over when the disk fails.

pub mod budget;
mod catalogue;
mod commit_feed;
mod committer;
mod engine;
mod full_disk;
mod held_snapshot;
mod key;
mod latch;
mod load;
mod open;
mod published;
mod reclaim;
mod recovery;
pub mod repair;
mod replay;
mod reserve;
pub mod restoring;
mod shared;
mod snapshot;
pub mod store;
mod version;
mod write;

pub use catalogue::CommitPoint;
pub use commit_feed::{CommitFeed, CommitGroup, ContainerRows, FedWrite};
pub use engine::LocalEngine;
pub use held_snapshot::HeldSnapshot;
pub use load::Loader;
pub use open::{Durability, Settings};
pub use replay::{ContainerRow, Replay};
pub use snapshot::LocalSnapshot;
