//! Removes metrics that are older than their retention period, a bounded number at a time.

use larimar_engine::table::find_table;
use larimar_engine::{
    Act, Budget, Engine, EngineError, Expect, Flow, KeyRange, Op, Position, Reject, SpaceId, WriteError,
};
use larimar_model::{TableName, Timestamp};
use std::time::{Duration, Instant};

/// Removes rows of a table of metrics before a partition, some at a time. Returns whether there may be more.
pub(super) async fn clear_metrics(
    engine: &impl Engine,
    account: &str,
    table: &TableName,
    before: &str,
    now: Timestamp,
) -> Result<bool, EngineError> {
    let table = match find_table(engine, account, table).await {
        Err(EngineError::Reject(Reject::TableNotFound)) => return Ok(false),
        found => found?.id,
    };
    let range = KeyRange { start: Position::new("", ""), end: Some(Position::new(before, "")) };
    let budget = Budget { rows_max: SLICE_ROWS, deadline: Instant::now() + SLICE_TIME };
    let mut rows: Vec<Position> = Vec::new();
    let rest = engine.scan(table, &range, budget, |row| {
        rows.push(Position::new(row.partition, row.row));
        Flow::Continue
    });
    let rest = rest.await?;
    for partition in rows.chunk_by(|a, b| a.partition == b.partition) {
        remove(engine, table, partition, now).await?;
    }
    Ok(rest.is_some())
}

/// Removes rows of one partition.
async fn remove(engine: &impl Engine, table: SpaceId, rows: &[Position], now: Timestamp) -> Result<(), EngineError> {
    let ops: Vec<Op<'_>> = rows.iter().map(|row| Op { row: &row.row, expect: Expect::Any, act: Act::Delete }).collect();
    match engine.apply(table, &rows[0].partition, &ops, now).await {
        // What is gone already needs no deletion.
        Ok(_) | Err(WriteError::Condition { .. } | WriteError::Refused { .. } | WriteError::SpaceGone) => Ok(()),
        Err(WriteError::Fault(fault)) => Err(fault.into()),
    }
}

const SLICE_ROWS: usize = 500;
const SLICE_TIME: Duration = Duration::from_secs(1);
