//! Makes room on a full disk, out of what clients delete and drop, until all writes can be taken again.
//!
//! A disk counts as full while less is free than the store needs for its own work ([`Room`]). Then
//! only writes that free space are taken (`committer.rs`, `Gate::Freeing`), in one of two states:
//!
//! - The store is open as always, and has the room that it needs. This is how a store ends that fills its disk itself.
//! - Something else filled the disk, so that a write or a compaction failed or would fail. The store is open without
//!   background work ([`Mode::Freeing`](crate::store::Mode)): flushes and compactions run from here, one at a time, with
//!   room from the reserve (`reserve.rs`), and only if they fit. If not even the reserve has room for them, the log and
//!   `/ready` show how much an operator has to free.
//!
//! In both, tables that hold nothing but dropped rows go at once, and a compaction removes the rest: of dropped spaces
//! without deleting their rows one by one, which would take room.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::time::{Duration, Instant};

use larimar_engine::{Fault, SpaceId};

use crate::key;
use crate::reclaim::release_files;
use crate::recovery::{admit_growth, explain_full_disk, fault};
use crate::shared::Shared;
use crate::store::fjall::DeadRows;
use crate::store::{Room, StoreError};

/// What was done about a disk since it is full.
#[derive(Default)]
pub(crate) struct FullDisk {
    /// Dropped spaces whose tables were thrown away.
    discarded: BTreeSet<SpaceId>,
    /// The last commit that was seen, and how often a compaction has waited for more of them.
    seen: u64,
    waited: u32,
    /// The last commit at the last compaction, and when to try another one without a further commit.
    compacted: Option<u64>,
    again: Option<(Instant, Duration)>,
    /// The room there was, with the reserve, when the last attempt found too little.
    failed_with: Option<u64>,
    /// When it was logged that an operator has to free space.
    warned: Option<Instant>,
}

impl FullDisk {
    /// Takes all writes again if there is room, or makes some; whether the store was compacted.
    pub(crate) fn make_room(&mut self, shared: &Shared) -> Result<bool, Fault> {
        let Some(room) = shared.room() else { return Ok(false) };
        self.explain(shared, &room);
        shared.reserve.set_lendable(shared.queue.may_have_freed());
        if shared.reserve.missing_bytes() == 0 && room.is_ample() {
            // Background work that failed has stopped the store, and no commit has noticed.
            if shared.is_store_freeing() || shared.with_store(|store| store.settle()).is_err() {
                shared.queue.request_reopen();
            } else {
                admit_growth(shared);
            }
            return Ok(false);
        }
        if room.is_out() && !shared.is_store_freeing() {
            shared.queue.request_reopen();
            return Ok(false);
        }
        let worked = self.work(shared, room);
        if worked.is_err() && !shared.is_store_freeing() {
            // Background work that failed stops the store, and nothing else may come that notices.
            shared.queue.request_reopen();
        }
        // What was freed is for the reserve, before anything else takes it.
        shared.reserve.take_back(0);
        worked
    }

    fn explain(&mut self, shared: &Shared, room: &Room) {
        let is_new = self.warned.is_none_or(|at| at.elapsed() > WARN_EVERY);
        if let Some(text) = explain_full_disk(shared, room)
            && is_new
        {
            tracing::warn!("{text}");
            self.warned = Some(Instant::now());
        }
    }

    fn work(&mut self, shared: &Shared, room: Room) -> Result<bool, Fault> {
        let dead = shared.catalogue.dead.list();
        let dead: Vec<SpaceId> = dead.into_iter().filter(|space| !self.discarded.contains(space)).collect();
        let has_dropped = !dead.is_empty();
        if !self.is_due(shared, has_dropped, &room) {
            return Ok(false);
        }
        let discarded = self.discard(shared, dead);
        let compacted = discarded.and_then(|()| compact(shared, self.failed_with.is_some()));
        let released = match compacted {
            // Something else took the room of the compaction. A large store keeps the background work that it has.
            Ok(false) if room.is_for_whole && !shared.is_store_freeing() => {
                shared.queue.request_reopen();
                Ok(())
            }
            Ok(false) if !has_dropped => Ok(()),
            // Closing the store releases the old files and journals; then it is known whether there is room.
            _ if shared.is_store_freeing() => {
                shared.queue.request_reopen();
                Ok(())
            }
            _ => release_files(shared),
        };
        self.compacted = Some(shared.queue.last_ticket());
        let has_failed = !matches!(compacted, Ok(true));
        self.failed_with = has_failed.then(|| room.free + shared.reserve.held_bytes());
        compacted.and_then(|compacted| released.map(|()| compacted))
    }

