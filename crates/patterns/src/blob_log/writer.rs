//! The writer: records in memory, and blobs when they are enough.

use super::LogRecord;
use super::folder::Folder;
use crate::{Error, Result};
use futures_util::TryStreamExt as _;
use futures_util::future::{self, Either};
use larimar_client::{BlobCondition, Container, Guid, Timestamp, UploadOptions};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::Instant;

/// Writes a log into blobs, in batches. Share it by reference or in an `Arc`.
///
/// ```no_run
/// use larimar_client::Account;
/// use larimar_patterns::blob_log::BlobLogWriter;
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let account = Account::connect("UseDevelopmentStorage=true")?;
/// let log = BlobLogWriter::new(&account.container("logs"), "orders")?;
/// log.append("order 17 came in").await?;
/// log.flush().await?; // durable from here on
/// # Ok(())
/// # }
/// ```
///
/// Dropped, it loses what was not flushed, and says so by a warning in `tracing`.
pub struct BlobLogWriter {
    container: Container,
    service: String,
    minutes: u8,
    flush_bytes: usize,
    flush_age: Duration,
    memory_bytes_max: usize,
    state: Mutex<State>,
    /// Held by the one who writes blobs.
    flushing: tokio::sync::Mutex<BTreeMap<Folder, u32>>,
}

#[derive(Default)]
struct State {
    /// What is being collected, by folder.
    open: BTreeMap<Folder, Batch>,
    /// Bytes of that.
    open_bytes: usize,
    /// What is to be written, the oldest first.
    sealed: VecDeque<(Folder, Batch)>,
    /// Bytes of all of them.
    bytes: usize,
}

/// The records of one blob.
#[derive(Clone)]
struct Batch {
    /// Distinguishes the blob from another of the same name.
    id: String,
    lines: Vec<u8>,
    first: Timestamp,
    last: Timestamp,
    begun: Instant,
}

impl BlobLogWriter {
    /// A writer of the log of a service, in a container that exists. The service is what the names of blobs begin with.
    ///
    /// # Errors
    /// A name that is empty, or begins or ends with a slash.
    pub fn new(container: &Container, service: &str) -> Result<Self> {
        if service.is_empty() || service.starts_with('/') || service.ends_with('/') {
            return Err(Error::Invalid(format!("'{service}' is not a name of a log")));
        }
        Ok(Self {
            container: container.clone(),
            service: service.to_owned(),
            minutes: 60,
            flush_bytes: 1 << 20,
            flush_age: Duration::from_secs(60),
            memory_bytes_max: 64 << 20,
            state: Mutex::default(),
            flushing: tokio::sync::Mutex::default(),
        })
    }

    /// How many minutes a folder spans (default: 60). Numbers that do not divide 60 are taken down to one that does.
    /// Readers need the same setting.
    #[must_use]
    pub fn folder_minutes(mut self, minutes: u8) -> Self {
        self.minutes = divisor(minutes);
        self
    }

    /// After how many bytes of records they are written, a blob for each folder (default: 1 MiB).
    #[must_use]
    pub fn flush_bytes(mut self, bytes: usize) -> Self {
        self.flush_bytes = bytes.max(1);
        self
    }

    /// After how long records are written, however few (default: a minute). It is checked by every append and by
    /// [`run`](Self::run).
    #[must_use]
    pub const fn flush_age(mut self, age: Duration) -> Self {
        self.flush_age = age;
        self
    }

    /// How many bytes of records are kept while the service does not take them (default: 64 MiB). Then appends fail.
    #[must_use]
    pub const fn memory_bytes_max(mut self, bytes: usize) -> Self {
        self.memory_bytes_max = bytes;
        self
    }

    /// Adds a record of now.
    ///
    /// # Errors
    /// As [`append_at`](Self::append_at).
    pub async fn append(&self, text: &str) -> Result<()> {
        self.append_at(Timestamp::now(), text).await
    }

    /// Adds a record of some time, and writes what is due.
    ///
    /// # Errors
    /// [`Error::LogFull`] if there is too much in memory already: then the record was not added. If what is due could not
    /// be written, the record was added all the same and is kept with the others for the next flush.
    pub async fn append_at(&self, time: Timestamp, text: &str) -> Result<()> {
        if self.add(time, text)? { self.flush_due().await } else { Ok(()) }
    }

    /// Writes all records, and returns when everything that was appended before is durable.
    ///
    /// # Errors
    /// What the service refuses; the records are kept for the next flush.
    pub async fn flush(&self) -> Result<()> {
        self.seal(|_| true);
        self.write_sealed().await
    }

    /// Writes records when they are old enough, until `shutdown` is there; then it flushes and returns.
    ///
    /// Failures are logged and survived, but for the last flush.
    ///
    /// # Errors
    /// The last flush failed.
    pub async fn run(&self, shutdown: impl Future<Output = ()>) -> Result<()> {
        let mut shutdown = pin!(shutdown);
        let tick = (self.flush_age / 4).max(Duration::from_millis(10));
        loop {
            let sleep = pin!(tokio::time::sleep(tick));
            if matches!(future::select(&mut shutdown, sleep).await, Either::Left(_)) {
                return self.flush().await;
            }
            if let Err(error) = self.flush_due().await {
                tracing::warn!(log = self.service, %error, "records could not be written and are kept");
            }
        }
    }

