//! Who may do what with blobs: owners everything, guests what their token allows, others what is public.

use super::Ask;
use crate::auth::Caller;
use larimar_engine::Engine;
use larimar_engine::blob::Container;
use larimar_engine::blob::bytes::ByteStore;
use larimar_model::blob::{Conditions, ContainerName, ETagCondition, PublicAccess};
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

impl<E: Engine, B: ByteStore> Ask<'_, E, B> {
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
            (Caller::Anonymous, ..) => Err(ErrorReply::new(ErrorCode::ResourceNotFound)),
            (caller, ..) => caller.permits(need),
        }
    }

    /// Finds a container that the caller may read. Strangers are not told whether one that they may not read is there.
    pub(super) async fn find_readable(
        &self,
        name: &ContainerName,
        need: &Need<'_>,
        public: Public,
    ) -> Result<Container, ErrorReply> {
        let is_stranger = matches!(self.call.caller, Caller::Anonymous);
        if !is_stranger {
            self.permit(need)?;
        }
        let found = match self.find(name).await {
            Err(error) if is_stranger && error.code == ErrorCode::ContainerNotFound => {
                return Err(ErrorReply::new(ErrorCode::ResourceNotFound));
            }
            other => other?,
        };
        self.permit_read(need, &found, public)?;
        Ok(found)
    }

    /// The conditions of a write that may create only: a token without `w` does not overwrite.
    pub(super) fn creating(&self, mut conditions: Conditions) -> (Conditions, bool) {
        let may_overwrite = match &self.call.caller {
            Caller::Guest(grant) => grant.permits_overwrite().is_ok(),
            Caller::Owner | Caller::Anonymous => true,
        };
        if !may_overwrite {
            conditions.if_none_match = Some(ETagCondition::Any);
        }
        (conditions, !may_overwrite)
    }

    /// The token of the caller, if there is one.
    pub(super) const fn grant(&self) -> Option<&Grant> {
        match &self.call.caller {
            Caller::Guest(grant) => Some(grant),
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
