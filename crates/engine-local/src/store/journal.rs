//! Reads the journals of the store byte by byte, so that damage is found before the store opens them.
//!
//! The store's own recovery ends at the first entry it cannot read and cuts the rest, whatever follows;
//! a flipped bit in a tag or a length would silently drop acknowledged writes. This reader looks first
//! and distinguishes four states ([`State`]); `fjall.rs` opens only the first two, `repair.rs` deals with
//! the others.
//!
//! A journal is a row of batches, and its unused end is zeros:
//!
//! ```text
//! batch = start items end
//! start = 01 count:u32 seqno:u64
//! item  = 02 kind:u8 compression:u8 keyspace:u64 key_len:u16 value_len:u32 stored_len:u32 key value
//! clear = 04 keyspace:u64                                   (counts as an item)
//! end   = 03 checksum:u64 "FJL" 03                          (xxh3 of the items; numbers little-endian)
//! ```

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

/// What a look at all journals of a store found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The journals, oldest first.
    pub journals: Vec<Journal>,
    /// The verdict over all of them.
    pub state: State,
}

/// One journal file and how far it is intact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Journal {
    /// The file.
    pub path: PathBuf,
    /// Its number: journals are numbered one after the other.
    pub number: u64,
    /// Length of the file, with the zeros that were set aside for later batches.
    pub file_bytes: u64,
    /// Where the last intact batch of the unbroken row from the start ends.
    pub intact_bytes: u64,
    /// How many batches that row has.
    pub batches: u64,
    /// The sequence number of the last of them.
    pub last_seqno: Option<u64>,
    /// What follows the row.
    pub tail: Tail,
}

/// What follows the last intact batch of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tail {
    /// Nothing, or zeros up to the end of the file.
    Empty,
    /// The beginning of a batch, then nothing or zeros: a write that was cut short and never acknowledged.
    Torn,
    /// Bytes that a write cut short does not leave behind.
    Damaged {
        /// What is wrong there.
        reason: &'static str,
        /// How many intact batches come after the damage in this file.
        intact_after: u64,
    },
}

/// The verdict over the journals of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Every byte is accounted for.
    Intact,
    /// The last batch was cut short; opening the store drops it.
    Torn,
    /// Damage after the last intact batch: in the last batch written, nothing intact follows.
    DamagedTail(Damage),
    /// Damage with intact batches after it: cutting there loses acknowledged writes.
    DamagedMiddle(Damage),
}

/// Where a journal is damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The damaged file.
    pub path: PathBuf,
    /// The end of the last intact batch before the damage.
    pub offset: u64,
    /// What is wrong there.
    pub reason: &'static str,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, offset, reason } = self;
        write!(f, "{} after byte {offset}: {reason}", path.display())
    }
}

/// Reads all journals in the store's directory and checks them together.
pub fn inspect(folder: &Path) -> io::Result<Inspection> {
    let mut journals = Vec::new();
    for (number, path) in numbered_files(folder)? {
        journals.push(inspect_file(&path, number)?);
    }
    let state = judge(&journals);
    Ok(Inspection { journals, state })
}

/// Where to cut a journal so that no batch numbered `seqno_min` or above, and no torn one, remains.
pub(crate) fn end_before(path: &Path, seqno_min: u64) -> io::Result<u64> {
    let mut reader = Reader::open(path)?;
    let mut end = 0;
    while let Step::Batch(batch) = reader.batch()? {
        if batch.seqno >= seqno_min {
            break;
        }
        end = batch.end;
    }
    Ok(end)
}

