//! The database of fjall below the store: how it is created and opened, which rows its compaction drops, and what its
//! errors mean.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use fjall::compaction::filter::{CompactionFilter, CompactionFilterResult, Context, Factory, ItemAccessor, Verdict};
use fjall::config::{BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, LsmError};

use super::{DeadRows, Options};
use crate::budget::MemoryBudget;
use crate::store::{Mode, StoreError};

/// Opens the database, or creates it.
pub(super) fn open_database(path: &Path, options: &Options, mode: Mode) -> fjall::Result<(Database, Keyspace)> {
    let filter = Arc::clone(&options.filter);
    let db = Database::builder(path)
        .cache_size(options.memory.cache_bytes)
        .journal_compression(CompressionType::None)
        .worker_threads_unchecked(if mode == Mode::Normal { workers() } else { 0 })
        .with_compaction_filter_factories(Arc::new(move |_| {
            let filter = std::panic::AssertUnwindSafe(Arc::clone(&filter));
            Some(Arc::new(Filters(filter)))
        }))
        .open()?;
    let rows = db.keyspace(ROWS, keyspace_options)?;
    Ok((db, rows))
}

fn keyspace_options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        // Rotation is ours; see the head of this file.
        .max_memtable_size(u64::MAX)
        .manual_journal_persist(true)
        .filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0))))
        .data_block_compression_policy(CompressionPolicy::new([
            CompressionType::None,
            CompressionType::None,
            CompressionType::Lz4,
        ]))
}

/// Threads for flushes and compaction; fjall reserves one of them for flushes.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 4)
}

/// Creates an empty store under another name, then renames it.
pub(super) fn create(folder: &Path, path: &Path) -> Result<(), StoreError> {
    let io = |source| StoreError::io(folder, source);
    let unfinished = folder.join(UNFINISHED);
    if unfinished.try_exists().map_err(io)? {
        std::fs::remove_dir_all(&unfinished).map_err(io)?;
    }
    let options = Options { folder: folder.to_owned(), memory: MemoryBudget::smallest(), filter: Arc::new(()) };
    drop(open_database(&unfinished, &options, Mode::Normal).map_err(|error| sort(&unfinished, error))?);
    std::fs::rename(&unfinished, path).map_err(io)?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(io)
}

/// Tells compaction which rows are dead.
struct Filters(std::panic::AssertUnwindSafe<Arc<dyn DeadRows>>);

impl Factory for Filters {
    fn name(&self) -> &str {
        "dead rows"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(Filter(Arc::clone(&self.0.0)))
    }
}

struct Filter(Arc<dyn DeadRows>);

impl CompactionFilter for Filter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> CompactionFilterResult {
        // Nothing reads a dead row, so it does not matter if an older version of it reappears.
        Ok(if self.0.is_dead(item.key()) { Verdict::Destroy } else { Verdict::Keep })
    }
}

/// What an error of fjall means.
pub(super) fn sort(path: &Path, error: fjall::Error) -> StoreError {
    use fjall::Error;
    let path = path.to_owned();
    match error {
        Error::Io(source) | Error::Storage(LsmError::Io(source)) => StoreError::io(&path, source),
        Error::Poisoned => StoreError::Stopped { path },
        Error::Locked => StoreError::Locked { path },
        Error::Storage(damage) => StoreError::Damaged { path, reason: describe(&damage) },
        other => StoreError::Damaged { path, reason: other.to_string() },
    }
}

/// Describes damage; the library's own text names its types.
fn describe(damage: &LsmError) -> String {
    match damage {
        LsmError::ChecksumMismatch { .. } => "the checksum of a block is wrong".to_owned(),
        LsmError::Decompress(_) => "a block cannot be decompressed".to_owned(),
        LsmError::Unrecoverable => "its files do not belong together".to_owned(),
        LsmError::InvalidTag(_) | LsmError::InvalidTrailer | LsmError::InvalidHeader(_) => {
            "a file has other contents than a table has".to_owned()
        }
        other => other.to_string(),
    }
}

/// A store that is being created.
const UNFINISHED: &str = "store.unfinished";
const ROWS: &str = "rows";
