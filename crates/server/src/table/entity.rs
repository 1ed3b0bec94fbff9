//! Writes of one entity: insert, replace, merge, the two upserts, delete.

use super::answer::WriteAnswer;
use crate::call::Call;
use crate::error::{Failure, Result};
use crate::http::Authorized;
use crate::insights::Outcome;
use crate::reply::Reply;
use crate::yielding;
use bytes::Bytes;
use larimar_engine::Engine;
use larimar_engine::table;
use larimar_model::Entity;
use larimar_model::table::Write;
use larimar_wire::error_body::ErrorReply;
use larimar_wire::table::{MetadataLevel, Prefer, WriteEntity, WriteKind, entity_json};
use std::time::Instant;

pub(super) async fn write<E: Engine>(
    call: &Call<'_, E>,
    operation: Authorized<'_, WriteEntity>,
    level: MetadataLevel,
    prefer: Option<Prefer>,
    body: &Bytes,
) -> Result<Reply> {
    let write = match read_write(call, operation, body).await {
        Err(error) if error.status == 400 => {
            // A missing table comes before what is wrong with the entity.
            call.table(&operation.table).await?;
            return Err(error.into());
        }
        read => read?,
    };
    let table = call.table(&operation.table).await?;
    let started = Instant::now();
    call.throttle(Some((table.id, write.key().partition.as_str())), 1)
        .inspect_err(|error| call.observe_write(&table, &write, Some(Outcome::of_status(error.status)), started))?;
    let held = call.hold_answer(WriteAnswer::bytes_max(call, &table, &write, level, prefer))?;
    let version = table::write(call.engine(), table.id, &write, call.now).await.map_err(Failure::from);
    call.observe_write(&table, &write, call.outcome(&version), started);
    Ok(Reply { held, ..WriteAnswer::new(call, &table, &write, version?, level, prefer).into_reply() })
}

/// The write that an operation and its body ask for, if its keys are within the caller's range.
pub(super) async fn read_write<E: Engine>(
    call: &Call<'_, E>,
    operation: Authorized<'_, WriteEntity>,
    body: &Bytes,
) -> std::result::Result<Write, ErrorReply> {
    let write = match operation.kind.clone() {
        WriteKind::Insert => Write::Insert(parse(body, entity_json::parse_new).await?),
        WriteKind::Replace(key, if_match) => {
            Write::Replace(parse(body, |json| entity_json::parse_existing(json, key)).await?, if_match)
        }
        WriteKind::Merge(key, if_match) => {
            Write::Merge(parse(body, |json| entity_json::parse_existing(json, key)).await?, if_match)
        }
        WriteKind::Delete(key, if_match) => Write::Delete(key, if_match),
    };
    call.caller.permits_key(write.key())?;
    Ok(write)
}

/// Reads the JSON of an entity.
async fn parse<P>(body: &Bytes, parse: P) -> std::result::Result<Entity, ErrorReply>
where
    P: FnOnce(&[u8]) -> std::result::Result<Entity, ErrorReply> + Send + 'static,
{
    let json = body.clone();
    yielding::run(body.len(), move || parse(&json)).await
}
