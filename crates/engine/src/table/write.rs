//! Writes entities: one, or several of one partition as a transaction. The rules are in `decide.rs`.

use super::decide::{expectation, merged, refusal};
use crate::contract::{Act, Edit, Engine, Op, SpaceId};
use crate::error::{EngineError, Reject, WriteError};
use larimar_model::Timestamp;
use larimar_model::table::{Transaction, Write};

/// Applies one write. Returns the entity's new version.
///
/// # Errors
/// `Reject` for what the caller can change, `Fault` for what the operator can.
pub async fn write(
    engine: &impl Engine,
    table: SpaceId,
    write: &Write,
    now: Timestamp,
) -> Result<Timestamp, EngineError> {
    match apply(engine, table, std::slice::from_ref(write), now).await {
        Ok(versions) => Ok(versions[0]),
        Err(EngineError::RejectAt { reject, .. }) => Err(EngineError::Reject(reject)),
        Err(other) => Err(other),
    }
}

/// Applies a transaction, all or nothing. Returns the new versions of its entities.
///
/// # Errors
/// A refusal names the first operation that failed.
pub async fn transact(
    engine: &impl Engine,
    table: SpaceId,
    transaction: &Transaction,
    now: Timestamp,
) -> Result<Vec<Timestamp>, EngineError> {
    apply(engine, table, transaction.writes(), now).await
}

/// Applies writes of distinct entities of one partition.
async fn apply(
    engine: &impl Engine,
    table: SpaceId,
    writes: &[Write],
    now: Timestamp,
) -> Result<Vec<Timestamp>, EngineError> {
    let partition = writes[0].key().partition.as_str();
    let edits: Vec<Option<Box<Edit<'_>>>> = writes.iter().map(edit).collect();
    let ops: Vec<Op<'_>> = writes
        .iter()
        .zip(&edits)
        .map(|(write, edit)| Op { row: write.key().row.as_str(), expect: expectation(write), act: act(write, edit) })
        .collect();
    engine.apply(table, partition, &ops, now).await.map_err(|error| match error {
        WriteError::Condition { op, found } => EngineError::RejectAt { op, reject: refusal(found, ops[op].expect) },
        WriteError::Refused { op, reason } => EngineError::RejectAt { op, reject: reason },
        WriteError::SpaceGone => EngineError::Reject(Reject::TableNotFound),
        WriteError::Fault(fault) => EngineError::Fault(fault),
    })
}

/// What needs the row that is there: only a merge.
fn edit(write: &Write) -> Option<Box<Edit<'_>>> {
    match write {
        Write::Merge(changes, _) => Some(Box::new(|current| merged(current, changes))),
        Write::Insert(_) | Write::Replace(..) | Write::Delete(..) => None,
    }
}

fn act<'a>(write: &'a Write, edit: &'a Option<Box<Edit<'_>>>) -> Act<'a> {
    match (write, edit) {
        (_, Some(edit)) => Act::Edit(edit.as_ref()),
        (Write::Delete(..), None) => Act::Delete,
        (Write::Insert(entity) | Write::Replace(entity, _) | Write::Merge(entity, _), None) => {
            Act::Put(entity.body().as_bytes())
        }
    }
}
