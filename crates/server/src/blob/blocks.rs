//! Blocks of block blobs (put, commit, list) and of append blobs (append, seal).

use super::BlobCall;
use super::put::overwrite_error;
use super::source::SourceErrors;
use super::upload::Received;
use crate::body::RequestBody;
use crate::error::Result;
use crate::reply::Reply;
use crate::yielding;
use larimar_engine::Engine;
use larimar_engine::blob::bytes::{ByteStore, ByteWriter as _, Extent};
use larimar_engine::blob::{AccessConditions, BlobRef};
use larimar_model::blob::{BlockId, BlockListKind, SnapshotTime};
use larimar_wire::blob::{
    AppendBlock, BodyChecks, ListedBlock, PutBlock, PutBlockList, Source, parse_block_list, write_block_list,
};
use larimar_wire::error_code::ErrorCode;

impl<E: Engine, B: ByteStore> BlobCall<'_, E, B> {
    pub(super) async fn put_block(&self, at: BlobRef<'_>, put: &PutBlock, body: &mut RequestBody) -> Result<Reply> {
        let received = self.bytes_for(at, (put.source.as_ref(), SourceErrors::Message), &put.checks, body).await?;
        let checksums =
            self.reply_checksum(put.checks.md5.or(put.source.as_ref().and_then(|source| source.md5)).is_some());
        let extent = self.filled(at, received.extent).await?;
        self.blobs.put_block(at, &put.id, extent, put.lease, self.now()).await?;
        Ok(Reply::empty(201).with_checksums(&received.sums, checksums).with("x-ms-request-server-encrypted", "true"))
    }

    pub(super) async fn put_block_list(
        &self,
        at: BlobRef<'_>,
        put: &PutBlockList,
        body: &mut RequestBody,
    ) -> Result<Reply> {
        let (bytes, sums) = self.checked_body(&put.checks, body).await?;
        let list = yielding::run(bytes.len(), move || parse_block_list(&bytes)).await?;
        let (access, creates_only) = self.creating_access(&put.access)?;
        let written = self.blobs.put_block_list(at, &list, &put.blob, &access, self.now()).await;
        let written = written.map_err(|error| overwrite_error(error, creates_only))?;
        // The CRC-64 of the list itself, also if the client sent an MD5 (recorded).
        let checksums = self.reply_checksum(false);
        Ok(Reply::empty(201)
            .with_written(written)
            .with_checksums(&sums, checksums)
            .with("x-ms-request-server-encrypted", "true"))
    }

    pub(super) async fn get_block_list(
        &self,
        at: BlobRef<'_>,
        kind: BlockListKind,
        snapshot: Option<SnapshotTime>,
        access: &AccessConditions,
    ) -> Result<Reply> {
        let list = self.blobs.block_list(at, snapshot, kind, access, self.now()).await?;
        let bytes = 64 * (list.committed.len() + list.uncommitted.len());
        let (committed, uncommitted) = (list.committed, list.uncommitted);
        let xml = yielding::run(bytes, move || {
            let (committed, uncommitted) = (ids(&committed), ids(&uncommitted));
            let mut xml = Vec::with_capacity(256 + bytes);
            write_block_list(&mut xml, kind, listed(&committed), listed(&uncommitted));
            Ok(xml)
        });
        let reply = Reply::xml(200, xml.await?);
        Ok(match list.properties {
            Some(properties) => reply
                .with_written(larimar_engine::blob::Written { last_modified: properties.last_modified })
                .with("x-ms-blob-content-length", properties.length),
            None => reply,
        })
    }

    pub(super) async fn append_block(
        &self,
        at: BlobRef<'_>,
        append: &AppendBlock,
        body: &mut RequestBody,
    ) -> Result<Reply> {
        let source = (append.source.as_ref(), SourceErrors::Status);
        let received = self.bytes_for(at, source, &append.checks, body).await?;
        let checksums =
            self.reply_checksum(append.checks.md5.or(append.source.as_ref().and_then(|source| source.md5)).is_some());
        let extent = received.extent.ok_or(ErrorCode::InvalidHeaderValue)?;
        let done = self.blobs.append_block(at, extent, append.append, &append.access, self.now()).await?;
        Ok(Reply::empty(201)
            .with_written(done.written)
            .with_checksums(&received.sums, checksums)
            .with("x-ms-blob-append-offset", done.offset)
            .with("x-ms-blob-committed-block-count", done.blocks)
            .with("x-ms-request-server-encrypted", "true"))
    }

    pub(super) async fn seal_blob(
        &self,
        at: BlobRef<'_>,
        position: Option<u64>,
        access: &AccessConditions,
    ) -> Result<Reply> {
        let written = self.blobs.seal_blob(at, position, access, self.now()).await?;
        Ok(Reply::empty(200).with_written(written).with("x-ms-blob-sealed", "true"))
    }

    /// Stores the bytes for a block or a page, from the body or from another blob.
    pub(super) async fn bytes_for(
        &self,
        at: BlobRef<'_>,
        (source, errors): (Option<&Source>, SourceErrors),
        checks: &BodyChecks,
        body: &mut RequestBody,
    ) -> Result<Received> {
        match source {
            Some(source) => self.receive_from(at, source, errors).await,
            None => self.receive(at, body, checks, false).await,
        }
    }

    /// The stored bytes of a block. An empty block has a payload too.
    async fn filled(&self, at: BlobRef<'_>, extent: Option<Extent>) -> Result<Extent> {
        match extent {
            Some(extent) => Ok(extent),
            None => Ok(self.blobs.begin(at, Some(0)).await?.finish().await?),
        }
    }
}

fn ids(blocks: &[(String, u64)]) -> Vec<(BlockId, u64)> {
    blocks.iter().filter_map(|(id, size)| Some((BlockId::parse(id).ok()?, *size))).collect()
}

fn listed(blocks: &[(BlockId, u64)]) -> impl Iterator<Item = ListedBlock<'_>> {
    blocks.iter().map(|(id, size)| ListedBlock { id, size: *size })
}
