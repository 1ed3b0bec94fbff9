//! Which rows are done: groups of them end in any order, and the place up to which all are done moves on.

use crate::format::Position;
use larimar_client::DynamicEntity;
use std::collections::VecDeque;

/// A row that is under way.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) line: u64,
    /// The place after it.
    pub(super) end: Position,
    /// None when it is done.
    pub(super) entity: Option<DynamicEntity>,
    is_written: bool,
}

/// The rows under way, in the order of the file. Operations are numbered from 0 in that order.
#[derive(Debug, Default)]
pub(super) struct Tracker {
    rows: VecDeque<Row>,
    /// The number of the first of them.
    first: usize,
    /// The place up to which all rows are done.
    done: Option<Position>,
    /// How many of the rows before it were written.
    written: u64,
}

impl Tracker {
    pub(super) fn push(&mut self, line: u64, end: Position, entity: DynamicEntity) {
        self.rows.push_back(Row { line, end, entity: Some(entity), is_written: false });
    }

    pub(super) fn row(&self, operation: usize) -> Option<&Row> {
        self.rows.get(operation.checked_sub(self.first)?)
    }

    /// Marks a row as done, because it was written or refused.
    pub(super) fn finish(&mut self, operation: usize, is_written: bool) {
        let at = operation.checked_sub(self.first).expect("a row is finished once");
        (self.rows[at].entity, self.rows[at].is_written) = (None, is_written);
        while let Some(row) = self.rows.front().filter(|row| row.entity.is_none()) {
            self.done = Some(row.end);
            self.written += u64::from(row.is_written);
            self.first += 1;
            self.rows.pop_front();
        }
    }

    pub(super) const fn done(&self) -> Option<Position> {
        self.done
    }

    pub(super) const fn written(&self) -> u64 {
        self.written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_moves_when_all_before_it_are_done() {
        let mut tracker = Tracker::default();
        for row in 1..=4 {
            tracker.push(row, Position { offset: row, line: row, rows: row }, DynamicEntity::new("p", row.to_string()));
        }
        let offset = |tracker: &Tracker| tracker.done().map(|place| place.offset);
        tracker.finish(1, true);
        tracker.finish(3, false);
        assert_eq!(offset(&tracker), None);
        tracker.finish(0, true);
        assert_eq!(offset(&tracker), Some(2));
        assert_eq!(tracker.row(2).map(|row| row.line), Some(3));
        tracker.finish(2, true);
        assert_eq!((offset(&tracker), tracker.written()), (Some(4), 3));
        assert!(tracker.row(0).is_none());
    }
}
