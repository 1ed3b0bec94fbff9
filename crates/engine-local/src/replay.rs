//! Applies archived commits to the store of a directory that is being restored ([`Restoring`](crate::restoring::Restoring)).
//!
//! Commits are the raw keys and values that the committer wrote (`key.rs`, `catalogue.rs`). They are gathered into large
//! batches, in which the last write to a key counts: nobody reads the store before all of them are applied. Records that
//! only make sense in the store that wrote them are left out.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use larimar_engine::{Fault, RowRef, SpaceId, SpaceKind};
use larimar_model::Timestamp;
use rustc_hash::FxHashSet;

use crate::budget::MemoryBudget;
use crate::catalogue::{
    self, CommitPoint, DEAD, FORMAT_KEY, GARBAGE_KEY, NAMES, NEXT_KEY, RELEASE_KEY, ROWS_MAX_KEY, VERSION_KEY,
    split_number,
};
use crate::key;
use crate::recovery::fault;
use crate::snapshot::split_value;
use crate::store::fjall::{FjallStore, Options};
use crate::store::{Batch, Bytes, Store as _, StoreError, SyncTo};
use crate::write::join_value;

/// The store of a directory that is being restored, while archived commits are applied to it.
pub struct Replay {
    store: FjallStore,
    /// Writes that are not in the store yet.
    writes: BTreeMap<Bytes, Option<Bytes>>,
    bytes: usize,
    containers: FxHashSet<SpaceId>,
    /// The next number for a space: above every number that any key has.
    next: u64,
    /// The last version given to a row.
    version: u64,
    decoder: key::Decoder,
}

/// A row of a container that a commit puts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerRow<'a> {
    /// The container.
    pub space: SpaceId,
    /// The name of the blob.
    pub partition: String,
    /// The row.
    pub row: String,
    /// Its version.
    pub version: Timestamp,
    /// Its body.
    pub body: &'a [u8],
}

impl ContainerRow<'_> {
    /// The row as the engine has it.
    #[must_use]
    pub fn as_row(&self) -> RowRef<'_> {
        RowRef { partition: &self.partition, row: &self.row, version: self.version, body: self.body }
    }
}

impl Replay {
    pub(crate) fn open(folder: &Path) -> Result<Self, StoreError> {
        let options = Options { folder: folder.to_owned(), memory: MemoryBudget::of_machine(), filter: Arc::new(()) };
        let store = FjallStore::open(options)?;
        let snapshot = store.snapshot();
        let (version, _) = catalogue::last_commit(snapshot.as_ref())?;
        let next = catalogue::number(snapshot.as_ref(), NEXT_KEY)?.unwrap_or(SpaceId::SYSTEM.0 + 1);
        let mut containers = FxHashSet::default();
        for row in snapshot.range(Bound::Included(NAMES), Bound::Excluded(NEXT_KEY)) {
            let (key, value) = row?;
            if catalogue::split_name(&key).is_some_and(|name| name.kind == SpaceKind::Container) {
                containers.insert(SpaceId(split_number(&value)?.0));
            }
        }
        drop(snapshot);
        let (writes, decoder) = (BTreeMap::new(), key::Decoder::default());
        Ok(Self { store, writes, bytes: 0, containers, next, version, decoder })
    }

    /// Takes note of a container, if a write creates one or changes its description.
    ///
    /// # Errors
    /// A value that cannot be read.
    pub fn see_name(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), Fault> {
        if let Some(value) = value
            && catalogue::split_name(key).is_some_and(|name| name.kind == SpaceKind::Container)
        {
            let (space, _) = split_number(value).map_err(|error| fault(&error))?;
            self.containers.insert(SpaceId(space));
        }
        Ok(())
    }

