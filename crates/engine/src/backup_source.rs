//! What a backup reads from: the whole store as it is at one moment, held for as long as the backup takes.
//!
//! The embedded engine holds a snapshot of its store, the engine over PostgreSQL a read-only transaction. Both return the
//! same rows: a message is the two rows that engines in one process store it as ([`crate::queue::message_rows`]), so what
//! was backed up from one engine can be restored into another.

use crate::contract::{Engine, OwnedRow, Position, Space, SpaceId, SpaceKind, SpaceName};
use crate::error::{Fault, ReadError};
use larimar_model::Timestamp;
use std::future::Future;

/// An engine that can be backed up.
pub trait BackupSource: Engine {
    /// The store at one moment.
    type Held: BackupSnapshot;

    /// The name of the engine that a backup records; `None` for the embedded one.
    const NAME: Option<&'static str>;

    /// Holds the store as it is now. Dropping the snapshot ends it at once.
    fn hold(&self) -> impl Future<Output = Result<Self::Held, Fault>> + Send;
}

/// The whole store at one moment. Other writes go on beside it.
pub trait BackupSnapshot: Send + Sync + 'static {
    /// What moment it is.
    fn point(&self) -> Result<BackupPoint, Fault>;

    /// The next spaces after one, in the order of accounts, kinds and names; the system's own space is not among them.
    fn spaces(
        &self,
        after: Option<&HeldSpace>,
        max: usize,
    ) -> impl Future<Output = Result<Vec<HeldSpace>, Fault>> + Send;

    /// Rows of a space from a position on, about [`SLICE_BYTES`] of them, and where to continue. `kind` is `None` for the
    /// system's own space.
    fn slice(
        &self,
        kind: Option<SpaceKind>,
        space: SpaceId,
        start: Position,
    ) -> impl Future<Output = Result<(Vec<OwnedRow>, Option<Position>), ReadError>> + Send;

    /// Whether it was lost, so that another one has to be taken.
    fn is_gone(&self) -> bool;
}

/// The moment of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupPoint {
    /// When it was taken, by the clock that gives rows their versions.
    pub taken: Timestamp,
    /// No row has a later version.
    pub version: Timestamp,
    /// The number of the last commit; 0 if the engine does not number them.
    pub sequence: u64,
    /// The time of the last commit, or of the snapshot if commits have no times.
    pub committed: Timestamp,
}

/// A space as a snapshot has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldSpace {
    /// The account.
    pub account: String,
    /// What it is.
    pub kind: SpaceKind,
    /// Its name.
    pub name: String,
    /// Its number and description.
    pub space: Space,
}

impl HeldSpace {
    /// The name of the space.
    #[must_use]
    pub fn name(&self) -> SpaceName<'_> {
        SpaceName { account: &self.account, kind: self.kind, name: &self.name }
    }
}

/// Rows that a slice has at most.
pub const SLICE_ROWS: usize = 1000;
/// Bytes after which a slice ends.
pub const SLICE_BYTES: usize = 1 << 20;
