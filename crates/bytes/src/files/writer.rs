//! Writes one payload: a small one is buffered and goes to a pack, a large one streams to a file.

use super::appender::Small;
use super::folder::new_name;
use super::{Shared, blocking};
use crate::record::{FileName, FrameEncoder, Header, RecordPosition, State};
use bytes::Bytes;
use larimar_engine::Fault;
use larimar_engine::blob::bytes::{ByteWriter, Extent, Owner};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::task::JoinHandle;

/// Writes one payload for [`super::FileBytes`].
#[derive(Debug)]
pub struct FileWriter {
    shared: Arc<Shared>,
    header: Header,
    state: Writing,
}

#[derive(Debug)]
enum Writing {
    /// Not known to be large yet.
    Small {
        pieces: Vec<Bytes>,
        length: u64,
    },
    Large(Box<Stream>),
    /// An error lost the payload.
    Lost,
}

impl FileWriter {
    /// The most memory that a writer takes.
    pub(super) fn bytes_max(expected: Option<u64>) -> u64 {
        expected.filter(|expected| *expected <= SMALL_BYTES_MAX).unwrap_or(2 * BUFFER_BYTES as u64)
    }

    pub(super) fn begin(shared: &Arc<Shared>, owner: Owner<'_>, expected: Option<u64>) -> Result<Self, Fault> {
        shared.admission.ask()?;
        let header = Header::new(owner, None, State::Unfinished)
            .ok_or_else(|| Fault::Unavailable("the blob's name is too long to store".to_owned()))?;
        let large = expected.is_some_and(|expected| expected > SMALL_BYTES_MAX);
        let state = if large {
            Writing::Large(Box::new(Stream::new(shared, &header)))
        } else {
            Writing::Small { pieces: Vec::new(), length: 0 }
        };
        Ok(Self { shared: Arc::clone(shared), header, state })
    }
}

impl ByteWriter for FileWriter {
    async fn write(&mut self, bytes: Bytes) -> Result<(), Fault> {
        match std::mem::replace(&mut self.state, Writing::Lost) {
            Writing::Small { mut pieces, mut length } => {
                length += bytes.len() as u64;
                push(&mut pieces, bytes);
                if length > SMALL_BYTES_MAX {
                    let mut stream = Box::new(Stream::new(&self.shared, &self.header));
                    for piece in pieces {
                        stream.write(&piece).await?;
                    }
                    self.state = Writing::Large(stream);
                } else {
                    self.state = Writing::Small { pieces, length };
                }
            }
            Writing::Large(mut stream) => {
                stream.write(&bytes).await?;
                self.state = Writing::Large(stream);
            }
            Writing::Lost => return Err(lost()),
        }
        Ok(())
    }

    async fn finish(self) -> Result<Extent, Fault> {
        let Self { shared, header, state } = self;
        match state {
            Writing::Small { pieces, length } => {
                let header = Header { length: Some(length), state: State::Whole, ..header };
                shared.appender.append(Small { header, pieces }).await
            }
            Writing::Large(stream) => stream.finish().await,
            Writing::Lost => Err(lost()),
        }
    }
}

/// Adds a piece. Small pieces are joined, so that a payload in many tiny pieces does not take many times its size.
fn push(pieces: &mut Vec<Bytes>, piece: Bytes) {
    match pieces.last_mut() {
        Some(last) if last.len() + piece.len() <= PIECE_BYTES_MIN => {
            *last = [&last[..], &piece[..]].concat().into();
        }
        _ => pieces.push(piece),
    }
}

fn lost() -> Fault {
    Fault::Unavailable("the blob's bytes could not be written".to_owned())
}

/// A large payload that streams to its file: one buffer is filled while the previous one is written.
#[derive(Debug)]
struct Stream {
    file: Arc<Unfinished>,
    encoder: FrameEncoder,
    buffer: Vec<u8>,
    /// Where the buffer goes.
    at: u64,
    under_way: Option<JoinHandle<Written>>,
    handle: Option<File>,
}

/// A buffer to use again, and the file.
type Written = Result<(Vec<u8>, File), Fault>;

