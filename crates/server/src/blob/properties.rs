//! Changes of a blob that leave its bytes alone, and its end: metadata, headers, lease, tags, tier, snapshot, delete.

use super::containers::lease_status;
use super::put::refuse_logs;
use super::{BlobCall, blob_ref};
use crate::body::RequestBody;
use crate::error;
use crate::reply::Reply;
use larimar_engine::Engine;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{Access, BlobReject, Container, TierSet};
use larimar_engine::{EngineError, Reject};
use larimar_model::Metadata;
use larimar_model::blob::{
    AccessTier, BlobName, ContainerName, DeleteSnapshots, LeaseAction, RehydratePriority, SnapshotTime,
};
use larimar_wire::blob::{BodyChecks, TAGS_BODY_BYTES_MAX, parse_tags, write_tags};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::sas::Need;

impl<E: Engine, B: ByteStore> BlobCall<'_, E, B> {
    pub(super) async fn set_blob_metadata(
        &self,
        container: &ContainerName,
        name: &BlobName,
        metadata: &Metadata,
        access: &Access,
    ) -> Result<Reply, ErrorReply> {
        let found = self.writable(container, name).await?;
        let set = self.blobs.set_metadata(blob_ref(&found, name), metadata, access, self.now()).await;
        let written = set.map_err(|error| error::engine_error(&error))?;
        Ok(Reply::empty(200).with_written(written).with("x-ms-request-server-encrypted", "true"))
    }

    pub(super) async fn delete_blob(
        &self,
        container: &ContainerName,
        name: &BlobName,
        snapshot: Option<SnapshotTime>,
        snapshots: Option<DeleteSnapshots>,
        access: &Access,
    ) -> Result<Reply, ErrorReply> {
        let told = snapshot.map(|snapshot| snapshot.to_string());
        self.permit(&Need::delete_blob(container.as_str(), name.as_str(), told.as_deref()))?;
        let found = self.find(container).await?;
        let at = blob_ref(&found, name);
        let deleted = match snapshot {
            Some(snapshot) => self.blobs.delete_snapshot(at, snapshot, access, self.now()).await,
            None => self.blobs.delete_blob(at, snapshots, access, self.now()).await,
        };
        deleted.map_err(|error| error::engine_error(&error))?;
        Ok(Reply::empty(202).with("x-ms-delete-type-permanent", "true"))
    }

    pub(super) async fn snapshot_blob(
        &self,
        container: &ContainerName,
        name: &BlobName,
        metadata: Option<&Metadata>,
        access: &Access,
    ) -> Result<Reply, ErrorReply> {
        self.permit(&Need::snapshot_blob(container.as_str(), name.as_str()))?;
        refuse_logs(container)?;
        let found = self.find(container).await?;
        let taken = self.blobs.snapshot_blob(blob_ref(&found, name), metadata, access, self.now()).await;
        let (snapshot, written) = taken.map_err(|error| error::engine_error(&error))?;
        Ok(Reply::empty(201)
            .with_written(written)
            .with("x-ms-snapshot", snapshot.to_string())
            .with("x-ms-request-server-encrypted", "false"))
    }

    pub(super) async fn lease_blob(
        &self,
        container: &ContainerName,
        name: &BlobName,
        action: LeaseAction,
        access: &Access,
    ) -> Result<Reply, ErrorReply> {
        let (of, blob) = (container.as_str(), name.as_str());
        self.permit(&match action {
            LeaseAction::Break { .. } => Need::break_blob_lease(of, blob),
            _ => Need::write_blob(of, blob),
        })?;
        let found = self.find(container).await?;
        let (at, fresh) = (blob_ref(&found, name), self.fresh_lease()?);
        let leased = self.blobs.lease_blob(at, (action, fresh), access, self.now()).await;
        let (written, leased) = leased.map_err(|error| error::engine_error(&error))?;
        Ok(Reply::empty(lease_status(action)).with_written(written).with_leased(leased))
    }

    pub(super) async fn abort_copy(&self, container: &ContainerName, name: &BlobName) -> Result<Reply, ErrorReply> {
        let found = self.writable(container, name).await?;
        let at = blob_ref(&found, name);
        let there = self.blobs.properties(at, None, &Access::default(), self.now()).await;
        there.map_err(|error| error::engine_error(&error))?;
        // Copies are done when they are answered, so none is ever pending.
        Err(error::engine_error(&EngineError::Reject(Reject::Blob(BlobReject::NoPendingCopy))))
    }

    pub(super) async fn set_tier(
        &self,
        container: &ContainerName,
        name: &BlobName,
        tier: (AccessTier, Option<RehydratePriority>),
        snapshot: Option<SnapshotTime>,
        access: &Access,
    ) -> Result<Reply, ErrorReply> {
        let found = self.writable(container, name).await?;
        let set = self.blobs.set_tier(blob_ref(&found, name), snapshot, tier, access, self.now()).await;
        Ok(Reply::empty(match set.map_err(|error| error::engine_error(&error))? {
            TierSet::Done => 200,
            TierSet::Pending => 202,
        }))
    }

    pub(super) async fn get_tags(
        &self,
        container: &ContainerName,
        name: &BlobName,
        snapshot: Option<SnapshotTime>,
        access: &Access,
    ) -> Result<Reply, ErrorReply> {
        let told = snapshot.map(|snapshot| snapshot.to_string());
        self.permit(&Need::tag_blob(container.as_str(), name.as_str(), told.as_deref()))?;
        let found = self.find(container).await?;
        let found = self.blobs.properties(blob_ref(&found, name), snapshot, access, self.now()).await;
        let properties = found.map_err(|error| error::engine_error(&error))?;
        let mut xml = Vec::with_capacity(512);
        write_tags(&mut xml, &properties.tags);
        Ok(Reply::xml(200, xml))
    }

    pub(super) async fn set_tags(
        &self,
        container: &ContainerName,
        name: &BlobName,
        access: &Access,
        checks: &BodyChecks,
        body: &mut RequestBody,
    ) -> Result<Reply, ErrorReply> {
        self.permit(&Need::tag_blob(container.as_str(), name.as_str(), None))?;
        refuse_logs(container)?;
        let (bytes, _) = self.read_small(body, checks, TAGS_BODY_BYTES_MAX as usize).await?;
        let tags = parse_tags(&bytes)?;
        let found = self.find(container).await?;
        let set = self.blobs.set_tags(blob_ref(&found, name), &tags, access, self.now()).await;
        set.map_err(|error| error::engine_error(&error))?;
        Ok(Reply::empty(204))
    }

    /// Finds a container where the caller may change the blob.
    pub(super) async fn writable(&self, container: &ContainerName, name: &BlobName) -> Result<Container, ErrorReply> {
        self.permit(&Need::write_blob(container.as_str(), name.as_str()))?;
        refuse_logs(container)?;
        self.find(container).await
    }
}
