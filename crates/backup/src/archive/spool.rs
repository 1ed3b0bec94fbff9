//! The spool: commits that are not in the archive yet, in files of the data directory.
//!
//! ```text
//! spool/LINE/line       the line, and the place that it is in; written first
//! spool/LINE/AFTER      "LARSPL1\n" sequence:u64 time:u64 published:u64, then frames; the commits after this one
//!
//! frame = length:u32 xxh3:u64 content         the length and the checksum of the content
//! 01 sequence:u64 time:u64 published:u64 count (extent)* records    a group of commits, as a segment has them, after the
//!                                                                   payloads that they point to and no group before did
//! 02 first last                               the segment of these commits is about to be stored
//! ```
//!
//! The second kind makes a restart store the same segment, unless the place has it, so that segments never overlap. A file is removed when
//! all its commits are archived and another has begun. An incomplete frame at the end is trimmed when the spool is opened.

use super::line::{Line, SegmentName};
use super::segment::put_commit;
use crate::error::BackupError;
use larimar_engine::blob::bytes::Extent;
use larimar_engine_local::{CommitGroup, CommitPoint};
use larimar_model::{Timestamp, varint};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// The spool of a line.
#[derive(Debug)]
pub(super) struct Spool {
    folder: PathBuf,
    /// The oldest first; the last one is written to.
    files: VecDeque<SpoolFile>,
    current: Arc<File>,
    /// The last commit.
    pub(super) end: SpoolEnd,
    /// Groups that are not archived yet.
    waiting: VecDeque<Waiting>,
    waiting_bytes: u64,
    /// Those of payloads among them.
    waiting_payload_bytes: u64,
    /// Most bytes that the disk may keep for the archive alone.
    bytes_max: u64,
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct SpoolFile {
    /// The commit before its first.
    after: u64,
    bytes: u64,
}

/// A place in the order of commits: as the store records it, and when it was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpoolEnd {
    pub(super) point: CommitPoint,
    pub(super) published: Timestamp,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    last: u64,
    published: Timestamp,
    /// With its payloads.
    bytes: u64,
    payload_bytes: u64,
}

/// The line of a spool, as its directory names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SpooledLine {
    pub(super) line: Line,
    pub(super) place: String,
}

/// Where the archiver is in a spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The file.
    after: u64,
    offset: u64,
    /// The last commit that was read.
    pub(super) read: SpoolEnd,
}

/// A group of commits, read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SpooledGroup {
    pub(super) end: SpoolEnd,
    /// Payloads that no group before pointed to.
    pub(super) payloads: Vec<Extent>,
    /// The commits as records of a segment.
    pub(super) records: Vec<u8>,
}

/// A spool as a start finds it.
#[derive(Debug)]
pub(super) struct Recovered {
    pub(super) spool: Spool,
    /// After the last commit that is known to be archived.
    pub(super) cursor: Cursor,
    /// The segment that was about to be stored.
    pub(super) intent: Option<SegmentName>,
}

/// Why a group was not spooled.
#[derive(Debug, thiserror::Error)]
pub(super) enum SpoolError {
    #[error("the spool is full: {0} bytes are kept for the archive, and archive_spool_bytes_max allows no more")]
    Full(u64),
    #[error("a commit is missing after {0}")]
    Hole(u64),
    #[error("the spool cannot be written: {0}")]
    Io(#[from] io::Error),
}

impl Spool {
    /// Begins the spool of a line.
    pub(super) fn create(root: &Path, line: &SpooledLine, end: SpoolEnd, bytes_max: u64) -> io::Result<Self> {
        let folder = root.join(&line.line.name);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let mut file = private().create(true).truncate(true).open(folder.join(LINE))?;
        file.write_all(&crate::sealed::seal(line))?;
        file.sync_all()?;
        let current = new_file(&folder, end)?;
        File::open(root)?.sync_all()?;
        let files = VecDeque::from([SpoolFile { after: end.point.sequence, bytes: HEAD_BYTES as u64 }]);
        Ok(Self::new(folder, files, current, end, VecDeque::new(), bytes_max))
    }

