//! The operator's pages: whether the process runs, whether it accepts writes, and its metrics.
//!
//! They need no credentials, so they have a listener of their own, by default on the loopback address.

use crate::handler::{Handler, Peer};
use crate::metrics::Metrics;
use crate::reply::ResponseBody;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use larimar_engine::Engine;
use std::sync::Arc;

/// Answers `/health`, `/ready` and `/metrics`.
#[derive(Debug)]
pub struct AdminService<E> {
    engine: Arc<E>,
    metrics: Arc<Metrics>,
}

impl<E: Engine> AdminService<E> {
    /// The pages of a server with this engine and these counters.
    #[must_use]
    pub fn new(engine: Arc<E>, metrics: Arc<Metrics>) -> Self {
        Self { engine, metrics }
    }

    fn answer(&self, method: &Method, path: &str) -> Response<ResponseBody> {
        let is_read = method == Method::GET || method == Method::HEAD;
        match path {
            "/health" | "/ready" | "/metrics" if !is_read => not_allowed(),
            "/health" => page(StatusCode::OK, TEXT, "ok\n"),
            "/ready" => match self.engine.ready() {
                Ok(()) => page(StatusCode::OK, TEXT, "ready\n"),
                Err(fault) => page(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{fault}\n")),
            },
            "/metrics" => page(StatusCode::OK, METRICS, self.metrics.render(&self.engine.statistics())),
            _ => page(StatusCode::NOT_FOUND, TEXT, "pages: /health /ready /metrics\n"),
        }
    }
}

impl<E: Engine> Handler for AdminService<E> {
    async fn handle(&self, request: Request<Incoming>, _peer: Peer) -> Response<ResponseBody> {
        self.answer(request.method(), request.uri().path())
    }
}

fn not_allowed() -> Response<ResponseBody> {
    let mut response = page(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD\n");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}

fn page(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::whole(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

const TEXT: &str = "text/plain; charset=utf-8";

/// The version names the text format, as its scrapers expect.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

#[cfg(test)]
mod tests;
