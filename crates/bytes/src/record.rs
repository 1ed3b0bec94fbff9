//! The stored form of a payload: a header that names its owner, then frames of 64 KiB, each followed by its checksum.
//!
//! Checksums start with the position of the record (file, offset, number of the frame), so that intact bytes in the wrong
//! position are detected as well.

mod frames;
mod header;

pub(crate) use frames::{FrameEncoder, Span, payload_bytes, stored_bytes};
pub(crate) use header::{
    END_BYTES, HEADER_BYTES_FIRST, HEADER_BYTES_MAX, Header, MAGIC, State, TAIL_BYTES, Undecoded, end_mark,
};

use larimar_engine::blob::bytes::Extent;

/// The name of a file or object.
pub(crate) type FileName = [u8; 16];

/// Where a record is: its file, and where its payload begins in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordPosition {
    pub(crate) file: FileName,
    pub(crate) offset: u64,
}

impl RecordPosition {
    /// The checksum that a part of the record continues.
    fn seed(self, part: u64) -> u32 {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&self.file);
        bytes[16..24].copy_from_slice(&self.offset.to_le_bytes());
        bytes[24..].copy_from_slice(&part.to_le_bytes());
        crc32c::crc32c(&bytes)
    }
}

/// A new random name.
#[expect(clippy::disallowed_methods, reason = "this is the source of file names")]
pub(crate) fn random_name() -> FileName {
    let mut name = [0; 16];
    getrandom::fill(&mut name).expect("the system has randomness");
    name
}

/// A name in hexadecimal digits.
pub(crate) fn file_name(file: &FileName) -> String {
    Extent { file: *file, offset: 0, length: 0 }.file_name()
}

/// Parses a name; `None` for files that are not ours.
pub(crate) fn parse_name(name: &str) -> Option<FileName> {
    if name.len() != 32 || !name.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase()) {
        return None;
    }
    Some(u128::from_str_radix(name, 16).ok()?.to_be_bytes())
}
