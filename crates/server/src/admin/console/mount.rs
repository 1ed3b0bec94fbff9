//! The services under the console's origin: `/table/ACCOUNT/…`, `/queue/ACCOUNT/…` and `/blob/ACCOUNT/…`.
//!
//! A request goes to the same pipeline as one at the service's own port, with the first segment of its path removed: a
//! signature is made for the service's own path. What differs is there because whatever a blob holds is served beside the
//! page that holds the key:
//!
//! - A request needs a header that only a script of the page sends, and credentials. So no link, form, frame, image or
//!   script tag gets an answer, public containers included.
//! - An answer cannot become a document, a script or a style of this origin, whatever headers the blob has stored.
//! - CORS rules of the account do not apply: they are for the service's own port.
//! - The well-known key counts only from this machine, as at the rest of the endpoint.

use super::{Console, MARK};
use crate::address::host_label;
use crate::admin::access::{Refusal, counts_well_known_key, single};
use crate::admin::{AdminService, Page};
use crate::handler::{Entrance, Handler, Peer};
use futures_util::future::BoxFuture;
use hyper::body::Incoming;
use hyper::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, HOST, HeaderMap, HeaderName,
    HeaderValue, ORIGIN, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::{Request, StatusCode, Uri};
use larimar_engine::Engine;
use larimar_wire::sas::Service;
use larimar_wire::signature::{Authorization, Scheme};
use larimar_wire::uri::query_pairs;
use std::sync::Arc;

/// A service that is mounted.
pub(super) type Mounted = Box<dyn Fn(Request<Incoming>, Peer) -> BoxFuture<'static, Page> + Send + Sync>;

pub(super) fn mounted(handler: impl Handler) -> Mounted {
    let handler = Arc::new(handler);
    Box::new(move |request, peer| {
        let handler = Arc::clone(&handler);
        Box::pin(async move { handler.handle(request, peer).await })
    })
}

/// The service that a path names, and the path below it.
pub(super) fn split(path: &str) -> Option<(Service, &str)> {
    let below = path.strip_prefix('/')?;
    let (word, rest) = below.split_at(below.find('/').unwrap_or(below.len()));
    let service = [Service::Table, Service::Queue, Service::Blob].into_iter().find(|service| service.name() == word);
    Some((service?, rest))
}

/// The service that a request is for, unless it is not even to be looked at: it names no account, or has no credentials.
pub(super) fn check<'a>(console: &'a Console, parts: &Parts) -> Result<(Service, &'a Mounted), Refusal> {
    let (service, rest) = split(parts.uri.path()).ok_or((StatusCode::NOT_FOUND, NOT_SERVED))?;
    let mounted = console.service(service).ok_or((StatusCode::NOT_FOUND, NOT_SERVED))?;
    // The pipeline would pass over further slashes.
    if rest.len() < 2 || rest.starts_with("//") {
        return Err((StatusCode::BAD_REQUEST, EXPECTED_ACCOUNT));
    }
    match has_credentials(parts) {
        true => Ok((service, mounted)),
        false => Err((StatusCode::UNAUTHORIZED, UNAUTHORIZED)),
    }
}

/// Whether there is a signature to check. The pipeline checks it, and refuses requests that it finds none in.
fn has_credentials(parts: &Parts) -> bool {
    let is_shared_key = |header| match Authorization::parse(header) {
        Ok(Authorization::Signed(signed)) => signed.scheme == Scheme::SharedKey,
        Ok(Authorization::Bearer(_)) | Err(_) => false,
    };
    let query = parts.uri.query().unwrap_or("");
    match single(parts, AUTHORIZATION) {
        Ok(Some(header)) => is_shared_key(header),
        Ok(None) => {
            query_pairs(query).any(|pair| pair.is_ok_and(|pair| pair.name == "sig" && !pair.raw_value.is_empty()))
        }
        Err(()) => false,
    }
}

