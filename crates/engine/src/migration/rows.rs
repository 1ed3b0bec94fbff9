//! Copies the rows of a table, or of an account's settings, in slices: while one is stored the next is read.

use super::digest::{budget, size};
use super::record::{Log, Record};
use super::{MigrationError, Part};
use crate::contract::{Engine, Flow, KeyRange, OwnedRow, Position, RowRef, SpaceId};
use futures_util::future::{join, join_all};

/// Copies what is left of a part.
pub(super) async fn copy(
    from: &impl Engine,
    log: &Log<'_, impl Engine>,
    source: SpaceId,
    record: &mut Record,
    mut tell: impl FnMut(&Record),
) -> Result<(), MigrationError> {
    let part = record.part.clone();
    let mut slice = read_slice(from, &part, source, record.range()).await?;
    loop {
        for row in &slice.rows {
            record.digest.add(&row.as_ref());
        }
        record.go_on_at(slice.next.clone());
        let store = async {
            store_slice(log.to, &part, record.space, &slice.rows).await?;
            log.put(record).await
        };
        let ahead = async {
            match &slice.next {
                Some(_) => read_slice(from, &part, source, record.range()).await.map(Some),
                None => Ok(None),
            }
        };
        let (stored, ahead) = join(store, ahead).await;
        stored?;
        tell(record);
        match ahead? {
            Some(next) => slice = next,
            None => return Ok(()),
        }
    }
}

/// Whether a space has no row from a place on.
pub(super) async fn is_empty_from(
    engine: &impl Engine,
    part: &Part,
    space: SpaceId,
    start: Position,
) -> Result<bool, MigrationError> {
    let mut is_empty = true;
    let range = KeyRange { start, end: None };
    let scanned = engine.scan(space, &range, budget(), |_| {
        is_empty = false;
        Flow::StopHere
    });
    scanned.await.map_err(|error| part.cannot_read(error))?;
    Ok(is_empty)
}

/// Rows that are read and stored together.
struct Slice {
    rows: Vec<OwnedRow>,
    next: Option<Position>,
}

async fn read_slice(
    engine: &impl Engine,
    part: &Part,
    space: SpaceId,
    range: KeyRange,
) -> Result<Slice, MigrationError> {
    let mut rows: Vec<OwnedRow> = Vec::new();
    let mut bytes = 0;
    let next = engine.scan(space, &range, budget(), |row| {
        bytes += size(&row);
        // One row at least, however large.
        if !rows.is_empty() && (bytes > SLICE_BYTES_MAX || rows.len() == SLICE_ROWS_MAX) {
            return Flow::StopHere;
        }
        rows.push(OwnedRow::of(&row));
        Flow::Continue
    });
    let next = next.await.map_err(|error| part.cannot_read(error))?;
    Ok(Slice { rows, next })
}

/// Stores a slice in batches, all at the same time.
async fn store_slice(to: &impl Engine, part: &Part, space: SpaceId, rows: &[OwnedRow]) -> Result<(), MigrationError> {
    let rows: Vec<RowRef<'_>> = rows.iter().map(OwnedRow::as_ref).collect();
    let stored = join_all(batches(&rows).into_iter().map(|batch| to.restore(space, batch))).await;
    stored.into_iter().collect::<Result<(), _>>().map_err(|error| part.cannot_write(error))
}

/// Rows in batches that an engine takes in one go.
fn batches<'a, 'b>(mut rows: &'b [RowRef<'a>]) -> Vec<&'b [RowRef<'a>]> {
    let mut batches = Vec::new();
    while !rows.is_empty() {
        let mut bytes = 0;
        let fits = |row: &&RowRef<'_>| {
            bytes += size(row);
            bytes <= BATCH_BYTES_MAX
        };
        let count = rows.iter().take(BATCH_ROWS_MAX).take_while(fits).count().max(1);
        let (batch, rest) = rows.split_at(count);
        batches.push(batch);
        rows = rest;
    }
    batches
}

const BATCH_ROWS_MAX: usize = 1000;
const BATCH_BYTES_MAX: u64 = 4 << 20;
/// A slice is a few batches; two slices are in memory at a time.
const SLICE_ROWS_MAX: usize = 4 * BATCH_ROWS_MAX;
const SLICE_BYTES_MAX: u64 = 2 * BATCH_BYTES_MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use larimar_model::Timestamp;

    #[test]
    fn batches_are_bounded_in_rows_and_bytes() {
        let body = vec![0; 1 << 20];
        let large = |row| RowRef { partition: "", row, version: Timestamp::from_ticks(1), body: &body };
        let small = |row| RowRef { partition: "", row, version: Timestamp::from_ticks(1), body: &[] };
        let lengths = |rows: &[RowRef<'_>]| batches(rows).iter().map(|batch| batch.len()).collect::<Vec<_>>();
        assert_eq!(lengths(&[]), Vec::<usize>::new());
        assert_eq!(lengths(&[large("r"); 7]), [3, 3, 1]);
        assert_eq!(lengths(&[small("r"); 2_500]), [1000, 1000, 500]);
    }
}
