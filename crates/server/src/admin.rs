//! The operator's endpoint: whether the process runs, whether it accepts writes, its metrics, and what changes the store
//! outside of the protocol.
//!
//! `/health`, `/ready` and `/metrics` need no credentials, so they have a listener of their own, by default on the
//! loopback address. Everything else passes `admin/access.rs` first, also to learn which paths exist.

mod access;
mod backup;
mod compact;
mod console;
mod design;
mod dismissals;
mod insights;
mod requests;
mod reset;
mod restore;
mod token;

pub use backup::{Backups, NotStarted, Starting};
pub use compact::Compact;
pub use console::Console;
pub use reset::Refill;
pub use restore::{RestoreRequest, Restores};
pub use token::{AdminToken, AdminTokenError};

use crate::handler::{Handler, Peer};
use crate::reply::ResponseBody;
use crate::storage::Storage;
use access::AdminCaller;
use bytes::Bytes;
use compact::Compactor;
use design::Designer;
use hyper::body::{Body as _, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use larimar_engine::Engine;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Who may send admin requests, and which of them are allowed.
#[derive(Clone, Debug)]
pub struct AdminSettings {
    /// The token that opens every admin request; without one only accounts' keys count.
    pub token: Option<AdminToken>,
    /// The address that the endpoint listens on.
    pub bound: SocketAddr,
    /// Names that a `Host` header may have, besides `localhost` and addresses.
    pub names: Vec<String>,
    /// Whether accounts can be reset.
    pub allow_reset: bool,
    /// Whether the well-known key of the development account counts for requests from other machines.
    pub allow_well_known_key: bool,
}

impl AdminSettings {
    /// An endpoint at this address, without a token, that allows no reset.
    #[must_use]
    pub const fn new(bound: SocketAddr) -> Self {
        Self { token: None, bound, names: Vec::new(), allow_reset: false, allow_well_known_key: false }
    }
}

/// Answers admin requests.
pub struct AdminService<E> {
    storage: Arc<Storage<E>>,
    settings: AdminSettings,
    compactor: Option<Compactor>,
    refill: Option<Box<Refill>>,
    /// Whether the store is being filled, and no service answers yet.
    is_filling: Arc<AtomicBool>,
    backups: Option<Arc<dyn Backups>>,
    restores: Option<Arc<dyn Restores>>,
    console: Option<Console>,
    designer: Designer,
}

/// The answer to an admin request.
type Page = Response<ResponseBody>;

impl<E: Engine> AdminService<E> {
    /// The endpoint of a server with these accounts.
    #[must_use]
    pub fn new(storage: Arc<Storage<E>>, settings: AdminSettings) -> Self {
        let (compactor, refill, backups, restores, console) = (None, None, None, None, None);
        let (is_filling, designer) = (Arc::default(), Designer::default());
        Self { storage, settings, compactor, refill, is_filling, backups, restores, console, designer }
    }

    /// With what `/compact` does.
    #[must_use]
    pub fn with_compact(self, compact: Box<Compact>) -> Self {
        Self { compactor: Some(Compactor::new(compact)), ..self }
    }

    /// With what fills accounts again after `/reset` has emptied them.
    #[must_use]
    pub fn with_refill(self, refill: Box<Refill>) -> Self {
        Self { refill: Some(refill), ..self }
    }

    /// While this is set the server is not ready and changes nothing: its store is being filled.
    #[must_use]
    pub fn with_filling(self, is_filling: Arc<AtomicBool>) -> Self {
        Self { is_filling, ..self }
    }

    /// With what `/backup` starts, shows and cancels.
    #[must_use]
    pub fn with_backups(self, backups: Option<Arc<dyn Backups>>) -> Self {
        Self { backups, ..self }
    }

    /// With what `/restore` starts, shows and cancels.
    #[must_use]
    pub fn with_restores(self, restores: Arc<dyn Restores>) -> Self {
        Self { restores: Some(restores), ..self }
    }

    /// With the web console.
    #[must_use]
    pub fn with_console(self, console: Option<Console>) -> Self {
        Self { console, ..self }
    }

    async fn answer(&self, parts: &Parts, has_body: bool, peer: Peer) -> Page {
        if let Some(page) = self.open_page(&parts.method, parts.uri.path()) {
            return page;
        }
        match access::check(&self.storage, &self.settings, parts, peer) {
            Ok(_) if has_body => text(StatusCode::BAD_REQUEST, "expected no body: parameters are in the query\n"),
            Ok(_) if self.is_filling.load(Ordering::Relaxed) => text(StatusCode::SERVICE_UNAVAILABLE, FILLING),
            Ok(caller) => self.answer_to(&caller, parts).await,
            Err(refusal) => refused(refusal),
        }
    }

    /// The pages that need no credentials.
    fn open_page(&self, method: &Method, path: &str) -> Option<Page> {
        let engine = &self.storage.engine;
        let is_read = method == Method::GET || method == Method::HEAD;
        Some(match path {
            "/health" | "/ready" | "/metrics" if !is_read => not_allowed("GET, HEAD"),
            "/health" => text(StatusCode::OK, "ok\n"),
            "/ready" if self.is_filling.load(Ordering::Relaxed) => text(StatusCode::SERVICE_UNAVAILABLE, FILLING),
            "/ready" => {
                let backups = self.backups.as_ref().map(|backups| backups.ready()).unwrap_or_default();
                match engine.ready() {
                    Ok(()) => text(StatusCode::OK, format!("ready\n{backups}")),
                    Err(fault) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{fault}\n{backups}")),
                }
            }
            "/metrics" => {
                let backups = self.backups.as_ref().map(|backups| backups.metrics()).unwrap_or_default();
                let is_ready = !self.is_filling.load(Ordering::Relaxed) && engine.ready().is_ok();
                page(StatusCode::OK, METRICS, self.storage.metrics.render(&engine.statistics(), is_ready) + &backups)
            }
            _ => return None,
        })
    }

    /// Answers a request whose sender is known.
    async fn answer_to(&self, caller: &AdminCaller, parts: &Parts) -> Page {
        let query = parts.uri.query().unwrap_or("");
        match (parts.uri.path(), &parts.method) {
            ("/reset", &Method::POST) => {
                let refill = self.refill.as_deref();
                reset::reset(&self.storage, self.settings.allow_reset, refill, caller, query).await
            }
            ("/compact", &Method::POST) => compact::compact(self.compactor.as_ref(), caller).await,
            ("/backup", method) => backup::backup(self.backups.as_deref(), caller, method, query).await,
            ("/restore", method) => restore::restore(self.restores.as_deref(), caller, method, query).await,
            ("/insights", method) => insights::insights(&self.storage, caller, method, query).await,
            ("/advice", method) => insights::advice(&self.storage, caller, method, query).await,
            ("/advice/dismissals", method) => dismissals::dismissals(&self.storage, caller, method, query).await,
            ("/requests", method) if self.console.is_some() => requests::requests(&self.storage, caller, method, query),
            ("/reset" | "/compact", _) => not_allowed("POST"),
            _ => text(
                StatusCode::NOT_FOUND,
                "paths: /health /ready /metrics /reset /compact /backup /restore /insights /advice /advice/dismissals /requests \
                 /design\n",
            ),
        }
    }
}

impl<E> fmt::Debug for AdminService<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminService").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl<E: Engine> Handler for AdminService<E> {
    async fn handle(&self, request: Request<Incoming>, peer: Peer) -> Page {
        let request = match &self.console {
            Some(console) => match self.answer_console(console, request, peer).await {
                Ok(page) => return page,
                Err(request) if design::is_design(request.uri().path()) => {
                    return self.answer_design(request, peer).await;
                }
                Err(request) => request,
            },
            None => request,
        };
        let (parts, body) = request.into_parts();
        let has_body = !body.is_end_stream();
        let mut page = self.answer(&parts, has_body, peer).await;
        if has_body {
            // It is not read.
            page.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        page
    }
}

/// The answer to a request of a sender that may not send it.
fn refused((status, reason): access::Refusal) -> Page {
    let mut page = text(status, reason);
    if status == StatusCode::UNAUTHORIZED {
        page.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer, SharedKey"));
    }
    page
}

fn not_allowed(allowed: &'static str) -> Page {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, format!("expected one of: {allowed}\n"));
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Page {
    page(status, TEXT, text)
}

fn page(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Page {
    let mut response = Response::new(ResponseBody::whole(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

const FILLING: &str = "the store is being filled from the files that the setting seed names\n";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// The version names the text format, as its scrapers expect.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

#[cfg(test)]
mod tests;
