//! Takes back the storage of dropped spaces, in the background and in small bites.
//!
//! A drop only removes a name and records the number as dead; nothing reads it again. From then on
//! compaction discards the rows it comes across. This thread takes care of the rest: of a large space it
//! first throws away whole tables, then it deletes what remains in slices, with pauses for the writers.
//! When nothing is left the record goes too. After a restart it begins again with the recorded numbers.
//!
//! Deleted rows leave the disk with a compaction, which fjall starts only when new rows come. So once enough of them
//! have gathered this thread compacts the store itself ([`Garbage`]), within seconds of the last drop. A full disk has
//! rules of its own (`full_disk.rs`).

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use larimar_engine::{Compaction, Fault, SpaceId};

use crate::catalogue::{self, GARBAGE_KEY};
use crate::committer::{Commit, Writes};
use crate::full_disk::FullDisk;
use crate::key;
use crate::recovery::fault;
use crate::shared::Shared;
use crate::store::Bytes;

/// The reclaiming thread.
pub(crate) fn run(shared: &Arc<Shared>) {
    let mut garbage = Garbage::recorded(shared);
    let mut full_disk = FullDisk::default();
    while !shared.queue.is_stopping() {
        let space = shared.catalogue.dead.next(IDLE);
        shared.watch_room();
        if shared.is_full() {
            match full_disk.make_room(shared) {
                Ok(true) => shared.garbage_bytes.store(0, Ordering::Relaxed),
                Ok(false) => {}
                Err(fault) => tracing::debug!(%fault, "the full disk could not be compacted"),
            }
            std::thread::sleep(RETRY);
            continue;
        }
        full_disk = FullDisk::default();
        shared.reserve.set_lendable(false);
        let outcome = match space {
            Some(space) => reclaim(shared, space, &mut garbage),
            None => garbage.compact(shared),
        };
        if let Err(fault) = outcome {
            tracing::debug!(%fault, ?space, "reclaiming storage has to wait");
            std::thread::sleep(RETRY);
        }
    }
}

/// Deleted rows that are still on disk. How many bytes is recorded with the deletes, so that a restart forgets none.
struct Garbage {
    /// When the last of them were deleted.
    since: Option<Instant>,
}

impl Garbage {
    /// What an earlier process left behind.
    fn recorded(shared: &Shared) -> Self {
        let snapshot = shared.published.now().ok();
        let bytes = snapshot.and_then(|snapshot| catalogue::number(snapshot.as_ref(), GARBAGE_KEY).ok().flatten());
        shared.garbage_bytes.store(bytes.unwrap_or(0), Ordering::Relaxed);
        Self { since: bytes.map(|_| Instant::now()) }
    }

    /// Deletes rows of so many bytes.
    fn delete(&mut self, shared: &Shared, keys: Vec<Bytes>, bytes: u64) -> Result<(), Fault> {
        let total = shared.garbage_bytes.load(Ordering::Relaxed) + bytes;
        let mut writes: Vec<_> = keys.into_iter().map(|key| (key, None)).collect();
        writes.push((GARBAGE_KEY.into(), Some(total.to_be_bytes().into())));
        commit(shared, Commit { writes: Writes::Many(writes), frees: true, ..Commit::default() })?;
        shared.garbage_bytes.store(total, Ordering::Relaxed);
        self.since = Some(Instant::now());
        Ok(())
    }

    /// Compacts the store when no drop has come for a while and it is worth it.
    fn compact(&mut self, shared: &Shared) -> Result<(), Fault> {
        if self.since.is_none_or(|since| since.elapsed() < QUIET) {
            return Ok(());
        }
        let store_bytes = shared.with_store(|store| Ok(store.disk_bytes())).map_err(|error| fault(&error))?;
        let share = if store_bytes <= SMALL_BYTES { SHARE_OF_SMALL } else { SHARE_OF_LARGE };
        if shared.garbage_bytes.load(Ordering::Relaxed) >= store_bytes / share {
            // One that was asked for does the same.
            if let Some(_one) = shared.compacting.try_lock() {
                compact(shared, store_bytes)?;
            }
            shared.garbage_bytes.store(0, Ordering::Relaxed);
        }
        self.since = None;
        Ok(())
    }
}

/// Rewrites the store without what was deleted, if there is room for that, and removes the old files; whether it did.
fn compact(shared: &Shared, bytes: u64) -> Result<bool, Fault> {
    let is_done = shared.with_store(|store| store.compact(bytes)).map_err(|error| fault(&error))?;
    if is_done {
        release_files(shared)?;
    }
    Ok(is_done)
}

/// Compacts the store on request.
pub(crate) fn compact_now(shared: &Shared) -> Result<Compaction, Fault> {
    let running = || Fault::Unavailable("a compaction is running already".to_owned());
    let _one = shared.compacting.try_lock().ok_or_else(running)?;
    let disk_bytes = || shared.with_store(|store| Ok(store.disk_bytes())).map_err(|error| fault(&error));
    let bytes_before = disk_bytes()?;
    if !compact(shared, bytes_before)? {
        return Err(Fault::Unavailable(format!("the disk has no room to rewrite {bytes_before} bytes")));
    }
    shared.garbage_bytes.store(0, Ordering::Relaxed);
    Ok(Compaction { bytes_before, bytes_after: disk_bytes()? })
}

/// Releases files that are not needed any more. Readers use the snapshot of the last commit, and a snapshot keeps the
/// files of its day. So another commit makes another snapshot, and a flush then lets the files go.
pub(crate) fn release_files(shared: &Shared) -> Result<(), Fault> {
    let no_garbage = Writes::One([(GARBAGE_KEY.into(), None)]);
    commit(shared, Commit { writes: no_garbage, ..Commit::default() })?;
    shared.with_store(|store| store.settle()).map_err(|error| fault(&error))
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
        if shared.is_full() {
            return Err(Fault::Unavailable("the disk is full".to_owned()));
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
        // Releases the files that only older snapshots needed.
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
