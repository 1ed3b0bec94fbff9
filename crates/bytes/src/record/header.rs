//! The header of a record: the payload's owner, its time, and its state.

use super::RecordPosition;
use larimar_engine::SpaceId;
use larimar_engine::blob::bytes::Owner;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A record's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// When the header was written.
    pub(crate) written: SystemTime,
    /// The container.
    pub(crate) space: SpaceId,
    /// The blob.
    pub(crate) blob: String,
    /// The payload's length; `None` if the payload ends with the file.
    pub(crate) length: Option<u64>,
    /// The state of the payload.
    pub(crate) state: State,
}

/// The state of a record. The only byte of a record that changes; no checksum covers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The writer has not finished it.
    Unfinished,
    /// The payload is complete.
    Whole,
    /// Nothing points to it any more.
    Dead,
}

impl State {
    pub(crate) fn byte(self) -> u8 {
        match self {
            Self::Unfinished => UNFINISHED,
            Self::Whole => WHOLE,
            Self::Dead => DEAD,
        }
    }

    fn from_byte(byte: u8) -> Self {
        match byte {
            UNFINISHED => Self::Unfinished,
            DEAD => Self::Dead,
            // An unknown state never leads to a removal.
            _ => Self::Whole,
        }
    }
}

impl Header {
    /// A header for an owner; `None` if the name is longer than any blob's.
    #[expect(
        clippy::disallowed_methods,
        reason = "the age of a file is compared with times of the file system, which come from this clock"
    )]
    pub(crate) fn new(owner: Owner<'_>, length: Option<u64>, state: State) -> Option<Self> {
        let Owner { space, blob } = owner;
        let fits = blob.len() <= HEADER_BYTES_MAX - FIXED_BYTES;
        fits.then(|| Self { written: SystemTime::now(), space, blob: blob.to_owned(), length, state })
    }

    /// How many bytes the header takes.
    pub(crate) fn bytes(&self) -> u64 {
        (FIXED_BYTES + self.blob.len()) as u64
    }

    /// Appends the header's bytes; the payload of `position` begins right after them.
    pub(crate) fn encode(&self, position: RecordPosition, out: &mut Vec<u8>) {
        let start = out.len();
        let total = self.bytes() as u16;
        let written = self.written.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&total.to_le_bytes());
        out.extend_from_slice(&written.to_le_bytes());
        out.extend_from_slice(&self.space.0.to_le_bytes());
        out.extend_from_slice(&self.length.unwrap_or(u64::MAX).to_le_bytes());
        out.extend_from_slice(self.blob.as_bytes());
        out.extend_from_slice(&total.to_le_bytes());
        let crc = crc32c::crc32c_append(position.seed(HEADER_PART), &out[start..]);
        out.extend_from_slice(&crc.to_le_bytes());
        out.push(self.state.byte());
    }

    /// Decodes the header at the front of some bytes, which begin at `at` in the file. `Need` has the number of bytes
    /// to read, if these are too few.
    pub(crate) fn decode(bytes: &[u8], file: super::FileName, at: u64) -> Result<Self, Undecoded> {
        let fixed: &[u8; FIXED_BYTES] = bytes.first_chunk().ok_or(Undecoded::Need(FIXED_BYTES))?;
        let total = usize::from(u16::from_le_bytes([fixed[5], fixed[6]]));
        if fixed[..5] != MAGIC || !(FIXED_BYTES..=HEADER_BYTES_MAX).contains(&total) {
            return Err(Undecoded::NoHeader);
        }
        let bytes = bytes.get(..total).ok_or(Undecoded::Need(total))?;
        let position = RecordPosition { file, offset: at + total as u64 };
        let (covered, end) = bytes.split_at(total - 5);
        let crc = crc32c::crc32c_append(position.seed(HEADER_PART), covered);
        if end[..4] != crc.to_le_bytes() {
            return Err(Undecoded::NoHeader);
        }
        let number = |from: usize| u64::from_le_bytes(*covered[from..].first_chunk().expect("the fixed part is there"));
        let name = &covered[NAME_AT..total - 7];
        Ok(Self {
            written: UNIX_EPOCH.checked_add(Duration::from_millis(number(7))).ok_or(Undecoded::NoHeader)?,
            space: SpaceId(number(15)),
            blob: std::str::from_utf8(name).map_err(|_| Undecoded::NoHeader)?.to_owned(),
            length: Some(number(23)).filter(|length| *length != u64::MAX),
            state: State::from_byte(end[4]),
        })
    }

    /// The header's length, from the bytes right before a payload.
    pub(crate) fn length_before(end: [u8; TAIL_BYTES]) -> u64 {
        u64::from(u16::from_le_bytes([end[0], end[1]]))
    }
}

