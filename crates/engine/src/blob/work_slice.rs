//! Turns: work on many blocks or rows lets other tasks run in between.
//!
//! What is read from an engine in memory is there at once, so a long loop over it would never give its thread away. Work is
//! counted in items, not in time (`docs/decisions/0014-work-is-counted.md`).

/// Counts the items of work since other tasks had their turn.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    items: usize,
}

impl Turns {
    /// Counts items that were worked on; tells whether other tasks are to run now.
    pub(crate) fn are_due_after(&mut self, items: usize) -> bool {
        self.items += items;
        let are_due = self.items >= SLICE_ITEMS;
        if are_due {
            self.items = 0;
        }
        are_due
    }

    /// Counts items that were worked on, and lets other tasks run if there were enough.
    pub(crate) async fn after(&mut self, items: usize) {
        if self.are_due_after(items) {
            tokio::task::yield_now().await;
        }
    }
}

/// Items that are worked on in one go: a block that is resolved, a row that is read.
const SLICE_ITEMS: usize = 512;
/// What a piece of a payload counts that is read and written.
pub(crate) const PIECE_ITEMS: usize = 16;
/// Bytes of a row that count as an item: what a block takes in a list.
pub(crate) const ITEM_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[test]
    fn others_run_after_a_slice() {
        let mut turns = Turns::default();
        assert!(turns.after(SLICE_ITEMS - 1).now_or_never().is_some());
        assert!(turns.after(1).now_or_never().is_none(), "a slice is done");
        assert!(turns.after(1).now_or_never().is_some(), "the next one has begun");
    }
}
