//! The transport over HTTP/1.1: connections that are kept, each driven by the request that uses it.
//!
//! hyper's connection is a future beside that of the request. Usually it runs as a task of its own, which costs two
//! switches between tasks for every request. Here the request polls its connection itself, and a connection that
//! nobody uses is not polled at all; whether the server closed it meanwhile is found out before it is used again.

use super::connect::{ConnectSettings, Connector, ProxyHeaders, Stream};
use super::{BoxFuture, Transport, TransportError};
use bytes::Bytes;
use http::header::{HOST, PROXY_AUTHORIZATION};
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Body as _;
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use parking_lot::Mutex;
use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// The transport that the client comes with: HTTP/1.1 with connections that are kept open.
pub struct HttpTransport {
    connector: Connector,
    /// Connections that wait, by server. An account has a handful of these, so a list is searched.
    servers: Mutex<Vec<Server>>,
    answer_bytes_max: usize,
}

/// A server and the connections to it that wait, the longest first.
struct Server {
    scheme: Scheme,
    authority: Authority,
    idle: Vec<Idle>,
}

struct Idle {
    /// hyper's connection is large, and moves about: in a box it moves cheaply.
    wire: Box<Wire>,
    since: Instant,
}

/// A connection and the two ends that hyper has for it.
struct Wire {
    sender: SendRequest<Full<Bytes>>,
    connection: Connection<Box<dyn Stream>, Full<Bytes>>,
    is_closed: bool,
    through_proxy: Option<ProxyHeaders>,
}

impl HttpTransport {
    /// A transport that follows the proxy variables of the environment, but for addresses of this machine, and trusts
    /// the certificates of the system.
    #[must_use]
    pub fn new() -> Self {
        Self::with_settings(&ConnectSettings::default())
    }

    pub(crate) fn with_settings(settings: &ConnectSettings) -> Self {
        let answer_bytes_max = settings.answer_bytes_max;
        Self { connector: Connector::new(settings), servers: Mutex::default(), answer_bytes_max }
    }

    async fn exchange(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let address = request.uri().clone();
        check(&address)?;
        if !request.headers().contains_key(HOST)
            && let Some(authority) = address.authority()
            && let Ok(host) = HeaderValue::from_str(authority.as_str())
        {
            request.headers_mut().insert(HOST, host);
        }
        // A kept connection may close at the moment it is used. The request then comes back unsent, and the next
        // connection has its turn; there are only so many, and a new one is the last.
        while let Some(wire) = self.take_idle(&address) {
            match self.send_on(wire, &address, request).await {
                Err(Unsent::Request(unsent)) => request = *unsent,
                Err(Unsent::Failed(error)) => return Err(error),
                Ok(response) => return Ok(response),
            }
        }
        // Rare and large, so that its future is in a box of its own, and not in that of every request.
        let wire = Box::pin(self.open(&address)).await?;
        match self.send_on(wire, &address, request).await {
            Err(Unsent::Request(_)) => Err(TransportError::not_sent("the connection was closed at once")),
            Err(Unsent::Failed(error)) => Err(error),
            Ok(response) => Ok(response),
        }
    }

    async fn open(&self, address: &Uri) -> Result<Box<Wire>, TransportError> {
        let connected = self.connector.connect(address).await?;
        let handshake = Builder::new().handshake(connected.stream).await;
        let (sender, connection) = handshake.map_err(TransportError::not_sent)?;
        Ok(Box::new(Wire { sender, connection, is_closed: false, through_proxy: connected.through_proxy }))
    }

    async fn send_on(
        &self,
        mut wire: Box<Wire>,
        address: &Uri,
        request: Request<Bytes>,
    ) -> Result<Response<Bytes>, Unsent> {
        let response = wire.exchange(address, request, self.answer_bytes_max).await?;
        // Whether it is still open is looked at when it is to be used again.
        if !wire.is_closed && !wire.sender.is_closed() {
            self.keep(address, wire);
        }
        Ok(response)
    }

    /// The connection that was used last, if it is still open.
    fn take_idle(&self, address: &Uri) -> Option<Box<Wire>> {
        loop {
            let mut idle = self.servers.lock().iter_mut().find(|server| server.is_at(address))?.idle.pop()?;
            if idle.since.elapsed() < IDLE_MAX && idle.wire.is_ready() {
                return Some(idle.wire);
            }
        }
    }

    fn keep(&self, address: &Uri, wire: Box<Wire>) {
        let (Some(scheme), Some(authority)) = (address.scheme(), address.authority()) else { return };
        let mut servers = self.servers.lock();
        let place = servers.iter().position(|server| server.is_at(address)).unwrap_or_else(|| {
            servers.push(Server { scheme: scheme.clone(), authority: authority.clone(), idle: Vec::new() });
            servers.len() - 1
        });
        let kept = &mut servers[place].idle;
        // The oldest are at the front.
        let stale = kept.iter().take_while(|idle| idle.since.elapsed() >= IDLE_MAX).count();
        kept.drain(..stale);
        if kept.len() < KEPT_MAX {
            kept.push(Idle { wire, since: Instant::now() });
        }
    }
}

impl Server {
    fn is_at(&self, address: &Uri) -> bool {
        address.scheme() == Some(&self.scheme) && address.authority() == Some(&self.authority)
    }
}

/// A request that was not answered.
enum Unsent {
    /// It was not sent, and is here to be sent on another connection.
    Request(Box<Request<Bytes>>),
    /// It cannot be sent again without the caller's consent.
    Failed(TransportError),
}

