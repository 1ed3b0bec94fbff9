//! The web console: the files of its page, what the page has to know about the server, and the three services under the
//! page's own origin, so that the page needs no CORS rules.
//!
//! The console has no privileges: the browser holds an account's key or a shared access signature and signs each request,
//! and the services check it as at their own ports. What else keeps other pages, stored files and other machines away is in
//! `mount.rs` and in `docs/decisions/0054-console.md`.

mod about;
mod files;
mod mount;

use super::{AdminService, FILLING, Page, access, not_allowed, text};
use crate::handler::{Handler, Peer};
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONNECTION, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};
use larimar_engine::Engine;
use larimar_wire::sas::Service;
use mount::{Mounted, mounted};
use std::fmt;
use std::sync::atomic::Ordering;

/// What the console serves besides its page.
pub struct Console {
    /// How the engine is called in `/console.json`.
    engine: &'static str,
    table: Option<Mounted>,
    queue: Option<Mounted>,
    blob: Option<Mounted>,
}

impl Console {
    /// The console of a server whose engine is called so, without services.
    #[must_use]
    pub const fn new(engine: &'static str) -> Self {
        Self { engine, table: None, queue: None, blob: None }
    }

    /// With these services under the origin of the page.
    #[must_use]
    pub fn with_services(
        self,
        table: Option<impl Handler>,
        queue: Option<impl Handler>,
        blob: Option<impl Handler>,
    ) -> Self {
        Self { table: table.map(mounted), queue: queue.map(mounted), blob: blob.map(mounted), ..self }
    }

    fn service(&self, service: Service) -> Option<&Mounted> {
        match service {
            Service::Table => self.table.as_ref(),
            Service::Queue => self.queue.as_ref(),
            Service::Blob => self.blob.as_ref(),
        }
    }
}

impl<E: Engine> AdminService<E> {
    /// Answers a request for the console, or returns a request for something else.
    pub(super) async fn answer_console(
        &self,
        console: &Console,
        request: Request<Incoming>,
        peer: Peer,
    ) -> Result<Page, Request<Incoming>> {
        let path = request.uri().path();
        let is_page = files::is_file(path) || path == ABOUT;
        if !is_page && mount::split(path).is_none() {
            return Err(request);
        }
        let (parts, body) = request.into_parts();
        let has_body = !body.is_end_stream();
        let refused = match access::check_origin(&self.settings, &parts, peer) {
            Err((status, reason)) => text(status, reason),
            Ok(()) if files::is_file(parts.uri.path()) => files::answer(&parts),
            Ok(()) => match self.check_page_request(&parts) {
                Err(refusal) => *refusal,
                Ok(()) if is_page => self.about(console, &parts, peer),
                Ok(()) => match mount::check(console, &parts) {
                    Ok(service) => return Ok(self.pass_on(service, Request::from_parts(parts, body), peer).await),
                    Err((status, reason)) => text(status, reason),
                },
            },
        };
        Ok(if has_body { closing(refused) } else { refused })
    }

    /// Refuses what the page did not send: a browser sends the header only from a script of the page's own origin, never
    /// for a link, a form, an image or a frame.
    fn check_page_request(&self, parts: &Parts) -> Result<(), Box<Page>> {
        let refused = |status, reason: &'static str| Err(Box::new(text(status, reason)));
        match access::single(parts, MARK) {
            Ok(Some("1")) => {}
            _ => return refused(StatusCode::FORBIDDEN, FORBIDDEN_UNMARKED),
        }
        if parts.method == Method::OPTIONS {
            return Err(Box::new(not_allowed("GET, HEAD, POST, PUT, MERGE, PATCH, DELETE")));
        }
        match self.is_filling.load(Ordering::Relaxed) {
            true => refused(StatusCode::SERVICE_UNAVAILABLE, FILLING),
            false => Ok(()),
        }
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").field("engine", &self.engine).finish_non_exhaustive()
    }
}

/// The answer to a request whose body is not read.
fn closing(mut page: Page) -> Page {
    page.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    page
}

/// What the page reads first.
const ABOUT: &str = "/console.json";

/// The header that the page's scripts send.
const MARK: HeaderName = HeaderName::from_static("x-larimar-console");

const FORBIDDEN_UNMARKED: &str = "expected the header x-larimar-console: 1, which the console's own page sends; clients \
                                  use the ports of the services\n";
