//! Fills the store of a directory that is being restored ([`Restoring`](crate::restoring::Restoring)): spaces with the
//! numbers that they had, and rows in the order of a backup.
//!
//! Rows that arrive in the order of their keys are written straight to tables ([`Store::load`]), not to the journal and to
//! memory first. Short runs, such as those of small spaces whose numbers have another order than their names, are
//! committed in batches. Nobody reads the store before it is whole, and the directory is marked until then, so only the
//! end has to be on disk.

use larimar_engine::{Fault, RowRef, SpaceId, SpaceName};
use larimar_model::Timestamp;
use rustc_hash::FxHashSet;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::catalogue::{self, CommitPoint, NEXT_KEY};
use crate::committer::Write;
use crate::engine::LocalEngine;
use crate::key;
use crate::recovery::fault;
use crate::store::memory::MemoryStore;
use crate::store::{Batch, Bytes, Store, StoreError, SyncTo};
use crate::write::join_value;

/// Fills an empty store, in a thread of its own.
pub struct Loader {
    loads: mpsc::Sender<Load>,
    /// `None` once it was waited for.
    thread: Option<Thread>,
    names: FxHashSet<Vec<u8>>,
    spaces: FxHashSet<SpaceId>,
    /// The next number for a space.
    next: u64,
    /// The last version given to a row.
    version: u64,
    /// What the thread does not have yet.
    rows: Vec<Row>,
    bytes: usize,
    records: Vec<Write>,
    /// The beginning of the last key: its space and partition.
    prefix: Vec<u8>,
    partition: Option<(SpaceId, String)>,
}

type Row = (Bytes, Bytes);
type Thread = JoinHandle<Result<Option<Box<dyn Store>>, StoreError>>;

/// What the thread stores.
enum Load {
    Rows(Vec<Row>),
    /// The last records, with which the store is whole.
    End(Vec<Write>),
}

impl Loader {
    /// Fills a store. Has to be called within a runtime.
    pub(crate) fn new(store: Box<dyn Store>) -> Self {
        let (loads, arriving) = mpsc::channel(LOADS_AHEAD);
        let arriving = Arriving { loads: arriving, rows: Vec::new().into_iter(), end: None };
        Self {
            loads,
            thread: Some(tokio::task::spawn_blocking(|| fill(store, arriving))),
            names: FxHashSet::default(),
            spaces: FxHashSet::from_iter([SpaceId::SYSTEM]),
            next: SpaceId::SYSTEM.0 + 1,
            version: 0,
            rows: Vec::new(),
            bytes: 0,
            records: catalogue::first_records().writes,
            prefix: Vec::new(),
            partition: None,
        }
    }

    /// Fills a store in memory.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::new(Box::new(MemoryStore::default()))
    }

    /// Creates a space with the number that it has in the store that this one is a copy of; `false` if there is one of that
    /// name or number.
    ///
    /// # Errors
    /// A name that is too long, or a number that is too high.
    pub fn create_space(&mut self, name: SpaceName<'_>, number: SpaceId, meta: &[u8]) -> Result<bool, Fault> {
        let after = number.0.checked_add(1).ok_or_else(catalogue::number_too_high)?;
        let key = catalogue::name_key(name);
        check_length(&key)?;
        let record = catalogue::entry(&key, number, meta);
        if !self.spaces.insert(number) || !self.names.insert(key) {
            return Ok(false);
        }
        self.next = self.next.max(after);
        self.records.push(record);
        Ok(true)
    }

    /// Adds a row to a space. The caller sends what was added when [`Self::is_full`] says so.
    ///
    /// # Errors
    /// A key that is too long.
    pub fn add(&mut self, space: SpaceId, row: RowRef<'_>) -> Result<(), Fault> {
        if !self.partition.as_ref().is_some_and(|(of, partition)| *of == space && partition == row.partition) {
            self.prefix.clear();
            key::put_partition(&mut self.prefix, space, row.partition);
            self.partition = Some((space, row.partition.to_owned()));
        }
        let prefix = self.prefix.len();
        key::put_row(&mut self.prefix, row.row);
        let key = check_length(&self.prefix).map(|()| Bytes::from(&self.prefix[..]));
        self.prefix.truncate(prefix);
        let (key, value) = (key?, join_value(row.version, row.body));
        self.version = self.version.max(row.version.ticks());
        self.bytes += key.len() + value.len() + ROW_OVERHEAD;
        self.rows.push((key, value));
        Ok(())
    }

    /// Whether enough was added to send it.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.bytes >= LOAD_BYTES
    }

    /// Sends what was added; waits if the store is behind.
    ///
    /// # Errors
    /// What the store failed with.
    pub async fn send(&mut self) -> Result<(), Fault> {
        self.bytes = 0;
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() || self.loads.send(Load::Rows(rows)).await.is_ok() {
            return Ok(());
        }
        Err(self.stop().await)
    }

    /// Waits until everything is on disk and the store is closed. It is as it was after this commit, when this was the last
    /// version given to a row.
    ///
    /// # Errors
    /// What the store failed with.
    pub async fn finish(self, version: Timestamp, last: CommitPoint) -> Result<(), Fault> {
        self.finish_store(version, last).await.map(drop)
    }

    /// Opens an engine on the store, as after [`Self::finish`].
    ///
    /// # Errors
    /// What the store failed with.
    pub async fn finish_in_engine(self, version: Timestamp, last: CommitPoint) -> Result<LocalEngine, Fault> {
        let store = self.finish_store(version, last).await?;
        LocalEngine::on_store(store).map_err(|error| fault(&error))
    }

    /// Gives the store up, and waits until nothing writes to it any more.
    pub async fn abandon(mut self) {
        // The caller knows why.
        let _ = self.stop().await;
    }

    async fn finish_store(mut self, version: Timestamp, last: CommitPoint) -> Result<Box<dyn Store>, Fault> {
        self.send().await?;
        let mut records = std::mem::take(&mut self.records);
        records.push((NEXT_KEY.into(), Some(self.next.to_be_bytes().into())));
        records.push(catalogue::commit_record(self.version.max(version.ticks()), last));
        if self.loads.send(Load::End(records)).await.is_err() {
            return Err(self.stop().await);
        }
        match self.ended().await {
            Ok(Some(store)) => Ok(store),
            Ok(None) => Err(given_up()),
            Err(fault) => Err(fault),
        }
    }

    /// Ends the thread; why the store is not whole.
    async fn stop(&mut self) -> Fault {
        (self.loads, _) = mpsc::channel(1);
        self.ended().await.map_or_else(|fault| fault, |_| given_up())
    }

    async fn ended(&mut self) -> Result<Option<Box<dyn Store>>, Fault> {
        let Some(thread) = self.thread.take() else { return Ok(None) };
        let ended = thread.await.map_err(|error| Fault::Unavailable(format!("a thread ended early: {error}")))?;
        ended.map_err(|error| fault(&error))
    }
}