impl Wire {
    async fn exchange(
        &mut self,
        address: &Uri,
        request: Request<Bytes>,
        bytes_max: usize,
    ) -> Result<Response<Bytes>, Unsent> {
        let (mut head, body) = request.into_parts();
        match &self.through_proxy {
            Some(proxy) => {
                if let Some(authorization) = &proxy.authorization {
                    head.headers.insert(PROXY_AUTHORIZATION, authorization.clone());
                }
            }
            None => head.uri = origin_form(address),
        }
        let sending = self.sender.try_send_request(Request::from_parts(head, Full::new(body.clone())));
        let answered = {
            let mut sending = pin!(sending);
            poll_fn(|cx| {
                drive(&mut self.connection, &mut self.is_closed, cx);
                sending.as_mut().poll(cx)
            })
            .await
        };
        let response = answered.map_err(|mut error| match error.take_message() {
            Some(request) => {
                let (mut head, _) = request.into_parts();
                head.uri = address.clone();
                Unsent::Request(Box::new(Request::from_parts(head, body.clone())))
            }
            None => Unsent::Failed(TransportError::lost(error.into_error())),
        })?;
        let (head, body) = response.into_parts();
        if body.size_hint().lower() > bytes_max as u64 {
            let message = format!("the answer has more than {bytes_max} bytes");
            return Err(Unsent::Failed(TransportError::lost(message)));
        }
        let body = self.collect(body, bytes_max).await.map_err(Unsent::Failed)?;
        Ok(Response::from_parts(head, body))
    }

    /// The whole body. Usually it comes in one piece, which is then handed on as it is.
    async fn collect(&mut self, mut body: Incoming, bytes_max: usize) -> Result<Bytes, TransportError> {
        let mut whole = Bytes::new();
        let mut joined = Vec::new();
        while !body.is_end_stream() {
            let frame = poll_fn(|cx| {
                // Often it came together with the head.
                if let Poll::Ready(frame) = Pin::new(&mut body).poll_frame(cx) {
                    return Poll::Ready(frame);
                }
                drive(&mut self.connection, &mut self.is_closed, cx);
                Pin::new(&mut body).poll_frame(cx)
            });
            let Some(frame) = frame.await else { break };
            let Ok(piece) = frame.map_err(TransportError::lost)?.into_data() else { continue };
            if whole.len() + joined.len() + piece.len() > bytes_max {
                return Err(TransportError::lost(format!("the answer has more than {bytes_max} bytes")));
            }
            if whole.is_empty() && joined.is_empty() {
                whole = piece;
            } else {
                joined.extend_from_slice(&std::mem::take(&mut whole));
                joined.extend_from_slice(&piece);
            }
        }
        Ok(if joined.is_empty() { whole } else { Bytes::from(joined) })
    }

    /// Whether the connection can take a request.
    fn is_ready(&mut self) -> bool {
        // Reads what the server sent meanwhile, which can only be that it closes.
        drive(&mut self.connection, &mut self.is_closed, &mut Context::from_waker(Waker::noop()));
        !self.is_closed && self.sender.is_ready()
    }
}

/// Lets a connection do what it can.
fn drive(connection: &mut Connection<Box<dyn Stream>, Full<Bytes>>, is_closed: &mut bool, cx: &mut Context<'_>) {
    if !*is_closed && let Poll::Ready(_ended) = Pin::new(connection).poll(cx) {
        // How it ended is told to the request, if there is one.
        *is_closed = true;
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        Box::pin(self.exchange(request))
    }
}

impl Default for HttpTransport {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTransport").finish_non_exhaustive()
    }
}

fn check(address: &Uri) -> Result<(), TransportError> {
    match (address.scheme_str(), address.authority()) {
        (Some("http" | "https"), Some(_)) => Ok(()),
        _ => Err(TransportError::not_sent(format!("expected an address with http or https, found {address}"))),
    }
}

/// The address as a request line to the server itself has it.
fn origin_form(address: &Uri) -> Uri {
    address.path_and_query().cloned().map_or_else(|| Uri::from_static("/"), Uri::from)
}

/// Below the idle time of the services, so that a kept connection is seldom found closed.
const IDLE_MAX: Duration = Duration::from_secs(45);
/// Connections kept to one server.
const KEPT_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    /// Answers each connection's request with this text and closes; returns the address.
    fn serve(answers: Vec<String>) -> Uri {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}/", listener.local_addr().expect("an address"));
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().expect("a connection");
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    if stream.read(&mut byte).expect("a request") == 0 {
                        break;
                    }
                    head.extend_from_slice(&byte);
                }
                // The client may have heard enough before the end.
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        address.parse().expect("an address")
    }

    #[tokio::test]
    async fn answers_above_the_limit_are_refused() {
        let chunked = |chunks: usize| {
            let chunks = "64\r\n".to_owned() + &"a".repeat(100) + "\r\n" + &"1\r\nb\r\n".repeat(chunks) + "0\r\n\r\n";
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}")
        };
        let plain =
            |length: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{}", "a".repeat(length));
        let early = "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n".to_owned();
        let answers =
            [(plain(101), true), (plain(102), false), (early, false), (chunked(1), true), (chunked(2), false)];
        let address = serve(answers.iter().map(|(answer, _)| answer.clone()).collect());
        let transport = HttpTransport::with_settings(&ConnectSettings { answer_bytes_max: 101, ..Default::default() });
        for (answer, fits) in answers {
            let mut request = Request::new(Bytes::new());
            *request.uri_mut() = address.clone();
            let read = transport.send(request).await;
            assert_eq!(read.is_ok(), fits, "{answer:.60}: {read:?}");
            // The server closes every connection, so none may be kept.
            transport.servers.lock().clear();
        }
    }
}
