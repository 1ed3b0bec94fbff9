//! The frames of a payload: encoding them as bytes arrive, and finding those that a read touches.

use super::RecordPosition;
use larimar_engine::blob::bytes::{Extent, READ_BYTES_MAX};
use std::ops::Range;

/// Payload bytes in a frame; the last one of a payload may have fewer.
pub(crate) const FRAME_BYTES: u64 = 64 << 10;
/// The checksum behind each frame.
const CRC_BYTES: u64 = 4;
const STORED_FRAME_BYTES: u64 = FRAME_BYTES + CRC_BYTES;

/// How many bytes the frames of a payload take.
pub(crate) fn stored_bytes(payload: u64) -> u64 {
    payload + payload.div_ceil(FRAME_BYTES) * CRC_BYTES
}

/// How many bytes a payload has whose frames take so many; `None` if none does.
pub(crate) fn payload_bytes(stored: u64) -> Option<u64> {
    let rest = stored % STORED_FRAME_BYTES;
    let last = if rest == 0 { 0 } else { rest.checked_sub(CRC_BYTES).filter(|last| *last > 0)? };
    Some(stored / STORED_FRAME_BYTES * FRAME_BYTES + last)
}

/// Makes frames of bytes that arrive in pieces of any size.
#[derive(Debug)]
pub(crate) struct FrameEncoder {
    position: RecordPosition,
    index: u64,
    crc: u32,
    filled: usize,
    length: u64,
}

impl FrameEncoder {
    pub(crate) fn new(position: RecordPosition) -> Self {
        Self { position, index: 0, crc: position.seed(0), filled: 0, length: 0 }
    }

    /// The payload so far.
    pub(crate) fn extent(&self) -> Extent {
        Extent { file: self.position.file, offset: self.position.offset, length: self.length }
    }

    /// Appends payload bytes, and the checksums of the frames that they complete.
    pub(crate) fn push(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(FRAME_BYTES as usize - self.filled));
            self.crc = crc32c::crc32c_append(self.crc, now);
            out.extend_from_slice(now);
            self.filled += now.len();
            self.length += now.len() as u64;
            if self.filled as u64 == FRAME_BYTES {
                self.end(out);
            }
            bytes = later;
        }
    }

    /// Ends the last frame, if it is not complete.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) {
        if self.filled > 0 {
            out.extend_from_slice(&self.crc.to_le_bytes());
            self.index += 1;
            self.crc = self.position.seed(self.index);
            self.filled = 0;
        }
    }
}

/// The frames that a read touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    position: RecordPosition,
    /// The number of the first frame.
    first: u64,
    /// Payload bytes of all touched frames.
    framed: u64,
    /// What of those is asked for: from here on, so many.
    skip: u64,
    wanted: u64,
}

impl Span {
    /// The frames for a range of a payload, for [`READ_BYTES_MAX`] bytes of it at most; `None` where the range holds
    /// nothing.
    pub(crate) fn of(extent: &Extent, range: &Range<u64>) -> Option<Self> {
        let end = range.end.min(extent.length).min(range.start.saturating_add(READ_BYTES_MAX));
        if range.start >= end {
            return None;
        }
        let first = range.start / FRAME_BYTES;
        let skip = range.start % FRAME_BYTES;
        let framed = end.next_multiple_of(FRAME_BYTES).min(extent.length) - first * FRAME_BYTES;
        let position = RecordPosition { file: extent.file, offset: extent.offset };
        Some(Self { position, first, framed, skip, wanted: end - range.start })
    }

    /// The stored bytes of the frames.
    pub(crate) fn stored(&self) -> Range<u64> {
        let start = self.position.offset + self.first * STORED_FRAME_BYTES;
        start..start + stored_bytes(self.framed)
    }

    /// Reads the frames one by one, each to where it belongs: the checksum behind it is overwritten by the next one.
    /// Returns where in the buffer the wanted bytes are; `Ok(None)` if a checksum is wrong.
    pub(crate) fn read_into<E>(
        &self,
        buffer: &mut Vec<u8>,
        mut read_at: impl FnMut(&mut [u8], u64) -> Result<(), E>,
    ) -> Result<Option<Range<usize>>, E> {
        buffer.resize((self.framed + CRC_BYTES) as usize, 0);
        let mut at = self.stored().start;
        let mut rest = self.framed as usize;
        for number in 0..self.framed.div_ceil(FRAME_BYTES) {
            let from = (number * FRAME_BYTES) as usize;
            let length = rest.min(FRAME_BYTES as usize);
            let stored = &mut buffer[from..from + length + CRC_BYTES as usize];
            read_at(stored, at)?;
            let (frame, behind) = stored.split_at(length);
            if behind != self.crc(number, frame).to_le_bytes() {
                return Ok(None);
            }
            at += STORED_FRAME_BYTES;
            rest -= length;
        }
        Ok(Some(self.wanted()))
    }

