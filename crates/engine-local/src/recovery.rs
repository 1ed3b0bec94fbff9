//! After a failed commit: nothing of it is acknowledged, reads go on, and the store is opened again by itself.
//!
//! A store that failed to write, such as on a full disk, takes no more writes. The whole group and everything
//! behind it is answered with a fault, because later writes may have seen earlier ones. Then the committer
//! waits until the store says that writing has a chance again, closes it, opens it and goes on.

use std::sync::Arc;
use std::time::Duration;

use larimar_engine::Fault;

use crate::committer::Queued;
use crate::shared::Shared;
use crate::store::StoreError;

/// Answers a failed group and everything enqueued behind it.
pub(crate) fn fail(shared: &Shared, group: &mut Vec<Queued>, error: &StoreError) {
    let fault = fault(error);
    tracing::error!(%fault, "a commit failed; no write is taken until the store is open again");
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
    tracing::warn!(%error, "waiting for the store");
    loop {
        if !pause(shared) {
            return false;
        }
        if let Err(error) = shared.with_store(|store| store.probe()) {
            shared.queue.shut(fault(&error));
            continue;
        }
        if shared.published.withdraw(READERS_PATIENCE) {
            break;
        }
    }
    let Some(store) = shared.store.write().take() else { return false };
    let mut stopped = store.stop();
    loop {
        match stopped.reopen() {
            Ok(store) => {
                shared.published.publish(store.snapshot());
                *shared.store.write() = Some(store);
                shared.queue.open();
                tracing::info!("the store is open again");
                return true;
            }
            Err(error) => {
                let fault = fault(&error);
                tracing::error!(%fault, "the store cannot be opened");
                shared.queue.shut(fault.clone());
                shared.published.close(fault);
            }
        }
        if !pause(shared) {
            return false;
        }
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
        StoreError::DamagedTail(_) | StoreError::DamagedMiddle(_) | StoreError::Damaged { .. } => Fault::Damaged(text),
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

const PAUSE_STEP: Duration = Duration::from_millis(20);
const PAUSE_STEPS: usize = 25;
/// Readers hold a snapshot for the time of one look-up.
const READERS_PATIENCE: Duration = Duration::from_secs(5);
