//! The average size of rows recently read from each table, so that a statement asks for about as many as it may return.
//!
//! The statement itself bounds the bytes (`page_statement.rs`); this only keeps the database from reading many rows
//! that it does not send.

use larimar_engine::SpaceId;
use std::sync::atomic::{AtomicU64, Ordering};

/// The average bytes of a row, for the tables that were read last.
#[derive(Debug)]
pub(crate) struct RowSizes(Vec<AtomicU64>);

impl Default for RowSizes {
    fn default() -> Self {
        Self((0..TABLES).map(|_| AtomicU64::new(0)).collect())
    }
}

impl RowSizes {
    /// How many rows of a table have about `bytes` together.
    pub(crate) fn rows(&self, space: SpaceId, bytes: u64) -> u64 {
        bytes / self.size(space).unwrap_or(SIZE_UNKNOWN)
    }

    /// Learns from rows of a table that were read.
    pub(crate) fn learn(&self, space: SpaceId, rows: u64, bytes: u64) {
        let Some(size) = bytes.checked_div(rows) else { return };
        let last = self.size(space).unwrap_or(size);
        // A larger size is taken at once, a smaller one gradually.
        let size = size.max(last - last / 4).clamp(SIZE_MIN, u64::from(u32::MAX));
        self.slot(space).store(tag(space) << 32 | size, Ordering::Relaxed);
    }

    fn size(&self, space: SpaceId) -> Option<u64> {
        let found = self.slot(space).load(Ordering::Relaxed);
        (found != 0 && found >> 32 == tag(space)).then_some(found & u64::from(u32::MAX))
    }

    /// Tables share slots; a slot belongs to the table that was read last.
    fn slot(&self, space: SpaceId) -> &AtomicU64 {
        &self.0[(space.0 % TABLES) as usize]
    }
}

const fn tag(space: SpaceId) -> u64 {
    space.0 & u32::MAX as u64
}

const TABLES: u64 = 1024;
const SIZE_UNKNOWN: u64 = 1024;
const SIZE_MIN: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 1 << 20;

    #[test]
    fn each_table_has_a_size_of_its_own() {
        let sizes = RowSizes::default();
        assert_eq!(sizes.rows(SpaceId(1), BYTES), 1024);
        sizes.learn(SpaceId(1), 10, 10 << 20);
        sizes.learn(SpaceId(2), 1000, 100_000);
        assert_eq!(sizes.rows(SpaceId(1), BYTES), 1);
        assert_eq!(sizes.rows(SpaceId(2), BYTES), BYTES / 100);
        assert_eq!(sizes.rows(SpaceId(3), BYTES), 1024);
    }

    #[test]
    fn the_size_falls_gradually_when_rows_get_smaller() {
        let sizes = RowSizes::default();
        sizes.learn(SpaceId(1), 10, 10 << 20);
        for _ in 0..100 {
            sizes.learn(SpaceId(1), 1000, 100_000);
        }
        assert_eq!(sizes.rows(SpaceId(1), BYTES), BYTES / 100);
        sizes.learn(SpaceId(1), 0, 0);
        assert_eq!(sizes.rows(SpaceId(1), BYTES), BYTES / 100);
    }

    #[test]
    fn tables_that_share_a_slot_do_not_share_a_size() {
        let sizes = RowSizes::default();
        sizes.learn(SpaceId(1), 1, 1 << 20);
        assert_eq!(sizes.rows(SpaceId(1 + TABLES), BYTES), 1024);
        sizes.learn(SpaceId(1 + TABLES), 1, 100);
        assert_eq!(sizes.rows(SpaceId(1), BYTES), 1024);
    }
}
