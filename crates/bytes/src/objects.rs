//! Payloads as objects, one each, in a store that any number of servers share: S3 and compatible stores, Azure, Google
//! Cloud, or a directory on a shared file system.
//!
//! `location.rs` opens the store that a URL names; `writer.rs` puts small payloads at once and large ones in parts;
//! `remover.rs` removes discarded payloads; `reclaim.rs` finds payloads that nothing points to; `temporary_files.rs`
//! removes leftovers of uploads into a directory. Objects have the same record as files. Servers keep no state here
//! that others need.

mod location;
mod reclaim;
mod removal;
mod remover;
mod temporary_files;
mod writer;

pub use removal::Removal;
pub use writer::ObjectWriter;

use crate::record::{FileName, Span};
use bytes::{Bytes, BytesMut};
use larimar_engine::Fault;
use larimar_engine::blob::bytes::{ByteStatistics, ByteStore, Extent, Owner, Owners, PayloadHold, Reclaimed};
use location::Location;
use object_store::ObjectStoreExt;
use parking_lot::Mutex;
use remover::Remover;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Where objects are stored.
#[derive(Clone, Debug)]
pub struct ObjectSettings {
    /// The store: `s3://bucket/prefix`, `az://container/prefix`, `gs://bucket/prefix`, `file:///shared/folder`. Options
    /// may follow, as in `?region=eu-central-1`. The prefix belongs to one engine: its servers remove every payload
    /// that its rows do not point to, even if another engine's rows do.
    pub url: String,
    /// More options, as in the environment: `AWS_ACCESS_KEY_ID` and the like. Options of the URL take precedence.
    pub options: Vec<(String, String)>,
    /// How long discarded payloads are kept for reads that are under way.
    pub grace: Duration,
    /// Whether discarded payloads may be removed.
    pub removal: Removal,
}

/// A store of payloads as objects.
#[derive(Debug)]
pub struct ObjectBytes {
    shared: Arc<Shared>,
    remover: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    location: Location,
    grace: Duration,
    removal: Removal,
    remover: Remover,
    /// Objects that this process is writing.
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

impl ObjectBytes {
    /// Opens the store that the settings name. Must be called in a runtime, which runs the task that removes objects.
    pub fn open(settings: &ObjectSettings) -> Result<Self, Fault> {
        let shared = Arc::new(Shared {
            location: Location::open(&settings.url, &settings.options)?,
            grace: settings.grace,
            removal: settings.removal.clone(),
            remover: Remover::default(),
            writing: Mutex::default(),
            figures: Figures::default(),
        });
        let remover = tokio::spawn(remover::run(Arc::clone(&shared)));
        Ok(Self { shared, remover })
    }
}

impl ByteStore for ObjectBytes {
    type Writer = ObjectWriter;

    async fn begin(&self, owner: Owner<'_>, _expected: Option<u64>) -> Result<ObjectWriter, Fault> {
        ObjectWriter::begin(&self.shared, owner)
    }

    fn writer_bytes(&self, expected: Option<u64>) -> u64 {
        expected.unwrap_or(u64::MAX).min(2 * writer::PART_BYTES as u64)
    }

    async fn read(&self, extent: &Extent, range: Range<u64>) -> Result<Bytes, Fault> {
        let Some(span) = Span::of(extent, &range) else { return Ok(Bytes::new()) };
        let location = &self.shared.location;
        let path = location.path(&extent.file);
        let stored = location.store.get_range(&path, span.stored()).await;
        let stored = stored.map_err(|error| location.read_fault(&path, &error))?;
        let mut bytes = stored.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        let Some(wanted) = span.unframe(&mut bytes) else {
            return Err(location.damaged(&path, "a checksum is wrong, or it ends early"));
        };
        self.shared.figures.bytes_read.fetch_add(wanted.len() as u64, Ordering::Relaxed);
        Ok(bytes.freeze().slice(wanted))
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
            // To list the objects costs requests; the object store has this figure.
            stored_bytes: None,
        }
    }
}

impl Drop for ObjectBytes {
    fn drop(&mut self) {
        self.remover.abort();
    }
}
