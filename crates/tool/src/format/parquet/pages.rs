//! The pages of a column, decompressed within a bound.
//!
//! The crate allocates what a page's header claims, and inflates some codecs without end. So it reads pages as they are
//! stored, as if the column were not compressed, and this file decompresses them. One page of each column and the
//! dictionaries are in memory at a time; together they have at most [`PAGES_BYTES_MAX`].

use ::parquet::basic::{Compression, Encoding};
use ::parquet::column::page::{Page, PageMetadata, PageReader};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::RowGroupMetaData;
use ::parquet::file::serialized_reader::SerializedPageReader;
use bytes::Bytes;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the pages of all columns have in memory.
pub(super) type Held = Arc<AtomicUsize>;

/// The pages of one column of a row group.
pub(super) struct Pages {
    stored: SerializedPageReader<File>,
    codec: Codec,
    column: String,
    /// Whether values may be absent, so that pages have levels.
    is_optional: bool,
    rows: u64,
    held: Held,
    /// Of that the part of this column: its page, and its dictionary.
    page_bytes: usize,
    dictionary_bytes: usize,
}

/// The codecs that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Codec {
    None,
    Snappy,
    Zstd,
    Gzip,
    Lz4,
}

impl Pages {
    /// Opens a column.
    ///
    /// # Errors
    /// A codec that is not read, or metadata that are wrong.
    pub(super) fn open(
        file: &Arc<File>,
        group: &RowGroupMetaData,
        index: usize,
        held: &Held,
    ) -> Result<Self, ParquetError> {
        let metadata = group.column(index);
        let column = metadata.column_path().string();
        let codec = match metadata.compression() {
            Compression::UNCOMPRESSED => Codec::None,
            Compression::SNAPPY => Codec::Snappy,
            Compression::ZSTD(_) => Codec::Zstd,
            Compression::GZIP(_) => Codec::Gzip,
            Compression::LZ4_RAW => Codec::Lz4,
            other => {
                let expected = "Snappy, zstd, gzip, LZ4_RAW or no compression";
                return Err(ParquetError::NYI(format!("column '{column}': expected {expected}, found {other}")));
            }
        };
        let plain = metadata.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build()?;
        let is_optional = metadata.column_descr().max_def_level() > 0;
        let rows = u64::try_from(group.num_rows()).unwrap_or(0);
        let stored =
            SerializedPageReader::new(Arc::clone(file), &plain, usize::try_from(rows).unwrap_or(usize::MAX), None)?;
        Ok(Self {
            stored,
            codec,
            column,
            is_optional,
            rows,
            held: Arc::clone(held),
            page_bytes: 0,
            dictionary_bytes: 0,
        })
    }

    fn decompressed(&mut self, mut page: Page) -> Result<Page, ParquetError> {
        let is_dictionary = page.is_dictionary_page();
        let own = if is_dictionary { &mut self.dictionary_bytes } else { &mut self.page_bytes };
        self.held.fetch_sub(std::mem::take(own), Ordering::Relaxed);
        let free = PAGES_BYTES_MAX.saturating_sub(self.held.load(Ordering::Relaxed));
        let entries = usize::try_from(page.num_values()).unwrap_or(usize::MAX);
        // A dictionary is decoded at once, other pages a few rows at a time.
        let decoded = if is_dictionary { entries.saturating_mul(ENTRY_BYTES) } else { 0 };
        let is_plausible = is_dictionary || u64::from(page.num_values()) <= self.rows;
        let Some(free) = free.checked_sub(decoded).filter(|_| is_plausible) else { return Err(self.too_large()) };
        let bytes = match &mut page {
            Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } => {
                *buf = self.inflated(buf, 0, free)?;
                buf.len()
            }
            Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, is_compressed, .. } => {
                let levels = *def_levels_byte_len as usize + *rep_levels_byte_len as usize;
                if *is_compressed {
                    *buf = self.inflated(buf, levels, free)?;
                }
                buf.len()
            }
        };
        if !self.has_plausible_lengths(&page) {
            let reason = format!("column '{}': expected as many lengths as the row group has rows", self.column);
            return Err(ParquetError::General(reason));
        }
        self.held.fetch_add(bytes + decoded, Ordering::Relaxed);
        *(if is_dictionary { &mut self.dictionary_bytes } else { &mut self.page_bytes }) = bytes + decoded;
        Ok(page)
    }

    /// The bytes of a page with at most `free` of them; the first `levels` are not compressed.
    fn inflated(&self, stored: &Bytes, levels: usize, free: usize) -> Result<Bytes, ParquetError> {
        if self.codec == Codec::None {
            return Ok(stored.clone());
        }
        let damaged =
            |reason: &dyn std::fmt::Display| ParquetError::General(format!("column '{}': {reason}", self.column));
        let (levels, body) = stored.split_at_checked(levels).ok_or_else(|| damaged(&"a page without its levels"))?;
        let mut page = levels.to_vec();
        let max = free.saturating_sub(levels.len());
        // A page without values has no body.
        let is_whole = body.is_empty() || self.codec.append(body, max, &mut page).map_err(|error| damaged(&error))?;
        if is_whole { Ok(page.into()) } else { Err(self.too_large()) }
    }

    /// Values in a delta encoding begin with lists of lengths, which the crate decodes at once.
    fn has_plausible_lengths(&self, page: &Page) -> bool {
        let lists = match page.encoding() {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
            Encoding::DELTA_BYTE_ARRAY => 2,
            _ => return true,
        };
        let values = match page {
            Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
                buf.get(*def_levels_byte_len as usize + *rep_levels_byte_len as usize..)
            }
            Page::DataPage { buf, .. } if self.is_optional => buf.split_first_chunk().and_then(|(length, rest)| {
                // Levels, after their length.
                rest.get(u32::from_le_bytes(*length) as usize..)
            }),
            Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } => Some(&buf[..]),
        };
        // The row group's own number may be a lie.
        let max = self.rows.min(LENGTHS_MAX);
        (0..lists).try_fold(values.unwrap_or_default(), |values, _| after_lengths(values, max)).is_some()
    }

    fn too_large(&self) -> ParquetError {
        let max = PAGES_BYTES_MAX >> 20;
        ParquetError::General(format!("column '{}': expected pages that have at most {max} MiB together", self.column))
    }
}

