//! The small pieces that stored rows are written with: numbers, texts, and what may be missing.

use crate::error::Fault;
use larimar_model::Timestamp;

/// Seven bits a byte, least significant first, high bit set on all but the last.
pub(crate) fn put_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
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

/// Reads stored bytes from the front; `None` where they are not what was written.
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
        let mut value = 0_u64;
        for place in 0..10_u32 {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            value |= bits.checked_shl(place * 7).filter(|shifted| shifted >> (place * 7) == bits)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    pub(crate) fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    /// How many items follow, each of a byte at least: never more than there are bytes.
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

/// What a row that cannot be read means.
pub(crate) fn damaged(what: &str) -> Fault {
    Fault::Damaged(format!("{what} has an unknown format"))
}
