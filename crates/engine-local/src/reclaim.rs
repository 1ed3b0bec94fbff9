//! Takes back the storage of dropped spaces, in the background and in small bites.
//!
//! A drop only removes a name and records the number as dead; nothing reads it again. From then on
//! compaction discards the rows it comes across. This thread takes care of the rest: of a large space it
//! first throws away whole tables, then it deletes what remains in slices, with pauses for the writers.
//! When nothing is left the record goes too. After a restart it begins again with the recorded numbers.

use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use larimar_engine::{Fault, SpaceId};

use crate::committer::{Commit, Writes};
use crate::key;
use crate::recovery::fault;
use crate::shared::Shared;
use crate::store::Bytes;

/// The reclaiming thread.
pub(crate) fn run(shared: &Arc<Shared>) {
    while !shared.queue.is_stopping() {
        let Some(space) = shared.catalogue.dead.next(IDLE) else { continue };
        if let Err(fault) = reclaim(shared, space) {
            tracing::debug!(%fault, space = space.0, "reclaiming a dropped table has to wait");
            std::thread::sleep(RETRY);
        }
    }
}

fn reclaim(shared: &Shared, space: SpaceId) -> Result<(), Fault> {
    let mut start = Vec::new();
    key::put_space(&mut start, space);
    let end = key::space_end(space);
    let is_large = keys(shared, &start, &end, LARGE_ROWS)?.len() == LARGE_ROWS;
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
        let keys = keys(shared, &start, &end, SLICE_ROWS)?;
        let Some(last) = keys.last() else { break };
        start = [last, &[0][..]].concat();
        let started = Instant::now();
        commit(shared, Commit { writes: deletes(keys), ..Commit::default() })?;
        std::thread::sleep(started.elapsed().max(PAUSE_MIN).min(PAUSE_MAX));
    }
    commit(shared, shared.catalogue.forget(space))?;
    if is_large {
        // Lets go of the files that only older snapshots needed.
        shared.with_store(|store| store.settle()).map_err(|error| fault(&error))?;
    }
    Ok(())
}

/// The first keys of a range.
fn keys(shared: &Shared, from: &[u8], to: &[u8], max: usize) -> Result<Vec<Bytes>, Fault> {
    let rows = shared.published.now()?.range(Bound::Included(from), Bound::Excluded(to));
    rows.take(max).map(|row| row.map(|(key, _)| key).map_err(|error| fault(&error))).collect()
}

fn deletes(keys: Vec<Bytes>) -> Writes {
    Writes::Many(keys.into_iter().map(|key| (key, None)).collect())
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
