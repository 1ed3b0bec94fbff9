//! Operations on a blob that do not write bytes: metadata, lease, tags, tier, snapshot, delete.

use super::BlobCall;
use super::containers::lease_status;
use crate::body::RequestBody;
use crate::error;
use crate::reply::Reply;
use larimar_engine::Engine;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{Access, BlobRef, BlobReject, TierSet};
use larimar_engine::{EngineError, Reject};
use larimar_model::Metadata;
use larimar_model::blob::{AccessTier, DeleteSnapshots, LeaseAction, RehydratePriority, SnapshotTime, Tags};
use larimar_wire::blob::{BodyChecks, parse_tags, write_tags};
use larimar_wire::error_body::ErrorReply;

impl<E: Engine, B: ByteStore> BlobCall<'_, E, B> {
    pub(super) async fn set_blob_metadata(
        &self,
        at: BlobRef<'_>,
        metadata: &Metadata,
        access: &Access,
    ) -> Result<Reply, ErrorReply> {
        let set = self.blobs.set_metadata(at, metadata, access, self.now()).await;
        let written = set.map_err(|error| error::engine_error(&error))?;
        Ok(Reply::empty(200).with_written(written).with("x-ms-request-server-encrypted", "true"))
    }

    pub(super) async fn delete_blob(
        &self,
        at: BlobRef<'_>,
        snapshot: Option<SnapshotTime>,
        snapshots: Option<DeleteSnapshots>,
        access: &Access,
    ) -> Result<Reply, ErrorReply> {
        let deleted = match snapshot {
            Some(snapshot) => self.blobs.delete_snapshot(at, snapshot, access, self.now()).await,
            None => self.blobs.delete_blob(at, snapshots, access, self.now()).await,
        };
        deleted.map_err(|error| error::engine_error(&error))?;
        Ok(Reply::empty(202).with("x-ms-delete-type-permanent", "true"))
    }

    pub(super) async fn snapshot_blob(
        &self,
        at: BlobRef<'_>,
        metadata: Option<&Metadata>,
        access: &Access,
    ) -> Result<Reply, ErrorReply> {
        let taken = self.blobs.snapshot_blob(at, metadata, access, self.now()).await;
        let (snapshot, written) = taken.map_err(|error| error::engine_error(&error))?;
        Ok(Reply::empty(201)
            .with_written(written)
            .with("x-ms-snapshot", snapshot.to_string())
            .with("x-ms-request-server-encrypted", "false"))
    }

    pub(super) async fn lease_blob(
        &self,
        at: BlobRef<'_>,
        action: LeaseAction,
        access: &Access,
    ) -> Result<Reply, ErrorReply> {
        let fresh = self.new_lease_id()?;
        let leased = self.blobs.lease_blob(at, (action, fresh), access, self.now()).await;
        let (written, leased) = leased.map_err(|error| error::engine_error(&error))?;
        Ok(Reply::empty(lease_status(action)).with_written(written).with_leased(leased))
    }

    pub(super) async fn abort_copy(&self, at: BlobRef<'_>) -> Result<Reply, ErrorReply> {
        let there = self.blobs.properties(at, None, &Access::default(), self.now()).await;
        there.map_err(|error| error::engine_error(&error))?;
        // A copy ends before its response is sent, so none is ever pending.
        Err(error::engine_error(&EngineError::Reject(Reject::Blob(BlobReject::NoPendingCopy))))
    }

    pub(super) async fn set_tier(
        &self,
        at: BlobRef<'_>,
        tier: (AccessTier, Option<RehydratePriority>),
        snapshot: Option<SnapshotTime>,
        access: &Access,
    ) -> Result<Reply, ErrorReply> {
        let set = self.blobs.set_tier(at, snapshot, tier, access, self.now()).await;
        Ok(Reply::empty(match set.map_err(|error| error::engine_error(&error))? {
            TierSet::Done => 200,
            TierSet::Pending => 202,
        }))
    }

    pub(super) async fn get_tags(
        &self,
        at: BlobRef<'_>,
        snapshot: Option<SnapshotTime>,
        access: &Access,
    ) -> Result<Reply, ErrorReply> {
        let found = self.blobs.properties(at, snapshot, access, self.now()).await;
        let properties = found.map_err(|error| error::engine_error(&error))?;
        let mut xml = Vec::with_capacity(512);
        write_tags(&mut xml, &properties.tags);
        Ok(Reply::xml(200, xml))
    }

    pub(super) async fn set_tags(
        &self,
        at: BlobRef<'_>,
        access: &Access,
        checks: &BodyChecks,
        body: &RequestBody,
    ) -> Result<Reply, ErrorReply> {
        let tags = self.read_tags(checks, body).await?;
        let set = self.blobs.set_tags(at, &tags, access, self.now()).await;
        set.map_err(|error| error::engine_error(&error))?;
        Ok(Reply::empty(204))
    }

    /// The tags in the body of Set Blob Tags.
    pub(super) async fn read_tags(&self, checks: &BodyChecks, body: &RequestBody) -> Result<Tags, ErrorReply> {
        let (bytes, _) = self.checked_body(checks, body).await?;
        parse_tags(&bytes)
    }
}
