//! Tokens for the companions of tables: queues, containers and blobs.

use super::{BlobPermissions, QueuePermissions, SasError, SasProtocol, SasToken, Terms, terms};
use crate::{SharedKey, Timestamp};
use larimar_model::blob::{BlobName, ContainerName};
use larimar_model::queue::QueueName;
use larimar_wire::sas::{BlobSas as BlobFields, BlobSasScope, QueueSas as QueueFields, SasKind};
use std::net::IpAddr;

/// Builds a token for the messages of one queue.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it signs"]
pub struct QueueSas {
    queue: String,
    permissions: QueuePermissions,
    terms: Terms,
}

impl QueueSas {
    /// A token for this queue, which allows nothing yet.
    pub fn new(queue: impl Into<String>) -> Self {
        Self { queue: queue.into(), permissions: QueuePermissions::NONE, terms: Terms::default() }
    }

    /// What the token allows.
    pub const fn permissions(mut self, permissions: QueuePermissions) -> Self {
        self.permissions = permissions;
        self
    }

    /// The stored policy that completes the token.
    pub fn policy(mut self, id: impl Into<String>) -> Self {
        self.terms.policy = Some(id.into());
        self
    }

    terms!();

    /// Signs the token with a key of the account that has the queue.
    ///
    /// # Errors
    /// A token that no service would honour.
    pub fn sign(&self, key: &SharedKey) -> Result<SasToken, SasError> {
        if self.queue.parse::<QueueName>().is_err() {
            return Err(SasError::Name);
        }
        let mut fields = self.terms.fields(VERSION, &self.permissions.to_string())?;
        fields.kind =
            SasKind::Queue(QueueFields { queue: self.queue.as_str().into(), policy_id: self.terms.policy_id() });
        Ok(SasToken(fields.to_query(key.account(), key.key())))
    }
}

/// Builds a token for a container with its blobs, or for one blob.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it signs"]
pub struct BlobSas {
    container: String,
    blob: Option<String>,
    permissions: BlobPermissions,
    terms: Terms,
}

impl BlobSas {
    /// A token for a container and all blobs in it, which allows nothing yet.
    pub fn container(container: impl Into<String>) -> Self {
        Self { container: container.into(), blob: None, permissions: BlobPermissions::NONE, terms: Terms::default() }
    }

    /// A token for one blob, which allows nothing yet.
    pub fn blob(container: impl Into<String>, blob: impl Into<String>) -> Self {
        Self { blob: Some(blob.into()), ..Self::container(container) }
    }

    /// What the token allows.
    pub const fn permissions(mut self, permissions: BlobPermissions) -> Self {
        self.permissions = permissions;
        self
    }

    /// The stored policy that completes the token.
    pub fn policy(mut self, id: impl Into<String>) -> Self {
        self.terms.policy = Some(id.into());
        self
    }

    terms!();

    /// Signs the token with a key of the account that has the container.
    ///
    /// # Errors
    /// A token that no service would honour.
    pub fn sign(&self, key: &SharedKey) -> Result<SasToken, SasError> {
        let is_blob = |blob: &String| blob.parse::<BlobName>().is_ok();
        if self.container.parse::<ContainerName>().is_err() || !self.blob.as_ref().is_none_or(is_blob) {
            return Err(SasError::Name);
        }
        let mut fields = self.terms.fields(VERSION, &self.permissions.to_string())?;
        fields.kind = SasKind::Blob(Box::new(BlobFields {
            container: self.container.as_str().into(),
            scope: self.blob.as_deref().map_or(BlobSasScope::Container, |blob| BlobSasScope::Blob(blob.into())),
            policy_id: self.terms.policy_id(),
            ..BlobFields::default()
        }));
        Ok(SasToken(fields.to_query(key.account(), key.key())))
    }
}

/// The version whose rules the tokens follow: the first that has tags.
const VERSION: &str = "2020-12-06";
