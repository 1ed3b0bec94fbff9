//! The primitives of stored rows: numbers, texts, times, optional values, metadata.

use crate::error::Fault;
use larimar_model::{Metadata, Timestamp, varint};

/// A number as a varint.
pub(crate) fn put_number(out: &mut Vec<u8>, value: u64) {
    varint::put(out, value);
}

/// The length, then the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Eight bytes, big-endian.
pub(crate) fn put_time(out: &mut Vec<u8>, time: Timestamp) {
    out.extend_from_slice(&time.ticks().to_be_bytes());
}

/// 0 for nothing, or 1 and the text.
pub(crate) fn put_optional_text(out: &mut Vec<u8>, text: Option<&str>) {
    out.push(u8::from(text.is_some()));
    if let Some(text) = text {
        put_bytes(out, text.as_bytes());
    }
}

/// Appends metadata: the number of pairs, then names and values.
pub(crate) fn put_metadata(out: &mut Vec<u8>, metadata: &Metadata) {
    put_number(out, metadata.iter().len() as u64);
    for (name, value) in metadata.iter() {
        put_bytes(out, name.as_bytes());
        put_bytes(out, value.as_bytes());
    }
}

/// Takes metadata off the front of stored bytes.
pub(crate) fn take_metadata(reader: &mut Reader<'_>) -> Option<Metadata> {
    let mut metadata = Metadata::new();
    for _ in 0..reader.count()? {
        metadata.insert(reader.text()?, reader.text()?).ok()?;
    }
    Some(metadata)
}

/// Decodes stored bytes from the front; `None` if they are malformed.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    pub(crate) fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        varint::take(&mut self.0)
    }

    pub(crate) fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    /// The number of items that follow. Each takes at least a byte, so a count above the bytes left is refused.
    pub(crate) fn count(&mut self) -> Option<usize> {
        self.number()?.try_into().ok().filter(|count| *count <= self.0.len())
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let length = self.count()?;
        std::str::from_utf8(self.take(length)?).ok()
    }

    pub(crate) fn optional_text(&mut self) -> Option<Option<String>> {
        if self.flag()? { Some(Some(self.text()?.to_owned())) } else { Some(None) }
    }

    pub(crate) fn time(&mut self) -> Option<Timestamp> {
        Some(Timestamp::from_ticks(u64::from_be_bytes(self.take(8)?.try_into().ok()?)))
    }

    pub(crate) fn array(&mut self) -> Option<[u8; 16]> {
        self.take(16)?.try_into().ok()
    }
}

/// The fault for a row that cannot be decoded.
pub(crate) fn damaged(what: &str) -> Fault {
    Fault::Damaged(format!("{what} has an unknown format"))
}
