//! One connection: a request out, its answer in.
//!
//! The protocol is HTTP/1.1 without pipelining, and requests and answers are in memory whole, so there is little of it:
//! the head of the answer is `httparse`'s, the rest is in `answer.rs`.

use super::answer::{Chunks, Framing, Head, TooLarge, too_large};
use super::connect::{Connected, ProxyHeaders, Stream};
use super::{BoxError, TransportError};
use crate::error::ERROR_BYTES_MAX;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, PROXY_AUTHORIZATION};
use http::{HeaderMap, Method, Request, Response};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::ReadBuf;

/// A connection.
pub(super) struct Wire {
    stream: Box<dyn Stream>,
    through_proxy: Option<ProxyHeaders>,
    /// What was received, and how much of it is there.
    buffer: Vec<u8>,
    filled: usize,
    /// The head of the request, and its body if that is small.
    head: Vec<u8>,
    /// Headers of an earlier answer, for `Head::parse`.
    earlier: HeaderMap,
}

/// A request that is being sent.
struct Outgoing<'a> {
    parts: [&'a [u8]; 2],
    is_flushed: bool,
    /// Whether any of it may be at the server.
    is_begun: bool,
    /// Why no more of it can be sent. The server may have answered all the same.
    error: Option<io::Error>,
}

/// An answer, and whether the connection can take another request.
pub(super) struct Exchanged {
    pub(super) response: Response<Bytes>,
    pub(super) is_reusable: bool,
}

impl Wire {
    pub(super) fn new(connected: Connected) -> Self {
        let Connected { stream, through_proxy } = connected;
        Self {
            stream,
            through_proxy,
            buffer: vec![0; BUFFER_BYTES],
            filled: 0,
            head: Vec::with_capacity(1024),
            earlier: HeaderMap::new(),
        }
    }

    /// Whether the server still listens, as far as is known.
    pub(super) fn is_open(&mut self) -> bool {
        // Between requests there is nothing to read but the end.
        let mut byte = [0];
        let mut buffer = ReadBuf::new(&mut byte);
        let mut cx = Context::from_waker(Waker::noop());
        Pin::new(&mut *self.stream).poll_read(&mut cx, &mut buffer).is_pending()
    }

    /// Sends a request and reads its answer.
    pub(super) async fn exchange(
        &mut self,
        request: &Request<Bytes>,
        body_bytes_max: usize,
    ) -> Result<Exchanged, TransportError> {
        self.filled = 0;
        let mut head = std::mem::take(&mut self.head);
        self.write_head(&mut head, request);
        let body = request.body();
        // A small body goes with the head: one system call, and one packet.
        let is_joined = body.len() <= JOINED_BYTES_MAX;
        if is_joined {
            head.extend_from_slice(body);
        }
        let parts = [&head[..], if is_joined { &[] } else { &body[..] }];
        let mut outgoing = Outgoing { parts, is_flushed: false, is_begun: false, error: None };
        let answered = self.read_answer(&mut outgoing, request.method(), body_bytes_max).await;
        let Outgoing { is_flushed, is_begun, error, .. } = outgoing;
        head.clear();
        self.head = head;
        match answered {
            Ok((response, keeps_alive)) => Ok(Exchanged { response, is_reusable: keeps_alive && is_flushed }),
            Err(answer_error) => {
                let source = error.map_or(answer_error, BoxError::from);
                Err(if is_begun { TransportError::lost(source) } else { TransportError::not_sent(source) })
            }
        }
    }

