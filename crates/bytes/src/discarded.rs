//! How many discarded payloads wait for removal: both kinds of store have the same bound.

use larimar_engine::blob::bytes::Extent;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of discarded payloads that wait for removal.
#[derive(Debug)]
pub(crate) struct DiscardedCount {
    waiting: AtomicU64,
    bytes: AtomicU64,
    waiting_max: u64,
}

impl Default for DiscardedCount {
    fn default() -> Self {
        Self { waiting: AtomicU64::new(0), bytes: AtomicU64::new(0), waiting_max: DISCARDED_MAX }
    }
}

impl DiscardedCount {
    /// Counts payloads, and returns those that there is room for. The next `reclaim` finds the others.
    pub(crate) fn add(&self, mut extents: Vec<Extent>) -> Vec<Extent> {
        let count = extents.len() as u64;
        let room = self.waiting_max.saturating_sub(self.waiting.fetch_add(count, Ordering::Relaxed));
        if room < count {
            self.waiting.fetch_sub(count - room, Ordering::Relaxed);
            extents.truncate(room as usize);
            extents.shrink_to_fit();
        }
        self.bytes.fetch_add(bytes_of(&extents), Ordering::Relaxed);
        extents
    }

    /// Notes that payloads do not wait any more.
    pub(crate) fn remove(&self, extents: &[Extent]) {
        self.waiting.fetch_sub(extents.len() as u64, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes_of(extents), Ordering::Relaxed);
    }

    /// Payloads that wait.
    pub(crate) fn get(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Their bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

fn bytes_of(extents: &[Extent]) -> u64 {
    extents.iter().map(|extent| extent.length).sum()
}

/// Most discarded payloads that wait for removal: 32 MiB of memory.
const DISCARDED_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_beyond_the_bound_are_not_held() {
        let payloads = |count: u64| -> Vec<Extent> {
            (0..count).map(|offset| Extent { file: [1; 16], offset, length: 1 }).collect()
        };
        let discarded = DiscardedCount { waiting_max: 10, ..DiscardedCount::default() };
        assert_eq!(discarded.add(payloads(7)).len(), 7);
        let held = discarded.add(payloads(1000));
        assert_eq!((held.len(), held.capacity(), discarded.get()), (3, 3, 10));
        assert!(discarded.add(payloads(1)).is_empty());
        assert_eq!(discarded.bytes(), 10);
        discarded.remove(&payloads(10));
        assert_eq!((discarded.get(), discarded.bytes()), (0, 0));
        assert_eq!(discarded.add(payloads(1000)).len(), 10);
        assert_eq!(size_of::<Extent>() as u64 * DISCARDED_MAX, 32 << 20);
    }
}