impl<E: Engine> AdminService<E> {
    /// Hands a request to its service, and makes the answer safe to have in the console's origin.
    pub(super) async fn pass_on(
        &self,
        (service, mounted): (Service, &Mounted),
        request: Request<Incoming>,
        peer: Peer,
    ) -> Page {
        let (mut parts, body) = request.into_parts();
        let host = single(&parts, HOST).ok().flatten().or(parts.uri.authority().map(|authority| authority.as_str()));
        let (storage, host) = (&self.storage, host.unwrap_or(PATH_STYLE_HOST));
        let is_known = |label: &str| storage.is_known_host(label);
        // The account is in the path, also if the name of the admin endpoint looks like that of an account.
        let is_host_style = host_label(host, service, &storage.settings.host_suffixes, is_known).is_some();
        let host = HeaderValue::from_str(if is_host_style { PATH_STYLE_HOST } else { host });
        parts.headers.insert(HOST, host.unwrap_or(HeaderValue::from_static(PATH_STYLE_HOST)));
        parts.headers.remove(ORIGIN);
        parts.headers.remove(MARK);
        parts.uri = below_service(&parts.uri, service);
        let counts_well_known_key = counts_well_known_key(&self.settings, peer);
        let peer = Peer { entrance: Entrance::Console { counts_well_known_key }, ..peer };
        let mut page = mounted(Request::from_parts(parts, body), peer).await;
        disarm(page.headers_mut());
        page
    }
}

/// The target of a request as the service knows it.
fn below_service(uri: &Uri, service: Service) -> Uri {
    let target = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let below = target.get(1 + service.name().len()..).and_then(|below| PathAndQuery::try_from(below).ok());
    below.map_or_else(|| Uri::from_static("/"), Uri::from)
}

/// Keeps an answer from becoming more than data for the page's scripts.
fn disarm(headers: &mut HeaderMap) {
    if let Some(stored) = headers.remove(CONTENT_DISPOSITION) {
        headers.insert(STORED_DISPOSITION, stored);
    }
    let of_cors: Vec<_> = headers.keys().filter(|name| name.as_str().starts_with("access-control-")).cloned().collect();
    for name in of_cors {
        headers.remove(name);
    }
    for (name, value) in DISARMED {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// Headers of every answer, in the place of what a blob has stored and a signature asks for.
const DISARMED: [(HeaderName, &str); 6] = [
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (CONTENT_DISPOSITION, "attachment"),
    (CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'"),
    (CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (X_FRAME_OPTIONS, "DENY"),
];

/// What the blob has stored as `Content-Disposition`, for the page to show.
const STORED_DISPOSITION: HeaderName = HeaderName::from_static("x-larimar-content-disposition");

/// A host that names no account.
const PATH_STYLE_HOST: &str = "localhost";

const NOT_SERVED: &str = "this server does not serve that service\n";
const EXPECTED_ACCOUNT: &str = "expected /table/ACCOUNT/…, /queue/ACCOUNT/… or /blob/ACCOUNT/…\n";
const UNAUTHORIZED: &str = "expected a shared access signature in the query, or Authorization: SharedKey \
                            ACCOUNT:SIGNATURE\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_segment_names_the_service_and_is_removed() {
        for (target, service, below) in [
            ("/table/acct/Tables", Some(Service::Table), "/acct/Tables"),
            ("/queue/acct/q/messages?peekonly=true", Some(Service::Queue), "/acct/q/messages?peekonly=true"),
            ("http://h:1/blob/acct/c/table/x%2Fy?a=/b", Some(Service::Blob), "/acct/c/table/x%2Fy?a=/b"),
            ("/blob/blob/blob", Some(Service::Blob), "/blob/blob"),
            ("/table", Some(Service::Table), "/"),
            ("/tables/acct", None, ""),
            ("/Table/acct", None, ""),
            ("//table/acct", None, ""),
            ("/", None, ""),
        ] {
            let uri: Uri = target.parse().expect("a target");
            let found = split(uri.path()).map(|(service, _)| service);
            assert_eq!(found, service, "{target}");
            if let Some(service) = found {
                let uri = below_service(&uri, service);
                assert_eq!((uri.to_string().as_str(), uri.authority()), (below, None), "{target}");
            }
        }
    }

    #[test]
    fn stored_headers_do_not_outlast_those_of_the_mount() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("content-disposition", "inline"),
            ("cache-control", "public"),
            ("content-type", "text/html"),
            ("access-control-allow-origin", "*"),
            ("access-control-expose-headers", "*"),
        ] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        disarm(&mut headers);
        for (name, value) in DISARMED {
            let found: Vec<_> = headers.get_all(&name).iter().collect();
            assert_eq!(found, [value], "{name}");
        }
        assert_eq!(headers[STORED_DISPOSITION], "inline");
        assert!(!headers.keys().any(|name| name.as_str().starts_with("access-control-")), "{headers:?}");
    }
}