    /// Throws away tables that hold only rows of dropped spaces.
    fn discard(&mut self, shared: &Shared, dead: Vec<SpaceId>) -> Result<(), Fault> {
        if dead.is_empty() {
            return Ok(());
        }
        shared.reserve.set_lendable(true);
        let discard = shared.with_store(|store| {
            match store.settle() {
                // What is in memory has no room to go to yet; what is in tables goes all the same.
                Err(StoreError::Full { .. }) => {}
                settled => settled?,
            }
            for space in &dead {
                let mut start = Vec::new();
                key::put_space(&mut start, *space);
                store.discard(&start, &key::space_end(*space))?;
            }
            Ok(())
        });
        discard.map_err(|error| fault(&error))?;
        self.discarded.extend(dead);
        Ok(())
    }

    /// Whether it is time for a compaction: after commits, once no more of them come, when there is more room than the last
    /// attempt found, and again after a while, as readers may have kept what was deleted.
    fn is_due(&mut self, shared: &Shared, has_dropped: bool, room: &Room) -> bool {
        let last = shared.queue.last_ticket();
        if self.compacted != Some(last) {
            let is_quiet = std::mem::replace(&mut self.seen, last) == last;
            self.waited += 1;
            if !(has_dropped || is_quiet || self.waited > WAITS_MAX) {
                return false;
            }
            self.waited = 0;
            self.again = Some((Instant::now() + AGAIN_MIN, AGAIN_MIN));
            return true;
        }
        if self.failed_with.is_some_and(|then| room.free + shared.reserve.held_bytes() >= then + GREW_BYTES) {
            return true;
        }
        match self.again {
            Some((at, pause)) if Instant::now() >= at => {
                let pause = (2 * pause).min(AGAIN_MAX);
                self.again = Some((Instant::now() + pause, pause));
                true
            }
            _ => false,
        }
    }
}

/// Compacts the store if there is room for what it writes before it removes anything; whether files may be smaller.
fn compact(shared: &Shared, is_repeated: bool) -> Result<bool, Fault> {
    let compact = |bytes| shared.with_store(|store| store.compact(bytes)).map_err(|error| fault(&error));
    if !shared.is_store_freeing() && compact(u64::MAX)? {
        return Ok(true);
    }
    // The reserve lends no more than the rows need.
    let live = live_bytes(shared)?;
    let stored = shared.with_store(|store| Ok(store.disk_bytes())).map_err(|error| fault(&error))?;
    if is_repeated && stored.saturating_sub(GAIN_MIN) > live.saturating_add(live / 8) {
        // What clients deleted before the disk was full is still stored.
        shared.reserve.set_lendable(true);
    }
    compact(live)
}

/// Bytes of all rows that can still be read, as they are before compression; far too many if it takes long to
/// count them.
fn live_bytes(shared: &Shared) -> Result<u64, Fault> {
    let rows = shared.published.now()?.range(Bound::Unbounded, Bound::Unbounded);
    let mut bytes = 0;
    for row in rows {
        let (key, value) = row.map_err(|error| fault(&error))?;
        if !shared.catalogue.dead.is_dead(&key) {
            bytes += (key.len() + value.len() + ROW_OVERHEAD) as u64;
        }
        if bytes > LIVE_BYTES_MAX {
            return Ok(u64::MAX);
        }
    }
    Ok(bytes)
}

/// How often a compaction waits for deletes to end: with the pauses of the reclaiming thread, some seconds.
const WAITS_MAX: u32 = 10;
/// What a compaction has to give back before the reserve lends to it, unless clients have deleted something.
const GAIN_MIN: u64 = 4 << 20;
const WARN_EVERY: Duration = Duration::from_secs(600);
/// So much more room is worth another attempt.
const GREW_BYTES: u64 = 1 << 20;
const AGAIN_MIN: Duration = Duration::from_secs(10);
const AGAIN_MAX: Duration = Duration::from_secs(120);
/// Rows are only counted up to here: a reserve has no room for more.
const LIVE_BYTES_MAX: u64 = 1 << 30;
/// What a table needs beside a row's key and value, about.
const ROW_OVERHEAD: usize = 32;
