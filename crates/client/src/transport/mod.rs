//! How requests reach the service. The client comes with a transport over HTTP/1.1; another can take its place, to
//! count requests, to record them, or to lose them on purpose.

mod answer;
mod connect;
mod http1;
#[cfg(feature = "rustls")]
mod tls;
mod wire;

pub(crate) use connect::{ConnectSettings, ProxyChoice};
pub use http1::HttpTransport;

use bytes::Bytes;
use std::fmt;
use std::pin::Pin;

/// A future in a box.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Carries one request to the service and brings its answer back.
///
/// Requests come with an absolute address and all headers, `Host` and the signature among them. A transport neither
/// retries nor follows redirects. Dropping the future abandons the request.
pub trait Transport: fmt::Debug + Send + Sync + 'static {
    /// Sends a request and returns the whole answer, regardless of its status.
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>>;
}

/// Why no answer came.
#[derive(Debug, thiserror::Error)]
#[error("no answer from the service: {source}")]
pub struct TransportError {
    source: BoxError,
    may_have_been_sent: bool,
}

impl TransportError {
    /// The request certainly did not reach the service.
    pub fn not_sent(source: impl Into<BoxError>) -> Self {
        Self { source: source.into(), may_have_been_sent: false }
    }

    /// The request may have reached the service.
    pub fn lost(source: impl Into<BoxError>) -> Self {
        Self { source: source.into(), may_have_been_sent: true }
    }

    /// The same, of a request that may have reached the service in an earlier attempt.
    pub(crate) fn into_lost(self) -> Self {
        Self { may_have_been_sent: true, ..self }
    }

    /// Whether the request may have reached the service.
    #[must_use]
    pub const fn may_have_been_sent(&self) -> bool {
        self.may_have_been_sent
    }
}