/// Passes every write of the intact batches of a journal to `visit`: the number of its batch, its keyspace, its
/// key and its value, which a deletion lacks.
pub(crate) fn read_writes(journal: &Journal, mut visit: impl FnMut(u64, u64, &[u8], Option<&[u8]>)) -> io::Result<()> {
    let mut file = BufReader::with_capacity(BUFFER_BYTES, File::open(&journal.path)?);
    let mut bytes = Vec::new();
    for _ in 0..journal.batches {
        let [_tag] = array(&mut file)?;
        let count = u32::from_le_bytes(array(&mut file)?);
        let seqno = u64::from_le_bytes(array(&mut file)?);
        for _ in 0..count {
            let [tag] = array(&mut file)?;
            if tag == CLEAR {
                let [..]: [u8; 8] = array(&mut file)?;
                continue;
            }
            let head: [u8; 20] = array(&mut file)?;
            let (keyspace, rest) = head[2..].split_first_chunk().ok_or(io::ErrorKind::InvalidData)?;
            let key = usize::from(u16::from_le_bytes([rest[0], rest[1]]));
            let value = u32::from_le_bytes([head[16], head[17], head[18], head[19]]) as usize;
            bytes.resize(key + value, 0);
            file.read_exact(&mut bytes)?;
            let (key, value) = bytes.split_at(key);
            visit(seqno, u64::from_le_bytes(*keyspace), key, (head[0] == VALUE).then_some(value));
        }
        let [..]: [u8; 13] = array(&mut file)?;
    }
    Ok(())
}

fn array<const N: usize>(file: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The journal files of a store, oldest first.
pub(crate) fn journal_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    Ok(numbered_files(folder)?.into_iter().map(|(_, path)| path).collect())
}

fn numbered_files(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let number = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_suffix(".jnl"))
            .and_then(|number| number.parse::<u64>().ok());
        if let Some(number) = number {
            files.push((number, path));
        }
    }
    files.sort();
    Ok(files)
}

fn judge(journals: &[Journal]) -> State {
    let damage =
        |journal: &Journal, reason| Damage { path: journal.path.clone(), offset: journal.intact_bytes, reason };
    let mut last_seqno = None;
    for (index, journal) in journals.iter().enumerate() {
        let followed = journals[index + 1..].iter().any(|later| later.batches > 0);
        match &journal.tail {
            Tail::Empty => {}
            Tail::Torn if followed => {
                return State::DamagedMiddle(damage(journal, "a sealed journal ends inside a batch"));
            }
            Tail::Torn => return State::Torn,
            Tail::Damaged { reason, intact_after: 0 } if !followed => {
                return State::DamagedTail(damage(journal, reason));
            }
            Tail::Damaged { reason, .. } => return State::DamagedMiddle(damage(journal, reason)),
        }
        if journal.last_seqno.is_some() && journal.last_seqno <= last_seqno {
            return State::DamagedMiddle(damage(journal, "sequence numbers go backwards"));
        }
        last_seqno = journal.last_seqno.or(last_seqno);
    }
    State::Intact
}

fn inspect_file(path: &Path, number: u64) -> io::Result<Journal> {
    let mut reader = Reader::open(path)?;
    let mut journal = Journal {
        path: path.to_owned(),
        number,
        file_bytes: reader.len,
        intact_bytes: 0,
        batches: 0,
        last_seqno: None,
        tail: Tail::Empty,
    };
    loop {
        match reader.batch()? {
            Step::Batch(batch) if Some(batch.seqno) <= journal.last_seqno => {
                // The number of a batch is outside its checksum, but numbers only grow.
                journal.tail = Tail::Damaged {
                    reason: "sequence numbers go backwards",
                    intact_after: count_batches(path, journal.intact_bytes + 1)?,
                };
                return Ok(journal);
            }
            Step::Batch(batch) => {
                journal.intact_bytes = batch.end;
                journal.batches += 1;
                journal.last_seqno = Some(batch.seqno);
            }
            Step::End => return Ok(journal),
            Step::Broken(reason) => {
                journal.tail = classify(path, &journal, reader.pos, reason)?;
                return Ok(journal);
            }
        }
    }
}

/// Distinguishes a write that was cut short from damage, given that reading broke off at `broken_at`.
fn classify(path: &Path, journal: &Journal, broken_at: u64, reason: Broken) -> io::Result<Tail> {
    let end_of_data = last_nonzero(path, journal.intact_bytes)?;
    if end_of_data == journal.intact_bytes {
        return Ok(Tail::Empty);
    }
    let intact_after = count_batches(path, journal.intact_bytes + 1)?;
    // A write cut short leaves a readable beginning and then nothing: all data ends before the place
    // where reading broke off, and not with the trailer of a batch. (A damaged length may also make the
    // reader run to the end of the file; then an intact batch or a trailer betrays it.)
    let runs_out = reason.torn && end_of_data <= broken_at && !ends_with_trailer(path, end_of_data)?;
    if runs_out && intact_after == 0 {
        return Ok(Tail::Torn);
    }
    Ok(Tail::Damaged { reason: reason.text, intact_after })
}

