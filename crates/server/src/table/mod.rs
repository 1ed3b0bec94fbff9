//! The Table service: what it makes of a request, and its handlers, one file for each kind of operation.

mod acl;
mod answer;
mod batch;
mod entity;
mod explain;
mod observe;
mod query;
mod slow;
mod tables;

use crate::address::Address;
use crate::body::RequestBody;
use crate::call::Call;
use crate::error::Result;
use crate::handler::{Handler, Peer};
use crate::http::{self, Authorized, Protocol, RequestTrace};
use crate::properties;
use crate::reply::{Reply, ResponseBody};
use crate::storage::Storage;
use bytes::Bytes;
use explain::Explain;
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::{Request, Response};
use larimar_engine::Engine;
use larimar_engine::table::{Table, find_table, read_table};
use larimar_model::{TableName, Timestamp};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::request_head::RequestHead;
use larimar_wire::sas::Service;
use larimar_wire::table::{MetadataLevel, Prefer, TableOperation, TableRequest, WriteEntity, WriteKind};
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
    type Request = TableRequest;
    const SERVICE: Service = Service::Table;
    const SERVER: &'static str = "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0";
    const PREFLIGHT: &'static str = "TablePreflightRequest";

    fn storage(&self) -> &Storage<E> {
        &self.storage
    }

    fn parse(head: &RequestHead<'_>, address: &Address<'_>) -> std::result::Result<TableRequest, ErrorReply> {
        TableRequest::parse(head, address.account, address.path)
    }

    async fn run(
        &self,
        call: &Call<'_, E>,
        request: Authorized<'_, TableRequest>,
        body: &mut RequestBody,
    ) -> Result<Reply> {
        run(call, request, &body.whole()).await
    }

    fn error_reply(
        error: &ErrorReply,
        head: &RequestHead<'_>,
        trace: &RequestTrace,
        request_id: &str,
        now: Timestamp,
    ) -> Reply {
        let mut body = Vec::with_capacity(512);
        let accept = head.raw_header("accept");
        let wants_json = accept.is_some_and(|accept| accept.contains("json"));
        let is_plain = accept.is_none_or(|accept| accept.contains("*/*"));
        if wants_json || is_plain && !trace.is_xml {
            error.write_json(&mut body, request_id, now);
            Reply::json(error.status, MetadataLevel::Minimal, body)
        } else {
            error.write_xml(&mut body, request_id, now);
            Reply::xml(error.status, body)
        }
    }

    fn preference(request: &TableRequest) -> Option<&'static str> {
        match &request.operation {
            TableOperation::CreateTable | TableOperation::Write(WriteEntity { kind: WriteKind::Insert, .. }) => {
                request.prefer.map(Prefer::name)
            }
            _ => None,
        }
    }

    fn decorate(reply: &mut Reply, trace: &RequestTrace) {
        if let Some(preference) = trace.preference {
            reply.headers.insert("preference-applied", HeaderValue::from_static(preference));
        }
        // Recorded: what speaks XML has neither.
        if !trace.is_xml {
            reply.headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            reply.headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        }
    }
}

impl<E: Engine> Call<'_, E> {
    /// Finds a table of the account.
    async fn table(&self, name: &TableName) -> Result<Table> {
        let current = name.to_current();
        let found = find_table(self.engine(), self.account(), current.as_ref().unwrap_or(name)).await?;
        Ok(self.lookups.found(found))
    }

    /// Reads a table's name and list as they are now.
    async fn table_settings(&self, name: &TableName) -> Result<Table> {
        let current = name.to_current();
        Ok(read_table(self.engine(), self.account(), current.as_ref().unwrap_or(name)).await?)
    }
}

/// Runs an operation. The state of a request is moved about by value before it runs, so only the small and
/// frequent operations keep theirs inline; the others are boxed.
async fn run<E: Engine>(call: &Call<'_, E>, request: Authorized<'_, TableRequest>, body: &Bytes) -> Result<Reply> {
    let TableRequest { operation, level, prefer } = request.operation();
    let (level, prefer) = (*level, *prefer);
    match operation {
        TableOperation::GetEntity(get) => query::get_entity(call, request.part(get), level, Explain::of(call)?).await,
        TableOperation::Write(write) => entity::write(call, request.part(write), level, prefer, body).await,
        TableOperation::QueryEntities(query) => {
            Box::pin(query::query_entities(call, request.part(query), level, Explain::of(call)?)).await
        }
        TableOperation::Refused(name, error) => {
            Box::pin(call.table(name)).await?;
            Err(error.clone().into())
        }
        TableOperation::GetSchema => Ok(tables::get_schema(call)),
        TableOperation::Batch => Box::pin(batch::run(call, body)).await,
        TableOperation::QueryTables(options) => Box::pin(tables::query_tables(call, options, level)).await,
        TableOperation::GetTable(name) => Box::pin(tables::get_table(call, name, level)).await,
        TableOperation::CreateTable => Box::pin(tables::create_table(call, body, level, prefer)).await,
        TableOperation::DeleteTable(name) => Box::pin(tables::delete_table(call, name)).await,
        TableOperation::GetTableAcl(name) => Box::pin(acl::get_acl(call, name)).await,
        TableOperation::SetTableAcl(name) => Box::pin(acl::set_acl(call, name, body)).await,
        TableOperation::GetServiceProperties => Box::pin(properties::get(call)).await,
        TableOperation::SetServiceProperties => Box::pin(properties::set(call, body)).await,
        TableOperation::GetServiceStats => Ok(properties::stats(call)),
    }
}
