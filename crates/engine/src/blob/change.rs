//! Read, decide, commit, retry: the one way to change a blob.
//!
//! An operation is a decision: from the blob's stored row to the rows that a commit writes and the value that the operation
//! returns. [`Blobs::change`] reads the row, runs the decision and commits what it returned if the row is still the one
//! that was read; otherwise it starts again. The rows of the tag index follow from the row before and after, and what
//! the change leaves without an owner is reclaimed after the commit, so no operation can forget either.

use super::access::BlobRef;
use super::bytes::{ByteStore, Extent};
use super::reclaim::Leftover;
use super::reject::BlobReject;
use super::row::BlobRow;
use super::store::write_error;
use super::tag_index::{TagRows, found_tags};
use super::{Blobs, keys};
use crate::contract::{Act, Engine, Expect, Key, Op};
use crate::error::{EditError, EngineError, Fault, WriteError};
use futures_util::lock::{Mutex as AsyncMutex, MutexGuard};
use larimar_model::Timestamp;
use larimar_model::blob::Tags;
use std::future::{Future, ready};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The outcome of a decision.
#[derive(Debug)]
pub(crate) enum Decision<T> {
    /// Commit these rows, then return the value.
    Commit(Change, T),
    /// Return the value; nothing is written.
    Keep(T),
    /// Other rows of the blob were changed while the decision read them: start again.
    Retry,
}

/// The rows that one commit writes.
#[derive(Debug)]
pub(crate) struct Change {
    blob: BlobWrite,
    rows: Vec<RowWrite>,
    index: TagRows,
    leftover: Leftover,
    payloads: Vec<Extent>,
}

/// What a change does with the blob's own row.
#[derive(Debug)]
enum BlobWrite {
    /// Only checks that the row is the one that was read.
    Check,
    Put(Box<BlobRow>),
    Delete,
}

/// A write of another row of the blob's partition.
#[derive(Debug)]
struct RowWrite {
    name: String,
    expect: Expect,
    /// `None` deletes the row.
    body: Option<Vec<u8>>,
}

impl Change {
    /// Stores the blob's row.
    pub(crate) fn put(row: BlobRow) -> Self {
        Self::of(BlobWrite::Put(Box::new(row)))
    }

    /// Stores the blob's row, or deletes it.
    pub(crate) fn put_or_delete(row: Option<BlobRow>) -> Self {
        row.map_or_else(|| Self::of(BlobWrite::Delete), Self::put)
    }

    /// Leaves the blob's row as it is. The other rows are written if it was not changed meanwhile.
    pub(crate) fn beside_blob() -> Self {
        Self::of(BlobWrite::Check)
    }

    fn of(blob: BlobWrite) -> Self {
        let (rows, index, leftover) = (Vec::new(), TagRows::default(), Leftover::default());
        Self { blob, rows, index, leftover, payloads: Vec::new() }
    }

    /// Also stores these rows.
    pub(crate) fn with_puts(mut self, rows: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let writes = rows.into_iter().map(|(name, body)| RowWrite { name, expect: Expect::Any, body: Some(body) });
        self.rows.extend(writes);
        self
    }

    /// Also stores a row if it is as expected; otherwise the change is decided again.
    pub(crate) fn with_put_if(mut self, name: String, expect: Expect, body: Vec<u8>) -> Self {
        self.rows.push(RowWrite { name, expect, body: Some(body) });
        self
    }

    /// Also deletes these rows.
    pub(crate) fn with_deletes(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.rows.extend(names.into_iter().map(|name| RowWrite { name, expect: Expect::Any, body: None }));
        self
    }

    /// Repairs the tag index. Only for a change that leaves the blob's row as it is: for others the entries follow from
    /// the row.
    pub(crate) fn with_index(self, index: TagRows) -> Self {
        Self { index, ..self }
    }

    /// Reclaims this after the commit.
    pub(crate) fn leaving(self, leftover: Leftover) -> Self {
        Self { leftover, ..self }
    }

    /// Discards these payloads if the change is not committed: the decision wrote them, and writes them again if it runs
    /// again.
    pub(crate) fn with_payloads(self, payloads: Vec<Extent>) -> Self {
        Self { payloads, ..self }
    }

    /// The blob's row, if the change writes nothing else.
    fn sole_row(&self) -> Option<&BlobRow> {
        match &self.blob {
            BlobWrite::Put(row) if self.rows.is_empty() => Some(row),
            _ => None,
        }
    }