    /// How many bytes of records are in memory.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.state().bytes
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic while the lock is held leaves the records as they are.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Adds a record; returns whether something is due.
    fn add(&self, time: Timestamp, text: &str) -> Result<bool> {
        if !(Timestamp::MIN..=Timestamp::MAX).contains(&time) {
            return Err(Error::Invalid("a record has a time from 1601 to 9999".to_owned()));
        }
        let mut state = self.state();
        if state.bytes + text.len() > self.memory_bytes_max {
            return Err(Error::LogFull { bytes_max: self.memory_bytes_max });
        }
        let batch = state.open.entry(Folder::of(time, self.minutes)).or_insert_with(|| Batch::new(time));
        let before = batch.lines.len();
        LogRecord::write(time, text, &mut batch.lines);
        (batch.first, batch.last) = (batch.first.min(time), batch.last.max(time));
        let added = batch.lines.len() - before;
        state.bytes += added;
        state.open_bytes += added;
        Ok(state.open_bytes >= self.flush_bytes || state.open.values().any(|batch| self.is_old(batch)))
    }

    fn is_old(&self, batch: &Batch) -> bool {
        batch.begun.elapsed() >= self.flush_age
    }

    async fn flush_due(&self) -> Result<()> {
        let is_enough = self.state().open_bytes >= self.flush_bytes;
        self.seal(|batch| is_enough || self.is_old(batch));
        self.write_sealed().await
    }

    fn seal(&self, which: impl Fn(&Batch) -> bool) {
        let mut state = self.state();
        let all = std::mem::take(&mut state.open).into_iter();
        let (due, open): (Vec<_>, Vec<_>) = all.partition(|(_, batch)| which(batch));
        state.open.extend(open);
        state.open_bytes = state.open.values().map(|batch| batch.lines.len()).sum();
        state.sealed.extend(due);
    }

    /// Writes what is sealed, one after another. A batch leaves the memory when its blob is there.
    async fn write_sealed(&self) -> Result<()> {
        let mut numbers = self.flushing.lock().await;
        loop {
            let Some((folder, batch)) = self.state().sealed.front().cloned() else { return Ok(()) };
            self.write(folder, &batch, &mut numbers).await?;
            let mut state = self.state();
            state.sealed.pop_front();
            state.bytes = state.bytes.saturating_sub(batch.lines.len());
        }
    }

    async fn write(&self, folder: Folder, batch: &Batch, numbers: &mut BTreeMap<Folder, u32>) -> Result<()> {
        let prefix = format!("{}/{}/", self.service, folder.name());
        let mut number = match numbers.get(&folder) {
            Some(number) => *number,
            None => self.last_number(&prefix).await?,
        };
        let pairs = [(START, batch.first.to_string()), (END, batch.last.to_string()), (BATCH, batch.id.clone())];
        for _ in 0..NAMES_MAX {
            // What is remembered is what is known to be there: a batch whose answer got lost meets itself.
            numbers.insert(folder, number);
            number += 1;
            let blob = self.container.blob(format!("{prefix}{number:06}.log"));
            let options = UploadOptions::default().content_type("text/plain; charset=utf-8").metadata(pairs.clone());
            match blob.upload(batch.lines.clone(), options.condition(BlobCondition::Missing)).await {
                Ok(_) => {}
                Err(error) if error.is_conflict() => {
                    let found = blob.properties().await?;
                    if found.is_none_or(|found| found.metadata.get(BATCH) != Some(&batch.id)) {
                        continue;
                    }
                }
                Err(error) => return Err(error.into()),
            }
            numbers.insert(folder, number);
            while numbers.len() > FOLDERS_KNOWN_MAX {
                numbers.pop_first();
            }
            return Ok(());
        }
        Err(Error::Contended)
    }

    /// The highest number in a folder, 0 if there is none.
    async fn last_number(&self, prefix: &str) -> Result<u32> {
        let mut last = 0;
        let mut blobs = pin!(self.container.list(prefix));
        while let Some(blob) = blobs.try_next().await? {
            let number = blob.name.strip_prefix(prefix).and_then(|name| name.strip_suffix(".log"));
            last = last.max(number.and_then(|number| number.parse().ok()).unwrap_or(0));
        }
        Ok(last)
    }
}

impl Batch {
    fn new(time: Timestamp) -> Self {
        Self { id: Guid::random().to_string(), lines: Vec::new(), first: time, last: time, begun: Instant::now() }
    }
}

impl Drop for BlobLogWriter {
    fn drop(&mut self) {
        let bytes = self.state().bytes;
        if bytes > 0 {
            tracing::warn!(log = self.service, bytes, "records were dropped that had not been flushed");
        }
    }
}

impl fmt::Debug for BlobLogWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlobLogWriter").field("service", &self.service).finish_non_exhaustive()
    }
}

/// The largest divisor of 60 that is not above.
pub(super) fn divisor(minutes: u8) -> u8 {
    (1..=minutes.clamp(1, 60)).rev().find(|minutes| 60 % minutes == 0).unwrap_or(1)
}

/// Metadata of a blob: the times of its first and its last record, and the batch that it is.
pub(super) const START: &str = "starttime";
pub(super) const END: &str = "endtime";
const BATCH: &str = "batch";
/// How many names others may take before us.
const NAMES_MAX: usize = 1000;
/// How many folders a writer remembers the last number of.
const FOLDERS_KNOWN_MAX: usize = 64;
