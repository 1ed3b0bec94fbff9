//! Ranges of bytes and of pages, as headers write them.

use crate::limits;
use std::ops::Range;

/// A range of a `Range` or `x-ms-range` header: `bytes=5-` or `bytes=5-9`, the last byte included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// The first byte.
    pub start: u64,
    /// The last byte; without, all that follow.
    pub last: Option<u64>,
}

impl ByteRange {
    /// Reads the value of a header; nothing if it is not one range with a first byte, which the service ignores.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (start, last) = text.trim().strip_prefix("bytes=")?.split_once('-')?;
        let start = number(start)?;
        let last = if last.trim().is_empty() { None } else { Some(number(last)?) };
        last.is_none_or(|last| start <= last).then_some(Self { start, last })
    }

    /// The bytes of content of this length that lie inside; nothing if it ends before the range begins.
    #[must_use]
    pub fn within(self, length: u64) -> Option<Range<u64>> {
        let end = self.last.map_or(length, |last| last.saturating_add(1).min(length));
        (self.start < length).then_some(self.start..end)
    }
}

/// A range of whole pages, `start` and `end` both multiples of 512 and `start < end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRange {
    start: u64,
    end: u64,
}

/// Why a range is not a valid range of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a range that begins and ends between pages of 512 bytes")]
pub struct PageRangeError;

impl PageRange {
    /// Takes the range up to, but without, `end`.
    ///
    /// # Errors
    /// Refuses bounds that are not between pages, and what is empty.
    pub fn new(start: u64, end: u64) -> Result<Self, PageRangeError> {
        let is_aligned = start.is_multiple_of(limits::PAGE_BYTES) && end.is_multiple_of(limits::PAGE_BYTES);
        if is_aligned && start < end { Ok(Self { start, end }) } else { Err(PageRangeError) }
    }

    /// Takes the range of a header, which must have a last byte.
    ///
    /// # Errors
    /// Refuses bounds that are not between pages.
    pub fn of(range: ByteRange) -> Result<Self, PageRangeError> {
        let end = range.last.and_then(|last| last.checked_add(1)).ok_or(PageRangeError)?;
        Self::new(range.start, end)
    }

    /// The first byte.
    #[must_use]
    pub const fn start(self) -> u64 {
        self.start
    }

    /// The byte after the last.
    #[must_use]
    pub const fn end(self) -> u64 {
        self.end
    }

    /// How many bytes lie inside.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a range of pages is never empty")]
    pub const fn len(self) -> u64 {
        self.end - self.start
    }
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_headers_write_them() {
        for (text, start, last) in [("bytes=0-", 0, None), ("bytes=5-9", 5, Some(9)), (" bytes=7-7 ", 7, Some(7))] {
            assert_eq!(ByteRange::parse(text), Some(ByteRange { start, last }), "{text}");
        }
        for text in ["", "bytes", "bytes=", "bytes=-5", "bytes=9-5", "bytes=a-b", "bytes=0-1,3-4", "0-5", "bytes=+1-2"]
        {
            assert_eq!(ByteRange::parse(text), None, "{text}");
        }
    }

    #[test]
    fn ranges_are_cut_at_the_end_of_the_content() {
        let range = |start, last| ByteRange { start, last };
        assert_eq!(range(0, None).within(10), Some(0..10));
        assert_eq!(range(9, Some(u64::MAX)).within(10), Some(9..10));
        assert_eq!(range(2, Some(4)).within(10), Some(2..5));
        assert_eq!(range(10, None).within(10), None);
        assert_eq!(range(0, Some(0)).within(0), None);
    }

    #[test]
    fn pages_begin_and_end_between_pages() {
        assert_eq!(PageRange::of(ByteRange { start: 512, last: Some(1023) }), PageRange::new(512, 1024));
        assert_eq!(PageRange::new(512, 1536).map(PageRange::len), Ok(1024));
        for (start, end) in [(0, 0), (0, 511), (1, 512), (512, 512), (1024, 512)] {
            assert_eq!(PageRange::new(start, end), Err(PageRangeError), "{start}..{end}");
        }
        assert_eq!(PageRange::of(ByteRange { start: 0, last: None }), Err(PageRangeError));
        assert_eq!(PageRange::of(ByteRange { start: 0, last: Some(u64::MAX) }), Err(PageRangeError));
    }
}
