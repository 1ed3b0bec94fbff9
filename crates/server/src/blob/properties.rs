//! Operations on a blob that do not write bytes: metadata, lease, tags, tier, snapshot, delete.

use super::BlobCall;
use super::containers::lease_status;
use crate::body::RequestBody;
use crate::error::Result;
use crate::reply::Reply;
use larimar_engine::Engine;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{AccessConditions, BlobRef, TierSet};
use larimar_model::Metadata;
use larimar_model::blob::{AccessTier, DeleteSnapshots, LeaseAction, RehydratePriority, SnapshotTime, Tags};
use larimar_wire::blob::{BodyChecks, parse_tags, write_tags};
use larimar_wire::error_code::ErrorCode;

impl<E: Engine, B: ByteStore> BlobCall<'_, E, B> {
    pub(super) async fn set_blob_metadata(
        &self,
        at: BlobRef<'_>,
        metadata: &Metadata,
        access: &AccessConditions,
    ) -> Result<Reply> {
        let written = self.blobs.set_metadata(at, metadata, access, self.now()).await?;
        Ok(Reply::empty(200).with_written(written).with("x-ms-request-server-encrypted", "true"))
    }

    pub(super) async fn delete_blob(
        &self,
        at: BlobRef<'_>,
        snapshot: Option<SnapshotTime>,
        snapshots: Option<DeleteSnapshots>,
        access: &AccessConditions,
    ) -> Result<Reply> {
        let deleted = match snapshot {
            Some(snapshot) => self.blobs.delete_snapshot(at, snapshot, access, self.now()).await,
            None => self.blobs.delete_blob(at, snapshots, access, self.now()).await,
        };
        deleted?;
        Ok(Reply::empty(202).with("x-ms-delete-type-permanent", "true"))
    }

    pub(super) async fn snapshot_blob(
        &self,
        at: BlobRef<'_>,
        metadata: Option<&Metadata>,
        access: &AccessConditions,
    ) -> Result<Reply> {
        let (snapshot, written) = self.blobs.snapshot_blob(at, metadata, access, self.now()).await?;
        Ok(Reply::empty(201)
            .with_written(written)
            .with("x-ms-snapshot", snapshot.to_string())
            .with("x-ms-request-server-encrypted", "false"))
    }

    pub(super) async fn lease_blob(
        &self,
        at: BlobRef<'_>,
        action: LeaseAction,
        access: &AccessConditions,
    ) -> Result<Reply> {
        let fresh = self.new_lease_id()?;
        let (written, leased) = self.blobs.lease_blob(at, (action, fresh), access, self.now()).await?;
        Ok(Reply::empty(lease_status(action)).with_written(written).with_leased(leased))
    }

    pub(super) async fn abort_copy(&self, at: BlobRef<'_>) -> Result<Reply> {
        self.blobs.properties(at, None, &AccessConditions::default(), self.now()).await?;
        // A copy ends before its response is sent, so none is ever pending.
        Err(ErrorCode::NoPendingCopyOperation.into())
    }

    pub(super) async fn set_tier(
        &self,
        at: BlobRef<'_>,
        tier: (AccessTier, Option<RehydratePriority>),
        snapshot: Option<SnapshotTime>,
        access: &AccessConditions,
    ) -> Result<Reply> {
        let set = self.blobs.set_tier(at, snapshot, tier, access, self.now()).await;
        Ok(Reply::empty(match set? {
            TierSet::Done => 200,
            TierSet::Pending => 202,
        }))
    }

    pub(super) async fn get_tags(
        &self,
        at: BlobRef<'_>,
        snapshot: Option<SnapshotTime>,
        access: &AccessConditions,
    ) -> Result<Reply> {
        let properties = self.blobs.properties(at, snapshot, access, self.now()).await?;
        let mut xml = Vec::with_capacity(512);
        write_tags(&mut xml, &properties.tags);
        Ok(Reply::xml(200, xml))
    }

    pub(super) async fn set_tags(
        &self,
        at: BlobRef<'_>,
        access: &AccessConditions,
        checks: &BodyChecks,
        body: &RequestBody,
    ) -> Result<Reply> {
        let tags = self.read_tags(checks, body).await?;
        self.blobs.set_tags(at, &tags, access, self.now()).await?;
        Ok(Reply::empty(204))
    }

    /// The tags in the body of Set Blob Tags.
    pub(super) async fn read_tags(&self, checks: &BodyChecks, body: &RequestBody) -> Result<Tags> {
        let (bytes, _) = self.checked_body(checks, body).await?;
        Ok(parse_tags(&bytes)?)
    }
}