/// The end mark of a complete pack.
pub(crate) fn end_mark(file: super::FileName, at: u64) -> [u8; END_BYTES] {
    let crc = crc32c::crc32c_append(RecordPosition { file, offset: at }.seed(HEADER_PART), &END_MAGIC);
    let mut mark = [0; END_BYTES];
    mark[..END_MAGIC.len()].copy_from_slice(&END_MAGIC);
    mark[END_MAGIC.len()..].copy_from_slice(&crc.to_le_bytes());
    mark
}

/// Why bytes could not be decoded as a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undecoded {
    /// The header has this many bytes.
    Need(usize),
    /// There is none, or it is damaged.
    NoHeader,
}

/// What a header begins with; the last byte is the format.
pub(crate) const MAGIC: [u8; 5] = *b"LRMB\x01";
const END_MAGIC: [u8; 5] = *b"LRME\x01";
/// The bytes of [`end_mark`].
pub(crate) const END_BYTES: usize = 9;
/// What to read first of a header: most are shorter.
pub(crate) const HEADER_BYTES_FIRST: usize = 256;
/// The longest header: a blob's name has 1,024 characters at most.
pub(crate) const HEADER_BYTES_MAX: usize = 8 << 10;
/// The length again, the checksum and the state: what stands right before a payload.
pub(crate) const TAIL_BYTES: usize = 7;
/// The bytes of a state differ in four bits or more, and none is zero.
const UNFINISHED: u8 = 0x0F;
const WHOLE: u8 = 0xF0;
const DEAD: u8 = 0xAA;
const NAME_AT: usize = 31;
const FIXED_BYTES: usize = NAME_AT + TAIL_BYTES;
/// Frames are counted from zero; no payload has this many.
const HEADER_PART: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(blob: &str, length: Option<u64>) -> (Header, Vec<u8>) {
        let owner = Owner { space: SpaceId(77), blob };
        let mut header = Header::new(owner, length, State::Whole).expect("the name is short");
        header.written = UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
        let mut bytes = Vec::new();
        header.encode(RecordPosition { file: [3; 16], offset: 100 + header.bytes() }, &mut bytes);
        (header, bytes)
    }

    #[test]
    fn a_header_is_read_as_it_was_written() {
        for (blob, length) in [("", None), ("a/b", Some(0)), ("ü".repeat(1024).as_str(), Some(1 << 40))] {
            let (header, mut bytes) = encoded(blob, length);
            assert_eq!(bytes.len() as u64, header.bytes());
            let end = bytes.last_chunk().expect("it has an end");
            assert_eq!(Header::length_before(*end), header.bytes());
            bytes.extend_from_slice(b"payload");
            assert_eq!(Header::decode(&bytes, [3; 16], 100), Ok(header));
        }
    }

    #[test]
    fn a_header_elsewhere_or_with_any_bit_changed_is_none() {
        let (_, bytes) = encoded("name", Some(5));
        assert_eq!(Header::decode(&bytes, [3; 16], 101), Err(Undecoded::NoHeader));
        assert_eq!(Header::decode(&bytes, [4; 16], 100), Err(Undecoded::NoHeader));
        for bit in 0..(bytes.len() - 1) * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&changed, [3; 16], 100).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_header_cut_short_tells_what_it_takes() {
        let (_, bytes) = encoded("some-name", Some(5));
        for length in FIXED_BYTES..bytes.len() {
            assert_eq!(Header::decode(&bytes[..length], [3; 16], 100), Err(Undecoded::Need(bytes.len())));
        }
        assert_eq!(Header::decode(b"LR", [3; 16], 100), Err(Undecoded::Need(FIXED_BYTES)));
    }
}
