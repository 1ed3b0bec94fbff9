//! The records of packs: walking them, and counting the dead ones.
//!
//! A record is marked dead by one byte of its header. The mark is not synced: after a power failure the next `reclaim`
//! asks about the record again. The disk blocks of dead payloads are freed at once if the file system supports it; a
//! pack is removed when all of its records are dead.

use super::Shared;
use super::folder::Folder;
use crate::record::{
    END_BYTES, FileName, HEADER_BYTES_FIRST, HEADER_BYTES_MAX, Header, MAGIC, State, TAIL_BYTES, Undecoded, end_mark,
    stored_bytes,
};
use larimar_engine::Fault;
use larimar_engine::blob::bytes::Extent;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Error;
use std::os::unix::fs::FileExt;

/// The packs that are being written or have dead records, with their counts.
#[derive(Debug, Default)]
pub(super) struct Packs {
    known: Mutex<HashMap<FileName, Counts>>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    records: u64,
    dead: u64,
    /// It is appended to.
    open: bool,
    /// A part of it could not be read, so it may have more records than were counted.
    damaged: bool,
}

impl Packs {
    /// Records that a pack is started.
    pub(super) fn begin(&self, pack: FileName) {
        self.known.lock().insert(pack, Counts { open: true, ..Counts::default() });
    }

    /// Counts appended records.
    pub(super) fn count(&self, pack: &FileName, extents: &[Extent]) {
        if let Some(counts) = self.known.lock().get_mut(pack) {
            counts.records += extents.len() as u64;
        }
    }

    /// Records that a pack is complete; returns `true` if all of its records are dead.
    pub(super) fn seal(&self, pack: &FileName) -> bool {
        let mut known = self.known.lock();
        let Some(counts) = known.get_mut(pack) else { return false };
        counts.open = false;
        counts.is_dead()
    }

    pub(super) fn is_open(&self, pack: &FileName) -> bool {
        self.known.lock().get(pack).is_some_and(|counts| counts.open)
    }

    /// Records the counts of a complete pack; returns `true` if all of its records are dead.
    pub(super) fn learn(&self, pack: FileName, found: Counts) -> bool {
        self.known.lock().entry(pack).or_insert(found).is_dead()
    }

    fn knows(&self, pack: &FileName) -> bool {
        self.known.lock().contains_key(pack)
    }

    /// Counts a dead record; returns `true` if all records of the pack are dead.
    fn count_dead(&self, pack: &FileName) -> bool {
        let mut known = self.known.lock();
        let Some(counts) = known.get_mut(pack) else { return false };
        counts.dead += 1;
        counts.is_dead()
    }

    fn forget(&self, pack: &FileName) {
        self.known.lock().remove(pack);
    }
}

impl Counts {
    fn is_dead(&self) -> bool {
        !self.open && !self.damaged && self.dead >= self.records
    }
}

impl Shared {
    /// Completes a pack, and removes it if all of its records are dead.
    pub(super) fn seal(&self, pack: &FileName) {
        if self.packs.seal(pack) {
            self.remove_pack(pack);
        }
    }

    /// Marks a record dead, and removes its pack if it was the last. `false` if it was dead before or does not exist.
    pub(super) fn bury(&self, extent: &Extent) -> Result<bool, Fault> {
        let pack = &extent.file;
        let path = self.folder.path(pack);
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(self.folder.fault(pack, &error)),
        };
        if !self.packs.knows(pack) {
            let walked = walk_all(&self.folder, pack, &file)?;
            self.packs.learn(*pack, walked);
        }
        let marked = mark_dead(&file, extent).map_err(|error| self.folder.fault(pack, &error))?;
        if marked && self.packs.count_dead(pack) {
            self.remove_pack(pack);
        }
        Ok(marked)
    }

    /// Removes a pack whose records are all dead.
    pub(super) fn remove_pack(&self, pack: &FileName) {
        match self.folder.remove(pack) {
            Ok(_) => self.packs.forget(pack),
            Err(fault) => tracing::warn!(%fault, "a pack without live records could not be removed"),
        }
        self.handles.forget(pack);
    }
}

/// Marks a record dead; `false` if it was dead, or if there is no such record.
fn mark_dead(file: &File, extent: &Extent) -> Result<bool, Error> {
    let Some(tail_at) = extent.offset.checked_sub(TAIL_BYTES as u64) else { return Ok(false) };
    let mut tail = [0; TAIL_BYTES];
    file.read_exact_at(&mut tail, tail_at)?;
    let Some(start) = extent.offset.checked_sub(Header::length_before(tail)) else { return Ok(false) };
    let header = read_header(file, extent.file, start)?;
    let Some(header) = header.filter(|header| header.length == Some(extent.length)) else { return Ok(false) };
    if header.state == State::Dead {
        return Ok(false);
    }
    file.write_all_at(&[State::Dead.byte()], extent.offset - 1)?;
    punch(file, extent);
    Ok(true)
}