    fn new(
        folder: PathBuf,
        files: VecDeque<SpoolFile>,
        current: File,
        end: SpoolEnd,
        waiting: VecDeque<Waiting>,
        bytes_max: u64,
    ) -> Self {
        let waiting_bytes = waiting.iter().map(|group| group.bytes).sum();
        let waiting_payload_bytes = waiting.iter().map(|group| group.payload_bytes).sum();
        let (current, buffer) = (Arc::new(current), Vec::new());
        Self { folder, files, current, end, waiting, waiting_bytes, waiting_payload_bytes, bytes_max, buffer }
    }

    /// The line that a directory of the spool is for; `None` if the directory has none that can be read.
    pub(super) fn line_of(folder: &Path) -> Option<SpooledLine> {
        let bytes = std::fs::read(folder.join(LINE)).ok()?;
        let found: SpooledLine = crate::sealed::open(&bytes, LINE, 1).ok()?;
        (folder.file_name()?.to_str()? == found.line.name).then_some(found)
    }

    /// Whether a directory of the spool has a file of commits.
    pub(super) fn has_files(folder: &Path) -> bool {
        afters(folder).is_ok_and(|afters| !afters.is_empty())
    }

    /// Opens the spool that a process left. An incomplete frame at its end is removed.
    pub(super) fn recover(folder: &Path, bytes_max: u64) -> Result<Recovered, BackupError> {
        let io =
            |error: io::Error| BackupError::Place { what: folder.display().to_string(), reason: error.to_string() };
        let afters = afters(folder).map_err(io)?;
        let mut found: Option<Scan> = None;
        let count = afters.len();
        for (index, after) in afters.into_iter().enumerate() {
            let path = file_path(folder, after);
            let is_last = index + 1 == count;
            let scanned = scan(&path, after, found.as_mut()).map_err(io)?;
            match (scanned, &mut found) {
                // A file that was begun when the process ended.
                (Scanned::NoHead, _) if is_last && index > 0 => std::fs::remove_file(&path).map_err(io)?,
                (Scanned::First(scan), None) if scan.is_whole || is_last => found = Some(scan),
                (Scanned::Next { is_whole }, Some(_)) if is_whole || is_last => {}
                _ => return Err(BackupError::damaged(path.display().to_string(), "a part of it cannot be read")),
            }
        }
        let Some(scan) = found else {
            return Err(BackupError::damaged(folder.display().to_string(), "it has no commits"));
        };
        scan.open(folder, bytes_max).map_err(io)
    }

    /// Appends a group, with the payloads that it points to and that are not in the archive. `discarded`: the bytes of
    /// payloads that nothing but the archive may need. The others are on the disk anyway and do not count for the bound.
    pub(super) fn append(
        &mut self,
        group: &CommitGroup,
        payloads: &[Extent],
        discarded: impl FnOnce() -> u64,
    ) -> Result<(), SpoolError> {
        if group.first() != self.end.point.sequence + 1 {
            return Err(SpoolError::Hole(self.end.point.sequence));
        }
        let end = SpoolEnd { point: group.point, published: group.published };
        self.buffer.clear();
        self.buffer.extend_from_slice(&[0; FRAME_BYTES]);
        self.buffer.push(GROUP);
        end.encode(&mut self.buffer);
        varint::put(&mut self.buffer, payloads.len() as u64);
        payloads.iter().for_each(|extent| extent.encode(&mut self.buffer));
        for (number, writes) in (group.first()..).zip(&group.commits) {
            let writes = writes.iter().map(|(key, value)| (&**key, value.as_deref()));
            put_commit(&mut self.buffer, number, group.published, writes);
        }
        let payload_bytes: u64 = payloads.iter().map(|extent| extent.length).sum();
        let bytes = self.buffer.len() as u64 + payload_bytes;
        let waiting = self.waiting_bytes + bytes;
        if waiting > self.bytes_max {
            let payloads = self.waiting_payload_bytes + payload_bytes;
            let kept = waiting - payloads + payloads.min(discarded());
            if kept > self.bytes_max {
                return Err(SpoolError::Full(kept));
            }
        }
        if self.files.back().is_some_and(|file| file.bytes >= FILE_BYTES) {
            self.rotate()?;
        }
        self.write()?;
        self.end = end;
        self.waiting.push_back(Waiting {
            last: group.point.sequence,
            published: group.published,
            bytes,
            payload_bytes,
        });
        self.waiting_bytes += bytes;
        self.waiting_payload_bytes += payload_bytes;
        Ok(())
    }