    fn write_head(&self, out: &mut Vec<u8>, request: &Request<Bytes>) {
        let uri = request.uri();
        out.extend_from_slice(request.method().as_str().as_bytes());
        out.push(b' ');
        // A proxy gets the absolute address.
        if let (Some(_), Some(scheme), Some(authority)) = (&self.through_proxy, uri.scheme_str(), uri.authority()) {
            for part in [scheme, "://", authority.as_str()] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        out.extend_from_slice(uri.path_and_query().map_or("/", |path| path.as_str()).as_bytes());
        out.extend_from_slice(b" HTTP/1.1\r\n");
        let mut line = |name: &[u8], value: &[u8]| {
            for part in [name, b": ", value, b"\r\n"] {
                out.extend_from_slice(part);
            }
        };
        for (name, value) in request.headers() {
            line(name.as_str().as_bytes(), value.as_bytes());
        }
        if let (false, Some(authority)) = (request.headers().contains_key(HOST), uri.authority()) {
            line(b"host", authority.as_str().as_bytes());
        }
        if !request.headers().contains_key(CONTENT_LENGTH) && !request.body().is_empty() {
            line(b"content-length", request.body().len().to_string().as_bytes());
        }
        if let Some(authorization) = self.through_proxy.as_ref().and_then(|proxy| proxy.authorization.as_ref()) {
            line(PROXY_AUTHORIZATION.as_str().as_bytes(), authorization.as_bytes());
        }
        out.extend_from_slice(b"\r\n");
    }

    async fn read_answer(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        method: &Method,
        body_bytes_max: usize,
    ) -> Result<(Response<Bytes>, bool), BoxError> {
        let head = loop {
            if let Some(head) = Head::parse(&self.buffer[..self.filled], method, &mut self.earlier)? {
                if !head.status.is_informational() {
                    break head;
                }
                self.consume(head.bytes);
                continue;
            }
            if !self.receive(outgoing).await? {
                return Err("the connection was closed before the answer".into());
            }
        };
        let (body, is_whole) = match head.status.is_success() {
            true => self.read_body(outgoing, &head, body_bytes_max).await?,
            false => self.read_error(outgoing, &head, body_bytes_max.min(ERROR_BYTES_MAX)).await?,
        };
        let mut response = Response::new(body);
        *response.status_mut() = head.status;
        *response.headers_mut() = head.headers;
        Ok((response, head.keeps_alive && is_whole))
    }

    /// The body of an answer, and whether nothing follows it.
    async fn read_body(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        head: &Head,
        bytes_max: usize,
    ) -> Result<(Bytes, bool), BoxError> {
        match head.framing {
            Framing::Length(length) => self.read_length(outgoing, head.bytes, length, bytes_max).await,
            Framing::Chunked => self.read_chunks(outgoing, head.bytes, bytes_max).await,
            Framing::Close => Ok((self.read_to_close(outgoing, head.bytes, bytes_max).await?, false)),
        }
    }

    /// The body of an error. One that is too long is left out: status and headers say enough.
    async fn read_error(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        head: &Head,
        bytes_max: usize,
    ) -> Result<(Bytes, bool), BoxError> {
        match self.read_body(outgoing, head, bytes_max).await {
            Err(error) if error.is::<TooLarge>() => Ok((Bytes::new(), false)),
            read => read,
        }
    }

    /// A body of this length, and whether nothing follows it.
    async fn read_length(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        start: usize,
        length: u64,
        body_bytes_max: usize,
    ) -> Result<(Bytes, bool), BoxError> {
        let length = usize::try_from(length).ok().filter(|length| *length <= body_bytes_max);
        let length = length.ok_or_else(|| too_large(body_bytes_max))?;
        let end = start + length;
        if end <= self.buffer.len() {
            while self.filled < end {
                self.receive_more(outgoing).await?;
            }
            return Ok((Bytes::copy_from_slice(&self.buffer[start..end]), self.filled == end));
        }
        let mut body = Vec::with_capacity(length);
        self.consume(start);
        loop {
            let piece = self.filled.min(length - body.len());
            body.extend_from_slice(&self.buffer[..piece]);
            self.consume(piece);
            if body.len() == length {
                return Ok((body.into(), self.filled == 0));
            }
            self.receive_more(outgoing).await?;
        }
    }

    async fn read_chunks(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        start: usize,
        body_bytes_max: usize,
    ) -> Result<(Bytes, bool), BoxError> {
        self.consume(start);
        let mut chunks = Chunks::default();
        loop {
            let taken = chunks.take(&self.buffer[..self.filled], body_bytes_max)?;
            self.consume(taken);
            if chunks.is_done() {
                return Ok((chunks.body.into(), self.filled == 0));
            }
            self.receive_more(outgoing).await?;
        }
    }

    async fn read_to_close(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        start: usize,
        body_bytes_max: usize,
    ) -> Result<Bytes, BoxError> {
        self.consume(start);
        let mut body = Vec::new();
        loop {
            body.extend_from_slice(&self.buffer[..self.filled]);
            self.consume(self.filled);
            if body.len() > body_bytes_max {
                return Err(too_large(body_bytes_max));
            }
            if !self.receive(outgoing).await? {
                return Ok(body.into());
            }
        }
    }

    /// Takes bytes off the front.
    fn consume(&mut self, bytes: usize) {
        self.buffer.copy_within(bytes..self.filled, 0);
        self.filled -= bytes;
    }

    async fn receive_more(&mut self, outgoing: &mut Outgoing<'_>) -> Result<(), BoxError> {
        match self.receive(outgoing).await? {
            true => Ok(()),
            false => Err("the connection was closed within the answer".into()),
        }
    }

    /// Receives something and sends meanwhile what is left of the request; returns whether anything came.
    async fn receive(&mut self, outgoing: &mut Outgoing<'_>) -> io::Result<bool> {
        if self.filled == self.buffer.len() {
            // Only a head is ever kept here whole, and that is limited.
            self.buffer.resize(2 * self.buffer.len(), 0);
        }
        poll_fn(|cx| {
            outgoing.poll_send(cx, &mut *self.stream);
            let mut buffer = ReadBuf::new(&mut self.buffer[self.filled..]);
            ready!(Pin::new(&mut *self.stream).poll_read(cx, &mut buffer))?;
            let received = buffer.filled().len();
            self.filled += received;
            Poll::Ready(Ok(received > 0))
        })
        .await
    }
}

impl Outgoing<'_> {
    /// Sends as much as the connection takes.
    fn poll_send(&mut self, cx: &mut Context<'_>, stream: &mut dyn Stream) {
        while self.error.is_none() && !self.is_flushed {
            let part = self.parts.iter_mut().find(|part| !part.is_empty());
            let sent = match part {
                Some(part) => match Pin::new(&mut *stream).poll_write(cx, part) {
                    Poll::Ready(Ok(0)) => Err(io::ErrorKind::WriteZero.into()),
                    Poll::Ready(Ok(bytes)) => {
                        *part = &part[bytes..];
                        self.is_begun = true;
                        Ok(())
                    }
                    Poll::Ready(Err(error)) => Err(error),
                    Poll::Pending => return,
                },
                None => match Pin::new(&mut *stream).poll_flush(cx) {
                    Poll::Ready(flushed) => {
                        self.is_flushed = true;
                        flushed
                    }
                    Poll::Pending => return,
                },
            };
            self.error = sent.err();
        }
    }
}

/// More than most answers: what fits is received at once.
const BUFFER_BYTES: usize = 16 << 10;
const JOINED_BYTES_MAX: usize = 16 << 10;
