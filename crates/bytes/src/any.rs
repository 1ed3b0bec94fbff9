//! The store that the operator chose, behind one type without boxed futures.

use crate::files::{FileBytes, FileWriter};
use crate::objects::{ObjectBytes, ObjectWriter};
use bytes::Bytes;
use larimar_engine::Fault;
use larimar_engine::blob::bytes::{
    ByteStatistics, ByteStore, ByteWriter, Extent, MemoryBytes, MemoryWriter, Owner, Owners, PayloadHold, Reclaimed,
};
use std::ops::Range;

/// Any of the stores.
#[derive(Debug)]
pub enum AnyBytes {
    /// Files of one machine.
    Files(FileBytes),
    /// Objects in a store that servers share.
    Objects(ObjectBytes),
    /// Payloads in memory, lost when the process ends.
    Memory(MemoryBytes),
}

/// A writer of any of the stores.
#[derive(Debug)]
pub enum AnyWriter {
    /// For files.
    Files(FileWriter),
    /// For objects.
    Objects(ObjectWriter),
    /// For memory.
    Memory(MemoryWriter),
}

impl ByteStore for AnyBytes {
    type Writer = AnyWriter;

    async fn begin(&self, owner: Owner<'_>, expected: Option<u64>) -> Result<AnyWriter, Fault> {
        Ok(match self {
            Self::Files(store) => AnyWriter::Files(store.begin(owner, expected).await?),
            Self::Objects(store) => AnyWriter::Objects(store.begin(owner, expected).await?),
            Self::Memory(store) => AnyWriter::Memory(store.begin(owner, expected).await?),
        })
    }

    fn writer_bytes(&self, expected: Option<u64>) -> u64 {
        match self {
            Self::Files(store) => store.writer_bytes(expected),
            Self::Objects(store) => store.writer_bytes(expected),
            Self::Memory(store) => store.writer_bytes(expected),
        }
    }

    async fn read(&self, extent: &Extent, range: Range<u64>) -> Result<Bytes, Fault> {
        match self {
            Self::Files(store) => store.read(extent, range).await,
            Self::Objects(store) => store.read(extent, range).await,
            Self::Memory(store) => store.read(extent, range).await,
        }
    }

    fn discard(&self, extents: Vec<Extent>) {
        match self {
            Self::Files(store) => store.discard(extents),
            Self::Objects(store) => store.discard(extents),
            Self::Memory(store) => store.discard(extents),
        }
    }

    fn hold(&self) -> PayloadHold {
        match self {
            Self::Files(store) => store.hold(),
            Self::Objects(store) => store.hold(),
            Self::Memory(store) => store.hold(),
        }
    }

    async fn reclaim(&self, owners: &impl Owners) -> Result<Reclaimed, Fault> {
        match self {
            Self::Files(store) => store.reclaim(owners).await,
            Self::Objects(store) => store.reclaim(owners).await,
            Self::Memory(store) => store.reclaim(owners).await,
        }
    }

    fn statistics(&self) -> ByteStatistics {
        match self {
            Self::Files(store) => store.statistics(),
            Self::Objects(store) => store.statistics(),
            Self::Memory(store) => store.statistics(),
        }
    }
}

impl ByteWriter for AnyWriter {
    async fn write(&mut self, bytes: Bytes) -> Result<(), Fault> {
        match self {
            Self::Files(writer) => writer.write(bytes).await,
            Self::Objects(writer) => writer.write(bytes).await,
            Self::Memory(writer) => writer.write(bytes).await,
        }
    }

    async fn finish(self) -> Result<Extent, Fault> {
        match self {
            Self::Files(writer) => writer.finish().await,
            Self::Objects(writer) => writer.finish().await,
            Self::Memory(writer) => writer.finish().await,
        }
    }
}
