//! A bare HTTP server: hyper on tokio as a real server would use them, and a fixed answer.
//!
//! It bounds what any server on this stack can reach on this machine with this client, so the share of
//! it that point gets reach shows what the Table service itself costs.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Context as _;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, SERVER, X_CONTENT_TYPE_OPTIONS};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// Serves until the process is stopped.
pub(crate) fn serve(port: u16, body_bytes: usize) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = TcpListener::bind(address).await.context("binding the port")?;
        let body = Bytes::from(vec![b' '; body_bytes]);
        loop {
            let (stream, _) = listener.accept().await.context("accepting a connection")?;
            stream.set_nodelay(true)?;
            let body = body.clone();
            tokio::spawn(async move {
                let service = service_fn(|_: Request<Incoming>| std::future::ready(Ok::<_, Infallible>(answer(&body))));
                // A connection that breaks concerns only its client, which reports it.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    })
}

/// The body, under the headers of a point get.
fn answer(body: &Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.clone()));
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/json;odata=minimalmetadata;streaming=true;charset=utf-8"),
    );
    headers.insert(ETAG, HeaderValue::from_static("W/\"datetime'2022-05-06T00%3A31%3A05.0707164Z'\""));
    headers.insert(SERVER, HeaderValue::from_static("Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0"));
    headers.insert("x-ms-request-id", HeaderValue::from_static("9fb3f2b6-8002-0044-05ec-a8626d000000"));
    headers.insert("x-ms-version", HeaderValue::from_static("2019-02-02"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
