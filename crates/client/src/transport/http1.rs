//! The transport over HTTP/1.1: connections that are kept, and found again by their server. What happens on one is in
//! `wire.rs`.

use super::connect::{ConnectSettings, Connector};
use super::wire::Wire;
use super::{BoxFuture, Transport, TransportError};
use bytes::Bytes;
use http::uri::{Authority, Scheme};
use http::{Request, Response, Uri};
use parking_lot::Mutex;
use std::fmt;
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
    wire: Wire,
    since: Instant,
}

impl HttpTransport {
    /// A transport that follows the proxy variables of the environment, but for addresses of this machine, and trusts
    /// the certificates of the system.
    #[must_use]
    pub fn new() -> Self {
        Self::with_settings(&ConnectSettings::default())
    }

    /// As [`HttpTransport::new`]; also trusts a server that shows the first certificate of this PEM, as
    /// [`AccountBuilder::server_certificate`](crate::AccountBuilder::server_certificate) does.
    #[must_use]
    pub fn trusting_server(pem: impl Into<Vec<u8>>) -> Self {
        Self::with_settings(&ConnectSettings { server_certificates: vec![pem.into()], ..ConnectSettings::default() })
    }

    pub(crate) fn with_settings(settings: &ConnectSettings) -> Self {
        let answer_bytes_max = settings.answer_bytes_max;
        Self { connector: Connector::new(settings), servers: Mutex::default(), answer_bytes_max }
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let address = request.uri();
        check(address)?;
        // A kept connection may close at the moment it is used. If nothing was sent, the next one has its turn; there are
        // only so many, and a new one is the last.
        while let Some(wire) = self.take_idle(address) {
            match self.send_on(wire, &request).await {
                Err(error) if !error.may_have_been_sent() => {}
                outcome => return outcome,
            }
        }
        // Rare and large, so that its future is in a box of its own, and not in that of every request.
        let connected = Box::pin(self.connector.connect(address)).await?;
        self.send_on(Wire::new(connected), &request).await
    }

    async fn send_on(&self, mut wire: Wire, request: &Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let exchanged = wire.exchange(request, self.answer_bytes_max).await?;
        if exchanged.is_reusable {
            self.keep(request.uri(), wire);
        }
        Ok(exchanged.response)
    }

    /// The connection that was used last, if it is still open.
    fn take_idle(&self, address: &Uri) -> Option<Wire> {
        loop {
            let mut idle = self.servers.lock().iter_mut().find(|server| server.is_at(address))?.idle.pop()?;
            if idle.since.elapsed() < IDLE_MAX && idle.wire.is_open() {
                return Some(idle.wire);
            }
        }
    }

    fn keep(&self, address: &Uri, wire: Wire) {
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