/// The store takes no longer keys. No service accepts them either, so a backup that has one is damaged.
fn check_length(key: &[u8]) -> Result<(), Fault> {
    match u16::try_from(key.len()) {
        Ok(_) => Ok(()),
        Err(_) => Err(Fault::Damaged(format!("a key of {} bytes is longer than any may be", key.len()))),
    }
}

fn given_up() -> Fault {
    Fault::Unavailable("the restore was given up".to_owned())
}

/// The rows that arrive, one by one.
struct Arriving {
    loads: mpsc::Receiver<Load>,
    rows: std::vec::IntoIter<Row>,
    /// The last records, when everything has arrived.
    end: Option<Vec<Write>>,
}

impl Iterator for Arriving {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        loop {
            if let Some(row) = self.rows.next() {
                return Some(row);
            }
            if self.end.is_some() {
                return None;
            }
            match self.loads.blocking_recv()? {
                Load::Rows(rows) => self.rows = rows.into_iter(),
                Load::End(records) => self.end = Some(records),
            }
        }
    }
}

/// Stores everything that arrives; `None` if the loader was given up.
fn fill(store: Box<dyn Store>, mut arriving: Arriving) -> Result<Option<Box<dyn Store>>, StoreError> {
    let mut next = arriving.next();
    while let Some(first) = next.take() {
        let mut bytes = size(&first);
        let mut run = vec![first];
        while bytes < TABLES_BYTES_MIN
            && let Some(row) = arriving.next()
        {
            if run.last().is_some_and(|(last, _)| row.0 <= *last) {
                next = Some(row);
                break;
            }
            bytes += size(&row);
            run.push(row);
        }
        if bytes < TABLES_BYTES_MIN {
            let writes = run.into_iter().map(|(key, value)| (key, Some(value))).collect();
            store.commit(Batch { writes }, SyncTo::System)?;
            continue;
        }
        let mut last = run.last().map(|(key, _)| key.clone());
        let more = std::iter::from_fn(|| {
            let row = if bytes < TABLES_BYTES_MAX { arriving.next()? } else { return None };
            if Some(&row.0) <= last.as_ref() {
                next = Some(row);
                return None;
            }
            bytes += size(&row);
            last = Some(row.0.clone());
            Some(row)
        });
        store.load(&mut run.into_iter().chain(more))?;
        if next.is_none() {
            next = arriving.next();
        }
    }
    let Some(writes) = arriving.end else { return Ok(None) };
    store.commit(Batch { writes }, SyncTo::Disk)?;
    store.finish()?;
    Ok(Some(store))
}

fn size((key, value): &Row) -> usize {
    key.len() + value.len()
}

/// Rows are handed over to the thread by the MiB, and so many of them wait for it.
const LOAD_BYTES: usize = 1 << 20;
const LOADS_AHEAD: usize = 8;
/// What a small row takes in memory beside its bytes, about.
const ROW_OVERHEAD: usize = 48;
/// A run that is shorter is not worth a table of its own.
const TABLES_BYTES_MIN: usize = if cfg!(test) { 64 << 10 } else { 8 << 20 };
/// A longer run is divided, so that the store can put the first tables where they belong.
const TABLES_BYTES_MAX: usize = if cfg!(test) { 256 << 10 } else { 1 << 30 };

#[cfg(test)]
mod tests;
