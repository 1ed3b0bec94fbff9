//! Finds the container of a request. A caller without credentials finds only public ones.

use super::BlobCall;
use crate::auth::Caller;
use crate::error::{Failure, Result};
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{BlobReject, Container};
use larimar_engine::{Engine, EngineError, Reject};
use larimar_model::blob::{ContainerName, LeaseId, PublicAccess};
use larimar_wire::error_code::ErrorCode;
use larimar_wire::operation::Public;

impl<E: Engine, B: ByteStore> BlobCall<'_, E, B> {
    /// Finds a container of the account.
    pub(super) async fn find(&self, name: &ContainerName) -> Result<Container> {
        let admit = |found: Container| self.check_public(&found).map(|()| self.call.lookups.found(found));
        let admitted = self.blobs.admit_to_container(self.call.account(), name, self.now(), admit).await;
        admitted.map_err(|error| self.hide_missing(error))?
    }

    /// Reads a container's settings as they are now. If the request names a lease, it must be the container's.
    pub(super) async fn read_settings(&self, name: &ContainerName, lease: Option<LeaseId>) -> Result<Container> {
        if lease.is_some() {
            // Public access is checked before the lease.
            self.find(name).await?;
        }
        let read = self.blobs.read_container(self.call.account(), name, lease, self.now()).await;
        let read = read.map_err(|error| self.hide_missing(error))?;
        self.check_public(&read)?;
        Ok(read)
    }

    /// Checks that the container's public access allows the request to a caller without credentials.
    fn check_public(&self, container: &Container) -> Result<()> {
        match (&self.call.caller, container.public_access, self.request.facts().public) {
            (Caller::Owner | Caller::Guest(_), ..)
            | (Caller::Anonymous, PublicAccess::Container, Some(Public::Read | Public::List))
            | (Caller::Anonymous, PublicAccess::Blob, Some(Public::Read)) => Ok(()),
            (Caller::Anonymous, ..) => Err(ErrorCode::NoAuthenticationInformation.into()),
        }
    }

    /// The same error for a missing container as for a private one, so that a caller without credentials cannot tell
    /// which containers exist.
    fn hide_missing(&self, error: EngineError) -> Failure {
        match (&self.call.caller, error) {
            (Caller::Anonymous, EngineError::Reject(Reject::Blob(BlobReject::ContainerNotFound))) => {
                ErrorCode::NoAuthenticationInformation.into()
            }
            (_, error) => error.into(),
        }
    }
}
