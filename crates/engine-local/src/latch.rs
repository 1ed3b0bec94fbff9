//! Latches: one writer at a time reads, decides and enqueues in a partition, without waiting for the disk.
//!
//! A latch guards a stripe of partitions and the writes to them that are enqueued but not yet committed.
//! A later write sees those first, then the published snapshot. It is acknowledged only after them,
//! because the queue keeps their order. Readers do not look here: they see committed rows only.

use std::hash::Hasher;

use parking_lot::{Mutex, MutexGuard};
use rustc_hash::{FxHashMap, FxHasher};

use crate::store::Bytes;

/// The stripes.
pub(crate) struct Latches {
    stripes: Box<[Mutex<Stripe>]>,
}

/// The writes of a stripe that are on their way to disk.
#[derive(Default)]
pub(crate) struct Stripe {
    pending: FxHashMap<Bytes, Pending>,
}

/// A write on its way: what the row will be.
struct Pending {
    ticket: u64,
    value: Option<Bytes>,
}

impl Latches {
    pub(crate) fn new() -> Self {
        Self { stripes: (0..STRIPES).map(|_| Mutex::default()).collect() }
    }

    /// The stripe of a partition, given what its keys begin with.
    pub(crate) fn stripe_of(partition: &[u8]) -> usize {
        let mut hasher = FxHasher::default();
        hasher.write(partition);
        hasher.finish() as usize % STRIPES
    }

    /// Waits for the latch of a stripe.
    pub(crate) fn lock(&self, stripe: usize) -> MutexGuard<'_, Stripe> {
        self.stripes[stripe].lock()
    }

    /// Forgets every write on its way: none of them will arrive.
    pub(crate) fn clear(&self) {
        for stripe in &self.stripes {
            stripe.lock().pending.clear();
        }
    }
}

impl Stripe {
    /// What the row will be, if a write to it is on its way.
    pub(crate) fn pending(&self, key: &[u8]) -> Option<Option<&Bytes>> {
        // Most stripes are empty most of the time.
        if self.pending.is_empty() {
            return None;
        }
        self.pending.get(key).map(|pending| pending.value.as_ref())
    }

    /// Notes a write with its place in the queue.
    pub(crate) fn insert(&mut self, key: Bytes, value: Option<Bytes>, ticket: u64) {
        self.pending.insert(key, Pending { ticket, value });
    }

    /// Forgets a write that has arrived, unless a later one has replaced it.
    pub(crate) fn remove(&mut self, key: &[u8], ticket: u64) {
        if self.pending.get(key).is_some_and(|pending| pending.ticket == ticket) {
            self.pending.remove(key);
        }
    }
}

const STRIPES: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_arrives_leaves_the_later_one_in_place() {
        let latches = Latches::new();
        let mut stripe = latches.lock(0);
        stripe.insert("row".into(), Some("1".into()), 1);
        stripe.insert("row".into(), None, 2);
        stripe.remove(b"row", 1);
        assert_eq!(stripe.pending(b"row"), Some(None));
        stripe.remove(b"row", 2);
        assert_eq!(stripe.pending(b"row"), None);
    }
}
