//! A store of bytes in memory, for tests and for servers without durable storage.

use super::{
    ByteStatistics, ByteStore, ByteWriter, Bytes, Extent, Owner, Owners, PayloadHold, PayloadHolds, READ_BYTES_MAX,
    Reclaimed,
};
use crate::contract::SpaceId;
use crate::error::Fault;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, Range};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Keeps payloads in memory for as long as the process runs.
#[derive(Clone, Debug)]
pub struct MemoryBytes {
    state: Arc<Mutex<State>>,
    grace: Duration,
    holds: PayloadHolds,
}

#[derive(Debug, Default)]
struct State {
    payloads: BTreeMap<[u8; 16], Payload>,
    discarded: VecDeque<(Instant, [u8; 16])>,
    last_file: u128,
    figures: ByteStatistics,
}

#[derive(Debug)]
struct Payload {
    space: SpaceId,
    blob: String,
    bytes: Bytes,
    written: Instant,
}

impl MemoryBytes {
    /// An empty store that keeps discarded payloads for `grace`.
    #[must_use]
    pub fn new(grace: Duration) -> Self {
        Self { state: Arc::default(), grace, holds: PayloadHolds::default() }
    }

    /// The number of payloads, for tests.
    #[must_use]
    pub fn payloads(&self) -> usize {
        let mut state = self.state.lock();
        state.collect(self.grace, &self.holds);
        state.payloads.len()
    }

    /// The next page of payloads after `last`.
    fn page(&self, last: &mut Option<[u8; 16]>) -> Vec<(SpaceId, String, Extent, Instant)> {
        let state = self.state.lock();
        let from = last.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = state.payloads.range((from, Bound::Unbounded)).take(SWEEP_PAGE);
        let page: Vec<_> = entries
            .map(|(file, found)| {
                let extent = Extent { file: *file, offset: 0, length: found.bytes.len() as u64 };
                (found.space, found.blob.clone(), extent, found.written)
            })
            .collect();
        *last = page.last().map(|(.., extent, _)| extent.file).or(*last);
        page
    }
}

impl ByteStore for MemoryBytes {
    type Writer = MemoryWriter;

    async fn begin(&self, owner: Owner<'_>, expected: Option<u64>) -> Result<MemoryWriter, Fault> {
        self.state.lock().collect(self.grace, &self.holds);
        let capacity = expected.unwrap_or(0).min(READ_BYTES_MAX) as usize;
        let (space, blob) = (owner.space, owner.blob.to_owned());
        Ok(MemoryWriter { state: Arc::clone(&self.state), space, blob, buffer: Vec::with_capacity(capacity) })
    }

    async fn read(&self, extent: &Extent, range: Range<u64>) -> Result<Bytes, Fault> {
        let mut state = self.state.lock();
        let Some(payload) = state.payloads.get(&extent.file) else {
            return Err(Fault::Damaged(format!("the blob bytes {} are missing", extent.file_name())));
        };
        let end = range.end.min(payload.bytes.len() as u64).min(range.start.saturating_add(READ_BYTES_MAX));
        let start = range.start.min(end);
        let bytes = payload.bytes.slice(start as usize..end as usize);
        state.figures.bytes_read += bytes.len() as u64;
        Ok(bytes)
    }

    fn discard(&self, extents: Vec<Extent>) {
        let now = Instant::now();
        let mut state = self.state.lock();
        state.discarded.extend(extents.into_iter().map(|extent| (now, extent.file)));
        state.collect(self.grace, &self.holds);
    }

    fn hold(&self) -> PayloadHold {
        self.holds.hold()
    }

    async fn reclaim(&self, owners: &impl Owners) -> Result<Reclaimed, Fault> {
        let mut reclaimed = Reclaimed::default();
        let mut last = None;
        loop {
            let page = self.page(&mut last);
            if page.is_empty() {
                return Ok(reclaimed);
            }
            for (space, blob, extent, written) in page {
                reclaimed.seen += 1;
                if written.elapsed() < self.grace {
                    continue;
                }
                let owner = Owner { space, blob: &blob };
                if owners.release(owner, &[extent]).await?.first() == Some(&true) {
                    reclaimed.removed += 1;
                    reclaimed.removed_bytes += extent.length;
                    self.discard(vec![extent]);
                }
            }
        }
    }

    fn statistics(&self) -> ByteStatistics {
        let mut state = self.state.lock();
        state.collect(self.grace, &self.holds);
        let bytes = |file| state.payloads.get(file).map_or(0, |payload| payload.bytes.len() as u64);
        let discarded_bytes = state.discarded.iter().map(|(_, file)| bytes(file)).sum();
        ByteStatistics { discarded: state.discarded.len() as u64, discarded_bytes, ..state.figures }
    }
}

/// Writes one payload in memory.
#[derive(Debug)]
pub struct MemoryWriter {
    state: Arc<Mutex<State>>,
    space: SpaceId,
    blob: String,
    buffer: Vec<u8>,
}

impl ByteWriter for MemoryWriter {
    async fn write(&mut self, bytes: Bytes) -> Result<(), Fault> {
        self.buffer.extend_from_slice(&bytes);
        Ok(())
    }

    async fn finish(self) -> Result<Extent, Fault> {
        let Self { state, space, blob, buffer } = self;
        let mut state = state.lock();
        let bytes = Bytes::from(buffer);
        state.last_file += 1;
        let extent = Extent { file: state.last_file.to_be_bytes(), offset: 0, length: bytes.len() as u64 };
        state.figures.payloads_written += 1;
        state.figures.bytes_written += extent.length;
        state.payloads.insert(extent.file, Payload { space, blob, bytes, written: Instant::now() });
        Ok(extent)
    }
}

impl State {
    /// Removes payloads whose grace period is over.
    fn collect(&mut self, grace: Duration, holds: &PayloadHolds) {
        while let Some((since, file)) = self.discarded.front()
            && since.elapsed() >= grace
            && !holds.keeps(*since)
        {
            self.figures.payloads_removed += u64::from(self.payloads.remove(file).is_some());
            self.discarded.pop_front();
        }
    }
}

const SWEEP_PAGE: usize = 256;
