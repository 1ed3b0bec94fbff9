//! What the store on disk does with damaged journals: what opens, what refuses, and with which error.
//!
//! Written against the `Store` trait and the inspection of journals; a store that takes fjall's place has
//! to pass the tests that open one.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use larimar_engine_local::budget::MemoryBudget;
use larimar_engine_local::store::fjall::{FjallStore, Options};
use larimar_engine_local::store::journal::{State, inspect};
use larimar_engine_local::store::{Batch, Store, StoreError, SyncTo};
use tempfile::TempDir;

/// A data folder whose journal holds six batches; the last value is large.
struct Written {
    folder: TempDir,
    /// Where each batch ends in the journal.
    ends: Vec<u64>,
    /// The journal.
    bytes: Vec<u8>,
    /// For changed copies of the journal alone.
    scratch: TempDir,
}

const BATCHES: usize = 6;
const LARGE: usize = 40_000;

impl Written {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let store = open(folder.path()).unwrap();
        let mut ends = Vec::new();
        for number in 0..BATCHES {
            let mut batch = Batch::default();
            let length = if number + 1 == BATCHES { LARGE } else { 50 };
            batch.put(format!("key{number}"), vec![b'v'; length]);
            batch.put(format!("other{number}"), "x");
            batch.delete(format!("gone{number}"));
            store.commit(batch, SyncTo::Disk).unwrap();
            ends.push(inspect(&folder.path().join("store")).unwrap().journals[0].intact_bytes);
        }
        drop(store);
        // Without the zeros set aside for later, so that the cases are quick; one test has them back.
        let mut bytes = std::fs::read(journal(folder.path())).unwrap();
        bytes.truncate(ends[BATCHES - 1] as usize);
        std::fs::write(journal(folder.path()), &bytes).unwrap();
        Self { folder, ends, bytes, scratch: TempDir::new().unwrap() }
    }

    /// A copy of the folder whose journal was changed.
    fn damaged(&self, change: impl FnOnce(&mut Vec<u8>)) -> TempDir {
        let copy = TempDir::new().unwrap();
        copy_folder(self.folder.path(), copy.path());
        let journal = journal(copy.path());
        let mut bytes = std::fs::read(&journal).unwrap();
        change(&mut bytes);
        std::fs::write(&journal, bytes).unwrap();
        // A loss of power takes this back as well; what it means when it stays is in missing_files.rs.
        std::fs::remove_file(copy.path().join("watermark")).unwrap();
        copy
    }

    /// What the inspection says of the journal with a change; quicker than `damaged`, opens nothing.
    fn state_with(&self, change: impl FnOnce(&mut Vec<u8>)) -> State {
        let mut bytes = self.bytes.clone();
        change(&mut bytes);
        std::fs::write(self.scratch.path().join("0.jnl"), bytes).unwrap();
        inspect(self.scratch.path()).unwrap().state
    }

    fn end(&self) -> u64 {
        self.ends[BATCHES - 1]
    }

    fn last_start(&self) -> usize {
        self.ends[BATCHES - 2] as usize
    }
}

#[test]
fn an_intact_journal_opens_with_everything() {
    let written = Written::new();
    assert_eq!(state(written.folder.path()), State::Intact);
    assert_eq!(keys(&open(written.folder.path()).unwrap()), expected(BATCHES));
}

#[test]
fn a_journal_cut_anywhere_in_its_last_batch_is_torn() {
    let written = Written::new();
    let start = written.last_start();
    // Every place in the heads, a few in the large value, every place in the end.
    let end = written.end() as usize;
    let places = (start + 1..start + 120).chain((start + 120..end - 120).step_by(4001)).chain(end - 120..end);
    for place in places {
        let state = written.state_with(|bytes| bytes.truncate(place));
        assert_eq!(state, State::Torn, "cut at {place} of {end}");
    }
}

#[test]
fn a_journal_zeroed_from_anywhere_in_its_last_batch_is_torn() {
    let written = Written::new();
    let (start, end) = (written.last_start(), written.end() as usize);
    let places = (start + 1..start + 120).chain((start + 120..end - 120).step_by(4001)).chain(end - 120..end);
    for place in places {
        let state = written.state_with(|bytes| bytes[place..].fill(0));
        assert_eq!(state, State::Torn, "zeros from {place} of {end}");
    }
}