/// A file that is removed unless it is finished, after its last write.
#[derive(Debug)]
struct Unfinished {
    shared: Arc<Shared>,
    name: FileName,
    keep: AtomicBool,
}

impl Stream {
    fn new(shared: &Arc<Shared>, header: &Header) -> Self {
        let name = new_name(false);
        // Before the file exists, so that `reclaim` never takes it for the leftover of a crash.
        shared.writing.lock().insert(name);
        let position = RecordPosition { file: name, offset: header.bytes() };
        let mut buffer = Vec::new();
        header.encode(position, &mut buffer);
        let file = Arc::new(Unfinished { shared: Arc::clone(shared), name, keep: AtomicBool::new(false) });
        Self { file, encoder: FrameEncoder::new(position), buffer, at: 0, under_way: None, handle: None }
    }

    async fn write(&mut self, mut bytes: &[u8]) -> Result<(), Fault> {
        while !bytes.is_empty() {
            let room = BUFFER_BYTES.saturating_sub(self.buffer.len()).max(1);
            let (now, later) = bytes.split_at(bytes.len().min(room));
            self.encoder.push(now, &mut self.buffer);
            if self.buffer.len() >= BUFFER_BYTES {
                self.flush().await?;
            }
            bytes = later;
        }
        Ok(())
    }

    /// Waits for the buffer that is being written, and starts to write the one that is full.
    async fn flush(&mut self) -> Result<(), Fault> {
        let next = self.settle().await?;
        self.file.shared.admission.ask()?;
        let buffer = std::mem::replace(&mut self.buffer, next);
        let (file, at) = (Arc::clone(&self.file), self.at);
        self.at += buffer.len() as u64;
        let handle = self.handle.take();
        self.under_way = Some(tokio::task::spawn_blocking(move || {
            let handle = match handle {
                Some(handle) => handle,
                None => file.shared.folder.create(&file.name)?,
            };
            let written = handle.write_all_at(&buffer, at);
            written.map_err(|error| file.shared.folder.fault(&file.name, &error))?;
            Ok((buffer, handle))
        }));
        Ok(())
    }

    /// Waits for the buffer that is being written; returns it, empty.
    async fn settle(&mut self) -> Result<Vec<u8>, Fault> {
        let Some(under_way) = self.under_way.take() else { return Ok(Vec::with_capacity(BUFFER_BYTES + 8)) };
        let (mut buffer, handle) = under_way.await.map_err(|_| lost())??;
        self.handle = Some(handle);
        buffer.clear();
        Ok(buffer)
    }

    async fn finish(mut self) -> Result<Extent, Fault> {
        self.encoder.end(&mut self.buffer);
        self.flush().await?;
        self.settle().await?;
        let Self { encoder, file, handle, .. } = self;
        let handle = handle.ok_or_else(lost)?;
        let extent = encoder.extent();
        // A caller that is cancelled before the answer drops the file, which removes it.
        let file = blocking(move || file.finish(&handle, extent).map(|()| file)).await??;
        file.keep.store(true, Ordering::Release);
        file.shared.count_written(&extent);
        Ok(extent)
    }
}

impl Unfinished {
    /// Makes the payload durable: its bytes, then the mark that it is whole, then its entry in the directory.
    fn finish(&self, handle: &File, extent: Extent) -> Result<(), Fault> {
        let folder = &self.shared.folder;
        handle
            .write_all_at(&[State::Whole.byte()], extent.offset - 1)
            .and_then(|()| folder.sync(handle))
            .and_then(|()| folder.sync_entry(&self.name))
            .map_err(|error| folder.fault(&self.name, &error))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // The remover takes the name off the list when it has removed the file.
        if self.keep.load(Ordering::Acquire) || !self.shared.remover.remove_unfinished(self.name) {
            self.shared.writing.lock().remove(&self.name);
        }
    }
}

/// Payloads up to this size share a pack.
const SMALL_BYTES_MAX: u64 = 256 << 10;
/// What is written to a file at once; a writer holds two of these at most, also one whose client is slow.
const BUFFER_BYTES: usize = 256 << 10;
const PIECE_BYTES_MIN: usize = 4 << 10;
