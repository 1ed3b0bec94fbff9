//! Takes back the storage of dropped spaces, in the background and in small bites.
//!
//! A drop only removes a name and records the number as dead; nothing reads it again. From then on
//! compaction discards the rows it comes across. This thread takes care of the rest: of a large space it
//! first throws away whole tables, then it deletes what remains in slices, with pauses for the writers.
//! When nothing is left the record goes too. After a restart it begins again with the recorded numbers.
//!
//! Deleted rows leave the disk with a compaction, which fjall starts only when new rows come. So once enough of them
//! have gathered this thread compacts the store itself ([`Garbage`]), within seconds of the last drop. On a full disk,
//! where only deletes are taken, it does so after any of them, as far as there is room for what remains.

use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use larimar_engine::{Fault, SpaceId};

use crate::catalogue::{self, GARBAGE_KEY};
use crate::committer::{Commit, Writes};
use crate::key;
use crate::recovery::{fault, take_all};
use crate::shared::Shared;
use crate::store::Bytes;

/// The reclaiming thread.
pub(crate) fn run(shared: &Arc<Shared>) {
    let mut garbage = Garbage::recorded(shared);
    while !shared.queue.is_stopping() {
        let space = shared.catalogue.dead.next(IDLE);
        let outcome = match space {
            Some(space) => reclaim(shared, space, &mut garbage),
            None => garbage.compact(shared),
        };
        if let Err(fault) = outcome {
            tracing::debug!(%fault, ?space, "reclaiming storage has to wait");
            std::thread::sleep(RETRY);
        }
        if shared.queue.is_freeing() {
            garbage.free(shared);
        }
    }
}

/// Deleted rows that are still on disk. How many bytes is recorded with the deletes, so that a restart forgets none.
struct Garbage {
    bytes: u64,
    /// When the last of them were deleted.
    since: Option<Instant>,
    /// The last version when the disk was full and was last compacted.
    freed_at: u64,
}

impl Garbage {
    /// What an earlier process left behind.
    fn recorded(shared: &Shared) -> Self {
        let snapshot = shared.published.now().ok();
        let bytes = snapshot.and_then(|snapshot| catalogue::number(snapshot.as_ref(), GARBAGE_KEY).ok().flatten());
        Self { bytes: bytes.unwrap_or(0), since: bytes.map(|_| Instant::now()), freed_at: 0 }
    }

    /// Deletes rows of so many bytes.
    fn delete(&mut self, shared: &Shared, keys: Vec<Bytes>, bytes: u64) -> Result<(), Fault> {
        let total = self.bytes + bytes;
        let mut writes: Vec<_> = keys.into_iter().map(|key| (key, None)).collect();
        writes.push((GARBAGE_KEY.into(), Some(total.to_be_bytes().into())));
        commit(shared, Commit { writes: Writes::Many(writes), ..Commit::default() })?;
        (self.bytes, self.since) = (total, Some(Instant::now()));
        Ok(())
    }

    /// Compacts the store when no drop has come for a while and it is worth it.
    fn compact(&mut self, shared: &Shared) -> Result<(), Fault> {
        if self.since.is_none_or(|since| since.elapsed() < QUIET) {
            return Ok(());
        }
        let store_bytes = shared.with_store(|store| Ok(store.disk_bytes())).map_err(|error| fault(&error))?;
        let share = if store_bytes <= SMALL_BYTES { SHARE_OF_SMALL } else { SHARE_OF_LARGE };
        if self.bytes >= store_bytes / share {
            compact(shared, store_bytes)?;
            self.bytes = 0;
        }
        self.since = None;
        Ok(())
    }

    /// On a full disk: takes all writes again if there is room, or makes some.
    fn free(&mut self, shared: &Shared) {
        if shared.reserve.restore() {
            take_all(shared);
            return;
        }
        let last = shared.versions.last();
        if last == self.freed_at {
            return;
        }
        // What remains is what a compaction writes before it removes anything.
        match live_bytes(shared).and_then(|live_bytes| compact(shared, live_bytes)) {
            Ok(()) => (self.freed_at, self.bytes) = (last, 0),
            Err(fault) => tracing::debug!(%fault, "the full disk could not be compacted"),
        }
    }
}

