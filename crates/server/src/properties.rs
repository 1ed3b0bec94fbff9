//! The properties of a service (logging, metrics, CORS rules) and its stats.

use crate::call::Call;
use crate::error::Result;
use crate::reply::Reply;
use larimar_engine::Engine;
use larimar_engine::blob::create_logs;
use larimar_engine::settings::{load_setting, store_setting};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::sas::Service;
use larimar_wire::service_properties::ServiceProperties;
use larimar_wire::service_stats::Replication;

/// The properties of a service of an account.
pub(crate) async fn load<E: Engine>(engine: &E, service: Service, account: &str) -> Result<ServiceProperties> {
    let stored = load_setting(engine, account, setting(service)).await?;
    match stored {
        Some(xml) => Ok(ServiceProperties::default().updated(&xml, service)?),
        None => Ok(ServiceProperties::default()),
    }
}

pub(crate) async fn get<E: Engine>(call: &Call<'_, E>) -> Result<Reply> {
    let properties = load(call.engine(), call.service, call.account()).await?;
    let mut xml = Vec::with_capacity(1024);
    properties.write(&mut xml, call.service);
    Ok(Reply::xml(200, xml))
}

pub(crate) async fn set<E: Engine>(call: &Call<'_, E>, body: &[u8]) -> Result<Reply> {
    let current = load(call.engine(), call.service, call.account()).await?;
    let changed = current.updated(body, call.service)?;
    // Settings that are stored and not acted upon would mislead. The whole document is refused, and the answer names the
    // element, so that a client can send the rest again without it.
    if changed.blob.delete_retention.days.is_some() {
        return Err(not_implemented("DeleteRetentionPolicy").into());
    }
    if changed.blob.static_website.enabled {
        return Err(not_implemented("StaticWebsite").into());
    }
    if changed.logging.is_on() {
        create_logs(call.engine(), call.account(), call.now).await?;
    }
    let mut xml = Vec::with_capacity(1024);
    changed.write(&mut xml, call.service);
    let stored = store_setting(call.engine(), call.account(), setting(call.service), &xml, call.now).await;
    call.storage.cors.forget(call.service, call.account());
    stored?;
    call.storage.analytics.configure(call.account(), call.service, &changed);
    Ok(Reply::empty(202))
}

/// The error for a document that switches on what this server does not have.
fn not_implemented(element: &'static str) -> ErrorReply {
    let message =
        format!("{element} is not implemented. Nothing of the document was stored: send it without {element}.");
    ErrorReply::with_message(ErrorCode::NotImplemented, message).with_detail("XmlNodeName", element)
}

/// The secondary is this server, so it is always up to date.
pub(crate) fn stats<E: Engine>(call: &Call<'_, E>) -> Reply {
    let mut xml = Vec::with_capacity(256);
    Replication::Live(call.now).write(&mut xml);
    Reply::xml(200, xml)
}

/// The name under which an account's properties of a service are stored.
const fn setting(service: Service) -> &'static str {
    match service {
        Service::Blob => "blob-service-properties",
        Service::Queue => "queue-service-properties",
        Service::Table => "table-service-properties",
    }
}