impl Codec {
    /// Appends what the bytes decompress to; false if that is more than `max`.
    fn append(self, body: &[u8], max: usize, page: &mut Vec<u8>) -> std::io::Result<bool> {
        let start = page.len();
        match self {
            Self::None => page.extend_from_slice(body),
            Self::Snappy => {
                let length = snap::raw::decompress_len(body)?;
                if length > max {
                    return Ok(false);
                }
                page.resize(start + length, 0);
                snap::raw::Decoder::new().decompress(body, &mut page[start..])?;
            }
            Self::Zstd => append_zstd(body, max, page)?,
            Self::Gzip => append_stream(flate2::bufread::MultiGzDecoder::new(body), max, page)?,
            Self::Lz4 => return append_lz4(body, max, page),
        }
        Ok(page.len() - start <= max)
    }
}

/// Reads a little more than `max` bytes at most.
fn append_stream(stream: impl Read, max: usize, page: &mut Vec<u8>) -> std::io::Result<()> {
    stream.take((max as u64).saturating_add(1)).read_to_end(page).map(drop)
}

/// Frames may follow each other.
fn append_zstd(mut body: &[u8], max: usize, page: &mut Vec<u8>) -> std::io::Result<()> {
    let end = page.len().saturating_add(max);
    while !body.is_empty() && page.len() <= end {
        let frame = ruzstd::decoding::StreamingDecoder::new(&mut body).map_err(std::io::Error::other)?;
        append_stream(frame, end - page.len(), page)?;
    }
    Ok(())
}

/// A block of LZ4 does not say how long it becomes: tried with room that doubles.
fn append_lz4(body: &[u8], max: usize, page: &mut Vec<u8>) -> std::io::Result<bool> {
    let start = page.len();
    let mut room = body.len().saturating_mul(4).clamp(64 << 10, max.max(64 << 10));
    loop {
        page.resize(start + room, 0);
        match lz4_flex::block::decompress_into(body, &mut page[start..]) {
            Ok(length) => {
                page.truncate(start + length);
                return Ok(length <= max);
            }
            Err(lz4_flex::block::DecompressError::OutputTooSmall { .. }) if room < max => {
                room = room.saturating_mul(2).min(max)
            }
            Err(lz4_flex::block::DecompressError::OutputTooSmall { .. }) => return Ok(false),
            Err(error) => return Err(std::io::Error::other(error)),
        }
    }
}

/// What follows a list of at most `max` integers in DELTA_BINARY_PACKED: blocks of so many, each in parts of a width of
/// their own.
fn after_lengths(mut data: &[u8], max: u64) -> Option<&[u8]> {
    let (block, parts, count) = (varint(&mut data)?, varint(&mut data)?, varint(&mut data)?);
    let first = varint(&mut data);
    let part = block.checked_div(parts).filter(|part| *part > 0)?;
    if count == 0 {
        return Some(data);
    }
    let mut left = first.filter(|_| count <= max).map(|_| count - 1)?;
    while left > 0 {
        varint(&mut data)?;
        let (widths, rest) = data.split_at_checked(usize::try_from(parts).ok()?)?;
        data = rest;
        for width in widths {
            if left > 0 {
                data = data.get(usize::try_from(part.checked_mul((*width).into())? / 8).ok()?..)?;
                left = left.saturating_sub(part);
            }
        }
    }
    Some(data)
}

