//! Writes of one entity: insert, replace, merge, the two upserts, delete.

use super::answer::WriteAnswer;
use crate::call::Call;
use crate::error;
use crate::reply::Reply;
use crate::turns;
use bytes::Bytes;
use larimar_engine::Engine;
use larimar_engine::table::{self, Write};
use larimar_model::{Entity, TableName};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::sas::Need;
use larimar_wire::table::{MetadataLevel, Prefer, TableOperation, entity_json};

pub(super) async fn write<E: Engine>(
    call: &Call<'_, E>,
    operation: TableOperation,
    level: MetadataLevel,
    prefer: Option<Prefer>,
    body: &Bytes,
) -> Result<Reply, ErrorReply> {
    let name = operation.table().cloned();
    let (name, write) = match (read_write(call, operation, body).await, name) {
        (Err(error), Some(name)) if error.status == 400 => {
            // A missing table comes before what is wrong with the entity.
            call.table(&name).await?;
            return Err(error);
        }
        (read, _) => read?,
    };
    let table = call.table(&name).await?;
    call.throttle(Some((table.id, write.key().partition.as_str())), 1)?;
    let held = call.hold_answer(WriteAnswer::bytes_max(call, &table, &write, level, prefer))?;
    let version = table::write(call.engine(), table.id, &write, call.now).await;
    let version = version.map_err(|error| error::engine_error(&error))?;
    Ok(Reply { held, ..WriteAnswer::new(call, &table, &write, version, level, prefer).into_reply() })
}

/// The write that an operation and its body ask for, if the caller may do it.
pub(super) async fn read_write<E: Engine>(
    call: &Call<'_, E>,
    operation: TableOperation,
    body: &Bytes,
) -> Result<(TableName, Write), ErrorReply> {
    permit(call, &operation)?;
    let (name, write) = match operation {
        TableOperation::InsertEntity(name) => (name, Write::Insert(parse(body, entity_json::parse_new).await?)),
        TableOperation::ReplaceEntity(name, key, if_match) => {
            (name, Write::Replace(parse(body, |json| entity_json::parse_existing(json, key)).await?, if_match))
        }
        TableOperation::MergeEntity(name, key, if_match) => {
            (name, Write::Merge(parse(body, |json| entity_json::parse_existing(json, key)).await?, if_match))
        }
        TableOperation::DeleteEntity(name, key, if_match) => (name, Write::Delete(key, if_match)),
        _ => return Err(ErrorReply::new(ErrorCode::InvalidInput)),
    };
    call.caller.permits_key(write.key())?;
    Ok((name, write))
}

/// Reads the JSON of an entity.
async fn parse<P>(body: &Bytes, parse: P) -> Result<Entity, ErrorReply>
where
    P: FnOnce(&[u8]) -> Result<Entity, ErrorReply> + Send + 'static,
{
    let json = body.clone();
    turns::run(body.len(), move || parse(&json)).await
}

fn permit<E: Engine>(call: &Call<'_, E>, operation: &TableOperation) -> Result<(), ErrorReply> {
    let (name, need) = match operation {
        TableOperation::InsertEntity(name) => (name, Need::insert(name.as_str())),
        TableOperation::ReplaceEntity(name, _, None) | TableOperation::MergeEntity(name, _, None) => {
            (name, Need::upsert(name.as_str()))
        }
        TableOperation::ReplaceEntity(name, ..) | TableOperation::MergeEntity(name, ..) => {
            (name, Need::update(name.as_str()))
        }
        TableOperation::DeleteEntity(name, ..) => (name, Need::delete(name.as_str())),
        _ => return Err(ErrorReply::new(ErrorCode::InvalidInput)),
    };
    call.caller.permits(&need)?;
    // What analytics have written may be removed, but not rewritten.
    if matches!(operation, TableOperation::DeleteEntity(..)) { Ok(()) } else { call.check_not_system(name) }
}
