//! Access control lists of tables.

use crate::acl;
use crate::call::Call;
use crate::error::Result;
use crate::reply::Reply;
use larimar_engine::Engine;
use larimar_engine::table;
use larimar_model::TableName;
use larimar_wire::acl::TABLE_PERMISSIONS;

pub(super) async fn get_acl<E: Engine>(call: &Call<'_, E>, name: &TableName) -> Result<Reply> {
    let table = call.table_settings(name).await?;
    Ok(acl::reply(&table.acl, TABLE_PERMISSIONS)?)
}

pub(super) async fn set_acl<E: Engine>(call: &Call<'_, E>, name: &TableName, body: &[u8]) -> Result<Reply> {
    let text = acl::to_stored(body, TABLE_PERMISSIONS)?;
    table::set_acl(call.engine(), call.account(), name, &text).await?;
    Ok(Reply::empty(204))
}
