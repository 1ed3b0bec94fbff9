//! `/console.json`: what the page has to know about the server before a user signs in.

use super::Console;
use crate::admin::access::{is_loopback, is_loopback_host, single};
use crate::admin::{AdminService, JSON, Page, not_allowed, page};
use crate::handler::Peer;
use hyper::header::{FORWARDED, HOST, VIA};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use larimar_engine::Engine;
use larimar_wire::sas::Service;
use serde::Serialize;

#[derive(Debug, Serialize)]
struct About {
    version: &'static str,
    /// The services that are mounted.
    services: Vec<&'static str>,
    engine: &'static str,
    strict: bool,
    insights: bool,
    /// Whether the connection is encrypted.
    secure: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    development: Option<Development>,
}

/// The account that the page signs in to by itself, with the key that everybody knows.
#[derive(Debug, Serialize)]
struct Development {
    account: String,
}

impl<E: Engine> AdminService<E> {
    /// Answers with what the page has to know.
    pub(super) fn about(&self, console: &Console, parts: &Parts, peer: Peer) -> Page {
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            return not_allowed("GET, HEAD");
        }
        let services = [Service::Blob, Service::Queue, Service::Table].into_iter();
        let account = Some(()).filter(|()| is_at_this_machine(parts, peer));
        let about = About {
            version: env!("CARGO_PKG_VERSION"),
            services: services.filter(|service| console.service(*service).is_some()).map(Service::name).collect(),
            engine: console.engine,
            strict: self.storage.settings.strict,
            insights: self.storage.insights.is_some(),
            secure: peer.is_tls,
            development: account
                .and_then(|()| self.storage.well_known_account())
                .map(|account| Development { account }),
        };
        let json = serde_json::to_string(&about).expect("texts and flags are JSON");
        page(StatusCode::OK, JSON, json + "\n")
    }
}

/// Whether the user sits at this machine, as far as a server can know: the connection comes from it, the browser was given
/// a name of it, and no proxy says that it passes on a request of another machine.
fn is_at_this_machine(parts: &Parts, peer: Peer) -> bool {
    let authority = parts.uri.authority().map(|authority| authority.as_str());
    let host = single(parts, HOST).ok().flatten().or(authority);
    let is_passed_on = |name: &str| name.starts_with("x-forwarded-") || name == "x-real-ip";
    let is_passed_on = parts.headers.contains_key(FORWARDED)
        || parts.headers.contains_key(VIA)
        || parts.headers.keys().any(|name| is_passed_on(name.as_str()));
    is_loopback(peer) && host.is_some_and(is_loopback_host) && !is_passed_on
}
