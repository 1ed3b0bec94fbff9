//! The web console: the files of its page, what the page has to know about the server, and the three services under the
//! page's own origin, so that the page needs no CORS rules.
//!
//! The console has no privileges: the browser holds an account's key or a shared access signature and signs each request,
//! and the services check it as at their own ports. What else keeps other pages, stored files and other machines away is in
//! `mount.rs` and in `docs/decisions/0054-console.md`.

mod about;
mod files;
mod mount;

use super::access::{self, Refusal};
use super::{AdminService, FILLING, Page, not_allowed, text};
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

/// What a request of the console is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    File,
    About,
    Service,
}

impl Target {
    fn of(path: &str) -> Option<Self> {
        match path {
            ABOUT => Some(Self::About),
            _ if files::is_file(path) => Some(Self::File),
            _ => mount::split(path).map(|_| Self::Service),
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
        let Some(target) = Target::of(request.uri().path()) else { return Err(request) };
        let (parts, body) = request.into_parts();
        let has_body = !body.is_end_stream();
        let page = match (self.check_console(target, &parts, peer), target) {
            (Err((status, reason)), _) => text(status, reason),
            (Ok(()), Target::File) => files::answer(&parts),
            (Ok(()), Target::About) => self.about(console, &parts, peer),
            (Ok(()), Target::Service) if parts.method == Method::OPTIONS => not_allowed(METHODS),
            (Ok(()), Target::Service) => match mount::check(console, &parts) {
                Ok(service) => return Ok(self.pass_on(service, Request::from_parts(parts, body), peer).await),
                Err((status, reason)) => text(status, reason),
            },
        };
        // The body of a request that no service has got is not read.
        Ok(if has_body { closing(page) } else { page })
    }

    /// Refuses what the page did not send: a browser sends the header only from a script of the page's own origin, never
    /// for a link, a form, an image or a frame. The page itself is opened by a link.
    fn check_console(&self, target: Target, parts: &Parts, peer: Peer) -> Result<(), Refusal> {
        access::check_origin(&self.settings, parts, peer)?;
        if target == Target::File {
            return Ok(());
        }
        if access::single(parts, MARK) != Ok(Some("1")) {
            return Err((StatusCode::FORBIDDEN, FORBIDDEN_UNMARKED));
        }
        match self.is_filling.load(Ordering::Relaxed) {
            true => Err((StatusCode::SERVICE_UNAVAILABLE, FILLING)),
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

/// What the services take; browsers ask with `OPTIONS` for pages of other origins, which is refused.
const METHODS: &str = "GET, HEAD, POST, PUT, MERGE, PATCH, DELETE";

/// What the page reads first.
const ABOUT: &str = "/console.json";

/// The header that the page's scripts send.
const MARK: HeaderName = HeaderName::from_static("x-larimar-console");

const FORBIDDEN_UNMARKED: &str = "expected the header x-larimar-console: 1, which the console's own page sends; clients \
                                  use the ports of the services\n";
