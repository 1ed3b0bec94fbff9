//! What a container has besides its blobs: metadata, public access and stored access policies.

use super::Container;
use crate::sas::ContainerPermissions;
use crate::{Result, StoredPolicy, metadata, stored_policy};
use http::{HeaderName, Method};
use std::collections::BTreeMap;

/// What requests without credentials may read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PublicAccess {
    /// Nothing.
    #[default]
    None,
    /// Blobs whose names the caller knows.
    Blob,
    /// Blobs, and the list of them.
    Container,
}

/// Who may read a container besides the account: the public, and tokens that name a stored policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContainerAccess {
    /// What requests without credentials may read.
    pub public: PublicAccess,
    /// Stored policies, at most five.
    pub policies: Vec<StoredPolicy<ContainerPermissions>>,
}

impl ContainerAccess {
    /// Access by these policies, and by the public.
    #[must_use]
    pub const fn new(public: PublicAccess, policies: Vec<StoredPolicy<ContainerPermissions>>) -> Self {
        Self { public, policies }
    }
}

impl Container {
    /// The container's metadata, names in lower case.
    ///
    /// # Errors
    /// A container that does not exist.
    pub async fn metadata(&self) -> Result<BTreeMap<String, String>> {
        let reply = self.send(self.call("GetContainerProperties", Method::GET)).await?;
        Ok(metadata::read(&reply.headers))
    }

    /// Replaces the container's metadata by these pairs, for which the rules of
    /// [`Blob::set_metadata`](crate::Blob::set_metadata) hold.
    ///
    /// # Errors
    /// A container that does not exist, or metadata that the service would refuse.
    pub async fn set_metadata(&self, pairs: &BTreeMap<String, String>) -> Result<()> {
        let call = self.call("SetContainerMetadata", Method::PUT).parameter("comp", "metadata");
        self.send(metadata::put_on(call, &metadata::checked(pairs)?)?).await?;
        Ok(())
    }

    /// Who may read the container besides the account.
    ///
    /// # Errors
    /// A container that does not exist, or a credential other than the account's key.
    pub async fn access(&self) -> Result<ContainerAccess> {
        let reply = self.send(self.call("GetContainerACL", Method::GET).parameter("comp", "acl")).await?;
        let public = match reply.headers.get(PUBLIC_ACCESS).map(|value| value.as_bytes().to_ascii_lowercase()) {
            Some(word) if word == b"container" => PublicAccess::Container,
            Some(word) if word == b"blob" => PublicAccess::Blob,
            _ => PublicAccess::None,
        };
        Ok(ContainerAccess { public, policies: stored_policy::read(&reply.body)? })
    }

    /// Replaces public access and stored policies of the container by these.
    ///
    /// # Errors
    /// Policies that the service would refuse, a container that does not exist, a credential other than the account's
    /// key, or an account that does not allow public access.
    pub async fn set_access(&self, access: &ContainerAccess) -> Result<()> {
        let call = self.call("SetContainerACL", Method::PUT).parameter("comp", "acl");
        let call = match access.public {
            PublicAccess::None => call,
            PublicAccess::Blob => call.header(PUBLIC_ACCESS, "blob"),
            PublicAccess::Container => call.header(PUBLIC_ACCESS, "container"),
        };
        self.send(call.body("application/xml", stored_policy::body(&access.policies)?)).await?;
        Ok(())
    }
}

const PUBLIC_ACCESS: HeaderName = HeaderName::from_static("x-ms-blob-public-access");