fn ends_with_trailer(path: &Path, end: u64) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let mut bytes = [0; MAGIC.len()];
    file.seek(SeekFrom::Start(end.saturating_sub(bytes.len() as u64)))?;
    let read = (&mut file).take(bytes.len() as u64).read(&mut bytes)?;
    Ok(bytes[..read] == MAGIC)
}

/// The end of the last byte at or after `from` that is not zero; `from` if all are.
fn last_nonzero(path: &Path, from: u64) -> io::Result<u64> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let zeros = vec![0; BUFFER_BYTES];
    let (mut at, mut last) = (from, from);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(last);
        }
        // Comparing is much quicker than looking at each byte, and most chunks are zeros.
        if buffer[..read] != zeros[..read]
            && let Some(index) = buffer[..read].iter().rposition(|byte| *byte != 0)
        {
            last = at + index as u64 + 1;
        }
        at += read as u64;
    }
}

/// How many intact batches there are at or after `from`, wherever they begin.
fn count_batches(path: &Path, from: u64) -> io::Result<u64> {
    let mut reader = Reader::open(path)?;
    let (mut at, mut count) = (from, 0);
    while let Some(start) = find_batch(path, at)? {
        reader.seek(start)?;
        while let Step::Batch(batch) = reader.batch()? {
            count += 1;
            at = batch.end;
        }
    }
    Ok(count)
}

/// Where the first intact batch at or after `from` begins.
fn find_batch(path: &Path, from: u64) -> io::Result<Option<u64>> {
    let end_of_data = last_nonzero(path, from)?;
    let mut file = File::open(path)?;
    let mut reader = Reader::open(path)?;
    let mut window = Vec::with_capacity(BUFFER_BYTES);
    let mut at = from;
    while at < end_of_data {
        file.seek(SeekFrom::Start(at))?;
        window.clear();
        (&mut file).take(BUFFER_BYTES as u64).read_to_end(&mut window)?;
        // Windows overlap, so that a start across a seam is seen whole in the next one.
        let starts = window.windows(START_BYTES).len();
        for (index, bytes) in window.windows(START_BYTES).enumerate() {
            if plausible_start(bytes) {
                reader.seek(at + index as u64)?;
                if matches!(reader.batch()?, Step::Batch(_)) {
                    return Ok(Some(at + index as u64));
                }
            }
        }
        if starts == 0 {
            break;
        }
        at += starts as u64;
    }
    Ok(None)
}

/// A start tag, a count above zero, and an item or clear tag after it.
fn plausible_start(bytes: &[u8]) -> bool {
    bytes[0] == START && bytes[1..5] != [0; 4] && matches!(bytes[START_BYTES - 1], ITEM | CLEAR)
}

struct Batch {
    seqno: u64,
    end: u64,
}

enum Step {
    Batch(Batch),
    /// The file ends here.
    End,
    /// No batch can be read here; `Reader::pos` is where reading broke off.
    Broken(Broken),
}

/// Why no batch can be read.
#[derive(Clone, Copy)]
struct Broken {
    text: &'static str,
    /// Whether a write that was cut short may look like this.
    torn: bool,
}

impl Broken {
    const fn torn(text: &'static str) -> Self {
        Self { text, torn: true }
    }

    const fn damaged(text: &'static str) -> Self {
        Self { text, torn: false }
    }
}

struct Reader {
    file: BufReader<File>,
    pos: u64,
    len: u64,
    buffer: Vec<u8>,
}

/// `?` for values that may stop the reading of a batch.
macro_rules! read {
    ($value:expr) => {
        match $value? {
            Ok(value) => value,
            Err(reason) => return Ok(Step::Broken(reason)),
        }
    };
}

