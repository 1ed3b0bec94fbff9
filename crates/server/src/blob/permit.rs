//! Who may do what with blobs: owners everything, guests what their token allows, others what is public.

use super::BlobCall;
use crate::auth::Caller;
use crate::error;
use larimar_engine::blob::Container;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::{Engine, EngineError};
use larimar_model::blob::{Conditions, ContainerName, ETagCondition, LeaseId, PublicAccess};
use larimar_wire::blob::BlobRequest;
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::sas::{Grant, Need};

/// What strangers need to be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Public {
    /// To read blobs.
    Read,
    /// To list them.
    List,
}

impl<E: Engine, B: ByteStore> BlobCall<'_, E, B> {
    /// Checks that the caller may do this, which is never public.
    pub(super) fn permit(&self, need: &Need<'_>) -> Result<(), ErrorReply> {
        self.call.caller.permits(need)
    }

    /// Checks that the caller may read, or that the container lets everybody.
    fn permit_read(&self, need: &Need<'_>, container: &Container, public: Public) -> Result<(), ErrorReply> {
        match (&self.call.caller, container.public_access, public) {
            (Caller::Anonymous, PublicAccess::Container, _) | (Caller::Anonymous, PublicAccess::Blob, Public::Read) => {
                Ok(())
            }
            // Strangers are not told what there is.
            (Caller::Anonymous, ..) => Err(ErrorReply::new(ErrorCode::NoAuthenticationInformation)),
            (caller, ..) => caller.permits(need),
        }
    }

    /// Finds a container whose blobs the caller may read. Strangers are not told whether one that they may not read is
    /// there.
    pub(super) async fn find_readable(
        &self,
        name: &ContainerName,
        need: &Need<'_>,
        public: Public,
    ) -> Result<Container, ErrorReply> {
        self.permit_unless_stranger(need)?;
        let admit = |found: Container| self.permit_read(need, &found, public).map(|()| self.call.lookups.found(found));
        let admitted = self.blobs.admit_to_container(self.call.account(), name, self.now(), admit).await;
        admitted.map_err(|error| self.hide_missing(&error))?
    }

    /// Reads a container's settings as they are now, if the caller may, and if the lease that is named is its own.
    pub(super) async fn read_settings(
        &self,
        name: &ContainerName,
        need: &Need<'_>,
        lease: Option<LeaseId>,
    ) -> Result<Container, ErrorReply> {
        self.permit_unless_stranger(need)?;
        if lease.is_some() {
            // Whether strangers may know of the container comes before its lease.
            self.find_readable(name, need, Public::List).await?;
        }
        let read = self.blobs.read_container(self.call.account(), name, lease, self.now()).await;
        let read = read.map_err(|error| self.hide_missing(&error))?;
        self.permit_read(need, &read, Public::List)?;
        Ok(read)
    }

    fn permit_unless_stranger(&self, need: &Need<'_>) -> Result<(), ErrorReply> {
        match self.call.caller {
            Caller::Anonymous => Ok(()),
            Caller::Owner | Caller::Guest(_) => self.permit(need),
        }
    }

    fn hide_missing(&self, error: &EngineError) -> ErrorReply {
        let error = error::engine_error(error);
        match (&self.call.caller, error.code) {
            (Caller::Anonymous, ErrorCode::ContainerNotFound) => {
                ErrorReply::new(ErrorCode::NoAuthenticationInformation)
            }
            _ => error,
        }
    }

    /// Checks that the caller may know a blob's tags if the request has a condition on them: its answer tells of them.
    pub(super) fn permit_condition_on_tags(&self, request: &BlobRequest) -> Result<(), ErrorReply> {
        match request {
            BlobRequest::Blob(container, name, _) if self.call.head.header("x-ms-if-tags").is_some() => {
                self.permit(&Need::tag_blob(container.as_str(), name.as_str(), None))
            }
            _ => Ok(()),
        }
    }

    /// The conditions of a write that may create only: a token without `w` does not overwrite.
    pub(super) fn creating(&self, mut conditions: Conditions) -> Result<(Conditions, bool), ErrorReply> {
        let may_overwrite = self.call.caller.permits_overwrite()?;
        if !may_overwrite {
            conditions.if_none_match = Some(ETagCondition::Any);
        }
        Ok((conditions, !may_overwrite))
    }

    /// The token of the caller, if there is one.
    pub(super) const fn grant(&self) -> Option<&Grant> {
        match &self.call.caller {
            Caller::Guest(guest) => Some(guest.grant()),
            Caller::Owner | Caller::Anonymous => None,
        }
    }
}

/// The error of a token that would have overwritten what it may only create.
pub(super) fn overwrite_error(error: ErrorReply, creates_only: bool) -> ErrorReply {
    match error.code {
        ErrorCode::BlobAlreadyExists if creates_only => ErrorReply::new(ErrorCode::UnauthorizedBlobOverwrite),
        _ => error,
    }
}
