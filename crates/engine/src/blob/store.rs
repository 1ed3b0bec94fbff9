//! Reading and changing the rows of a blob: every change is one call of the engine on the blob's partition.

use super::access::BlobRef;
use super::bytes::{ByteStore, Extent};
use super::reject::BlobReject;
use super::row::BlobRow;
use super::tag_index::{TagRows, found_tags};
use super::turns::{ITEM_BYTES, Turns};
use super::{Blobs, keys};
use crate::contract::{Act, Budget, Engine, Expect, Flow, Key, KeyRange, Op, Position, RowRef};
use crate::error::{EngineError, Fault, ReadError, Reject, WriteError};
use futures_util::lock::{Mutex as AsyncMutex, MutexGuard};
use larimar_model::Timestamp;
use parking_lot::Mutex;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

/// Changes of one blob that need several rows take turns in this process, so that only other servers can come between
/// their read and their write.
#[derive(Debug)]
pub(crate) struct Gates([AsyncMutex<()>; 64]);

impl Default for Gates {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AsyncMutex::new(())))
    }
}

impl Gates {
    async fn pass(&self, at: BlobRef<'_>) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        (at.container, at.name).hash(&mut hasher);
        self.0[(hasher.finish() % 64) as usize].lock().await
    }
}

/// A change of several rows of a blob.
#[derive(Debug, Default)]
pub(crate) struct Change {
    /// The blob's new row; nothing to remove it.
    pub(crate) blob: Option<BlobRow>,
    /// Other rows to store.
    pub(crate) puts: Vec<(String, Vec<u8>)>,
    /// Other rows to remove.
    pub(crate) deletes: Vec<String>,
    /// Rows of the index of tags.
    pub(crate) index: TagRows,
}

/// What became of a decision about a blob's row.
enum Decided<T> {
    Done(T),
    Damaged(Fault),
    /// The tags change, so rows of the index have to be written too.
    Tags,
}