    /// Records that a segment is about to be stored. It is on disk when this returns.
    pub(super) fn intend(&mut self, segment: SegmentName) -> io::Result<()> {
        self.buffer.clear();
        self.buffer.extend_from_slice(&[0; FRAME_BYTES]);
        self.buffer.push(INTENT);
        varint::put(&mut self.buffer, segment.first);
        varint::put(&mut self.buffer, segment.last);
        self.write()?;
        self.current.sync_data()
    }

    /// Completes the frame in the buffer and writes it.
    fn write(&mut self) -> io::Result<()> {
        let content = &self.buffer[FRAME_BYTES..];
        let length = u32::try_from(content.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let sum = xxh3_64(content);
        self.buffer[..4].copy_from_slice(&length.to_be_bytes());
        self.buffer[4..FRAME_BYTES].copy_from_slice(&sum.to_be_bytes());
        let file = self.files.back_mut().expect("a spool has a file");
        self.current.write_all_at(&self.buffer, file.bytes)?;
        file.bytes += self.buffer.len() as u64;
        Ok(())
    }

    /// Begins another file. The one before is on disk first: only the last one may end in an incomplete frame.
    fn rotate(&mut self) -> io::Result<()> {
        self.current.sync_data()?;
        self.current = Arc::new(new_file(&self.folder, self.end)?);
        self.files.push_back(SpoolFile { after: self.end.point.sequence, bytes: HEAD_BYTES as u64 });
        Ok(())
    }

    /// The file to sync.
    pub(super) fn file(&self) -> Arc<File> {
        Arc::clone(&self.current)
    }

    /// Removes what is archived.
    pub(super) fn release(&mut self, archived: u64) -> io::Result<()> {
        while let Some(group) = self.waiting.front().filter(|group| group.last <= archived) {
            self.waiting_bytes -= group.bytes;
            self.waiting_payload_bytes -= group.payload_bytes;
            self.waiting.pop_front();
        }
        while self.files.get(1).is_some_and(|next| next.after <= archived)
            && let Some(file) = self.files.pop_front()
        {
            std::fs::remove_file(file_path(&self.folder, file.after))?;
        }
        Ok(())
    }

    /// Removes all of it.
    pub(super) fn remove(&self) -> io::Result<()> {
        std::fs::remove_dir_all(&self.folder)
    }

    /// Bytes that wait, and when the oldest commit of them was published.
    pub(super) fn waiting(&self) -> (u64, Option<Timestamp>) {
        (self.waiting_bytes, self.waiting.front().map(|group| group.published))
    }

    /// The beginning of the spool.
    pub(super) fn start(&self) -> Cursor {
        let after = self.files.front().map_or(0, |file| file.after);
        Cursor { after, offset: HEAD_BYTES as u64, read: self.end }
    }

    /// The files that a reader reads from a place on, and how many bytes of each.
    pub(super) fn readable(&self, cursor: Cursor) -> Readable {
        let files = self.files.iter().filter(|file| file.after >= cursor.after).copied().collect();
        Readable { folder: self.folder.clone(), files, cursor }
    }
}

/// A part of a spool that can be read while more is appended.
#[derive(Debug)]
pub(super) struct Readable {
    folder: PathBuf,
    files: Vec<SpoolFile>,
    cursor: Cursor,
}

impl Readable {
    /// The next groups: up to a commit, or about so many bytes of commits and small payloads. Where to go on.
    pub(super) fn read(mut self, until: Option<u64>, bytes_max: usize) -> io::Result<(Vec<SpooledGroup>, Cursor)> {
        let (mut groups, mut bytes) = (Vec::new(), 0);
        for file in self.files {
            if self.cursor.after != file.after {
                self.cursor = Cursor { after: file.after, offset: HEAD_BYTES as u64, ..self.cursor };
            }
            let mut frames = Frames::open(&file_path(&self.folder, file.after), self.cursor.offset, file.bytes)?;
            loop {
                let is_full = until.map_or(bytes >= bytes_max, |until| self.cursor.read.point.sequence >= until);
                if is_full && !groups.is_empty() {
                    return Ok((groups, self.cursor));
                }
                let Some(frame) = frames.next()? else { break };
                self.cursor.offset = frames.offset;
                if let Frame::Group(group) = frame {
                    self.cursor.read = group.end;
                    bytes +=
                        group.records.len() + group.payloads.iter().map(super::compose::inline_bytes).sum::<usize>();
                    groups.push(group);
                }
            }
            if frames.offset < file.bytes {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a part of the spool cannot be read"));
            }
        }
        Ok((groups, self.cursor))
    }
}

impl SpoolEnd {
    fn encode(&self, out: &mut Vec<u8>) {
        for number in [self.point.sequence, self.point.time.ticks(), self.published.ticks()] {
            out.extend_from_slice(&number.to_be_bytes());
        }
    }

