//! Slices of work: long loops over blocks or rows yield to other tasks.
//!
//! Reads from an engine in memory are ready at once, so a long loop over them would never yield its thread. Work is counted
//! in items, not in time (`docs/decisions/0014-work-is-counted.md`).

/// Counts the items of work since the task last yielded.
#[derive(Debug, Default)]
pub(crate) struct WorkSlice {
    items: usize,
}

impl WorkSlice {
    /// Counts items of work; returns whether the task should yield now.
    pub(crate) fn is_full_after(&mut self, items: usize) -> bool {
        self.items += items;
        let is_full = self.items >= SLICE_ITEMS;
        if is_full {
            self.items = 0;
        }
        is_full
    }

    /// Counts items of work, and yields if the slice is full.
    pub(crate) async fn add(&mut self, items: usize) {
        if self.is_full_after(items) {
            tokio::task::yield_now().await;
        }
    }
}

/// Items of one slice: a block that is resolved, a row that is read.
const SLICE_ITEMS: usize = 512;
/// Items that reading and writing one piece of a payload counts as.
pub(crate) const PIECE_ITEMS: usize = 16;
/// Bytes of a row that count as one item: what a block takes in a list.
pub(crate) const ITEM_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[test]
    fn a_task_yields_after_a_slice() {
        let mut slice = WorkSlice::default();
        assert!(slice.add(SLICE_ITEMS - 1).now_or_never().is_some());
        assert!(slice.add(1).now_or_never().is_none(), "the slice is full");
        assert!(slice.add(1).now_or_never().is_some(), "the next one has begun");
    }
}
