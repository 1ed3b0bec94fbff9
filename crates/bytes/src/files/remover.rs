//! Removes discarded payloads after the grace period, on its own thread.

use super::Shared;
use super::folder::is_pack;
use crate::discarded::DiscardedCount;
use crate::record::FileName;
use larimar_engine::Fault;
use larimar_engine::blob::bytes::{Extent, PayloadHold, PayloadHolds};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Payloads that wait for removal, in the order of time.
#[derive(Debug, Default)]
pub(super) struct Remover {
    queue: Mutex<Queue>,
    wake: Condvar,
    /// Payloads that are not removed yet.
    waiting: DiscardedCount,
    holds: PayloadHolds,
}

#[derive(Debug, Default)]
struct Queue {
    discarded: VecDeque<Discarded>,
    /// Files that writers left unfinished; no reader can have them.
    unfinished: Vec<FileName>,
    stopped: bool,
}

/// Payloads that were discarded together.
#[derive(Debug)]
struct Discarded {
    at: Instant,
    /// When the grace period is over.
    due: Instant,
    extents: Vec<Extent>,
}

/// What to remove next.
enum Task {
    Discarded(Vec<Extent>),
    Unfinished(Vec<FileName>),
    Stop,
}

impl Remover {
    /// Removes payloads after `grace`.
    pub(super) fn discard(&self, extents: Vec<Extent>, grace: Duration) {
        let extents = self.waiting.add(extents);
        if !extents.is_empty() {
            let at = Instant::now();
            self.queue.lock().discarded.push_back(Discarded { at, due: at + grace, extents });
            self.wake.notify_one();
        }
    }

    /// Keeps what is discarded from now on.
    pub(super) fn hold(&self) -> PayloadHold {
        self.holds.hold()
    }

    /// Removes a file that its writer did not finish. Returns `false` if too many wait; the next `reclaim` finds it.
    pub(super) fn remove_unfinished(&self, file: FileName) -> bool {
        let mut queue = self.queue.lock();
        if queue.unfinished.len() >= UNFINISHED_MAX {
            return false;
        }
        queue.unfinished.push(file);
        drop(queue);
        self.wake.notify_one();
        true
    }

    /// Payloads that wait to be removed.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting.get()
    }

    /// Their bytes.
    pub(super) fn waiting_bytes(&self) -> u64 {
        self.waiting.bytes()
    }

    /// Stops the thread. Payloads within their grace period are left to the next `reclaim`.
    pub(super) fn stop(&self) {
        self.queue.lock().stopped = true;
        self.wake.notify_one();
    }

    fn take(&self) -> Task {
        let mut queue = self.queue.lock();
        loop {
            if !queue.unfinished.is_empty() {
                return Task::Unfinished(std::mem::take(&mut queue.unfinished));
            }
            if queue.stopped {
                return Task::Stop;
            }
            match queue.discarded.front() {
                None => self.wake.wait(&mut queue),
                Some(first) if self.holds.keeps(first.at) => {
                    self.wake.wait_for(&mut queue, HELD_POLL);
                }
                Some(first) if first.due <= Instant::now() => {
                    let Discarded { extents, .. } = queue.discarded.pop_front().expect("the front was looked at");
                    return Task::Discarded(extents);
                }
                Some(first) => {
                    let due = first.due;
                    self.wake.wait_until(&mut queue, due);
                }
            }
        }
    }
}

/// The remover's thread.
pub(super) fn run(shared: &Arc<Shared>) {
    loop {
        match shared.remover.take() {
            Task::Discarded(extents) => {
                for extent in extents {
                    match remove(shared, &extent) {
                        Ok(removed) => {
                            shared.figures.payloads_removed.fetch_add(u64::from(removed), Ordering::Relaxed);
                        }
                        // The next `reclaim` finds it again.
                        Err(fault) => tracing::warn!(%fault, "blob bytes could not be removed"),
                    }
                    shared.remover.waiting.remove(&[extent]);
                }
            }
            Task::Unfinished(files) => {
                for file in files {
                    if let Err(fault) = shared.folder.remove(&file) {
                        tracing::warn!(%fault, "an unfinished blob file could not be removed");
                    }
                    shared.writing.lock().remove(&file);
                }
            }
            Task::Stop => return,
        }
    }
}

/// Removes a payload; `false` if it was gone.
fn remove(shared: &Shared, extent: &Extent) -> Result<bool, Fault> {
    if is_pack(&extent.file) {
        return shared.bury(extent);
    }
    let removed = shared.folder.remove(&extent.file)?;
    shared.handles.forget(&extent.file);
    Ok(removed)
}

/// How soon after the end of a hold its payloads are removed.
const HELD_POLL: Duration = Duration::from_secs(1);
/// Most unfinished files that wait: 1 MiB of memory.
const UNFINISHED_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_files_beyond_the_bound_are_left_to_the_next_pass() {
        // No thread removes any of them.
        let remover = Remover::default();
        assert!((0..UNFINISHED_MAX).all(|_| remover.remove_unfinished([1; 16])));
        assert!(!remover.remove_unfinished([1; 16]));
        assert_eq!(remover.queue.lock().unfinished.len(), UNFINISHED_MAX);
    }
}
