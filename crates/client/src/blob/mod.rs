//! Containers and their blobs.

mod append;
mod blocks;
mod condition;
mod container;
mod content;
mod download;
mod list;
mod list_xml;
mod pages;
mod properties;
mod service;
mod settings;
mod upload;

pub use append::AppendOptions;
pub use condition::BlobCondition;
pub use container::Container;
pub use content::ContentHeaders;
pub use download::Download;
pub use list::{BlobItem, BlobPage, ListOptions};
pub use properties::{BlobKind, BlobProperties};
pub use service::{BlobService, ContainerItem};
pub use settings::{ContainerAccess, PublicAccess};
pub use upload::UploadOptions;

use crate::pipeline::{Call, Failed, Reply};
use crate::{ETag, Error, Result, metadata};
use http::Method;
use larimar_model::blob::BlobName;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A blob. It is cheap to clone, and need not exist yet.
///
/// Block blobs are [uploaded](Self::upload) as a whole; append blobs are [created](Self::create_append) empty and
/// [grow](Self::append) at their end.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = larimar_embedded::Larimar::ephemeral().await?;
/// # let account = larimar_client::Account::connect(&server.connection_string())?;
/// use larimar_client::UploadOptions;
///
/// let container = account.container("photos");
/// container.create_if_missing().await?;
/// let photo = container.blob("employees/000123.jpg");
/// photo.upload(vec![0; 1024], UploadOptions::default().content_type("image/jpeg")).await?;
/// let read = photo.download().await?.expect("it was just uploaded");
/// assert_eq!(read.bytes.len(), 1024);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Blob {
    container: Container,
    name: Arc<str>,
    download_bytes_max: u64,
}

impl Blob {
    fn new(container: Container, name: String) -> Self {
        Self { container, name: name.into(), download_bytes_max: DOWNLOAD_BYTES_MAX }
    }

    /// The blob's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The container that the blob is in.
    #[must_use]
    pub const fn container(&self) -> &Container {
        &self.container
    }

    /// The address of the blob, without anything that would open it.
    #[must_use]
    pub fn url(&self) -> String {
        self.container.url_of(&self.path())
    }

    /// The same blob, with another limit of how long a request may take with all its retries.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self { container: self.container.with_timeout(timeout), ..self.clone() }
    }

    /// The same blob, with another limit of how many bytes a download brings into memory (default: 256 MiB).
    #[must_use]
    pub fn with_download_max(&self, bytes: u64) -> Self {
        Self { download_bytes_max: bytes, ..self.clone() }
    }

    /// The properties of the blob; `None` if it does not exist.
    ///
    /// # Errors
    /// A container that does not exist.
    pub async fn properties(&self) -> Result<Option<BlobProperties>> {
        self.read_properties(self.call("GetBlobProperties", Method::HEAD)).await
    }

    /// The same from the primary, after a write: a secondary may not have heard of it yet.
    async fn properties_after_write(&self) -> Result<Option<BlobProperties>> {
        let call = self.call("GetBlobProperties", Method::HEAD).changing();
        self.read_properties(call).await.map_err(Error::after_lost_answer)
    }

    async fn read_properties(&self, call: Call) -> Result<Option<BlobProperties>> {
        match self.send(call).await {
            Ok(reply) => Ok(Some(BlobProperties::read(&reply.headers)?)),
            Err(failed) if failed.error.code() == Some("BlobNotFound") => Ok(None),
            Err(failed) => Err(failed.error),
        }
    }

    /// Replaces the blob's metadata by these pairs.
    ///
    /// Names are those of C# identifiers in ASCII and do not tell upper from lower case; they are sent and read in
    /// lower case. Values are printable ASCII. All together have at most 8 KiB.
    ///
    /// # Errors
    /// A blob that does not exist, a condition that does not hold ([`Error::is_changed`]), or
    /// metadata that the service would refuse.
    pub async fn set_metadata(
        &self,
        pairs: &BTreeMap<String, String>,
        condition: impl Into<BlobCondition>,
    ) -> Result<ETag> {
        let pairs = metadata::checked(pairs)?;
        let call = self.call("SetBlobMetadata", Method::PUT).parameter("comp", "metadata");
        let call = condition.into().put_on(metadata::put_on(call, &pairs)?)?;
        match self.send(call).await {
            Ok(reply) => properties::etag(&reply.headers),
            // The answer to an earlier attempt was lost; if it did its work, the metadata is there.
            Err(failed) if failed.after_ambiguous && failed.error.is_changed() => {
                match self.properties_after_write().await? {
                    Some(stored) if stored.metadata == pairs => Ok(stored.etag),
                    _ => Err(failed.error),
                }
            }
            Err(failed) => Err(failed.error),
        }
    }

    /// Deletes the blob.
    ///
    /// # Errors
    /// A blob that does not exist, or a condition that does not hold ([`Error::is_changed`]).
    pub async fn delete(&self, condition: impl Into<BlobCondition>) -> Result<()> {
        let call = condition.into().put_on(self.call("DeleteBlob", Method::DELETE))?;
        match self.send(call).await {
            Err(failed) if failed.after_ambiguous && failed.error.is_not_found() => Ok(()),
            other => Ok(other.map(drop)?),
        }
    }

    /// Deletes the blob if it exists; returns whether it did.
    ///
    /// # Errors
    /// A container that does not exist.
    pub async fn delete_if_exists(&self) -> Result<bool> {
        match self.delete(BlobCondition::Always).await {
            Ok(()) => Ok(true),
            Err(error) if error.code() == Some("BlobNotFound") => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn path(&self) -> String {
        self.container.path_of(&self.name)
    }

    fn call(&self, name: &'static str, method: Method) -> Call {
        Call::new(name, method, self.path())
    }

    async fn send(&self, call: Call) -> Result<Reply, Failed> {
        if let Err(error) = check_name(&self.name) {
            return Err(Failed { error, after_ambiguous: false });
        }
        self.container.send(call).await
    }
}

fn check_name(name: &str) -> Result<()> {
    name.parse::<BlobName>().map_err(|error| Error::Invalid(format!("no name of a blob: {error}")))?;
    if name.split('/').any(|segment| segment == "." || segment == "..") {
        return Err(Error::Invalid("no name of a blob: expected no segments of dots alone".to_owned()));
    }
    Ok(())
}

/// Default limit of bytes that a download brings into memory.
const DOWNLOAD_BYTES_MAX: u64 = 256 << 20;
