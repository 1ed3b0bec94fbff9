//! Stores chunks, a few at a time, and lists them in the index in the order in which they were given.

use crate::buffers::Buffers;
use crate::chunk::{CHUNK_BYTES_MAX, ChunkRef, blocking};
use crate::error::BackupError;
use crate::generation::Totals;
use crate::index::Entry;
use crate::pace::{Pace, Rate};
use crate::place::Place;
use crate::record::BackedSpace;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt as _, StreamExt as _};
use larimar_engine::Fault;
use tokio::task::JoinHandle;

/// Stores the chunks of one backup.
pub(crate) struct Sender<'a> {
    place: &'a Place,
    pace: Pace,
    /// Uploads that may be under way while the next chunk is read.
    beside: usize,
    uploads: FuturesOrdered<BoxFuture<'a, Result<Stored, BackupError>>>,
    buffers: Buffers,
    /// Entries of spaces that begin in the next chunk.
    spaces: Vec<u8>,
    /// Entries of the index whose chunk is not full yet.
    entries: Vec<u8>,
    index: Vec<ChunkRef>,
    pub(crate) totals: Totals,
    progress: &'a (dyn Fn(&Totals) + Send + Sync),
}

/// What a chunk is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use {
    Data,
    Piece,
    Index,
}

/// A chunk that was stored.
struct Stored {
    used: Use,
    chunk: ChunkRef,
    /// Whether the place did not have it.
    is_new: bool,
    /// Entries that come before it in the index.
    spaces: Vec<u8>,
}

/// An upload under way; dropping it does not leave half a chunk.
struct Upload(JoinHandle<Result<Stored, BackupError>>);

impl<'a> Sender<'a> {
    pub(crate) fn new(place: &'a Place, rate: Rate, progress: &'a (dyn Fn(&Totals) + Send + Sync)) -> Self {
        Self {
            place,
            pace: Pace::new(rate),
            // A slow backup counts the time of uploads as work, too.
            beside: if rate == Rate::Max { UPLOADS_MAX - 1 } else { 0 },
            uploads: FuturesOrdered::new(),
            buffers: Buffers::default(),
            spaces: Vec::new(),
            entries: Vec::new(),
            index: Vec::new(),
            totals: Totals::default(),
            progress,
        }
    }

    /// Lists the beginning of a space.
    pub(crate) fn space(&mut self, name: BackedSpace<'_>, number: u64) {
        Entry::Space { name, number }.encode(&mut self.spaces);
    }

    /// An empty buffer for a chunk.
    pub(crate) fn buffer(&self) -> Vec<u8> {
        self.buffers.take()
    }

    /// Stores a chunk, unless the place has it. Waits for earlier ones if too many are under way.
    pub(crate) async fn chunk(&mut self, bytes: Vec<u8>, used: Use) -> Result<(), BackupError> {
        let length = bytes.len() as u64;
        self.upload(bytes, used);
        self.wait(length).await
    }

    /// Stores a piece of a payload like [`Self::chunk`], and reads it beside others.
    pub(crate) async fn piece(
        &mut self,
        length: u64,
        read: impl Future<Output = Result<Vec<u8>, BackupError>> + Send + 'a,
    ) -> Result<(), BackupError> {
        let (place, buffers, spaces) = (self.place, self.buffers.clone(), std::mem::take(&mut self.spaces));
        let upload = async move { Upload::start(place, buffers.lend(read.await?), Use::Piece, spaces).await };
        self.uploads.push_back(upload.boxed());
        self.wait(length).await
    }

    /// Waits for earlier chunks if too many are under way, and as the rate says.
    async fn wait(&mut self, length: u64) -> Result<(), BackupError> {
        self.settle(self.beside).await?;
        (self.progress)(&self.totals);
        self.pace.wait(length).await;
        Ok(())
    }

    fn upload(&mut self, bytes: Vec<u8>, used: Use) {
        let spaces = if matches!(used, Use::Index) { Vec::new() } else { std::mem::take(&mut self.spaces) };
        self.uploads.push_back(Upload::start(self.place, self.buffers.lend(bytes), used, spaces).boxed());
    }

    /// Waits until no more than so many uploads are under way.
    async fn settle(&mut self, left: usize) -> Result<(), BackupError> {
        while self.uploads.len() > left
            && let Some(stored) = self.uploads.next().await
        {
            let Stored { used, chunk, is_new, spaces } = stored?;
            self.entries.extend_from_slice(&spaces);
            self.totals.sent_bytes += if is_new { chunk.length } else { 0 };
            match used {
                Use::Data => Entry::Data(chunk).encode(&mut self.entries),
                Use::Piece => Entry::Piece(chunk).encode(&mut self.entries),
                Use::Index => {
                    self.index.push(chunk);
                    continue;
                }
            }
            self.totals.chunks += 1;
            if self.entries.len() >= INDEX_FULL {
                let entries = std::mem::take(&mut self.entries);
                self.upload(entries, Use::Index);
            }
        }
        Ok(())
    }

    /// Waits until everything is stored; returns the chunks of the index.
    pub(crate) async fn finish(mut self) -> Result<(Vec<ChunkRef>, Totals), BackupError> {
        self.settle(0).await?;
        if !self.entries.is_empty() {
            let entries = std::mem::take(&mut self.entries);
            self.chunk(entries, Use::Index).await?;
            self.settle(0).await?;
        }
        Ok((self.index, self.totals))
    }
}

/// Stores a chunk; `false` if the place has it.
pub(crate) async fn store(place: &Place, bytes: Bytes) -> Result<(ChunkRef, bool), BackupError> {
    let hashed = bytes.clone();
    let chunk = blocking(move || ChunkRef::of(&hashed)).await?;
    if chunk.length > CHUNK_BYTES_MAX {
        // It could not be restored.
        return Err(Fault::Damaged(format!("a chunk of {} bytes is larger than any may be", chunk.length)).into());
    }
    let is_new = place.put_new(&chunk.name(), bytes).await?;
    Ok((chunk, is_new))
}

impl Upload {
    fn start(place: &Place, bytes: Bytes, used: Use, spaces: Vec<u8>) -> Self {
        let place = place.clone();
        Self(tokio::spawn(async move {
            let (chunk, is_new) = store(&place, bytes).await?;
            Ok(Stored { used, chunk, is_new, spaces })
        }))
    }
}

impl Future for Upload {
    type Output = Result<Stored, BackupError>;

    fn poll(mut self: std::pin::Pin<&mut Self>, context: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        std::pin::Pin::new(&mut self.0).poll(context).map(|joined| {
            joined.unwrap_or_else(|error| {
                Err(BackupError::Place { what: "an upload".to_owned(), reason: error.to_string() })
            })
        })
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Chunks under way, of a few MiB each.
const UPLOADS_MAX: usize = 8;
const INDEX_FULL: usize = 1 << 20;