    /// Completes the change with the entries of the tag index.
    fn index(&mut self, at: BlobRef<'_>, old: Option<&Tags>) {
        match &self.blob {
            BlobWrite::Check => {}
            BlobWrite::Put(row) => self.index = TagRows::of_tags(at.name, old, found_tags(Some(row))),
            BlobWrite::Delete => self.index = TagRows::of_tags(at.name, old, None),
        }
    }
}

/// What a decision starts from.
#[derive(Debug)]
pub(crate) struct Stored {
    /// The blob's row, which may be that of a blob without committed content.
    pub(crate) row: Option<BlobRow>,
    /// The version of that row.
    pub(crate) version: Option<Timestamp>,
    /// Whether an earlier attempt failed because of [`Change::with_put_if`].
    pub(crate) is_row_taken: bool,
}

/// What became of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Committed {
    Yes,
    /// No: the blob's row was changed since it was read.
    BlobChanged,
    /// No: another row is not as expected.
    RowChanged,
}

/// Counts the attempts of an operation that other requests may disturb.
#[derive(Debug, Default)]
pub(crate) struct Attempts(u32);

impl Attempts {
    /// Begins the next attempt.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] after too many.
    pub(crate) fn next(&mut self) -> Result<(), EngineError> {
        self.0 += 1;
        if self.0 > ATTEMPTS_MAX { Err(contended()) } else { Ok(()) }
    }
}

/// Locks for changes of one blob that need several rows: with them only other servers can come between the read and the
/// commit.
#[derive(Debug)]
pub(crate) struct ChangeLocks([AsyncMutex<()>; 64]);

impl Default for ChangeLocks {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AsyncMutex::new(())))
    }
}