fn varint(data: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *data.split_off_first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        self.stored.get_next_page()?.map(|page| self.decompressed(page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.stored.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.stored.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool, ParquetError> {
        self.stored.at_record_boundary()
    }
}

impl Iterator for Pages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.held.fetch_sub(self.page_bytes + self.dictionary_bytes, Ordering::Relaxed);
    }
}

/// Pages of all columns together. Programs write pages of 1 MiB, DuckDB up to 100 MB.
pub(super) const PAGES_BYTES_MAX: usize = 1 << 30;
/// Lengths of a page: 64 MiB.
const LENGTHS_MAX: u64 = 1 << 24;
/// What an entry of a dictionary needs beside its bytes.
const ENTRY_BYTES: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// A MiB of zeros in each codec.
    fn compressed() -> [(Codec, Vec<u8>); 4] {
        let zeros = vec![0; 1 << 20];
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&zeros).expect("a vector");
        let zstd = ruzstd::encoding::compress_to_vec(&zeros[..], ruzstd::encoding::CompressionLevel::Fastest);
        [
            (Codec::Snappy, snap::raw::Encoder::new().compress_vec(&zeros).expect("a vector")),
            (Codec::Zstd, zstd),
            (Codec::Gzip, gzip.finish().expect("a vector")),
            (Codec::Lz4, lz4_flex::block::compress(&zeros)),
        ]
    }

    #[test]
    fn every_codec_stops_at_the_bound() {
        for (codec, bytes) in compressed() {
            for (max, is_whole) in [(1 << 20, true), ((1 << 20) - 1, false), (100_000, false), (0, false)] {
                let mut page = vec![7];
                assert_eq!(codec.append(&bytes, max, &mut page).expect("whole"), is_whole, "{codec:?} {max}");
                assert!(page.len() <= 1 + max.max(64 << 10) + 1, "{codec:?} {max}: {}", page.len());
                assert!(!is_whole || page[0] == 7 && page.len() == 1 + (1 << 20), "{codec:?}");
            }
            // Several frames: gzip and zstd allow them, the others do not.
            let mut page = Vec::new();
            let twice = codec.append(&bytes.repeat(2), 1 << 20, &mut page);
            assert!(!matches!(twice, Ok(true)) && page.len() <= (1 << 20) + 1, "{codec:?}");
        }
    }

    #[test]
    fn lists_of_lengths_are_no_longer_than_the_row_group() {
        // 128 integers a block in 4 parts; the first is 5, and others differ from the one before by 0 to 3.
        let list = |count: u8| {
            let mut list = vec![0x80, 0x01, 4, count, 10];
            if count > 1 {
                list.extend([0, 2, 0, 0, 0]);
                list.extend([0xe4; 8]);
            }
            list.push(0x77);
            list
        };
        for count in [1, 2, 33, 100] {
            let list = list(count);
            assert_eq!(after_lengths(&list, count.into()), Some(&[0x77][..]), "{count}");
            assert_eq!(after_lengths(&list, u64::from(count) - 1), None, "{count}");
            assert_eq!(after_lengths(&list[..4], 100), None);
        }
        let endless = [0x80, 0x01, 4, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 0];
        assert_eq!(after_lengths(&endless, 1 << 30), None, "2^40 lengths in ten bytes");
        for damaged in [&[0, 0, 1, 0][..], &[4, 8, 2, 0, 0, 0], &[0xff; 20], &[]] {
            assert_eq!(after_lengths(damaged, 1 << 30), None, "{damaged:?}");
        }
    }

    #[test]
    fn damaged_pages_are_refused() {
        // Snappy's own length: 3 GiB in a page of 6 bytes.
        let claim = [0x80, 0x80, 0x80, 0x80, 0x0c, 0];
        assert!(!Codec::Snappy.append(&claim, PAGES_BYTES_MAX, &mut Vec::new()).expect("too large"));
        for (codec, bytes) in compressed() {
            assert!(codec.append(&bytes[..bytes.len() / 2], 1 << 20, &mut Vec::new()).is_err(), "{codec:?}");
            assert!(codec.append(b"\xffnonsense", 1 << 20, &mut Vec::new()).is_err(), "{codec:?}");
        }
    }
}
