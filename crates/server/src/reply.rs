//! An answer before the headers that all answers share are added.

use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use larimar_wire::table::MetadataLevel;

/// Status, headers of its own, and body.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// An answer without a body.
    pub(crate) fn empty(status: u16) -> Self {
        Self { status, headers: HeaderMap::with_capacity(16), body: Vec::new() }
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
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), value.try_into()) {
            self.headers.insert(name, value);
        }
        self
    }
}