    /// The row that a write puts, if it is one of a container: it points to payloads.
    ///
    /// # Errors
    /// A key or a value that cannot be read.
    pub fn container_row<'a>(&mut self, key: &[u8], value: &'a [u8]) -> Result<Option<ContainerRow<'a>>, Fault> {
        let Some((space, rest)) = key::split_space(key).filter(|(space, _)| self.containers.contains(space)) else {
            return Ok(None);
        };
        let (version, body) = split_value(value)?;
        let (partition, row) = self.decoder.decode(rest)?;
        Ok(Some(ContainerRow { space, partition: partition.to_owned(), row: row.to_owned(), version, body }))
    }

    /// Applies a write of a row of a container with another body, or without the row if it has no meaning here.
    ///
    /// # Errors
    /// What the store fails with.
    pub fn put_row(&mut self, key: &[u8], row: &ContainerRow<'_>, body: Option<&[u8]>) -> Result<(), Fault> {
        self.see_row(row.space, Some(row.version));
        self.push(key, body.map(|body| join_value(row.version, body)))
    }

    /// Applies a write as it is.
    ///
    /// # Errors
    /// A key or a value that cannot be read, or what the store fails with.
    pub fn write(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), Fault> {
        if let Some((space, rest)) = key::split_space(key) {
            self.see_row(space, value.map(split_value).transpose()?.map(|(version, _)| version));
            // The system's partition without a name has records of migrations, as in backups.
            return if space == SpaceId::SYSTEM && rest.first() == Some(&0) {
                Ok(())
            } else {
                self.push_raw(key, value)
            };
        }
        if [FORMAT_KEY, VERSION_KEY, RELEASE_KEY, ROWS_MAX_KEY, GARBAGE_KEY].contains(&key) {
            return Ok(());
        }
        let number = |bytes: &[u8]| split_number(bytes).map(|(number, _)| number).map_err(|error| fault(&error));
        if key == NEXT_KEY {
            self.next = self.next.max(value.map_or(Ok(0), number)?);
            return Ok(());
        }
        let space = if key.starts_with(NAMES) {
            value.map(number).transpose()?
        } else if let Some(space) = key.strip_prefix(DEAD) {
            Some(number(space)?)
        } else {
            return Err(Fault::Damaged("a commit has a record that this release does not know".to_owned()));
        };
        if let Some(space) = space.map(SpaceId) {
            self.see_row(space, None);
        }
        self.see_name(key, value)?;
        self.push_raw(key, value)
    }

    /// Records the last commit, and closes the store: it is as it was after that commit.
    ///
    /// # Errors
    /// What the store fails with.
    pub fn finish(mut self, last: CommitPoint) -> Result<(), Fault> {
        self.flush()?;
        let mut batch = Batch::default();
        batch.put(NEXT_KEY, self.next.to_be_bytes());
        batch.writes.push(catalogue::commit_record(self.version, last));
        let finish = || {
            self.store.commit(batch, SyncTo::Disk)?;
            self.store.finish()
        };
        finish().map_err(|error| fault(&error))
    }

    /// Takes note of a number and a version that the store has given.
    fn see_row(&mut self, space: SpaceId, version: Option<Timestamp>) {
        self.next = self.next.max(space.0.saturating_add(1));
        self.version = self.version.max(version.map_or(0, Timestamp::ticks));
    }

    fn push_raw(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), Fault> {
        self.push(key, value.map(Bytes::from))
    }

    fn push(&mut self, key: &[u8], value: Option<Bytes>) -> Result<(), Fault> {
        self.bytes += key.len() + value.as_ref().map_or(0, |value| value.len());
        self.writes.insert(key.into(), value);
        if self.bytes >= BATCH_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Fault> {
        self.bytes = 0;
        let writes: Vec<_> = std::mem::take(&mut self.writes).into_iter().collect();
        if writes.is_empty() {
            return Ok(());
        }
        // A restore that does not finish begins again, so only the end has to be on disk.
        self.store.commit(Batch { writes }, SyncTo::System).map_err(|error| fault(&error))
    }
}

/// Well below the size of a memtable.
const BATCH_BYTES: usize = 8 << 20;
