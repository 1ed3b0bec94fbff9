//! The Table service: what it makes of a request, and its handlers, one file for each kind of operation.

mod acl;
mod answer;
mod batch;
mod entity;
mod query;
mod tables;

use crate::address::Address;
use crate::body::{RequestBody, SETTINGS_BODY_BYTES_MAX};
use crate::call::Call;
use crate::error;
use crate::handler::{Handler, Peer};
use crate::head::Head;
use crate::http::{self, Protocol, Seen};
use crate::properties;
use crate::reply::{Reply, ResponseBody};
use crate::storage::Storage;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::{Request, Response};
use larimar_engine::Engine;
use larimar_engine::table::{Table, find_table, read_table};
use larimar_model::{TableName, Timestamp};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::sas::Service;
use larimar_wire::table::{MetadataLevel, Prefer, TableOperation, TableRequest};
use std::sync::Arc;

/// Answers requests of the Table protocol.
#[derive(Debug)]
pub struct TableService<E> {
    storage: Arc<Storage<E>>,
}

impl<E: Engine> TableService<E> {
    /// The tables of these accounts.
    #[must_use]
    pub const fn new(storage: Arc<Storage<E>>) -> Self {
        Self { storage }
    }
}

impl<E: Engine> Handler for TableService<E> {
    const KEEPS_SPELLING: bool = false;

    async fn handle(&self, request: Request<Incoming>, peer: Peer) -> Response<ResponseBody> {
        http::serve(self, request, peer).await
    }
}

impl<E: Engine> Protocol for TableService<E> {
    type Engine = E;
    const SERVICE: Service = Service::Table;
    const SERVER: &'static str = "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0";
    const PREFLIGHT: &'static str = "TablePreflightRequest";

    fn storage(&self) -> &Storage<E> {
        &self.storage
    }

    async fn run(&self, call: &Call<'_, E>, body: &mut RequestBody, seen: &mut Seen) -> Result<Reply, ErrorReply> {
        let (head, path) = (call.head, call.address.path);
        let request = TableRequest::parse(call.account(), head.method, path, head.query, &head.table_headers())?;
        seen.operation = request.operation.name();
        seen.is_xml = is_xml(&request.operation);
        if matches!(request.operation, TableOperation::InsertEntity(_) | TableOperation::CreateTable) {
            seen.preference = request.prefer.map(Prefer::name);
        }
        check_endpoint(&request.operation, call.address.is_secondary)?;
        let bytes_max = self.storage.settings.body_bytes_max;
        let body = body.read(if seen.is_xml { bytes_max.min(SETTINGS_BODY_BYTES_MAX) } else { bytes_max }).await?;
        // The lookup of a shared engine may be a moment old: its table was dropped and made anew by another server, or
        // will be found gone by a second one.
        let again = E::IS_SHARED.then(|| request.clone());
        let is_read = is_read(&request.operation);
        let result = match (run(call, request, &body).await, again) {
            (Err(error), Some(request)) if error.code == ErrorCode::TableNotFound => {
                Box::pin(run(call, request, &body)).await
            }
            (result, _) => result,
        };
        // A batch knows for itself what it was.
        result.map(|reply| Reply { is_read: is_read || reply.is_read, ..reply })
    }

    fn error_reply(error: &ErrorReply, head: &Head<'_>, seen: &Seen, request_id: &str, now: Timestamp) -> Reply {
        let mut body = Vec::with_capacity(512);
        let wants_json = head.accept.is_some_and(|accept| accept.contains("json"));
        let is_plain = head.accept.is_none_or(|accept| accept.contains("*/*"));
        if wants_json || is_plain && !seen.is_xml {
            error.write_json(&mut body, request_id, now);
            Reply::json(error.status, MetadataLevel::Minimal, body)
        } else {
            error.write_xml(&mut body, request_id, now);
            Reply::xml(error.status, body)
        }
    }

    fn operation(address: &Address<'_>, head: &Head<'_>) -> Option<&'static str> {
        let (account, headers) = (address.account, head.table_headers());
        let request = TableRequest::parse(account, head.method, address.path, head.query, &headers);
        request.ok().map(|request| request.operation.name())
    }

    fn decorate(reply: &mut Reply, seen: &Seen) {
        if let Some(preference) = seen.preference {
            reply.headers.insert("preference-applied", HeaderValue::from_static(preference));
        }
        // Recorded: what speaks XML has neither.
        if !seen.is_xml {
            reply.headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            reply.headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        }
    }
}

