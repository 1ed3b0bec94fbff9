//! One connection: the TLS handshake if there is one, then request after request, then an end that does not
//! take the last answer away from the client.

use super::activity::{Activity, Eviction, Phase, WatchedStream};
use super::{Listener, ListenerSettings};
use crate::handler::{Handler, Peer};
use crate::reply::ResponseBody;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::any::Any;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{self, Instant, Sleep};
use tokio_rustls::TlsAcceptor;

/// A connection that was accepted.
pub(super) struct Connection<H> {
    pub(super) listener: Arc<Listener<H>>,
    pub(super) peer: Peer,
    pub(super) activity: Arc<Activity>,
}

/// How hyper is set up for every connection of a listener.
pub(super) fn http(settings: &ListenerSettings, keeps_spelling: bool) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.preserve_header_case(keeps_spelling);
    // A client may close its side after the request and still read the answer.
    http.half_close(true);
    // A head that is too large is answered in the protocol's terms, unless it is far larger than the limit.
    http.max_header_size(2 * settings.header_bytes_max);
    http.max_buf_size((2 * settings.header_bytes_max).max(MIN_BUFFER_BYTES));
    http.max_headers(HEADERS_MAX);
    // `Activity` does this, without a timer per request and apart from the idle time.
    http.header_read_timeout(None);
    // Answers are queued, not copied behind their heads: what was sent is freed at once, and an idle connection keeps
    // no buffer of the size of its largest answer.
    http.writev(true);
    http
}

impl<H: Handler> Connection<H> {
    /// Serves the connection to its end. When the sender of `close` is dropped, the current request is the last one; a
    /// message evicts the connection: it ends at once unless it works on a request.
    pub(super) async fn run(
        self,
        stream: TcpStream,
        acceptor: Option<TlsAcceptor>,
        http: http1::Builder,
        mut close: oneshot::Receiver<()>,
    ) {
        let _open = OpenGuard::new(&self.listener);
        let Some(acceptor) = acceptor else { return self.serve(stream, &http, close).await };
        let handshake = time::timeout(self.listener.settings.header_timeout, acceptor.accept(stream));
        tokio::select! {
            result = handshake => match result {
                Ok(Ok(stream)) => self.serve(stream, &http, close).await,
                Ok(Err(error)) => tracing::debug!(peer = %self.peer.address, %error, "the TLS handshake failed"),
                Err(_) => tracing::debug!(peer = %self.peer.address, "the TLS handshake took too long"),
            },
            _ = &mut close => {}
        }
    }

    async fn serve<S>(self, stream: S, http: &http1::Builder, mut close: oneshot::Receiver<()>)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let this = Arc::new(self);
        let service = service_fn(|request| {
            let this = Arc::clone(&this);
            async move { Ok::<_, Infallible>(this.answer(request).await) }
        });
        let io = TokioIo::new(WatchedStream::new(stream, Arc::clone(&this.activity)));
        let mut hyper = http.serve_connection(io, service);
        let mut watch = pin!(time::sleep(this.listener.settings.idle_timeout));
        let mut is_closing = false;
        let end = poll_fn(|cx| {
            if let Poll::Ready(result) = Pin::new(&mut hyper).poll(cx) {
                return Poll::Ready(End::Finished(result));
            }
            if !is_closing && let Poll::Ready(asked) = Pin::new(&mut close).poll(cx) {
                is_closing = true;
                // An idle connection is left to hyper, which answers what has just arrived.
                let is_evicted =
                    asked.is_ok() && this.activity.eviction().is_some_and(|(eviction, _)| eviction != Eviction::Idle);
                if is_evicted {
                    return Poll::Ready(End::Evicted);
                }
                Pin::new(&mut hyper).graceful_shutdown();
                if let Poll::Ready(result) = Pin::new(&mut hyper).poll(cx) {
                    return Poll::Ready(End::Finished(result));
                }
            }
            this.poll_overdue(cx, watch.as_mut()).map(End::Overdue)
        })
        .await;
        let (stream, is_write_blocked) = hyper.into_parts().io.into_inner().into_parts();
        match end {
            End::Finished(Ok(())) if is_closing => {}
            End::Evicted => tracing::debug!(peer = %this.peer.address, "evicted in favour of a new connection"),
            End::Finished(Ok(())) => linger(stream).await,
            End::Finished(Err(error)) => {
                tracing::debug!(peer = %this.peer.address, %error, "the connection ended early");
                // Otherwise the stream is broken and there is nothing to wait for.
                if error.is_parse() {
                    linger(stream).await;
                }
            }
            End::Overdue(phase) => {
                tracing::debug!(peer = %this.peer.address, ?phase, "the client took too long");
                if phase == Phase::Head && !is_write_blocked {
                    refuse_slow(stream).await;
                }
            }
        }
    }

    /// Answers a request, whatever happens to its handler.
    async fn answer(&self, request: Request<Incoming>) -> Response<ResponseBody> {
        self.activity.begin(Phase::Busy);
        if head_bytes(&request) > self.listener.settings.header_bytes_max {
            self.activity.begin(Phase::Idle);
            return refusal(StatusCode::BAD_REQUEST, "InvalidHeaderValue", HEAD_TOO_LARGE);
        }
        let handler = &self.listener.handler;
        let outcome = catch_panic(async { handler.handle(request, self.peer).await }).await;
        self.activity.begin(Phase::Idle);
        outcome.unwrap_or_else(|panic| {
            self.listener.metrics.handler_panicked();
            tracing::error!(peer = %self.peer.address, panic = panic_text(&*panic), "a request ended in a defect");
            refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", INTERNAL_ERROR)
        })
    }

    /// Ready when the client has been silent or has taken nothing for too long, with the phase of the connection.
    fn poll_overdue(&self, cx: &mut Context<'_>, mut watch: Pin<&mut Sleep>) -> Poll<Phase> {
        let settings = &self.listener.settings;
        loop {
            let (phase, since) = self.activity.read();
            let deadline = match phase {
                Phase::Idle => Some(since + settings.idle_timeout),
                Phase::Head => Some(since + settings.header_timeout),
                Phase::Busy => None,
            };
            let blocked_until = self.activity.blocked_until(settings.answer_timeout, settings.client_rate_min);
            let deadline = [deadline, blocked_until].into_iter().flatten().min();
            // The timer may fire early, never late: most requests then leave it alone.
            if deadline.is_some_and(|deadline| deadline < watch.deadline()) {
                watch.as_mut().reset(deadline.expect("there is a deadline, as just seen"));
            }
            if watch.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            let now = Instant::now();
            match deadline {
                Some(deadline) if deadline <= now => return Poll::Ready(phase),
                Some(deadline) => watch.as_mut().reset(deadline),
                None => watch.as_mut().reset(now + settings.header_timeout),
            }
        }
    }
}