#[test]
fn a_torn_journal_opens_without_its_last_batch_and_takes_writes() {
    let written = Written::new();
    let (start, end) = (written.last_start(), written.end() as usize);
    for place in [start + 1, start + 13, start + 20, start + 1000, end - 13, end - 12, end - 1] {
        for zeros in [false, true] {
            let folder = written.damaged(|bytes| {
                if zeros {
                    bytes[place..].fill(0);
                } else {
                    bytes.truncate(place);
                }
            });
            let store = open(folder.path()).unwrap();
            assert_eq!(keys(&store), expected(BATCHES - 1), "place {place}, zeros {zeros}");
            put(&store, "after", "1");
            drop(store);
            let store = open(folder.path()).unwrap();
            assert!(store.snapshot().get(b"after").unwrap().is_some(), "place {place}, zeros {zeros}");
        }
    }
}

#[test]
fn zeros_after_the_end_are_nothing() {
    let written = Written::new();
    let folder = written.damaged(|bytes| bytes.resize(bytes.len() + 100_000, 0));
    assert_eq!(state(folder.path()), State::Intact);
    assert_eq!(keys(&open(folder.path()).unwrap()), expected(BATCHES));
}

#[test]
fn a_hole_in_the_last_batch_refuses_to_open_and_names_the_file() {
    let written = Written::new();
    let hole = written.last_start() + 8000;
    let folder = written.damaged(|bytes| bytes[hole..hole + 4096].fill(0));
    let Err(StoreError::DamagedTail(damage)) = open(folder.path()) else { panic!("a hole must not open") };
    assert_eq!(damage.path, journal(folder.path()));
    assert_eq!(damage.offset, written.last_start() as u64);
    let text = StoreError::DamagedTail(damage).to_string();
    assert!(text.contains("0.jnl") && text.contains("larimar repair"), "{text}");
}

#[test]
fn a_lost_first_page_of_the_last_batch_refuses_to_open() {
    let written = Written::new();
    let start = written.last_start();
    let folder = written.damaged(|bytes| bytes[start..start + 4096].fill(0));
    assert!(matches!(open(folder.path()), Err(StoreError::DamagedTail(_))));
}

#[test]
fn foreign_bytes_after_the_end_refuse_to_open() {
    let written = Written::new();
    let folder = written.damaged(|bytes| bytes.extend(b"something else"));
    assert!(matches!(open(folder.path()), Err(StoreError::DamagedTail(_))));
}

#[test]
fn a_bit_flipped_in_any_byte_before_intact_batches_is_found() {
    let written = Written::new();
    let (start, end) = (written.ends[1] as usize, written.ends[2] as usize);
    for place in start..end {
        // The sequence number is outside the checksum; only an order that breaks is seen.
        if (start + 5..start + 13).contains(&place) {
            continue;
        }
        for bit in 0..8 {
            let State::DamagedMiddle(damage) = written.state_with(|bytes| bytes[place] ^= 1 << bit) else {
                panic!("bit {bit} of byte {} of a batch went unseen", place - start);
            };
            assert_eq!(damage.offset, written.ends[1]);
        }
    }
}

#[test]
fn a_flipped_sequence_number_is_found_or_keeps_the_order() {
    let written = Written::new();
    let start = written.ends[1] as usize;
    for place in start + 5..start + 13 {
        for bit in 0..8 {
            let folder = written.damaged(|bytes| bytes[place] ^= 1 << bit);
            if state(folder.path()) == State::Intact {
                assert_eq!(keys(&open(folder.path()).unwrap()), expected(BATCHES));
            }
        }
    }
}

#[test]
fn a_bit_flipped_in_the_last_batch_is_damage_not_a_torn_write() {
    let written = Written::new();
    let (start, end) = (written.last_start(), written.end() as usize);
    let places = (start..start + 120).chain((start + 120..end - 120).step_by(4001)).chain(end - 120..end);
    for place in places.filter(|place| !(start + 5..start + 13).contains(place)) {
        for bit in 0..8 {
            let state = written.state_with(|bytes| bytes[place] ^= 1 << bit);
            let byte = place - start;
            assert!(matches!(state, State::DamagedTail(_)), "bit {bit} of byte {byte} of {}: {state:?}", end - start);
        }
    }
}

#[test]
fn a_bit_flipped_before_intact_batches_refuses_to_open() {
    let written = Written::new();
    for place in [written.ends[1] as usize, written.ends[1] as usize + 30] {
        let folder = written.damaged(|bytes| bytes[place] ^= 4);
        assert!(matches!(open(folder.path()), Err(StoreError::DamagedMiddle(_))), "byte {place}");
    }
}