impl<E: Engine> Call<'_, E> {
    /// Finds a table of the account.
    async fn table(&self, name: &TableName) -> Result<Table, ErrorReply> {
        let current = name.to_current();
        find_table(self.engine(), self.account(), current.as_ref().unwrap_or(name))
            .await
            .map_err(|error| error::engine_error(&error))
    }

    /// Reads a table's name and list as they are now.
    async fn table_settings(&self, name: &TableName) -> Result<Table, ErrorReply> {
        let current = name.to_current();
        read_table(self.engine(), self.account(), current.as_ref().unwrap_or(name))
            .await
            .map_err(|error| error::engine_error(&error))
    }

    /// Refuses what only the service itself does to tables of storage analytics.
    fn check_not_system(&self, name: &TableName) -> Result<(), ErrorReply> {
        if name.is_system() { Err(ErrorReply::new(ErrorCode::AuthorizationFailure)) } else { Ok(()) }
    }
}

const fn is_xml(operation: &TableOperation) -> bool {
    matches!(
        operation,
        TableOperation::GetTableAcl(_)
            | TableOperation::SetTableAcl(_)
            | TableOperation::GetServiceProperties
            | TableOperation::SetServiceProperties
            | TableOperation::GetServiceStats
            | TableOperation::GetSchema
    )
}

/// The secondary is there to be read, and the only one that tells its stats.
fn check_endpoint(operation: &TableOperation, is_secondary: bool) -> Result<(), ErrorReply> {
    match operation {
        TableOperation::GetServiceStats if !is_secondary => Err(ErrorReply::new(ErrorCode::InvalidQueryParameterValue)),
        // A batch may be a query; what it is stands in its body.
        TableOperation::Batch | TableOperation::Refused(..) => Ok(()),
        _ if is_secondary && !is_read(operation) => Err(ErrorReply::new(ErrorCode::InsufficientAccountPermissions)),
        _ => Ok(()),
    }
}

/// Whether an operation changes nothing.
const fn is_read(operation: &TableOperation) -> bool {
    matches!(
        operation,
        TableOperation::QueryTables(_)
            | TableOperation::GetTable(_)
            | TableOperation::GetTableAcl(_)
            | TableOperation::QueryEntities(..)
            | TableOperation::GetEntity(..)
            | TableOperation::GetServiceProperties
            | TableOperation::GetServiceStats
            | TableOperation::GetSchema
    )
}

/// Runs an operation. The state of a request is moved about by value before it runs, so only the small and
/// frequent operations keep theirs inline; the others are boxed.
async fn run<E: Engine>(call: &Call<'_, E>, request: TableRequest, body: &Bytes) -> Result<Reply, ErrorReply> {
    let TableRequest { operation, level, prefer } = request;
    match operation {
        TableOperation::GetEntity(name, key, select) => query::get_entity(call, &name, &key, &select, level).await,
        TableOperation::InsertEntity(_)
        | TableOperation::ReplaceEntity(..)
        | TableOperation::MergeEntity(..)
        | TableOperation::DeleteEntity(..) => entity::write(call, operation, level, prefer, body).await,
        TableOperation::QueryEntities(name, options) => {
            Box::pin(query::query_entities(call, &name, options, level)).await
        }
        TableOperation::Refused(name, error) => {
            Box::pin(call.table(&name)).await?;
            Err(error)
        }
        TableOperation::GetSchema => tables::get_schema(call),
        TableOperation::Batch => Box::pin(batch::run(call, call.head.content_type.unwrap_or(""), body)).await,
        TableOperation::QueryTables(options) => Box::pin(tables::query_tables(call, &options, level)).await,
        TableOperation::GetTable(name) => Box::pin(tables::get_table(call, &name, level)).await,
        TableOperation::CreateTable => Box::pin(tables::create_table(call, body, level, prefer)).await,
        TableOperation::DeleteTable(name) => Box::pin(tables::delete_table(call, &name)).await,
        TableOperation::GetTableAcl(name) => Box::pin(acl::get_acl(call, &name)).await,
        TableOperation::SetTableAcl(name) => Box::pin(acl::set_acl(call, &name, body)).await,
        TableOperation::GetServiceProperties => Box::pin(properties::get(call)).await,
        TableOperation::SetServiceProperties => Box::pin(properties::set(call, body)).await,
        TableOperation::GetServiceStats => properties::stats(call),
    }
}