    /// Takes the checksums out of stored bytes, having verified them; returns where the wanted bytes are. `None` if a
    /// checksum is wrong or the bytes are not as many as were stored.
    pub(crate) fn unframe(&self, stored: &mut [u8]) -> Option<Range<usize>> {
        if stored.len() as u64 != stored_bytes(self.framed) {
            return None;
        }
        let mut rest = self.framed as usize;
        for number in 0..self.framed.div_ceil(FRAME_BYTES) {
            let from = (number * STORED_FRAME_BYTES) as usize;
            let length = rest.min(FRAME_BYTES as usize);
            let (frame, behind) = stored[from..].split_at(length);
            if behind.first_chunk() != Some(&self.crc(number, frame).to_le_bytes()) {
                return None;
            }
            stored.copy_within(from..from + length, (number * FRAME_BYTES) as usize);
            rest -= length;
        }
        Some(self.wanted())
    }

    fn crc(&self, number: u64, frame: &[u8]) -> u32 {
        crc32c::crc32c_append(self.position.seed(self.first + number), frame)
    }

    fn wanted(&self) -> Range<usize> {
        self.skip as usize..(self.skip + self.wanted) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POSITION: RecordPosition = RecordPosition { file: [9; 16], offset: 1000 };

    fn payload(length: usize) -> Vec<u8> {
        (0..length).map(|i| (i * 31 % 251) as u8).collect()
    }

    fn stored(payload: &[u8], piece: usize) -> Vec<u8> {
        let mut encoder = FrameEncoder::new(POSITION);
        let mut out = Vec::new();
        for piece in payload.chunks(piece) {
            encoder.push(piece, &mut out);
        }
        encoder.end(&mut out);
        assert_eq!(encoder.extent().length, payload.len() as u64);
        out
    }

    #[test]
    fn any_range_of_any_payload_is_unframed() {
        let frame = FRAME_BYTES as usize;
        for length in [1, 5, frame - 1, frame, frame + 1, 2 * frame, 3 * frame + 7] {
            let payload = payload(length);
            let stored = stored(&payload, 10_007);
            assert_eq!(stored.len() as u64, stored_bytes(length as u64));
            assert_eq!(payload_bytes(stored.len() as u64), Some(length as u64));
            let extent = Extent { file: POSITION.file, offset: POSITION.offset, length: length as u64 };
            for (start, end) in [(0, length), (0, 1), (length - 1, length), (length / 2, length), (1, 2 * frame + 1)] {
                let span = Span::of(&extent, &(start as u64..end as u64));
                let Some(span) = span else {
                    assert!(start >= end.min(length));
                    continue;
                };
                let at = span.stored();
                let from = (at.start - POSITION.offset) as usize;
                let mut bytes = stored[from..from + (at.end - at.start) as usize].to_vec();
                let wanted = span.unframe(&mut bytes).expect("the checksums are right");
                assert_eq!(bytes[wanted], payload[start..end.min(length)], "{start}..{end} of {length}");
                let read_at = |out: &mut [u8], at: u64| -> Result<(), ()> {
                    let from = (at - POSITION.offset) as usize;
                    out.copy_from_slice(&stored[from..from + out.len()]);
                    Ok(())
                };
                let mut buffer = Vec::new();
                let wanted = span.read_into(&mut buffer, read_at).expect("it reads").expect("the checksums are right");
                assert_eq!(buffer[wanted], payload[start..end.min(length)], "{start}..{end} of {length}");
            }
        }
    }

    #[test]
    fn a_read_touches_no_more_than_it_may_return() {
        let extent = Extent { file: POSITION.file, offset: POSITION.offset, length: 1 << 40 };
        let span = Span::of(&extent, &(100..u64::MAX)).expect("there are bytes");
        assert_eq!(span.wanted, READ_BYTES_MAX);
        assert_eq!(span.framed, READ_BYTES_MAX + FRAME_BYTES);
        assert_eq!(Span::of(&extent, &(1 << 40..u64::MAX)), None);
        assert_eq!(Span::of(&extent, &(7..7)), None);
    }

    #[test]
    fn a_changed_bit_and_another_place_are_found_out() {
        let extent = Extent { file: POSITION.file, offset: POSITION.offset, length: 5000 };
        let stored = stored(&payload(5000), 5000);
        for bit in [0, 17, 8 * 4999, 8 * 5000, 8 * 5003 + 7] {
            let mut changed = stored.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let span = Span::of(&extent, &(0..10)).expect("there are bytes");
            assert_eq!(span.unframe(&mut changed), None, "bit {bit}");
        }
        for other in [Extent { offset: 1001, ..extent }, Extent { file: [8; 16], ..extent }] {
            let span = Span::of(&other, &(0..10)).expect("there are bytes");
            assert_eq!(span.unframe(&mut stored.clone()), None);
        }
        let span = Span::of(&extent, &(0..10)).expect("there are bytes");
        assert_eq!(span.unframe(&mut stored[..4000].to_vec()), None);
    }

    #[test]
    fn a_size_that_no_payload_has_is_refused() {
        for rest in 1..=CRC_BYTES {
            assert_eq!(payload_bytes(STORED_FRAME_BYTES + rest), None);
        }
        assert_eq!(payload_bytes(0), Some(0));
    }
}