#[test]
fn a_journal_that_ends_inside_a_batch_before_a_later_journal_is_damage() {
    let written = Written::new();
    let split = written.ends[3] as usize;
    let folder = written.damaged(|_| {});
    let bytes = std::fs::read(journal(folder.path())).unwrap();
    std::fs::write(folder.path().join("store/1.jnl"), &bytes[split..]).unwrap();

    std::fs::write(journal(folder.path()), &bytes[..split]).unwrap();
    assert_eq!(state(folder.path()), State::Intact);
    std::fs::write(journal(folder.path()), &bytes[..split - 1]).unwrap();
    assert!(matches!(state(folder.path()), State::DamagedMiddle(_)));
    // With nothing in the later journal it is a torn write after all.
    std::fs::write(folder.path().join("store/1.jnl"), vec![0; 4096]).unwrap();
    assert_eq!(state(folder.path()), State::Torn);
    assert_eq!(keys(&open(folder.path()).unwrap()), expected(3));
}

#[test]
fn a_damaged_table_refuses_to_open_or_to_read_and_never_answers_wrongly() {
    let written = Written::new();
    open(written.folder.path()).unwrap().finish().unwrap();
    let tables = files(&written.folder.path().join("store/keyspaces/1/tables"));
    assert!(!tables.is_empty());
    for table in tables {
        let bytes = std::fs::read(&table).unwrap();
        for place in (0..bytes.len()).step_by(bytes.len() / 40 + 1) {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            std::fs::write(&table, changed).unwrap();
            let Ok(store) = open(written.folder.path()) else { continue };
            for number in 0..BATCHES {
                if let Ok(found) = store.snapshot().get(format!("other{number}").as_bytes()) {
                    assert_eq!(found.as_deref(), Some(b"x".as_slice()), "byte {place}");
                }
            }
            drop(store);
        }
        std::fs::write(&table, bytes).unwrap();
    }
}

#[test]
fn a_second_process_is_refused() {
    let folder = TempDir::new().unwrap();
    let _first = open(folder.path()).unwrap();
    assert!(matches!(open(folder.path()), Err(StoreError::Locked { .. })));
}

#[test]
fn a_store_that_was_not_made_to_the_end_is_made_anew() {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir_all(folder.path().join("store.unfinished/keyspaces")).unwrap();
    std::fs::write(folder.path().join("store.unfinished/0.jnl"), vec![0; 100]).unwrap();
    let store = open(folder.path()).unwrap();
    put(&store, "a", "1");
    assert!(!folder.path().join("store.unfinished").exists());
}

#[test]
fn a_clean_close_leaves_no_journal_to_read() {
    let written = Written::new();
    open(written.folder.path()).unwrap().finish().unwrap();
    let inspection = inspect(&written.folder.path().join("store")).unwrap();
    assert!(inspection.journals.iter().all(|journal| journal.file_bytes == 0));
    let store = open(written.folder.path()).unwrap();
    assert_eq!(keys(&store), expected(BATCHES));
    put(&store, "after", "1");
    drop(store);
    assert!(open(written.folder.path()).unwrap().snapshot().get(b"after").unwrap().is_some());
}

#[test]
fn a_discarded_range_leaves_other_rows_alone() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path()).unwrap();
    for part in ["a", "b", "c"] {
        let mut batch = Batch::default();
        for number in 0..2000 {
            batch.put(format!("{part}{number:05}"), vec![b'v'; 200]);
        }
        store.commit(batch, SyncTo::Disk).unwrap();
        store.settle().unwrap();
    }
    store.discard(b"b", b"c").unwrap();
    let keys = keys(&store);
    assert_eq!(keys.iter().filter(|key| key.starts_with('a')).count(), 2000);
    assert_eq!(keys.iter().filter(|key| key.starts_with('b')).count(), 0);
    assert_eq!(keys.iter().filter(|key| key.starts_with('c')).count(), 2000);
    drop(store);
    let store = open(folder.path()).unwrap();
    assert_eq!(self::keys(&store).iter().filter(|key| key.starts_with(['a', 'c'])).count(), 4000);
}

fn open(folder: &Path) -> Result<FjallStore, StoreError> {
    FjallStore::open(Options { folder: folder.to_owned(), memory: MemoryBudget::smallest(), filter: Arc::new(()) })
}

fn put(store: &FjallStore, key: &str, value: &str) {
    let mut batch = Batch::default();
    batch.put(key, value);
    store.commit(batch, SyncTo::Disk).unwrap();
}

fn keys(store: &FjallStore) -> Vec<String> {
    let rows = store.snapshot().range(Bound::Unbounded, Bound::Unbounded);
    rows.map(|row| String::from_utf8(row.unwrap().0.to_vec()).unwrap()).collect()
}

/// The keys of the first batches.
fn expected(batches: usize) -> Vec<String> {
    let mut keys: Vec<_> = (0..batches).flat_map(|number| [format!("key{number}"), format!("other{number}")]).collect();
    keys.sort();
    keys
}

fn state(folder: &Path) -> State {
    inspect(&folder.join("store")).unwrap().state
}

fn journal(folder: &Path) -> PathBuf {
    folder.join("store/0.jnl")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect()
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}
