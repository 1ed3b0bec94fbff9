//! Operations on containers, and Get Account Information.

use super::BlobCall;
use crate::acl;
use crate::auth::Caller;
use crate::error::Result;
use crate::ids;
use crate::reply::Reply;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{AccessConditions, BlobReject, NewContainer, Written};
use larimar_engine::{Engine, EngineError, Reject};
use larimar_model::Metadata;
use larimar_model::blob::{Conditions, ContainerName, LeaseAction, LeaseId, PublicAccess};
use larimar_wire::acl::CONTAINER_PERMISSIONS;
use larimar_wire::error_code::ErrorCode;

impl<E: Engine, B: ByteStore> BlobCall<'_, E, B> {
    pub(super) async fn create_container(
        &self,
        name: &ContainerName,
        metadata: &Metadata,
        public_access: PublicAccess,
    ) -> Result<Reply> {
        self.call.check_free(name.as_str())?;
        let new = NewContainer { metadata: metadata.clone(), public_access };
        let created = self.blobs.create_container(self.call.account(), name, &new, self.now()).await?;
        Ok(Reply::empty(201).with_written(Written { last_modified: created.last_modified }))
    }

    pub(super) async fn container_properties(
        &self,
        name: &ContainerName,
        lease: Option<LeaseId>,
        with_all: bool,
    ) -> Result<Reply> {
        let container = self.read_settings(name, lease).await?;
        let reply = Reply::empty(200).with_metadata(&container.metadata);
        Ok(match with_all {
            true => reply.with_container(&container),
            false => reply.with_written(Written { last_modified: container.last_modified }),
        })
    }

    pub(super) async fn set_container_metadata(
        &self,
        name: &ContainerName,
        metadata: &Metadata,
        access: &AccessConditions,
    ) -> Result<Reply> {
        let account = self.call.account();
        let written = self.blobs.set_container_metadata(account, name, metadata, access, self.now()).await;
        Ok(Reply::empty(200).with_written(written?))
    }

    pub(super) async fn get_container_acl(&self, name: &ContainerName, lease: Option<LeaseId>) -> Result<Reply> {
        let container = self.blobs.read_container(self.call.account(), name, lease, self.now()).await?;
        Ok(acl::reply(&container.acl, CONTAINER_PERMISSIONS)?
            .with_written(Written { last_modified: container.last_modified })
            .with_some("x-ms-blob-public-access", container.public_access.as_str()))
    }

    pub(super) async fn set_container_acl(
        &self,
        name: &ContainerName,
        public_access: PublicAccess,
        access: &AccessConditions,
        body: &[u8],
    ) -> Result<Reply> {
        let list = if body.is_empty() { String::new() } else { acl::to_stored(body, CONTAINER_PERMISSIONS)? };
        let account = self.call.account();
        let set = self.blobs.set_container_acl(account, name, (public_access, &list), access, self.now()).await;
        Ok(Reply::empty(200).with_written(set?))
    }

    pub(super) async fn delete_container(&self, name: &ContainerName, access: &AccessConditions) -> Result<Reply> {
        let deleted = self.blobs.delete_container(self.call.account(), name, access, self.now()).await;
        match deleted {
            Ok(()) => self.call.note_deleted(name.as_str()),
            Err(EngineError::Reject(Reject::Blob(BlobReject::ContainerNotFound)))
                if self.call.is_being_deleted(name.as_str()) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Reply::empty(202))
    }

    pub(super) async fn lease_container(
        &self,
        name: &ContainerName,
        action: LeaseAction,
        conditions: &Conditions,
    ) -> Result<Reply> {
        let (account, fresh) = (self.call.account(), self.new_lease_id()?);
        let (written, leased) =
            self.blobs.lease_container(account, name, (action, fresh), conditions, self.now()).await?;
        Ok(Reply::empty(lease_status(action)).with_written(written).with_leased(leased))
    }

    /// Get Account Information.
    pub(super) fn account_info(&self) -> Result<Reply> {
        if matches!(self.call.caller, Caller::Anonymous) {
            return Err(ErrorCode::ResourceNotFound.into());
        }
        Ok(Reply::empty(200)
            .with("x-ms-sku-name", "Standard_LRS")
            .with("x-ms-account-kind", "StorageV2")
            .with("x-ms-is-hns-enabled", "false"))
    }

    /// A random lease id, for clients that propose none. It must not be guessable.
    pub(super) fn new_lease_id(&self) -> Result<LeaseId> {
        Ok(ids::unguessable().map(LeaseId).map_err(|_| ErrorCode::InternalError)?)
    }
}

/// The status of a successful lease operation.
pub(super) const fn lease_status(action: LeaseAction) -> u16 {
    match action {
        LeaseAction::Acquire { .. } => 201,
        LeaseAction::Renew { .. } | LeaseAction::Change { .. } | LeaseAction::Release { .. } => 200,
        LeaseAction::Break { .. } => 202,
    }
}