/// Frees the disk blocks of a dead payload; its header stays, so that the pack can be walked.
#[cfg(target_os = "linux")]
fn punch(file: &File, extent: &Extent) {
    use rustix::fs::{FallocateFlags, fallocate};
    let start = extent.offset.next_multiple_of(BLOCK_BYTES);
    let end = (extent.offset + stored_bytes(extent.length)) / BLOCK_BYTES * BLOCK_BYTES;
    if start < end
        && let Err(error) = fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, start, end - start)
    {
        // Not every file system supports it: the space is freed with the whole pack.
        tracing::debug!(%error, "a pack could not be punched");
    }
}

/// The space is freed with the whole pack.
#[cfg(not(target_os = "linux"))]
fn punch(_: &File, _: &Extent) {}

/// Reads the header at an offset; `None` if there is none.
pub(super) fn read_header(file: &File, name: FileName, at: u64) -> Result<Option<Header>, Error> {
    let mut bytes = vec![0; HEADER_BYTES_FIRST];
    loop {
        let found = read_up_to(file, &mut bytes, at)?;
        match Header::decode(&bytes[..found], name, at) {
            Ok(header) => return Ok(Some(header)),
            Err(Undecoded::Need(more)) if found == bytes.len() && more > bytes.len() => bytes.resize(more, 0),
            Err(_) => return Ok(None),
        }
    }
}

/// Reads until the buffer is full or the file ends.
fn read_up_to(file: &File, buffer: &mut [u8], at: u64) -> Result<usize, Error> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Walks the records of a pack.
#[derive(Debug)]
pub(super) struct Walk {
    name: FileName,
    file: File,
    at: u64,
    size: u64,
    /// The pack has its end mark.
    closed: bool,
    counts: Counts,
}

impl Walk {
    /// A walk over the current records of a pack.
    pub(super) fn new(name: FileName, file: File) -> Result<Self, Error> {
        let mut size = file.metadata()?.len();
        let mut end = [0; END_BYTES];
        let end_at = size.saturating_sub(END_BYTES as u64);
        let closed = read_up_to(&file, &mut end, end_at)? == END_BYTES && end == end_mark(name, end_at);
        if closed {
            size = end_at;
        }
        Ok(Self { name, file, at: 0, size, closed, counts: Counts::default() })
    }

    /// The next record; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(Header, Extent)>, Error> {
        while self.at < self.size {
            let header = read_header(&self.file, self.name, self.at)?;
            let Some((length, header)) = header.and_then(|header| Some((header.length?, header))) else {
                let next = self.next_header()?;
                // At the end of a pack without an end mark this is a group that was never acknowledged.
                if self.closed || next.is_some() {
                    tracing::warn!(pack = %self.extent(0, 0).file_name(), at = self.at, "a pack is damaged");
                    self.counts.damaged = true;
                }
                self.at = next.unwrap_or(self.size);
                continue;
            };
            let offset = self.at + header.bytes();
            let extent = self.extent(offset, length);
            self.at = offset.saturating_add(stored_bytes(length));
            self.counts.records += 1;
            self.counts.dead += u64::from(header.state == State::Dead);
            return Ok(Some((header, extent)));
        }
        self.at = self.size;
        Ok(None)
    }

    pub(super) fn name(&self) -> FileName {
        self.name
    }

    /// The counts, valid after the last record.
    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    fn extent(&self, offset: u64, length: u64) -> Extent {
        Extent { file: self.name, offset, length }
    }

    /// The offset of the next header.
    fn next_header(&self) -> Result<Option<u64>, Error> {
        let mut buffer = vec![0; SEARCH_BYTES];
        let mut from = self.at + 1;
        while from < self.size {
            let found = read_up_to(&self.file, &mut buffer, from)?;
            for hit in memchr::memmem::find_iter(&buffer[..found], &MAGIC) {
                let at = from + hit as u64;
                if read_header(&self.file, self.name, at)?.is_some() {
                    return Ok(Some(at));
                }
            }
            if found < buffer.len() {
                break;
            }
            from += (found - MAGIC.len() + 1) as u64;
        }
        Ok(None)
    }
}

/// Counts the records of a pack.
fn walk_all(folder: &Folder, pack: &FileName, file: &File) -> Result<Counts, Fault> {
    let walked = file.try_clone().and_then(|file| {
        let mut walk = Walk::new(*pack, file)?;
        while walk.next()?.is_some() {}
        Ok(walk.counts())
    });
    walked.map_err(|error| folder.fault(pack, &error))
}

/// The blocks of nearly every file system.
#[cfg(target_os = "linux")]
const BLOCK_BYTES: u64 = 4 << 10;
const SEARCH_BYTES: usize = 64 << 10;
const _: () = assert!(SEARCH_BYTES > HEADER_BYTES_MAX);