/// How serving a connection ended.
enum End {
    Finished(hyper::Result<()>),
    Overdue(Phase),
    /// Closed at once, because a new connection needs room.
    Evicted,
}

/// Counts a connection as open while it lives.
struct OpenGuard<H>(Arc<Listener<H>>);

impl<H> OpenGuard<H> {
    fn new(listener: &Arc<Listener<H>>) -> Self {
        listener.metrics.connection_opened();
        Self(Arc::clone(listener))
    }
}

impl<H> Drop for OpenGuard<H> {
    fn drop(&mut self) {
        self.0.metrics.connection_closed();
    }
}

/// Reads and forgets what the client still sends, for a while. A socket that is closed with unread bytes resets
/// the connection, and a reset can overtake the answer that says why (413, 431).
async fn linger(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let drain = async {
        if stream.shutdown().await.is_err() {
            return;
        }
        let mut rest = vec![0; 16 * 1024];
        while matches!(stream.read(&mut rest).await, Ok(1..)) {}
    };
    if time::timeout(LINGER, drain).await.is_err() {
        tracing::debug!("a client went on sending after its last answer");
    }
}

/// Answers 408 to a client whose request took too long.
async fn refuse_slow(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let answer = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    if time::timeout(LINGER, stream.write_all(answer)).await.is_ok_and(|written| written.is_ok()) {
        linger(stream).await;
    }
}

/// Runs a future and catches its panic, so that the other requests of the process go on.
async fn catch_panic<F: Future>(future: F) -> Result<F::Output, Box<dyn Any + Send>> {
    let mut future = pin!(future);
    // The future is dropped after a panic and nothing else of it is seen again.
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&'static str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}

/// An answer that no handler has made. The connection ends with it, as the body may be half read or not at all.
fn refusal(status: StatusCode, code: &'static str, body: &'static str) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::whole(Bytes::from_static(body.as_bytes())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    headers.insert("x-ms-error-code", HeaderValue::from_static(code));
    response
}

/// The bytes of a request's line and headers, about as they were sent.
fn head_bytes(request: &Request<Incoming>) -> usize {
    let uri = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    uri + headers.sum::<usize>() + 16
}

const HEAD_TOO_LARGE: &str = r#"{"odata.error":{"code":"InvalidHeaderValue","message":{"lang":"en-US","value":"The request line and headers are longer than this server takes."}}}"#;

const INTERNAL_ERROR: &str = r#"{"odata.error":{"code":"InternalError","message":{"lang":"en-US","value":"The server encountered an internal error. Please retry the request."}}}"#;

/// Headers of one request. Metadata are headers, and the service bounds their bytes only: 8 KiB of names and values are at
/// most about 3,100 pairs, as names differ.
const HEADERS_MAX: usize = 3_300;

/// The least that hyper takes.
const MIN_BUFFER_BYTES: usize = 64 * 1024;

/// How long to wait for a client to notice the end of its connection.
const LINGER: Duration = Duration::from_secs(2);
