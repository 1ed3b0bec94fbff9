//! Access control lists of tables. Only the account's key may see or change them.

use crate::call::Call;
use crate::error;
use crate::reply::Reply;
use larimar_engine::Engine;
use larimar_engine::table;
use larimar_model::TableName;
use larimar_wire::acl;
use larimar_wire::error_body::ErrorReply;
use larimar_wire::sas::Need;

pub(super) async fn get_acl<E: Engine>(call: &Call<'_, E>, name: &TableName) -> Result<Reply, ErrorReply> {
    call.caller.permits(&Need::ACL)?;
    call.throttle(None, 1)?;
    let table = call.table(name).await?;
    let list = acl::parse(table.acl.as_bytes(), acl::TABLE_PERMISSIONS)?;
    let mut xml = Vec::with_capacity(512);
    acl::write(&mut xml, &list, acl::TABLE_PERMISSIONS);
    Ok(Reply::xml(200, xml))
}

pub(super) async fn set_acl<E: Engine>(call: &Call<'_, E>, name: &TableName, body: &[u8]) -> Result<Reply, ErrorReply> {
    call.caller.permits(&Need::ACL)?;
    call.check_not_system(name)?;
    call.throttle(None, 1)?;
    let list = acl::parse(body, acl::TABLE_PERMISSIONS)?;
    call.check_name(name)?;
    let mut xml = Vec::with_capacity(512);
    if !list.is_empty() {
        acl::write(&mut xml, &list, acl::TABLE_PERMISSIONS);
    }
    let text = String::from_utf8_lossy(&xml);
    table::set_acl(call.engine(), call.account(), name, &text).await.map_err(|error| error::engine_error(&error))?;
    Ok(Reply::empty(204))
}
