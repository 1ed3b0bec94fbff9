//! Payloads in files of one machine: small ones share packs, each large one has its own file.
//!
//! `appender.rs` writes packs, with one sync for all payloads that wait; `writer.rs` receives bytes and streams large
//! payloads; `remover.rs` removes discarded payloads; `reclaim.rs` finds payloads that nothing points to; `disk_use.rs`
//! counts what the files take. One process owns the directory, guaranteed by the engine's lock on the data directory.

mod appender;
mod cached;
mod disk_use;
mod folder;
mod handles;
mod packs;
mod reclaim;
mod remover;
mod writer;

pub use writer::FileWriter;

use crate::record::{FileName, Span};
use appender::Appender;
use bytes::Bytes;
use disk_use::DiskUse;
use folder::Folder;
use handles::Handles;
use larimar_engine::Fault;
use larimar_engine::blob::bytes::{ByteStatistics, ByteStore, Extent, Owner, Owners, PayloadHold, Reclaimed};
use packs::Packs;
use parking_lot::Mutex;
use remover::Remover;
use std::collections::HashSet;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Where payloads are stored, and how durably.
#[derive(Clone, Debug)]
pub struct FileSettings {
    /// The directory; created if it is missing.
    pub folder: PathBuf,
    /// What an acknowledged payload survives.
    pub durability: Durability,
    /// How long discarded payloads are kept for reads that are under way.
    pub grace: Duration,
    /// Whether the disk has space for payloads.
    pub admission: Admission,
}

/// Checks whether the disk has space, before a payload is written and again after some bytes. The default admits all.
#[derive(Clone, Default)]
pub struct Admission(Option<Arc<dyn Fn() -> Result<(), Fault> + Send + Sync>>);

impl Admission {
    /// Calls this function, which must not block.
    pub fn new(ask: Arc<dyn Fn() -> Result<(), Fault> + Send + Sync>) -> Self {
        Self(Some(ask))
    }

    fn ask(&self) -> Result<(), Fault> {
        self.0.as_ref().map_or(Ok(()), |ask| ask())
    }
}

impl std::fmt::Debug for Admission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Admission").field(&self.0.is_some()).finish()
    }
}

/// What an acknowledged payload survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// A power failure: it is synced.
    #[default]
    Sync,
    /// The end of the process: the operating system has the bytes.
    System,
}

/// A store of payloads in a directory.
#[derive(Debug)]
pub struct FileBytes {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// State shared by writers, readers and the background threads.
#[derive(Debug)]
struct Shared {
    folder: Folder,
    grace: Duration,
    admission: Admission,
    handles: Handles,
    packs: Packs,
    appender: Appender,
    remover: Remover,
    disk_use: DiskUse,
    /// Files of large payloads that are being written.
    writing: Mutex<HashSet<FileName>>,
    figures: Figures,
}

#[derive(Debug, Default)]
struct Figures {
    payloads_written: AtomicU64,
    bytes_written: AtomicU64,
    bytes_read: AtomicU64,
    payloads_removed: AtomicU64,
}

impl FileBytes {
    /// Opens the directory and starts the threads that append, remove and count.
    pub fn open(settings: &FileSettings) -> Result<Self, Fault> {
        let folder = Folder::open(&settings.folder, settings.durability)?;
        let shared = Arc::new(Shared {
            folder,
            grace: settings.grace,
            admission: settings.admission.clone(),
            handles: Handles::default(),
            packs: Packs::default(),
            appender: Appender::default(),
            remover: Remover::default(),
            disk_use: DiskUse::default(),
            writing: Mutex::default(),
            figures: Figures::default(),
        });
        let mut store = Self { shared, threads: Vec::new() };
        store.start("blob-appender", appender::run)?;
        store.start("blob-remover", remover::run)?;
        store.start("blob-counter", disk_use::run)?;
        Ok(store)
    }

    fn start(&mut self, name: &str, run: fn(&Arc<Shared>)) -> Result<(), Fault> {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || run(&shared));
        self.threads.push(thread.map_err(|error| Fault::Unavailable(format!("no thread could be started: {error}")))?);
        Ok(())
    }
}

