//! Several services on one port: the host name selects the service, as in `ACCOUNT.blob.example.com`.

use crate::address::host_label;
use crate::handler::{Handler, Peer};
use crate::reply::ResponseBody;
use crate::storage::Storage;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Request, Response, StatusCode};
use larimar_engine::Engine;
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::sas::Service;
use std::fmt;
use std::sync::Arc;

/// The services of one port.
pub struct SharedPort<E, T, Q, B> {
    table: Option<T>,
    queue: Option<Q>,
    blob: Option<B>,
    storage: Arc<Storage<E>>,
}

impl<E: Engine, T, Q, B> SharedPort<E, T, Q, B> {
    /// These services on one port.
    pub fn new(table: Option<T>, queue: Option<Q>, blob: Option<B>, storage: Arc<Storage<E>>) -> Self {
        Self { table, queue, blob, storage }
    }

    /// The service that a host names behind the account. A host that names no account is refused, also if the path has
    /// one: on a shared port only host style is served.
    fn service_of(&self, host: &str) -> Option<Service> {
        let is_known = |label: &str| self.storage.is_known_host(label);
        let suffixes = &self.storage.settings.host_suffixes;
        service_of(host).filter(|service| host_label(host, *service, suffixes, is_known).is_some())
    }

    /// The answer to a request whose host names none of the services.
    fn refused(&self) -> Response<ResponseBody> {
        let message = "The requested URI does not represent any resource on the server: several services share this port, \
                       so the host has to name the service, as in ACCOUNT.blob.example.com, ACCOUNT.queue.example.com or \
                       ACCOUNT.table.example.com.";
        let error = ErrorReply::with_message(ErrorCode::InvalidUri, message);
        let mut body = Vec::with_capacity(512);
        error.write_storage_xml(&mut body, &self.storage.ids.next().to_string(), self.storage.clock.now());
        let mut response = Response::new(ResponseBody::whole(body));
        *response.status_mut() = StatusCode::from_u16(error.status).unwrap_or(StatusCode::BAD_REQUEST);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
        response.headers_mut().insert("x-ms-error-code", HeaderValue::from_static(ErrorCode::InvalidUri.as_str()));
        response
    }
}

impl<E: Engine, T: Handler, Q: Handler, B: Handler> Handler for SharedPort<E, T, Q, B> {
    async fn handle(&self, request: Request<Incoming>, peer: Peer) -> Response<ResponseBody> {
        // The service itself checks that there is one host, and that an absolute address has the same.
        let header = request.headers().get(HOST).and_then(|host| host.to_str().ok());
        let host = header.or_else(|| request.uri().authority().map(|authority| authority.as_str()));
        match host.and_then(|host| self.service_of(host)) {
            Some(Service::Table) => match &self.table {
                Some(table) => table.handle(request, peer).await,
                None => self.refused(),
            },
            Some(Service::Queue) => match &self.queue {
                Some(queue) => queue.handle(request, peer).await,
                None => self.refused(),
            },
            Some(Service::Blob) => match &self.blob {
                Some(blob) => blob.handle(request, peer).await,
                None => self.refused(),
            },
            None => self.refused(),
        }
    }
}

impl<E, T, Q, B> fmt::Debug for SharedPort<E, T, Q, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedPort").finish_non_exhaustive()
    }
}

/// The service that a host names, behind the account.
fn service_of(host: &str) -> Option<Service> {
    let word = host.split('.').nth(1)?;
    let services = [Service::Table, Service::Queue, Service::Blob];
    services.into_iter().find(|service| word.eq_ignore_ascii_case(service.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_behind_the_account_names_the_service() {
        for (host, service) in [
            ("shop.table.example.com", Some(Service::Table)),
            ("shop-secondary.Queue.example.com:443", Some(Service::Queue)),
            ("shop.blob.example.com:10000", Some(Service::Blob)),
            ("shop.example.com", None),
            ("blob.example.com", None),
            ("127.0.0.1:10000", None),
            ("localhost", None),
            ("", None),
        ] {
            assert_eq!(service_of(host), service, "{host}");
        }
    }
}