/// A row that was read, with its version.
pub(crate) type Seen = Option<(Timestamp, BlobRow)>;

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    pub(crate) async fn pass_gate(&self, at: BlobRef<'_>) -> MutexGuard<'_, ()> {
        self.gates.pass(at).await
    }

    /// A turn for a read of several rows that was disturbed several times: changes by this server wait meanwhile, so that
    /// only those of others can disturb it again.
    pub(crate) async fn turn_to_read(&self, at: BlobRef<'_>, attempt: u32) -> Option<MutexGuard<'_, ()>> {
        if attempt < UNDISTURBED_AFTER { None } else { Some(self.pass_gate(at).await) }
    }

    /// Reads the row of a blob or of a snapshot.
    pub(crate) async fn load(&self, at: BlobRef<'_>, row: &str) -> Result<Seen, EngineError> {
        let key = Key { space: at.container, partition: at.name.as_str(), row };
        let found = self.engine.get(key, |row| row.map(|row| (row.version, BlobRow::decode(row.body)))).await;
        match found.map_err(read_error)? {
            Some((version, row)) => Ok(Some((version, row?))),
            None => Ok(None),
        }
    }

    /// Changes the blob's row alone, and the index if its tags change: `decide` is pure and may run more than once.
    pub(crate) async fn edit<T: Send>(
        &self,
        at: BlobRef<'_>,
        now: Timestamp,
        decide: impl Fn(Option<BlobRow>) -> Result<(BlobRow, T), BlobReject> + Send + Sync,
    ) -> Result<T, EngineError> {
        let outcome: Mutex<Option<Decided<T>>> = Mutex::new(None);
        let give_up = |reason| {
            *outcome.lock() = Some(reason);
            Err(Reject::Blob(BlobReject::BlobNotFound))
        };
        let edit = |current: Option<&[u8]>| {
            let row = match current.map(BlobRow::decode).transpose() {
                Ok(row) => row,
                Err(fault) => return give_up(Decided::Damaged(fault)),
            };
            let tags = found_tags(row.as_ref()).cloned();
            let (row, told) = decide(row)?;
            if tags.as_ref() != found_tags(Some(&row)) {
                return give_up(Decided::Tags);
            }
            *outcome.lock() = Some(Decided::Done(told));
            Ok(row.encode())
        };
        let op = Op { row: keys::BLOB, expect: Expect::Any, act: Act::Edit(&edit) };
        let applied = self.engine.apply(at.container, at.name.as_str(), &[op], now).await;
        match (applied, outcome.into_inner()) {
            (Ok(_), Some(Decided::Done(told))) => Ok(told),
            (Ok(_), _) => Err(Fault::Damaged("an edit was applied that never ran".to_owned()).into()),
            (Err(WriteError::Refused { .. }), Some(Decided::Damaged(fault))) => Err(fault.into()),
            (Err(WriteError::Refused { .. }), Some(Decided::Tags)) => self.edit_tags(at, now, decide).await,
            (Err(error), _) => Err(write_error(error)),
        }
    }

    /// Changes the blob's row and the rows of the index that follow from it.
    async fn edit_tags<T: Send>(
        &self,
        at: BlobRef<'_>,
        now: Timestamp,
        decide: impl Fn(Option<BlobRow>) -> Result<(BlobRow, T), BlobReject> + Send + Sync,
    ) -> Result<T, EngineError> {
        let _turn = self.pass_gate(at).await;
        for _ in 0..ATTEMPTS_MAX {
            let seen = self.load(at, keys::BLOB).await?;
            let version = seen.as_ref().map(|(version, _)| *version);
            let old = seen.map(|(_, row)| row);
            let (row, told) = decide(old.clone())?;
            let index = TagRows::between(at.name, old.as_ref(), Some(&row));
            if self.commit(at, version, &Change { blob: Some(row), index, ..Change::default() }, now).await? {
                return Ok(told);
            }
        }
        Err(crowded())
    }

    /// Commits a change of several rows if the blob's row still is the one that was seen; `false` if it is not.
    pub(crate) async fn commit(
        &self,
        at: BlobRef<'_>,
        seen: Option<Timestamp>,
        change: &Change,
        now: Timestamp,
    ) -> Result<bool, EngineError> {
        let body = change.blob.as_ref().map(BlobRow::encode);
        let expect = seen.map_or(Expect::Absent, Expect::Version);
        let act = body.as_deref().map_or(Act::Delete, Act::Put);
        let mut ops = Vec::with_capacity(1 + change.puts.len() + change.deletes.len());
        ops.push(Op { row: keys::BLOB, expect, act });
        ops.extend(change.puts.iter().map(|(row, body)| Op { row, expect: Expect::Any, act: Act::Put(body) }));
        ops.extend(change.deletes.iter().map(|row| Op { row, expect: Expect::Any, act: Act::Delete }));
        self.apply_if_unchanged(at, &ops, &change.index, now).await
    }

    /// Applies operations of which the first is on the blob's row; `false` if that is not the one expected.
    pub(crate) async fn apply_if_unchanged(
        &self,
        at: BlobRef<'_>,
        ops: &[Op<'_>],
        index: &TagRows,
        now: Timestamp,
    ) -> Result<bool, EngineError> {
        match self.engine.apply_with(at.container, at.name.as_str(), ops, &index.beside(), now).await {
            Ok(_) => Ok(true),
            Err(WriteError::Condition { op: 0, .. }) => Ok(false),
            Err(error) => Err(write_error(error)),
        }
    }

    /// Visits the rows of a blob from one name up to, but without, another, until the visitor stops. Other tasks run in
    /// between.
    pub(crate) async fn visit_rows(
        &self,
        at: BlobRef<'_>,
        (from, to): (&str, &str),
        mut visit: impl FnMut(RowRef<'_>) -> Result<Flow, Fault> + Send,
    ) -> Result<(), EngineError> {
        let partition = at.name.as_str();
        let mut range = KeyRange { start: Position::new(partition, from), end: Some(Position::new(partition, to)) };
        let mut turns = Turns::default();
        loop {
            let mut outcome = Ok(Flow::Continue);
            let budget = Budget { rows_max: SCAN_ROWS, deadline: Instant::now() + SCAN_TIME };
            let next = self.engine.scan(at.container, &range, budget, |row| {
                outcome = visit(row);
                match &outcome {
                    Ok(Flow::Continue) if turns.are_due_after(1 + row.body.len() / ITEM_BYTES) => Flow::Pause,
                    Ok(flow) => *flow,
                    Err(_) => Flow::StopHere,
                }
            });
            let next = next.await.map_err(read_error)?;
            match (outcome?, next) {
                (Flow::Continue | Flow::Pause, Some(next)) => range.start = next,
                (Flow::StopHere, _) | (Flow::Continue | Flow::Pause, None) => return Ok(()),
            }
        }
    }

    /// The name of the first row of a blob from one name up to, but without, another.
    pub(crate) async fn first_row(
        &self,
        at: BlobRef<'_>,
        (from, to): (&str, &str),
    ) -> Result<Option<String>, EngineError> {
        let partition = at.name.as_str();
        let range = KeyRange { start: Position::new(partition, from), end: Some(Position::new(partition, to)) };
        let budget = Budget { rows_max: 1, deadline: Instant::now() + SCAN_TIME };
        let mut first = None;
        let scan = self.engine.scan(at.container, &range, budget, |row| {
            first = Some(row.row.to_owned());
            Flow::StopHere
        });
        scan.await.map_err(read_error)?;
        Ok(first)
    }

    /// Hands a result on; if the operation was refused, the bytes it was given have no owner. After a fault nobody
    /// knows, and the sweep will tell.
    pub(crate) fn settle<T>(&self, result: Result<T, EngineError>, given: &[Extent]) -> Result<T, EngineError> {
        if let Err(EngineError::Reject(_)) = &result
            && !given.is_empty()
        {
            self.bytes.discard(given.to_vec());
        }
        result
    }
}

/// What a read that failed means for a blob.
pub(crate) fn read_error(error: ReadError) -> EngineError {
    match error {
        ReadError::SpaceGone => BlobReject::ContainerNotFound.into(),
        ReadError::Fault(fault) => fault.into(),
    }
}

/// What a write that failed means for a blob.
pub(crate) fn write_error(error: WriteError) -> EngineError {
    match error {
        WriteError::Refused { reason, .. } => EngineError::Reject(reason),
        WriteError::SpaceGone => BlobReject::ContainerNotFound.into(),
        WriteError::Fault(fault) => fault.into(),
        WriteError::Condition { .. } => crowded(),
    }
}

/// Too many others changed the same blob.
pub(crate) fn crowded() -> EngineError {
    Fault::Unavailable("too many write to the same blob".to_owned()).into()
}

/// How often a change is tried when others come between.
pub(crate) const ATTEMPTS_MAX: u32 = 64;
/// How often a read is disturbed before changes wait for it.
const UNDISTURBED_AFTER: u32 = 4;
const SCAN_ROWS: usize = 1000;
const SCAN_TIME: Duration = Duration::from_secs(5);
