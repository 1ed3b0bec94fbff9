//! After a failed commit: nothing of it is acknowledged, reads continue, and the engine opens the store again.
//!
//! A store that failed to write, such as on a full disk, takes no more writes. The whole group and everything
//! behind it is answered with a fault, because later writes may have seen earlier ones. Then the committer
//! waits until writing may succeed again, closes the store, opens it and continues.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use larimar_engine::Fault;

use crate::committer::Queued;
use crate::shared::Shared;
use crate::store::{Mode, Room, StoreError};

/// Answers a failed group and everything enqueued behind it.
pub(crate) fn fail(shared: &Shared, group: &mut Vec<Queued>, error: &StoreError) {
    let fault = fault(error);
    if let Some(left_out) = shared.faults.admit() {
        tracing::error!(%fault, left_out, "a commit failed; no write is taken until the store is open again");
    }
    // In this order: a writer that still sees a pending row is refused at the queue.
    group.extend(shared.queue.shut(fault.clone()));
    shared.latches.clear();
    let outcome = Err(fault);
    for commit in group.drain(..) {
        commit.finish(&outcome);
    }
}

/// Waits until the store can be opened again and opens it; `false` if the engine is stopped meanwhile.
pub(crate) fn recover(shared: &Arc<Shared>, error: &StoreError) -> bool {
    tracing::debug!(%error, "waiting for the store");
    loop {
        if !pause(shared) {
            return false;
        }
        if let Err(error) = shared.with_store(|store| store.probe()) {
            shared.queue.shut(fault(&error));
            // Without a reserve nothing can be done before the disk has room.
            if !matches!(error, StoreError::Full { .. }) || !shared.reserve.is_wanted() {
                continue;
            }
        }
        return reopen(shared);
    }
}

/// Closes the store and opens it in the mode that suits the disk; `false` if the engine is stopped meanwhile.
pub(crate) fn reopen(shared: &Arc<Shared>) -> bool {
    while !shared.published.withdraw(READERS_PATIENCE) {
        if !pause(shared) {
            return false;
        }
    }
    let needed = |room: Room| if shared.is_full() { room.with_margin() } else { room.needed };
    let needed = shared.room().map_or(0, needed);
    let Some(store) = shared.store.write().take() else { return false };
    let mut stopped = store.stop();
    loop {
        // Files that were only kept for snapshots are gone by now.
        let is_full = !shared.reserve.take_back(needed);
        match stopped.reopen(if is_full { Mode::Freeing } else { Mode::Normal }) {
            Ok(store) => {
                shared.is_store_freeing.store(is_full, Ordering::Release);
                let snapshot = store.snapshot();
                shared.last_commit.lock().check(snapshot.as_ref());
                shared.published.publish(snapshot);
                *shared.store.write() = Some(store);
                if is_full {
                    take_freeing_only(shared);
                } else {
                    take_all(shared);
                }
                return true;
            }
            Err(StoreError::Full { .. }) if shared.reserve.give_up() => continue,
            Err(error) => {
                let fault = fault(&error);
                if let Some(left_out) = shared.faults.admit() {
                    tracing::error!(%fault, left_out, "the store cannot be opened");
                }
                shared.queue.shut(fault.clone());
                shared.published.close(fault);
            }
        }
        if !pause(shared) {
            return false;
        }
    }
}

/// Takes all writes again.
pub(crate) fn take_all(shared: &Shared) {
    shared.queue.open();
    let left_out = shared.faults.end();
    tracing::info!(left_out, "the store is open again and takes all writes");
}

/// Takes writes that free space, with the reserve if need be.
pub(crate) fn take_freeing_only(shared: &Shared) {
    shared.queue.open_for_freeing(full(FULL));
    warn_of_full_disk(shared, shared.room());
}

/// Answers writes with what has to happen on a full disk before they are taken again; returns that if it is more than
/// that clients delete rows.
pub(crate) fn explain_full_disk(shared: &Shared, room: &Room) -> Option<String> {
    let reserve = if shared.is_store_freeing() { shared.reserve.held_bytes() } else { 0 };
    let missing = room.missing_to_flush(reserve);
    let explain = || {
        let mib = missing.div_ceil(1 << 20);
        format!("{FULL}; there is too little room to make some: free {mib} MiB of other files, or drop tables")
    };
    let text = (shared.is_store_freeing() && missing > 0).then(explain);
    shared.queue.set_full(full(text.as_deref().unwrap_or(FULL)), missing > 0);
    text
}

/// Takes writes that free space, if all were taken until now.
pub(crate) fn refuse_growth(shared: &Shared, room: Room) {
    if shared.queue.narrow(full(FULL)) {
        warn_of_full_disk(shared, Some(room));
    }
}

/// Takes all writes again, if only those that free space were taken until now.
pub(crate) fn admit_growth(shared: &Shared) {
    if shared.queue.widen() {
        let left_out = shared.faults.end();
        tracing::info!(left_out, "the disk has room again, and all writes are taken");
    }
}

fn full(text: &str) -> Fault {
    Fault::Unavailable(text.to_owned())
}

fn warn_of_full_disk(shared: &Shared, room: Option<Room>) {
    let (free, needed) = room.map_or((0, 0), |room| (room.free, shared.needed_for_all_writes(&room)));
    if let Some(left_out) = shared.faults.admit() {
        tracing::warn!(free, needed, left_out, "{FULL}");
    } else {
        tracing::debug!(free, needed, "{FULL}");
    }
}

/// How a failure of the store looks to callers.
pub(crate) fn fault(error: &StoreError) -> Fault {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    match error {
        StoreError::Full { .. } | StoreError::Io { .. } | StoreError::Stopped { .. } | StoreError::Locked { .. } => {
            Fault::Unavailable(text)
        }
        StoreError::DamagedTail(_)
        | StoreError::DamagedMiddle(_)
        | StoreError::Damaged { .. }
        | StoreError::Refused { .. } => Fault::Damaged(text),
    }
}

/// Waits a moment; `false` if the engine is stopped.
fn pause(shared: &Shared) -> bool {
    for _ in 0..PAUSE_STEPS {
        if shared.queue.is_stopping() {
            return false;
        }
        std::thread::sleep(PAUSE_STEP);
    }
    true
}

const FULL: &str = "the disk is full; only deletes, drops and reads are served until there is room again";
const PAUSE_STEP: Duration = Duration::from_millis(20);
const PAUSE_STEPS: usize = 25;
/// Readers hold a snapshot for the time of one look-up.
const READERS_PATIENCE: Duration = Duration::from_secs(5);
