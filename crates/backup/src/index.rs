//! The index of a backup: its chunks in order, and where each space begins.
//!
//! ```text
//! 01 kind account name number   the space begins in the next data chunk
//! 02 checksum length            a piece of a large payload, of the next data chunk
//! 03 checksum length            a data chunk
//! ```

use crate::chunk::{ChunkId, ChunkRef};
use crate::error::BackupError;
use crate::generation::Generation;
use crate::place::Place;
use crate::record::{BackedSpace, put_name, take_byte, take_name};
use bytes::Bytes;
use larimar_engine::SpaceKind;
use larimar_model::varint;
use std::collections::VecDeque;
use tokio::task::JoinHandle;

/// One entry of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry<'a> {
    Space { name: BackedSpace<'a>, number: u64 },
    Piece(ChunkRef),
    Data(ChunkRef),
}

impl<'a> Entry<'a> {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let (tag, chunk) = match self {
            Self::Space { name, number } => {
                out.push(1);
                put_name(out, *name);
                return varint::put(out, *number);
            }
            Self::Piece(chunk) => (2, chunk),
            Self::Data(chunk) => (3, chunk),
        };
        out.push(tag);
        out.extend_from_slice(&chunk.id.0);
        varint::put(out, chunk.length);
    }

    fn take(input: &mut &'a [u8]) -> Option<Self> {
        let tag = take_byte(input)?;
        if tag == 1 {
            return Some(Self::Space { name: take_name(input)?, number: varint::take(input)? });
        }
        let (id, rest) = input.split_first_chunk()?;
        *input = rest;
        let chunk = ChunkRef { id: ChunkId(*id), length: varint::take(input)? };
        match tag {
            2 => Some(Self::Piece(chunk)),
            3 => Some(Self::Data(chunk)),
            _ => None,
        }
    }
}

/// A data chunk, the pieces of its large payloads, in order, and the spaces that begin in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DataChunk {
    pub(crate) data: ChunkRef,
    pub(crate) pieces: Vec<ChunkRef>,
    pub(crate) begins: Vec<SpaceKey>,
}

/// The kind, account and name of a space; the system's own has none.
pub(crate) type SpaceKey = Option<(SpaceKind, String, String)>;

/// Reads the data chunks that a generation lists, in order.
pub(crate) struct IndexReader<'a> {
    place: &'a Place,
    chunks: std::vec::IntoIter<ChunkRef>,
    current: Option<(ChunkRef, Bytes, usize)>,
    pieces: Vec<ChunkRef>,
    begins: Vec<SpaceKey>,
}

impl<'a> IndexReader<'a> {
    pub(crate) fn new(place: &'a Place, generation: &Generation) -> Result<Self, BackupError> {
        let index = generation.index();
        let index = index.ok_or_else(|| BackupError::damaged(generation.name(), "its index cannot be read"))?;
        Ok(Self { place, chunks: index.into_iter(), current: None, pieces: Vec::new(), begins: Vec::new() })
    }

    /// The next data chunk; `None` after the last. After an error the next call continues with the next part of the index.
    pub(crate) async fn next(&mut self) -> Result<Option<DataChunk>, BackupError> {
        loop {
            let Some((chunk, bytes, at)) = &mut self.current else {
                let Some(chunk) = self.chunks.next() else {
                    return match self.pieces.is_empty() {
                        true => Ok(None),
                        false => Err(BackupError::damaged("the index", "it ends with a piece of a payload")),
                    };
                };
                self.current = Some((chunk, chunk.read(self.place).await?, 0));
                continue;
            };
            let mut rest = &bytes[*at..];
            if rest.is_empty() {
                self.current = None;
                continue;
            }
            let Some(entry) = Entry::take(&mut rest) else {
                let what = self.place.show(&chunk.name());
                self.current = None;
                return Err(BackupError::damaged(what, "it is not an index"));
            };
            *at = bytes.len() - rest.len();
            match entry {
                Entry::Space { name, .. } => {
                    self.begins.push(name.map(|name| (name.kind, name.account.to_owned(), name.name.to_owned())));
                }
                Entry::Piece(piece) => self.pieces.push(piece),
                Entry::Data(data) => {
                    let (pieces, begins) = (std::mem::take(&mut self.pieces), std::mem::take(&mut self.begins));
                    return Ok(Some(DataChunk { data, pieces, begins }));
                }
            }
        }
    }
}

/// Reads the next data chunks while one is worked on.
pub(crate) struct ReadAhead<'a> {
    index: IndexReader<'a>,
    chunks: VecDeque<(DataChunk, Reading)>,
    bytes: u64,
}

/// A chunk that is being read; dropping it ends that.
struct Reading(JoinHandle<Result<Bytes, BackupError>>);

impl<'a> ReadAhead<'a> {
    pub(crate) const fn new(index: IndexReader<'a>) -> Self {
        Self { index, chunks: VecDeque::new(), bytes: 0 }
    }

    /// The next data chunk and its bytes, which were checked; `None` after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<(DataChunk, Bytes)>, BackupError> {
        while self.chunks.is_empty() || self.chunks.len() < CHUNKS_AHEAD && self.bytes < BYTES_AHEAD {
            let Some(chunk) = self.index.next().await? else { break };
            let (place, data) = (self.index.place.clone(), chunk.data);
            self.bytes += data.length;
            self.chunks.push_back((chunk, Reading(tokio::spawn(async move { data.read(&place).await }))));
        }
        let Some((chunk, mut reading)) = self.chunks.pop_front() else { return Ok(None) };
        self.bytes -= chunk.data.length;
        let bytes = (&mut reading.0).await.map_err(BackupError::thread)??;
        Ok(Some((chunk, bytes)))
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Chunks that are read ahead, of about a MiB each.
const CHUNKS_AHEAD: usize = 8;
const BYTES_AHEAD: u64 = 32 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use larimar_engine::SpaceName;

    #[test]
    fn entries_are_read_as_they_were_written() {
        let name = Some(SpaceName { account: "one", kind: SpaceKind::Container, name: "photos" });
        let chunk = ChunkRef { id: ChunkId([7; 32]), length: 300 };
        let entries = [Entry::Space { name, number: 5 }, Entry::Piece(chunk), Entry::Data(chunk)];
        let mut bytes = Vec::new();
        entries.iter().for_each(|entry| entry.encode(&mut bytes));
        let mut input = &bytes[..];
        for entry in entries {
            assert_eq!(Entry::take(&mut input), Some(entry));
        }
        assert!(input.is_empty());
        for length in 0..36 {
            assert_eq!(Entry::take(&mut &bytes[..length.min(12)]), None, "cut to {length}");
        }
    }
}