    fn decode(input: &mut &[u8]) -> Option<Self> {
        let mut number = || {
            let (bytes, rest) = input.split_first_chunk()?;
            *input = rest;
            Some(u64::from_be_bytes(*bytes))
        };
        let (sequence, time, published) = (number()?, number()?, number()?);
        let point = CommitPoint { sequence, time: Timestamp::from_ticks(time) };
        Some(Self { point, published: Timestamp::from_ticks(published) })
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Frame {
    Group(SpooledGroup),
    Intent(SegmentName),
}

/// Reads the frames of a file.
struct Frames {
    file: io::BufReader<io::Take<File>>,
    offset: u64,
    end: u64,
}

impl Frames {
    fn open(path: &Path, offset: u64, end: u64) -> io::Result<Self> {
        use std::io::Seek as _;
        let mut file = File::open(path)?;
        file.seek(io::SeekFrom::Start(offset))?;
        Ok(Self { file: io::BufReader::with_capacity(1 << 16, file.take(end.saturating_sub(offset))), offset, end })
    }

    /// The next frame; `None` at the end, and at one that is not whole.
    fn next(&mut self) -> io::Result<Option<Frame>> {
        let left = self.end.saturating_sub(self.offset);
        if left < FRAME_BYTES as u64 {
            return Ok(None);
        }
        let mut head = [0; FRAME_BYTES];
        self.file.read_exact(&mut head)?;
        let (length, sum) = head.split_first_chunk().expect("a frame's head begins with its length");
        let length = u64::from(u32::from_be_bytes(*length));
        if length > left - FRAME_BYTES as u64 {
            return Ok(None);
        }
        let mut content = vec![0; length as usize];
        self.file.read_exact(&mut content)?;
        let frame = (xxh3_64(&content).to_be_bytes() == sum).then(|| decode(&content)).flatten();
        if frame.is_some() {
            self.offset += FRAME_BYTES as u64 + length;
        }
        Ok(frame)
    }
}

fn decode(content: &[u8]) -> Option<Frame> {
    let (kind, mut rest) = content.split_first()?;
    match *kind {
        GROUP => {
            let end = SpoolEnd::decode(&mut rest)?;
            let count = varint::take(&mut rest)?;
            let payloads: Option<_> = (0..count).map(|_| Extent::decode(&mut rest)).collect();
            Some(Frame::Group(SpooledGroup { end, payloads: payloads?, records: rest.to_vec() }))
        }
        INTENT => Some(Frame::Intent(SegmentName { first: varint::take(&mut rest)?, last: varint::take(&mut rest)? })),
        _ => None,
    }
}

/// What the files of a spool hold.
struct Scan {
    files: VecDeque<SpoolFile>,
    start: SpoolEnd,
    end: SpoolEnd,
    /// Each group, with the place after it.
    groups: Vec<(Waiting, Cursor)>,
    intent: Option<SegmentName>,
    is_whole: bool,
}

enum Scanned {
    NoHead,
    First(Scan),
    Next { is_whole: bool },
}

/// Reads a file of a spool, after those before it.
fn scan(path: &Path, after: u64, before: Option<&mut Scan>) -> io::Result<Scanned> {
    let bytes = std::fs::metadata(path)?.len();
    let mut head = Vec::new();
    File::open(path)?.take(HEAD_BYTES as u64).read_to_end(&mut head)?;
    let start = head.strip_prefix(MAGIC).and_then(|mut rest| SpoolEnd::decode(&mut rest));
    let Some(start) = start.filter(|start| start.point.sequence == after) else { return Ok(Scanned::NoHead) };
    let mut first = None;
    let is_next = before.as_ref().is_none_or(|before| before.end == start);
    let scan = match before {
        Some(before) => before,
        None => first.insert(Scan {
            files: VecDeque::new(),
            start,
            end: start,
            groups: Vec::new(),
            intent: None,
            is_whole: true,
        }),
    };
    let mut frames = Frames::open(path, HEAD_BYTES as u64, bytes)?;
    while let Some(frame) = frames.next()? {
        match frame {
            Frame::Intent(segment) => scan.intent = Some(segment),
            Frame::Group(group) => {
                let SpoolEnd { point, published } = group.end;
                let payload_bytes: u64 = group.payloads.iter().map(|extent| extent.length).sum();
                let bytes = group.records.len() as u64 + payload_bytes;
                scan.end = group.end;
                let waiting = Waiting { last: point.sequence, published, bytes, payload_bytes };
                scan.groups.push((waiting, Cursor { after, offset: frames.offset, read: group.end }));
            }
        }
    }
    scan.files.push_back(SpoolFile { after, bytes: frames.offset });
    let is_whole = is_next && frames.offset == bytes;
    scan.is_whole = is_whole;
    Ok(first.map_or(Scanned::Next { is_whole }, Scanned::First))
}

impl Scan {
    fn open(self, folder: &Path, bytes_max: u64) -> io::Result<Recovered> {
        let last = *self.files.back().expect("a scan has read a file");
        let current = private().open(file_path(folder, last.after))?;
        current.set_len(last.bytes)?;
        current.sync_all()?;
        // Commits are removed from the spool only after their segment is stored.
        let is_here = |segment: &SegmentName| segment.first > self.start.point.sequence;
        let archived = self.intent.map(|segment| if is_here(&segment) { segment.first - 1 } else { segment.last });
        let archived = archived.unwrap_or(self.start.point.sequence);
        let first = Cursor { after: self.files[0].after, offset: HEAD_BYTES as u64, read: self.start };
        let cursor = self.groups.iter().map(|(_, cursor)| *cursor).take_while(|c| c.read.point.sequence <= archived);
        let cursor = cursor.last().unwrap_or(first);
        let waiting = self.groups.iter().map(|(group, _)| *group).filter(|group| group.last > archived).collect();
        let spool = Spool::new(folder.to_owned(), self.files, current, self.end, waiting, bytes_max);
        Ok(Recovered { spool, cursor, intent: self.intent.filter(|segment| is_here(segment)) })
    }
}

/// Creates a file of a spool, for the commits after a place.
/// The files of a spool: the number of the commit before the first of each, in order.
fn afters(folder: &Path) -> io::Result<Vec<u64>> {
    let mut afters = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        afters.extend(name.to_str().filter(|name| name.len() == 20).and_then(|name| name.parse::<u64>().ok()));
    }
    afters.sort_unstable();
    Ok(afters)
}

fn new_file(folder: &Path, after: SpoolEnd) -> io::Result<File> {
    let mut head = MAGIC.to_vec();
    after.encode(&mut head);
    let path = file_path(folder, after.point.sequence);
    let mut file = private().create(true).truncate(true).open(path)?;
    file.write_all(&head)?;
    file.sync_all()?;
    File::open(folder)?.sync_all()?;
    Ok(file)
}

fn file_path(folder: &Path, after: u64) -> PathBuf {
    folder.join(format!("{after:020}"))
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

const LINE: &str = "line";
const MAGIC: &[u8] = b"LARSPL1\n";
const HEAD_BYTES: usize = MAGIC.len() + 24;
/// The length and the checksum.
const FRAME_BYTES: usize = 12;
const GROUP: u8 = 1;
const INTENT: u8 = 2;
/// A file that is this long is followed by another: archived commits leave the disk in such steps.
const FILE_BYTES: u64 = 4 << 20;

#[cfg(test)]
mod tests;
