//! Access control lists of tables.

use crate::acl;
use crate::call::Call;
use crate::error;
use crate::reply::Reply;
use larimar_engine::Engine;
use larimar_engine::table;
use larimar_model::TableName;
use larimar_wire::acl::TABLE_PERMISSIONS;
use larimar_wire::error_body::ErrorReply;

pub(super) async fn get_acl<E: Engine>(call: &Call<'_, E>, name: &TableName) -> Result<Reply, ErrorReply> {
    let table = call.table_settings(name).await?;
    acl::reply(&table.acl, TABLE_PERMISSIONS)
}

pub(super) async fn set_acl<E: Engine>(call: &Call<'_, E>, name: &TableName, body: &[u8]) -> Result<Reply, ErrorReply> {
    let text = acl::to_stored(body, TABLE_PERMISSIONS)?;
    table::set_acl(call.engine(), call.account(), name, &text).await.map_err(|error| error::engine_error(&error))?;
    Ok(Reply::empty(204))
}