/// Rewrites the store without what was deleted, if there is room for that, and removes the old files.
fn compact(shared: &Shared, bytes: u64) -> Result<(), Fault> {
    shared.with_store(|store| store.compact(bytes)).map_err(|error| fault(&error))?;
    // Readers use the snapshot of the last commit, and a snapshot keeps the files of its day. So another commit makes
    // another snapshot, and a flush then lets the files go.
    let no_garbage = Writes::One([(GARBAGE_KEY.into(), None)]);
    commit(shared, Commit { writes: no_garbage, ..Commit::default() })?;
    shared.with_store(|store| store.settle()).map_err(|error| fault(&error))
}

/// Bytes of all rows that can still be read, as they are before compression.
fn live_bytes(shared: &Shared) -> Result<u64, Fault> {
    let rows = shared.published.now()?.range(Bound::Unbounded, Bound::Unbounded);
    let mut bytes = 0;
    for row in rows {
        let (key, value) = row.map_err(|error| fault(&error))?;
        bytes += (key.len() + value.len() + ROW_OVERHEAD) as u64;
    }
    Ok(bytes)
}

fn reclaim(shared: &Shared, space: SpaceId, garbage: &mut Garbage) -> Result<(), Fault> {
    let mut start = Vec::new();
    key::put_space(&mut start, space);
    let end = key::space_end(space);
    let (first, _) = keys(shared, &start, &end, LARGE_ROWS)?;
    let is_large = first.len() == LARGE_ROWS;
    if is_large {
        // Tables that hold nothing else go whole. This comes before any deletes, because it may bring
        // rows back that were deleted in a table that went.
        let discard = shared.with_store(|store| {
            store.settle()?;
            store.discard(&start, &end)
        });
        discard.map_err(|error| fault(&error))?;
    }
    loop {
        if shared.queue.is_stopping() {
            return Ok(());
        }
        let (keys, bytes) = keys(shared, &start, &end, SLICE_ROWS)?;
        let Some(last) = keys.last() else { break };
        start = [last, &[0][..]].concat();
        let started = Instant::now();
        garbage.delete(shared, keys, bytes)?;
        std::thread::sleep(started.elapsed().max(PAUSE_MIN).min(PAUSE_MAX));
    }
    commit(shared, shared.catalogue.forget(space))?;
    if is_large {
        // Lets go of the files that only older snapshots needed.
        shared.with_store(|store| store.settle()).map_err(|error| fault(&error))?;
    }
    Ok(())
}

/// The first keys of a range, and the bytes of their rows.
fn keys(shared: &Shared, from: &[u8], to: &[u8], max: usize) -> Result<(Vec<Bytes>, u64), Fault> {
    let rows = shared.published.now()?.range(Bound::Included(from), Bound::Excluded(to));
    let (mut keys, mut bytes) = (Vec::new(), 0);
    for row in rows.take(max) {
        let (key, value) = row.map_err(|error| fault(&error))?;
        bytes += (key.len() + value.len()) as u64;
        keys.push(key);
    }
    Ok((keys, bytes))
}

fn commit(shared: &Shared, commit: Commit) -> Result<(), Fault> {
    let (_, outcome) = shared.queue.push(commit)?;
    outcome.wait_blocking()
}

/// From here on throwing away whole tables is worth a flush.
const LARGE_ROWS: usize = 20_000;
/// Rows deleted with one commit, about a millisecond of the committer's time.
const SLICE_ROWS: usize = 256;
const PAUSE_MIN: Duration = Duration::from_millis(4);
const PAUSE_MAX: Duration = Duration::from_millis(50);
const IDLE: Duration = Duration::from_millis(500);
const RETRY: Duration = Duration::from_millis(500);
/// How long to wait for another drop, so that one compaction serves all.
const QUIET: Duration = Duration::from_secs(5);
/// A store up to this size is compacted within seconds.
const SMALL_BYTES: u64 = 4 << 30;
/// Garbage that is worth a compaction, as a part of the store.
const SHARE_OF_SMALL: u64 = 64;
const SHARE_OF_LARGE: u64 = 4;
/// What a table needs beside a row's key and value, about.
const ROW_OVERHEAD: usize = 32;
