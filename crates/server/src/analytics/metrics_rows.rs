//! Rows of the `$Metrics…` tables: sums are added to what is there, so that the rows of several servers add up.

use larimar_engine::table::{Table, create_table, find_table};
use larimar_engine::{Act, Edit, Engine, EngineError, Expect, Op, Reject, WriteError};
use larimar_model::{EntityBody, TableName, Timestamp};
use larimar_wire::analytics::{METRICS_ALL, Totals, metrics_row};
use std::collections::BTreeMap;

/// Sums of one period by operation.
pub(super) type ByOperation = BTreeMap<&'static str, Totals>;

/// Adds sums to the rows of a period: one for all operations, and one for each if that is wished for. All or nothing.
pub(super) async fn add(
    engine: &impl Engine,
    account: &str,
    table: &TableName,
    partition: &str,
    sums: &ByOperation,
    includes_operations: bool,
    now: Timestamp,
) -> Result<(), EngineError> {
    let mut all = Totals::default();
    sums.values().for_each(|sum| all.add(sum));
    let operations = sums.iter().filter(|_| includes_operations).map(|(operation, sum)| (*operation, sum));
    let rows: Vec<(String, &Totals)> = std::iter::once((METRICS_ALL, &all))
        .chain(operations)
        .map(|(operation, sum)| (metrics_row(operation), sum))
        .collect();
    let edits: Vec<Box<Edit<'_>>> = rows.iter().map(|(_, sum)| adding(sum)).collect();
    let ops: Vec<Op<'_>> = rows
        .iter()
        .zip(&edits)
        .map(|((row, _), edit)| Op { row, expect: Expect::Any, act: Act::Edit(edit.as_ref()) })
        .collect();
    // The lookup of a shared engine may be a moment old.
    for _ in 0..2 {
        let table = find_or_create(engine, account, table).await?;
        match engine.apply(table.id, partition, &ops, now).await {
            Ok(_) => return Ok(()),
            Err(WriteError::SpaceGone) => {}
            Err(WriteError::Fault(fault)) => return Err(fault.into()),
            Err(WriteError::Condition { .. }) => return Err(Reject::ConditionNotMet.into()),
            Err(WriteError::Refused { reason, .. }) => return Err(reason.into()),
        }
    }
    Err(Reject::TableNotFound.into())
}

fn adding(sum: &Totals) -> Box<Edit<'_>> {
    Box::new(move |current| {
        let mut totals = current.map(EntityBody::from_trusted).map(Totals::from_body).unwrap_or_default();
        totals.add(sum);
        Ok(totals.to_body())
    })
}

async fn find_or_create(engine: &impl Engine, account: &str, name: &TableName) -> Result<Table, EngineError> {
    match find_table(engine, account, name).await {
        Err(EngineError::Reject(Reject::TableNotFound)) => {}
        found => return found,
    }
    match create_table(engine, account, name).await {
        // Another server was faster.
        Ok(_) | Err(EngineError::Reject(Reject::TableExists)) => find_table(engine, account, name).await,
        Err(other) => Err(other),
    }
}
