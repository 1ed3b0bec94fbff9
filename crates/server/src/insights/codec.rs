//! Reads the stored form of figures: numbers of variable length, and texts with their length before them.
//!
//! Rows come from this or from an earlier release, or are damaged: every count is bounded, and what cannot be read is `None`.

use larimar_model::varint;

/// What is left to read of a stored form.
#[derive(Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// A figure. Damaged ones that are so large that sums of them would overflow are refused.
    pub(crate) fn number(&mut self) -> Option<u64> {
        varint::take(&mut self.0).filter(|number| *number < 1 << 48)
    }

    pub(crate) fn hash(&mut self) -> Option<u64> {
        self.bytes(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    /// A number of items that follow: at most this many.
    pub(crate) fn count(&mut self, max: usize) -> Option<usize> {
        self.number().and_then(|count| usize::try_from(count).ok()).filter(|count| *count <= max)
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let length = self.count(self.0.len())?;
        std::str::from_utf8(self.bytes(length)?).ok()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Appends a text.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    varint::put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}