impl ChangeLocks {
    async fn lock(&self, at: BlobRef<'_>) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        (at.container, at.name).hash(&mut hasher);
        self.0[(hasher.finish() % 64) as usize].lock().await
    }
}

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Changes a blob by its own row alone, in one call of the engine. If the decision needs other rows or entries of the
    /// tag index, the change continues as [`Blobs::change`]. `decide` is pure and may run more than once.
    pub(crate) async fn edit<T: Send>(
        &self,
        at: BlobRef<'_>,
        now: Timestamp,
        decide: impl Fn(Option<BlobRow>) -> Result<Decision<T>, BlobReject> + Send + Sync,
    ) -> Result<T, EngineError> {
        let key = Key { space: at.container, partition: at.name.as_str(), row: keys::BLOB };
        match self.engine.edit(key, now, |current| edited(current, &decide)).await {
            Ok((value, leftover)) => {
                self.reclaim_leftover(at, leftover, now).await;
                Ok(value)
            }
            Err(EditError::Refused(NotEdited::Rejected(reject))) => Err(reject.into()),
            Err(EditError::Refused(NotEdited::Damaged(fault)) | EditError::Fault(fault)) => Err(fault.into()),
            Err(EditError::Refused(NotEdited::NeedsMore)) => {
                self.change(at, now, |stored| ready(decide(stored.row).map_err(EngineError::from))).await
            }
            Err(EditError::SpaceGone) => Err(write_error(WriteError::SpaceGone)),
        }
    }

    /// Changes a blob: reads its row, decides, commits, and starts again if the row was changed meanwhile. Changes of one
    /// blob by this server wait for each other.
    pub(crate) async fn change<T: Send, D>(
        &self,
        at: BlobRef<'_>,
        now: Timestamp,
        decide: impl Fn(Stored) -> D + Send + Sync,
    ) -> Result<T, EngineError>
    where
        D: Future<Output = Result<Decision<T>, EngineError>> + Send,
    {
        let _lock = self.lock_changes(at).await;
        self.change_unlocked(at, now, decide).await
    }

    /// As [`Blobs::change`], at the same time as other changes of the blob.
    pub(crate) async fn change_unlocked<T: Send, D>(
        &self,
        at: BlobRef<'_>,
        now: Timestamp,
        decide: impl Fn(Stored) -> D + Send + Sync,
    ) -> Result<T, EngineError>
    where
        D: Future<Output = Result<Decision<T>, EngineError>> + Send,
    {
        let (mut attempts, mut is_row_taken) = (Attempts::default(), false);
        loop {
            attempts.next()?;
            let (version, row) = self.load(at, keys::BLOB).await?.unzip();
            let tags = found_tags(row.as_ref()).cloned();
            let (mut change, value) = match decide(Stored { row, version, is_row_taken }).await? {
                Decision::Commit(change, value) => (change, value),
                Decision::Keep(value) => return Ok(value),
                Decision::Retry => continue,
            };
            change.index(at, tags.as_ref());
            match self.commit(at, version, &change, now).await? {
                Committed::Yes => {
                    self.reclaim_leftover(at, change.leftover, now).await;
                    return Ok(value);
                }
                lost => is_row_taken |= lost == Committed::RowChanged,
            }
            self.discard(change.payloads);
        }
    }

    /// Waits until no other change of the blob by this server is under way.
    async fn lock_changes(&self, at: BlobRef<'_>) -> MutexGuard<'_, ()> {
        self.change_locks.lock(at).await
    }

    /// Begins the next attempt of a read of several rows. After a few attempts, changes by this server wait until the
    /// returned lock is dropped, so that only other servers can disturb the read again.
    pub(crate) async fn next_read(
        &self,
        at: BlobRef<'_>,
        attempts: &mut Attempts,
    ) -> Result<Option<MutexGuard<'_, ()>>, EngineError> {
        attempts.next()?;
        Ok(if attempts.0 <= UNLOCKED_READS { None } else { Some(self.lock_changes(at).await) })
    }

    /// Commits a change if the blob's row still has the version that was read.
    pub(crate) async fn commit(
        &self,
        at: BlobRef<'_>,
        version: Option<Timestamp>,
        change: &Change,
        now: Timestamp,
    ) -> Result<Committed, EngineError> {
        let body = match &change.blob {
            BlobWrite::Put(row) => row.encode(),
            BlobWrite::Check | BlobWrite::Delete => Vec::new(),
        };
        let act = match &change.blob {
            BlobWrite::Check => Act::Check,
            BlobWrite::Put(_) => Act::Put(&body),
            BlobWrite::Delete => Act::Delete,
        };
        let mut ops = Vec::with_capacity(1 + change.rows.len());
        ops.push(Op { row: keys::BLOB, expect: version.map_or(Expect::Absent, Expect::Version), act });
        ops.extend(change.rows.iter().map(|RowWrite { name, expect, body }| Op {
            row: name,
            expect: *expect,
            act: body.as_deref().map_or(Act::Delete, Act::Put),
        }));
        match self.engine.apply_with(at.container, at.name.as_str(), &ops, &change.index.beside(), now).await {
            Ok(_) => Ok(Committed::Yes),
            Err(WriteError::Condition { op: 0, .. }) => Ok(Committed::BlobChanged),
            Err(WriteError::Condition { .. }) => Ok(Committed::RowChanged),
            Err(error) => Err(write_error(error)),
        }
    }
}

/// Why the blob's row was not edited.
enum NotEdited {
    /// The operation is refused.
    Rejected(BlobReject),
    /// The row could not be decoded.
    Damaged(Fault),
    /// Other rows or entries of the tag index have to be written too, or none at all.
    NeedsMore,
}

/// Runs a decision on the row's bytes; returns its new bytes, if nothing else has to be written.
fn edited<T>(
    current: Option<&[u8]>,
    decide: impl Fn(Option<BlobRow>) -> Result<Decision<T>, BlobReject>,
) -> Result<(Vec<u8>, (T, Leftover)), NotEdited> {
    let row = current.map(BlobRow::decode).transpose().map_err(NotEdited::Damaged)?;
    let tags = found_tags(row.as_ref()).cloned();
    let decision = decide(row).map_err(NotEdited::Rejected)?;
    let Decision::Commit(change, value) = decision else { return Err(NotEdited::NeedsMore) };
    match change.sole_row() {
        Some(row) if tags.as_ref() == found_tags(Some(row)) => {
            let body = row.encode();
            Ok((body, (value, change.leftover)))
        }
        _ => Err(NotEdited::NeedsMore),
    }
}

/// Too many requests change the same blob.
pub(crate) fn contended() -> EngineError {
    Fault::Unavailable("too many concurrent changes of the same blob".to_owned()).into()
}

/// Attempts before an operation fails with [`contended`].
const ATTEMPTS_MAX: u32 = 64;
/// Attempts of a read before changes wait for it.
const UNLOCKED_READS: u32 = 4;
