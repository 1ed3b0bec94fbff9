//! A store of bytes that takes none while the test says so.

use larimar_engine::Fault;
use larimar_engine::blob::bytes::{
    ByteStatistics, ByteStore, Bytes, Extent, MemoryBytes, MemoryWriter, Owner, Owners, PayloadHold, Reclaimed,
};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// Bytes in memory, behind a switch.
pub(crate) struct MoodyBytes {
    inner: MemoryBytes,
    pub(crate) is_full: AtomicBool,
}

impl Default for MoodyBytes {
    fn default() -> Self {
        Self { inner: MemoryBytes::new(Duration::from_secs(60)), is_full: AtomicBool::new(false) }
    }
}

impl ByteStore for MoodyBytes {
    type Writer = MemoryWriter;

    async fn begin(&self, owner: Owner<'_>, expected: Option<u64>) -> Result<MemoryWriter, Fault> {
        if self.is_full.load(SeqCst) {
            return Err(Fault::Unavailable("no space left".to_owned()));
        }
        self.inner.begin(owner, expected).await
    }

    async fn read(&self, extent: &Extent, range: Range<u64>) -> Result<Bytes, Fault> {
        self.inner.read(extent, range).await
    }

    fn discard(&self, extents: Vec<Extent>) {
        self.inner.discard(extents);
    }

    fn hold(&self) -> PayloadHold {
        self.inner.hold()
    }

    async fn reclaim(&self, owners: &impl Owners) -> Result<Reclaimed, Fault> {
        self.inner.reclaim(owners).await
    }

    fn statistics(&self) -> ByteStatistics {
        self.inner.statistics()
    }
}