impl Reader {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        let file = BufReader::with_capacity(BUFFER_BYTES, file);
        Ok(Self { file, pos: 0, len, buffer: Vec::new() })
    }

    fn seek(&mut self, pos: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(pos))?;
        self.pos = pos;
        Ok(())
    }

    fn batch(&mut self) -> io::Result<Step> {
        if self.pos == self.len {
            return Ok(Step::End);
        }
        let [tag] = read!(self.array());
        match tag {
            START => {}
            0 => return Ok(Step::Broken(Broken::torn("zeros where a batch should start"))),
            _ => return Ok(Step::Broken(Broken::damaged("expected the start of a batch"))),
        }
        let count = u32::from_le_bytes(read!(self.array()));
        let seqno = u64::from_le_bytes(read!(self.array()));
        let mut checksum = Xxh3::new();
        for _ in 0..count {
            read!(self.item(&mut checksum));
        }
        read!(self.end(checksum.digest()));
        Ok(Step::Batch(Batch { seqno, end: self.pos }))
    }

    /// Reads one item into the checksum.
    fn item(&mut self, checksum: &mut Xxh3) -> io::Result<Result<(), Broken>> {
        let [tag] = match self.array()? {
            Ok(tag) => tag,
            Err(reason) => return Ok(Err(reason)),
        };
        checksum.update(&[tag]);
        match tag {
            CLEAR => self.skip(8, checksum),
            ITEM => {
                let head: [u8; 20] = match self.array()? {
                    Ok(head) => head,
                    Err(reason) => return Ok(Err(reason)),
                };
                if !matches!(head[0], 0..=2 | 4) || head[1] > 1 {
                    return Ok(Err(Broken::damaged("expected a known kind of item")));
                }
                checksum.update(&head);
                let key = u16::from_le_bytes([head[10], head[11]]);
                let value = u32::from_le_bytes([head[16], head[17], head[18], head[19]]);
                self.skip(u64::from(key) + u64::from(value), checksum)
            }
            0 => Ok(Err(Broken::torn("zeros where an item should start"))),
            END => Ok(Err(COUNT)),
            _ => Ok(Err(Broken::damaged("expected an item"))),
        }
    }

    /// Reads the end of a batch whose items have this checksum.
    fn end(&mut self, checksum: u64) -> io::Result<Result<(), Broken>> {
        let [tag] = match self.array()? {
            Ok(tag) => tag,
            Err(reason) => return Ok(Err(reason)),
        };
        match tag {
            END => {}
            0 => return Ok(Err(Broken::torn("zeros where a batch should end"))),
            _ => return Ok(Err(COUNT)),
        }
        let tail: [u8; 12] = match self.array()? {
            Ok(tail) => tail,
            Err(reason) => return Ok(Err(reason)),
        };
        let mut expected = [0; 12];
        expected[..8].copy_from_slice(&checksum.to_le_bytes());
        expected[8..].copy_from_slice(&MAGIC);
        if tail == expected {
            return Ok(Ok(()));
        }
        let written = tail.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        Ok(Err(if tail[..written] == expected[..written] {
            Broken::torn("the end of a batch is cut short")
        } else {
            Broken::damaged("the checksum of a batch does not match")
        }))
    }

    fn skip(&mut self, bytes: u64, checksum: &mut Xxh3) -> io::Result<Result<(), Broken>> {
        if self.len - self.pos < bytes {
            self.pos = self.len;
            return Ok(Err(EARLY_END));
        }
        let mut left = bytes;
        while left > 0 {
            let chunk = left.min(BUFFER_BYTES as u64);
            self.buffer.clear();
            let read = (&mut self.file).take(chunk).read_to_end(&mut self.buffer)?;
            if read as u64 != chunk {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            checksum.update(&self.buffer);
            left -= chunk;
            self.pos += chunk;
        }
        Ok(Ok(()))
    }

    fn array<const N: usize>(&mut self) -> io::Result<Result<[u8; N], Broken>> {
        if self.len - self.pos < N as u64 {
            self.pos = self.len;
            return Ok(Err(EARLY_END));
        }
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes)?;
        self.pos += N as u64;
        Ok(Ok(bytes))
    }
}

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
/// The kind of an item that sets a value; the others delete.
const VALUE: u8 = 0;
const MAGIC: [u8; 4] = [b'F', b'J', b'L', 3];
/// A start marker and the tag of what follows it.
const START_BYTES: usize = 14;
const BUFFER_BYTES: usize = 256 * 1024;
const EARLY_END: Broken = Broken::torn("the file ends inside a batch");
const COUNT: Broken = Broken::damaged("a batch has not as many items as it says");