impl ByteStore for FileBytes {
    type Writer = FileWriter;

    async fn begin(&self, owner: Owner<'_>, expected: Option<u64>) -> Result<FileWriter, Fault> {
        FileWriter::begin(&self.shared, owner, expected)
    }

    fn writer_bytes(&self, expected: Option<u64>) -> u64 {
        FileWriter::bytes_max(expected)
    }

    async fn read(&self, extent: &Extent, range: Range<u64>) -> Result<Bytes, Fault> {
        let Some(span) = Span::of(extent, &range) else { return Ok(Bytes::new()) };
        if let Some(bytes) = self.shared.read_cached(&extent.file, &span) {
            return Ok(bytes);
        }
        let (shared, file) = (Arc::clone(&self.shared), extent.file);
        blocking(move || shared.read(&file, &span)).await?
    }

    fn discard(&self, extents: Vec<Extent>) {
        self.shared.remover.discard(extents, self.shared.grace);
    }

    fn hold(&self) -> PayloadHold {
        self.shared.remover.hold()
    }

    async fn reclaim(&self, owners: &impl Owners) -> Result<Reclaimed, Fault> {
        reclaim::reclaim(&self.shared, owners).await
    }

    fn statistics(&self) -> ByteStatistics {
        let Figures { payloads_written, bytes_written, bytes_read, payloads_removed } = &self.shared.figures;
        ByteStatistics {
            payloads_written: payloads_written.load(Ordering::Relaxed),
            bytes_written: bytes_written.load(Ordering::Relaxed),
            bytes_read: bytes_read.load(Ordering::Relaxed),
            payloads_removed: payloads_removed.load(Ordering::Relaxed),
            discarded: self.shared.remover.waiting(),
            discarded_bytes: self.shared.remover.waiting_bytes(),
            stored_bytes: self.shared.disk_use.bytes(),
        }
    }
}

impl Drop for FileBytes {
    fn drop(&mut self) {
        self.shared.appender.stop();
        self.shared.remover.stop();
        self.shared.disk_use.stop();
        for thread in self.threads.drain(..) {
            // A thread that panicked has already logged it.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn read(&self, file: &FileName, span: &Span) -> Result<Bytes, Fault> {
        let handle = self.handles.get(&self.folder, file)?;
        let mut buffer = Vec::new();
        match span.read_into(&mut buffer, |out, at| handle.read_exact_at(out, at)) {
            Ok(Some(wanted)) => Ok(self.counted(buffer, wanted)),
            Ok(None) => Err(self.folder.damaged(file, "a checksum is wrong")),
            Err(error) => Err(self.folder.fault(file, &error)),
        }
    }

    /// Reads a little of an open file if it is in the page cache, which is faster than a switch to another thread.
    /// `None` means to read there instead, even after an error.
    fn read_cached(&self, file: &FileName, span: &Span) -> Option<Bytes> {
        let stored = span.stored();
        if stored.end - stored.start > CACHED_BYTES_MAX {
            return None;
        }
        let handle = self.handles.open(file)?;
        let mut buffer = Vec::new();
        let wanted = span.read_into(&mut buffer, |out, at| cached::read_exact_at(&handle, out, at)).ok()??;
        Some(self.counted(buffer, wanted))
    }

    fn counted(&self, buffer: Vec<u8>, wanted: Range<usize>) -> Bytes {
        self.figures.bytes_read.fetch_add(wanted.len() as u64, Ordering::Relaxed);
        Bytes::from(buffer).slice(wanted)
    }

    fn count_written(&self, extent: &Extent) {
        self.figures.payloads_written.fetch_add(1, Ordering::Relaxed);
        self.figures.bytes_written.fetch_add(extent.length, Ordering::Relaxed);
    }
}

/// Runs work that may block on the disk outside of the runtime's threads.
async fn blocking<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> Result<T, Fault> {
    let done = tokio::task::spawn_blocking(run).await;
    done.map_err(|error| Fault::Unavailable(format!("work on blob files did not end: {error}")))
}

/// Two frames: the most that a runtime thread reads itself.
const CACHED_BYTES_MAX: u64 = 132 << 10;

/// An open file, shared by readers.
type Handle = Arc<File>;
