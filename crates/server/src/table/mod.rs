//! The handlers of the Table service: one file for each kind of operation.

mod acl;
mod answer;
mod batch;
mod entity;
mod properties;
mod query;
mod tables;

pub(crate) use properties::load as load_properties;

use crate::head::Head;
use crate::reply::Reply;
use crate::service::Call;
use larimar_engine::Engine;
use larimar_wire::error_body::ErrorReply;
use larimar_wire::table::{TableOperation, TableRequest};

/// Runs an operation. The state of a request is moved about by value before it runs, so only the small and
/// frequent operations keep theirs inline; the others are boxed.
pub(crate) async fn run<E: Engine>(
    call: &Call<'_, E>,
    request: TableRequest,
    head: &Head<'_>,
    body: &[u8],
) -> Result<Reply, ErrorReply> {
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
        TableOperation::Batch => Box::pin(batch::run(call, head.content_type.unwrap_or(""), body)).await,
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
