//! The service's properties (logging, metrics, CORS rules) and its stats.

use crate::error;
use crate::reply::Reply;
use crate::service::Call;
use larimar_engine::Engine;
use larimar_engine::table::{load_setting, store_setting};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::sas::Need;
use larimar_wire::service_properties::ServiceProperties;
use larimar_wire::service_stats::Replication;

/// The name under which an account's properties are stored.
const SETTING: &str = "table-service-properties";

/// The properties of an account.
pub(crate) async fn load<E: Engine>(engine: &E, account: &str) -> Result<ServiceProperties, ErrorReply> {
    let stored = load_setting(engine, account, SETTING).await.map_err(|fault| error::fault(&fault))?;
    match stored {
        Some(xml) => Ok(ServiceProperties::default().updated(&xml)?),
        None => Ok(ServiceProperties::default()),
    }
}

pub(super) async fn get<E: Engine>(call: &Call<'_, E>) -> Result<Reply, ErrorReply> {
    call.caller.permits(&Need::READ_SERVICE)?;
    let properties = load(call.engine(), call.account()).await?;
    let mut xml = Vec::with_capacity(1024);
    properties.write(&mut xml);
    Ok(Reply::xml(200, xml))
}

pub(super) async fn set<E: Engine>(call: &Call<'_, E>, body: &[u8]) -> Result<Reply, ErrorReply> {
    call.caller.permits(&Need::WRITE_SERVICE)?;
    let current = load(call.engine(), call.account()).await?;
    let changed = current.updated(body)?;
    let mut xml = Vec::with_capacity(1024);
    changed.write(&mut xml);
    let stored = store_setting(call.engine(), call.account(), SETTING, &xml, call.now).await;
    stored.map_err(|fault| error::fault(&fault))?;
    Ok(Reply::empty(202))
}

/// The secondary is this server, so it is always up to date.
pub(super) fn stats<E: Engine>(call: &Call<'_, E>) -> Result<Reply, ErrorReply> {
    call.caller.permits(&Need::READ_SERVICE)?;
    let mut xml = Vec::with_capacity(256);
    Replication::Live(call.now).write(&mut xml);
    Ok(Reply::xml(200, xml))
}
