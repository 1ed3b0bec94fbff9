//! Tables: create, query, get, delete.

use crate::call::Call;
use crate::error;
use crate::reply::Reply;
use larimar_engine::table::{self, list_tables};
use larimar_engine::{Engine, EngineError, Reject};
use larimar_model::filter::Row;
use larimar_model::{BodyBuilder, EntityBody, Filter, TableName, Timestamp, ValueRef};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::sas::Need;
use larimar_wire::table::{MetadataLevel, Prefer, QueryOptions, TableWriter, encode_token, parse_table_name};

pub(super) async fn create_table<E: Engine>(
    call: &Call<'_, E>,
    body: &[u8],
    level: MetadataLevel,
    prefer: Option<Prefer>,
) -> Result<Reply, ErrorReply> {
    call.caller.permits(&Need::CREATE_TABLE)?;
    let name = parse_table_name(body)?;
    if name.is_system() {
        return Err(ErrorReply::new(ErrorCode::InvalidResourceName));
    }
    call.throttle(None, 1)?;
    call.check_name(&name)?;
    table::create_table(call.engine(), call.account(), &name).await.map_err(|error| error::engine_error(&error))?;
    let location = format!("{}/Tables('{name}')", call.base);
    let reply = match prefer {
        Some(Prefer::NoContent) => Reply::empty(204).with("dataserviceid", location.as_str()),
        Some(Prefer::Content) | None => {
            let mut json = Vec::with_capacity(256);
            writer(call, level).write_single(&mut json, name.as_str());
            Reply::json(201, level, json)
        }
    };
    Ok(reply.with("location", location))
}

pub(super) async fn get_table<E: Engine>(
    call: &Call<'_, E>,
    name: &TableName,
    level: MetadataLevel,
) -> Result<Reply, ErrorReply> {
    call.caller.permits(&Need::GET_TABLE)?;
    call.throttle(None, 1)?;
    let table = call.table(name).await.map_err(missing_resource)?;
    let mut json = Vec::with_capacity(256);
    writer(call, level).write_single(&mut json, &table.name);
    Ok(Reply::json(200, level, json))
}

pub(super) async fn delete_table<E: Engine>(call: &Call<'_, E>, name: &TableName) -> Result<Reply, ErrorReply> {
    call.caller.permits(&Need::DELETE_TABLE)?;
    call.check_not_system(name)?;
    call.throttle(None, 1)?;
    call.check_name(name)?;
    match table::delete_table(call.engine(), call.account(), name).await {
        Ok(()) => {}
        // Recorded: a missing table is a missing resource here.
        Err(EngineError::Reject(Reject::TableNotFound)) => return Err(ErrorReply::new(ErrorCode::ResourceNotFound)),
        Err(other) => return Err(error::engine_error(&other)),
    }
    call.note_deleted(&name.to_folded());
    Ok(Reply::empty(204))
}

pub(super) async fn query_tables<E: Engine>(
    call: &Call<'_, E>,
    options: &QueryOptions,
    level: MetadataLevel,
) -> Result<Reply, ErrorReply> {
    call.caller.permits(&Need::QUERY_TABLES)?;
    call.throttle(None, 1)?;
    let page = options.top.unwrap_or(call.storage.settings.page_entities_max);
    let mut names: Vec<String> = Vec::new();
    let mut from = options.next_table.clone().unwrap_or_default();
    let mut is_exhausted = page == 0;
    while names.len() < page && !is_exhausted {
        let listed =
            list_tables(call.engine(), call.account(), &from, SLICE_TABLES).await.map_err(|f| error::fault(&f))?;
        is_exhausted = listed.len() < SLICE_TABLES;
        for (folded, table) in listed {
            from = folded + "\0";
            if options.filter.as_ref().is_none_or(|filter| admits(filter, &table.name)) {
                names.push(table.name);
            }
            if names.len() == page {
                break;
            }
        }
    }
    let mut json = Vec::with_capacity(64 + 80 * names.len());
    writer(call, level).write_page(&mut json, names.iter().map(String::as_str));
    let reply = Reply::json(200, level, json);
    // Recorded: a full page is followed by a token even when nothing is left.
    if page > 0 && names.len() == page {
        return Ok(reply.with("x-ms-continuation-nexttablename", encode_token(&from)));
    }
    Ok(reply)
}

/// Whether a filter over `TableName` admits a table.
fn admits(filter: &Filter, name: &str) -> bool {
    let mut body = BodyBuilder::new();
    if body.push("TableName", ValueRef::String(name)).is_err() {
        return false;
    }
    let bytes = body.into_bytes();
    let version = Timestamp::EDM_MIN;
    filter.admits(&Row { partition: "", row: "", version, body: EntityBody::from_trusted(&bytes) })
}

fn missing_resource(error: ErrorReply) -> ErrorReply {
    match error.code {
        ErrorCode::TableNotFound => ErrorReply::new(ErrorCode::ResourceNotFound),
        _ => error,
    }
}

fn writer<'a, E: Engine>(call: &'a Call<'_, E>, level: MetadataLevel) -> TableWriter<'a> {
    TableWriter { base: call.base, account: call.account(), level }
}

/// Tables read from the engine in one go.
const SLICE_TABLES: usize = 256;
