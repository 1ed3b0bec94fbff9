//! Takes a backup: walks a snapshot in key order and stores what it finds.

use crate::cutter::Cutter;
use crate::error::BackupError;
use crate::generation::{Generation, Totals};
use crate::pace::Rate;
use crate::place::Place;
use crate::record::BackedSpace;
use crate::sender::{Sender, Use};
use crate::slices::Slices;
use larimar_engine::blob::bytes::{ByteStore, Extent};
use larimar_engine::blob::relocate::payloads_in;
use larimar_engine::{
    BackupSnapshot, BackupSource, Fault, OwnedRow, Position, RowRef, Space, SpaceId, SpaceKind, SpaceName,
    load_seed_record,
};
use larimar_engine_local::CommitPoint;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Backs up a store as it is after one commit, while it is written to.
///
/// # Errors
/// What the store or the place fails with. The place then has chunks that the next backup uses, and no generation.
pub async fn back_up<E: BackupSource, B: ByteStore>(
    engine: &E,
    bytes: Option<&B>,
    place: &Place,
    rate: Rate,
    progress: &(dyn Fn(&Totals) + Send + Sync),
) -> Result<Generation, BackupError> {
    back_up_in_line(engine, bytes, place, rate, progress, &|_| None).await
}

/// Backs up a store beside its archive. `line` returns the open line of the archive, if it has the commit of this number.
pub(crate) async fn back_up_in_line<E: BackupSource, B: ByteStore>(
    engine: &E,
    bytes: Option<&B>,
    place: &Place,
    rate: Rate,
    progress: &(dyn Fn(&Totals) + Send + Sync),
    line: &(dyn Fn(u64) -> Option<String> + Send + Sync),
) -> Result<Generation, BackupError> {
    if load_seed_record(engine).await?.is_some_and(|record| !record.tables.is_empty()) {
        let reason = "the store holds only a part of the files that --seed names; fill it first";
        return Err(Fault::Unavailable(reason.to_owned()).into());
    }
    let _lock = place.prepare().await?;
    let mut attempts = 0;
    loop {
        // Before the snapshot: a payload that was discarded earlier is not in it.
        let _payloads = bytes.map(ByteStore::hold);
        attempts += 1;
        let snapshot = match engine.hold().await {
            // A database that ended the last one may not be there again yet.
            Err(fault) if (2..ATTEMPTS_MAX).contains(&attempts) => {
                tracing::warn!(%fault, "the backup has no snapshot yet");
                tokio::time::sleep(RETRY).await;
                continue;
            }
            held => Arc::new(held?),
        };
        let point = snapshot.point()?;
        let walked = tokio::select! {
            walked = walk(&snapshot, bytes, place, rate, progress) => walked,
            fault = given_up(&*snapshot) => Err(fault.into()),
        };
        match walked {
            Ok((index, totals)) => {
                let commit = CommitPoint { sequence: point.sequence, time: point.committed };
                let mut generation = Generation::new(point.taken, (point.version, commit), totals, &index);
                generation.engine = E::NAME.map(str::to_owned);
                generation.line = line(generation.sequence);
                drop(snapshot);
                // The names of the chunks have to be on disk before that of the generation.
                place.sync().await?;
                let file = generation.write(place).await?;
                place.sync_names(&[file]).await?;
                return Ok(generation);
            }
            Err(BackupError::Engine(fault)) if snapshot.is_gone() && attempts < ATTEMPTS_MAX => {
                tracing::warn!(%fault, "the backup begins again with another snapshot; what was stored is not sent again");
                drop(snapshot);
                tokio::time::sleep(RETRY).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Waits until a snapshot is given up, as on a disk that is full: a backup may be within a large blob for hours, or wait for
/// its place, and read no row meanwhile.
async fn given_up(snapshot: &impl BackupSnapshot) -> Fault {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if let Err(fault) = snapshot.point() {
            return fault;
        }
    }
}

/// Stores everything that a snapshot has; returns the chunks of the index.
async fn walk<B: ByteStore>(
    snapshot: &Arc<impl BackupSnapshot>,
    bytes: Option<&B>,
    place: &Place,
    rate: Rate,
    progress: &(dyn Fn(&Totals) + Send + Sync),
) -> Result<(Vec<crate::chunk::ChunkRef>, Totals), BackupError> {
    let mut walker = Walker {
        snapshot,
        bytes,
        cutter: Cutter::default(),
        sender: Sender::new(place, rate, progress),
        known: Known::default(),
        is_ahead: rate == Rate::Max,
    };
    walker.space(None, &Space { id: SpaceId::SYSTEM, meta: Arc::new([]) }).await?;
    let mut last = None;
    loop {
        let mut page = snapshot.spaces(last.as_ref(), SPACES_MAX).await?;
        for found in &page {
            walker.space(Some(found.name()), &found.space).await?;
            walker.sender.totals.spaces += 1;
        }
        last = page.pop();
        if last.is_none() {
            break;
        }
    }
    walker.cut().await?;
    walker.sender.finish().await
}

struct Walker<'a, S, B> {
    snapshot: &'a Arc<S>,
    bytes: Option<&'a B>,
    cutter: Cutter,
    sender: Sender<'a>,
    known: Known,
    /// Whether rows are read while others are encoded.
    is_ahead: bool,
}

/// The payloads of the blob at hand that are in the backup: rows share them.
#[derive(Default)]
struct Known {
    blob: String,
    payloads: HashSet<Extent>,
}

impl Known {
    /// Before each row. Of a blob with very many payloads, some are stored again: that costs room only. A restore forgets
    /// at the same rows (`restore.rs`).
    fn begin_row(&mut self, blob: &str) {
        if self.blob != blob || self.payloads.len() >= KNOWN_MAX {
            blob.clone_into(&mut self.blob);
            self.payloads.clear();
        }
    }
}

impl<S: BackupSnapshot, B: ByteStore> Walker<'_, S, B> {
    /// Stores a space and its rows.
    async fn space(&mut self, name: BackedSpace<'_>, space: &Space) -> Result<(), BackupError> {
        self.sender.space(name, space.id.0);
        if self.cutter.space(name, space.id.0, &space.meta) {
            self.cut().await?;
        }
        self.known = Known::default();
        let is_container = name.is_some_and(|name| name.kind == SpaceKind::Container);
        // The partition without a name of the system's space has records of migrations, which name spaces by number.
        let start = if name.is_some() { Position::new("", "") } else { Position::new("\0", "") };
        let mut slices = Slices::new(self.snapshot, name.map(|name| name.kind), space.id, start, self.is_ahead);
        while let Some(rows) = slices.next().await? {
            for row in &rows {
                self.row(row, name.filter(|_| is_container)).await?;
            }
        }
        Ok(())
    }

    /// Adds a row, after the payloads that it points to if it is in a container.
    async fn row(&mut self, row: &OwnedRow, container: BackedSpace<'_>) -> Result<(), BackupError> {
        let OwnedRow { partition, row, version, body } = row;
        if let Some(container) = container {
            self.known.begin_row(partition);
            let payloads = payloads_in(RowRef { partition, row, version: *version, body });
            for extent in payloads.map_err(|fault| with_name(fault.into(), &path(container, partition)))? {
                if self.known.payloads.insert(extent) {
                    self.payload(container, partition, extent).await?;
                }
            }
        }
        self.sender.totals.rows += 1;
        self.sender.totals.row_bytes += (partition.len() + row.len() + size_of::<u64>() + body.len()) as u64;
        if self.cutter.row(partition, row, *version, body) {
            self.cut().await?;
        }
        Ok(())
    }

    /// Adds a payload: within the chunk if it is small, else in pieces of its own.
    async fn payload(&mut self, container: SpaceName<'_>, blob: &str, extent: Extent) -> Result<(), BackupError> {
        self.sender.totals.payloads += 1;
        self.sender.totals.payload_bytes += extent.length;
        let is_cut = if extent.length <= INLINE_BYTES_MAX {
            let bytes = read_payload(self.bytes, &extent, 0..extent.length, Vec::new()).await;
            let bytes = bytes.map_err(|error| with_name(error, &path(container, blob)))?;
            self.cutter.payload(blob, extent, &bytes)
        } else {
            let mut count = 0;
            let mut place = 0;
            while place < extent.length {
                let end = (place + PIECE_BYTES).min(extent.length);
                let (store, buffer, path) = (self.bytes, self.sender.buffer(), path(container, blob));
                // It may fail while later rows are walked.
                let read = async move {
                    read_payload(store, &extent, place..end, buffer).await.map_err(|error| with_name(error, &path))
                };
                self.sender.piece(end - place, read).await?;
                (count, place) = (count + 1, end);
            }
            self.cutter.pieces(blob, extent, count)
        };
        if is_cut {
            self.cut().await?;
        }
        Ok(())
    }

    async fn cut(&mut self) -> Result<(), BackupError> {
        match self.cutter.take(|| self.sender.buffer()) {
            Some(chunk) => self.sender.chunk(chunk, Use::Data).await,
            None => Ok(()),
        }
    }
}

/// Where a blob is, for messages.
fn path(SpaceName { account, name, .. }: SpaceName<'_>, blob: &str) -> String {
    format!("{account}/{name}/{blob}")
}

/// Names the blob that points to damaged or missing bytes.
fn with_name(error: BackupError, path: &str) -> BackupError {
    match error {
        BackupError::Engine(Fault::Damaged(what)) => Fault::Damaged(format!("{path}: {what}")).into(),
        error => error,
    }
}

/// Reads a part of a payload into an empty buffer.
pub(crate) async fn read_payload<B: ByteStore>(
    store: Option<&B>,
    extent: &Extent,
    mut part: Range<u64>,
    mut bytes: Vec<u8>,
) -> Result<Vec<u8>, BackupError> {
    let store = store.ok_or_else(|| Fault::Unavailable("this server serves no blobs".to_owned()))?;
    bytes.reserve((part.end - part.start) as usize);
    while part.start < part.end {
        let read = store.read(extent, part.clone()).await?;
        if read.is_empty() {
            return Err(Fault::Damaged("a payload ends before its length".to_owned()).into());
        }
        part.start += read.len() as u64;
        bytes.extend_from_slice(&read);
    }
    Ok(bytes)
}

/// Snapshots that a backup tries: the store may be reopened while it reads.
const ATTEMPTS_MAX: u32 = 5;
/// How often the backup looks whether it still has its snapshot.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_secs(5);
const SPACES_MAX: usize = 100;
/// Payloads up to this size are within data chunks.
pub(crate) const INLINE_BYTES_MAX: u64 = 256 << 10;
pub(crate) const PIECE_BYTES: u64 = 4 << 20;
/// Payloads of a blob that are remembered.
pub(crate) const KNOWN_MAX: usize = 1 << 16;
