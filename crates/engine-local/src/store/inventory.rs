//! The list of a store's files, stored beside it: a data directory that once had data never opens as a new one.
//!
//! Two files in the data directory, neither of which is ever ahead of the store, at whatever moment a process or
//! a machine stops:
//!
//! - `inventory`, replaced whole and synced: the format and the release that wrote the store, the newest journal, the
//!   sealed ones with the number of their last commit, and whether there are bytes of blobs. It changes when a journal
//!   does, about every 64 MiB, before a commit in the new journal is acknowledged.
//! - `watermark`, written in place after each synced commit and not synced itself: how many commits the newest journal
//!   holds. The operating system keeps it when the process dies; a loss of power may set it back, never forward. It is
//!   how a journal that was cut at its end is distinguished from a complete one.
//!
//! `check.rs` compares both with what is there before fjall opens anything.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

/// What a store is known to consist of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inventory {
    /// The format of the store's records.
    pub(crate) format: u8,
    /// The release that wrote this.
    pub(crate) release: String,
    /// The number of the newest journal.
    pub(crate) journal: u64,
    /// Older journals, each with the number of its last commit: one that is gone was flushed to tables first.
    pub(crate) sealed: Vec<(u64, u64)>,
    /// Whether the data directory also has the bytes of blobs.
    pub(crate) has_blobs: bool,
}

/// How far the newest journal has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Watermark {
    pub(crate) journal: u64,
    pub(crate) commits: u64,
    /// A number above that of the commit before the last, and not above that of the last.
    pub(crate) seqno: u64,
}

impl Inventory {
    /// Reads the inventory of a data directory; `None` if there is none, an error of kind `InvalidData` if it is damaged.
    pub(crate) fn read(folder: &Path) -> io::Result<Option<Self>> {
        match std::fs::read_to_string(folder.join(INVENTORY)) {
            Ok(text) => Self::parse(&text).ok_or_else(|| io::ErrorKind::InvalidData.into()).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a directory has an inventory, of any release, whole or damaged after its first words.
    pub(crate) fn is_there(folder: &Path) -> io::Result<bool> {
        let mut start = Vec::new();
        match File::open(folder.join(INVENTORY)) {
            Ok(file) => file.take(HEAD_START.len() as u64).read_to_end(&mut start)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        Ok(start == HEAD_START.as_bytes())
    }

    /// Puts the inventory in place of the one before, whole or not at all.
    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        replace(&folder.join(INVENTORY), self.to_text().as_bytes())
    }

    fn to_text(&self) -> String {
        let Self { format, release, journal, sealed, has_blobs } = self;
        let mut text = format!("{HEAD}\nformat {format}\nrelease {release}\njournal {journal}\n");
        let mut line = |line: std::fmt::Arguments<'_>| writeln!(text, "{line}").expect("a string takes every write");
        for (journal, seqno) in sealed {
            line(format_args!("sealed {journal} {seqno}"));
        }
        if *has_blobs {
            line(format_args!("blobs"));
        }
        let sum = xxh3_64(text.as_bytes());
        text + &format!("sum {sum:016x}\n")
    }

    fn parse(text: &str) -> Option<Self> {
        let (body, sum) = text.trim_end_matches('\n').rsplit_once('\n')?;
        let body = format!("{body}\n");
        if sum != format!("sum {:016x}", xxh3_64(body.as_bytes())) {
            return None;
        }
        let mut lines = body.lines();
        (lines.next()? == HEAD).then_some(())?;
        let mut read = Self { format: 0, release: String::new(), journal: 0, sealed: Vec::new(), has_blobs: false };
        for line in lines {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "format" => read.format = rest.parse().ok()?,
                "release" => rest.clone_into(&mut read.release),
                "journal" => read.journal = rest.parse().ok()?,
                "sealed" => {
                    let (journal, seqno) = rest.split_once(' ')?;
                    read.sealed.push((journal.parse().ok()?, seqno.parse().ok()?));
                }
                "blobs" => read.has_blobs = true,
                // A later release may know more; what it must not be opened without is in the format.
                _ => {}
            }
        }
        Some(read)
    }
}

impl Watermark {
    /// Reads the watermark; `None` if there is none or a loss of power left half of one.
    pub(crate) fn read(folder: &Path) -> Option<Self> {
        let bytes = std::fs::read(folder.join(WATERMARK)).ok()?;
        let words: Vec<u64> =
            bytes.chunks_exact(8).map_while(|word| word.try_into().ok()).map(u64::from_le_bytes).collect();
        let [journal, commits, seqno, sum] = words[..] else { return None };
        (sum == xxh3_64(&bytes[..24])).then_some(Self { journal, commits, seqno })
    }

    fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (place, number) in bytes.chunks_exact_mut(8).zip([self.journal, self.commits, self.seqno]) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let sum = xxh3_64(&bytes[..24]);
        bytes[24..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }
}

/// Forgets how far the journals had come; for repairs that take from them.
pub(crate) fn forget_watermark(folder: &Path) -> io::Result<()> {
    match std::fs::remove_file(folder.join(WATERMARK)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => sync_folder(folder),
    }
}

/// Keeps both files true while the store is open. Only the committing thread uses it.
#[derive(Debug)]
pub(crate) struct Tracker {
    folder: PathBuf,
    store: PathBuf,
    inventory: Inventory,
    watermark: Watermark,
    watermark_file: File,
    /// Whether the inventory on disk is behind.
    is_behind: bool,
}

impl Tracker {
    /// Starts with the store as it was just found, and writes its inventory if it is another than the one there.
    pub(crate) fn start(folder: &Path, store: &Path, found: Inventory, watermark: Watermark) -> io::Result<Self> {
        let is_behind = Inventory::read(folder).ok().flatten().as_ref() != Some(&found);
        let watermark_file =
            OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(WATERMARK))?;
        let (folder, store) = (folder.to_owned(), store.to_owned());
        let mut tracker = Self { folder, store, inventory: found, watermark, watermark_file, is_behind };
        match tracker.write_inventory() {
            // Reads are served on a full disk too; the next commit tries again.
            Err(error) if error.kind() != io::ErrorKind::StorageFull => return Err(error),
            _ => {}
        }
        tracker.write_watermark();
        Ok(tracker)
    }

    /// Notes that there are bytes of blobs from now on.
    pub(crate) fn record_blobs(&mut self) -> io::Result<()> {
        self.is_behind |= !std::mem::replace(&mut self.inventory.has_blobs, true);
        self.write_inventory()
    }

    /// Takes note of a commit that succeeded; `seqno` was the next number before it.
    pub(crate) fn committed(&mut self, seqno: u64) -> io::Result<()> {
        self.watermark.commits += 1;
        let before = std::mem::replace(&mut self.watermark.seqno, seqno);
        let next = self.store.join(format!("{}.jnl", self.inventory.journal + 1));
        if next.try_exists()? {
            // The commit is the first one in the new journal, or the last one in the old.
            let is_in_next = starts_with_commit(&next)?;
            self.inventory.sealed.push((self.inventory.journal, if is_in_next { before } else { seqno }));
            self.inventory.journal += 1;
            self.watermark = Watermark { journal: self.inventory.journal, commits: u64::from(is_in_next), seqno };
            let store = &self.store;
            self.inventory.sealed.retain(|(journal, _)| store.join(format!("{journal}.jnl")).exists());
            self.is_behind = true;
        }
        self.write_inventory()
    }

    /// Takes note of a new journal, if there is one, while no commit is under way. fjall removes the old one when its rows
    /// are in tables, also if no commit follows.
    pub(crate) fn rotated(&mut self) -> io::Result<()> {
        let next = self.inventory.journal + 1;
        if self.store.join(format!("{next}.jnl")).try_exists()? {
            let seqno = self.watermark.seqno;
            self.inventory.sealed.push((self.inventory.journal, seqno));
            self.inventory.journal = next;
            self.watermark = Watermark { journal: next, commits: 0, seqno };
            self.is_behind = true;
        }
        self.write_inventory()
    }

    /// Writes how far the journal has come, once that is synced.
    pub(crate) fn write_watermark(&self) {
        if let Err(error) = self.watermark_file.write_all_at(&self.watermark.to_bytes(), 0) {
            tracing::debug!(%error, "the watermark could not be written");
        }
    }

    fn write_inventory(&mut self) -> io::Result<()> {
        if self.is_behind {
            // The journal's own entry first: the inventory must not name what a loss of power takes back.
            sync_folder(&self.store)?;
            self.inventory.write(&self.folder)?;
            self.is_behind = false;
        }
        Ok(())
    }
}

/// Whether a journal has a commit at its start; an unused one is zeros.
fn starts_with_commit(journal: &Path) -> io::Result<bool> {
    let mut first = [0];
    let read = File::open(journal)?.read_at(&mut first, 0)?;
    Ok(read == 1 && first != [0])
}

/// Writes a file under another name, syncs it and renames it into place.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)?;
    path.parent().map_or(Ok(()), sync_folder)
}

pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

pub(crate) const INVENTORY: &str = "inventory";
pub(crate) const WATERMARK: &str = "watermark";
const HEAD: &str = "larimar store inventory 1";
const HEAD_START: &str = "larimar store inventory ";

#[cfg(test)]
mod tests {
    use super::*;

    fn inventory() -> Inventory {
        let sealed = vec![(2, 10), (3, 20)];
        Inventory { format: 1, release: "0.1.0".to_owned(), journal: 4, sealed, has_blobs: true }
    }

    #[test]
    fn an_inventory_is_read_as_it_was_written() {
        for has_blobs in [false, true] {
            let written = Inventory { has_blobs, ..inventory() };
            assert_eq!(Inventory::parse(&written.to_text()), Some(written));
        }
    }

    #[test]
    fn no_changed_byte_of_an_inventory_goes_unnoticed() {
        let text = inventory().to_text().into_bytes();
        for at in 0..text.len() - 1 {
            let mut changed = text.clone();
            changed[at] ^= 1;
            let parsed = std::str::from_utf8(&changed).ok().and_then(Inventory::parse);
            assert_eq!(parsed, None, "byte {at}");
        }
    }

    #[test]
    fn a_watermark_is_read_as_it_was_written_or_not_at_all() {
        let folder = std::env::temp_dir().join(format!("larimar-watermark-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let written = Watermark { journal: 3, commits: 7, seqno: 99 };
        let mut bytes = written.to_bytes();
        std::fs::write(folder.join(WATERMARK), bytes).expect("a file");
        assert_eq!(Watermark::read(&folder), Some(written));
        bytes[9] ^= 1;
        std::fs::write(folder.join(WATERMARK), bytes).expect("a file");
        assert_eq!(Watermark::read(&folder), None);
        std::fs::remove_dir_all(&folder).expect("a folder to remove");
    }
}
