//! An answer before the headers that all answers share are added, and the body that hyper sends.

use crate::in_flight::{Held, counted};
use crate::spelling::METADATA_PREFIX;
use bytes::Bytes;
use futures_util::Stream;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use larimar_model::Metadata;
use larimar_wire::table::MetadataLevel;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Status, headers of its own, and body.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// Names of metadata that have capitals: headers are in lower case until they are written.
    pub(crate) spelled: Vec<String>,
    /// A body that is made while it is sent, in the place of the other.
    pub(crate) stream: Option<Streamed>,
    /// The body's part of the budget for bytes in flight.
    pub(crate) held: Option<Held>,
    /// The reason phrase, if not that of the status.
    pub(crate) reason: Option<String>,
    /// Whether nothing was changed, so that the answer may be dropped and made again.
    pub(crate) is_read: bool,
}

/// Pieces of a body as they become ready, and how many bytes they are together. An error ends the connection, as the
/// head has said how much there would be.
pub(crate) struct Streamed {
    pub(crate) pieces: Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>,
    pub(crate) bytes: u64,
}

/// Pieces of a body of which nobody knows how long it will be.
struct Pieces(Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>);

impl Reply {
    /// An answer without a body.
    pub(crate) fn empty(status: u16) -> Self {
        let headers = HeaderMap::with_capacity(16);
        Self {
            status,
            headers,
            body: Vec::new(),
            spelled: Vec::new(),
            stream: None,
            held: None,
            reason: None,
            is_read: false,
        }
    }

    /// An answer with a JSON body.
    pub(crate) fn json(status: u16, level: MetadataLevel, body: Vec<u8>) -> Self {
        let mut reply = Self { body, ..Self::empty(status) };
        reply.headers.insert(CONTENT_TYPE, HeaderValue::from_static(level.content_type()));
        reply
    }

    /// An answer with an XML body.
    pub(crate) fn xml(status: u16, body: Vec<u8>) -> Self {
        let mut reply = Self { body, ..Self::empty(status) };
        reply.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
        reply
    }

    /// This answer with another header. A value that cannot be one is left out.
    pub(crate) fn with(mut self, name: &str, value: impl TryInto<HeaderValue>) -> Self {
        if let (Ok(known), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), value.try_into()) {
            if name.starts_with(METADATA_PREFIX) && known.as_str() != name {
                self.spelled.push(name.to_owned());
            }
            self.headers.insert(known, value);
        }
        self
    }

    /// This answer with the headers of metadata.
    pub(crate) fn with_metadata(self, metadata: &Metadata) -> Self {
        metadata.iter().fold(self, |reply, (name, value)| reply.with(&format!("x-ms-meta-{name}"), value))
    }

    /// This answer with another header, if there is a value for it.
    pub(crate) fn with_some(self, name: &str, value: Option<impl TryInto<HeaderValue>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
}

impl fmt::Debug for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pieces")
    }
}

impl fmt::Debug for Streamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Streamed({} bytes)", self.bytes)
    }
}

/// The body of a response: whole, made while it is sent, or going on while things happen.
#[derive(Debug)]
pub struct ResponseBody {
    form: Form,
    /// Called at the end, also if the client disconnects before it.
    end: End,
}

/// A callback for the end of a body.
#[derive(Default)]
struct End(Option<Box<dyn FnOnce(u64) + Send>>);

#[derive(Debug)]
enum Form {
    Whole(Option<Bytes>),
    Streamed(Streamed),
    Endless(Pieces),
}

impl ResponseBody {
    /// A body that is there already.
    #[must_use]
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { form: Form::Whole(Some(bytes).filter(|bytes| !bytes.is_empty())), end: End::default() }
    }

    /// A body that is there already, with its part of the budget.
    pub(crate) fn held(body: Vec<u8>, held: Option<Held>) -> Self {
        match held {
            Some(held) => Self::whole(counted(body, held)),
            None => Self::whole(body),
        }
    }

    pub(crate) fn streamed(stream: Streamed) -> Self {
        Self { form: Form::Streamed(stream), end: End::default() }
    }

    /// A body of a length that is not known, such as one that goes on while things happen.
    pub(crate) fn endless(pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Self {
        Self { form: Form::Endless(Pieces(Box::pin(pieces))), end: End::default() }
    }

    /// Whether the body is made while it is sent.
    pub(crate) const fn is_streamed(&self) -> bool {
        matches!(self.form, Form::Streamed(_))
    }

    /// Calls `end`, after what was asked for before, with the number of unsent bytes once the body is sent or abandoned.
    pub(crate) fn on_end(&mut self, end: impl FnOnce(u64) + Send + 'static) {
        self.end = End(Some(match self.end.0.take() {
            Some(earlier) => Box::new(move |left| {
                earlier(left);
                end(left);
            }),
            None => Box::new(end),
        }));
    }

    /// How many bytes there are to come, as far as that is known.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match &self.form {
            Form::Whole(bytes) => bytes.as_ref().map_or(0, |bytes| bytes.len() as u64),
            Form::Streamed(stream) => stream.bytes,
            Form::Endless(_) => 0,
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        if let Some(end) = self.end.0.take() {
            end(self.bytes());
        }
    }
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "End({})", self.0.is_some())
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut self.form {
            Form::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Form::Streamed(stream) => {
                let piece = std::task::ready!(stream.pieces.as_mut().poll_next(cx));
                Poll::Ready(piece.map(|piece| {
                    let piece = piece?;
                    stream.bytes = stream.bytes.saturating_sub(piece.len() as u64);
                    Ok(Frame::data(piece))
                }))
            }
            Form::Endless(Pieces(pieces)) => pieces.as_mut().poll_next(cx).map_ok(Frame::data),
        }
    }

    fn is_end_stream(&self) -> bool {
        !matches!(self.form, Form::Endless(_)) && self.bytes() == 0
    }

    fn size_hint(&self) -> SizeHint {
        match self.form {
            Form::Whole(_) | Form::Streamed(_) => SizeHint::with_exact(self.bytes()),
            Form::Endless(_) => SizeHint::default(),
        }
    }
}
