//! A container: where blobs are.

use super::Blob;
use super::list::{self, BlobItem, BlobPage, ListOptions};
use crate::pipeline::{Call, Failed, Pipeline, Reply};
use crate::{Error, Result};
use futures_util::stream::{Stream, StreamExt as _, TryStreamExt as _};
use http::Method;
use larimar_model::blob::ContainerName;
use larimar_wire::uri;
use std::sync::Arc;
use std::time::Duration;

/// A container of blobs. It is cheap to clone.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = larimar_embedded::Larimar::ephemeral().await?;
/// # let account = larimar_client::Account::connect(&server.connection_string())?;
/// use futures_util::TryStreamExt as _;
/// use larimar_client::UploadOptions;
///
/// let logs = account.container("logs");
/// logs.create_if_missing().await?;
/// let first = logs.blob("queue/2014/07/31/1800/000001.log");
/// first.upload("…", UploadOptions::default().metadata([("StartTime", "2014-07-31T18:02:54Z")])).await?;
///
/// let mut of_a_day = logs.list("queue/2014/07/31/");
/// while let Some(blob) = of_a_day.try_next().await? {
///     println!("{}, {} bytes, {:?}", blob.name, blob.size, blob.metadata.get("starttime"));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Container {
    pipeline: Arc<Pipeline>,
    name: Arc<str>,
    timeout: Option<Duration>,
}

impl Container {
    pub(crate) fn new(pipeline: Arc<Pipeline>, name: String) -> Self {
        Self { pipeline, name: name.into(), timeout: None }
    }

    /// The container's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address of the container.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_of(&self.path())
    }

    /// The same container, with another limit of how long a request may take with all its retries.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self.clone() }
    }

    /// A blob of the container, which need not exist yet. Slashes in its name make up what looks like folders.
    ///
    /// A name has at most 1,024 characters and 254 segments between slashes. Segments of one or two dots are refused
    /// when the blob is used, since servers take them for the way to another blob or container.
    #[must_use]
    pub fn blob(&self, name: impl Into<String>) -> Blob {
        Blob::new(self.clone(), name.into())
    }

    /// Creates the container if missing; returns whether it was created.
    ///
    /// # Errors
    /// A text that is not a container name (3 to 63 lower-case letters, digits and single dashes), or a container that
    /// is still being deleted.
    pub async fn create_if_missing(&self) -> Result<bool> {
        match self.send(self.call("CreateContainer", Method::PUT)).await {
            Ok(_) => Ok(true),
            // An attempt whose answer was lost may have made it.
            Err(failed) if failed.error.code() == Some("ContainerAlreadyExists") => Ok(failed.after_ambiguous),
            Err(failed) => Err(failed.error),
        }
    }

    /// Deletes the container with all its blobs.
    ///
    /// # Errors
    /// A container that does not exist.
    pub async fn delete_container(&self) -> Result<()> {
        match self.send(self.call("DeleteContainer", Method::DELETE)).await {
            Err(failed) if failed.after_ambiguous && failed.error.is_not_found() => Ok(()),
            // Deleting takes time; meanwhile the service answers this to a second delete.
            Err(failed) if failed.after_ambiguous && failed.error.code() == Some("ContainerBeingDeleted") => Ok(()),
            other => Ok(other.map(drop)?),
        }
    }

    /// Deletes the container if it exists; returns whether it did.
    ///
    /// # Errors
    /// Any other refusal of the service.
    pub async fn delete_container_if_exists(&self) -> Result<bool> {
        match self.delete_container().await {
            Ok(()) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The blobs whose names begin like this, by name and with their metadata; an empty prefix is that of all blobs.
    pub fn list(&self, prefix: &str) -> impl Stream<Item = Result<BlobItem>> + Send + Unpin + use<> {
        let pages = self.list_pages(ListOptions::default().prefix(prefix));
        pages.map_ok(|page| futures_util::stream::iter(page.blobs.into_iter().map(Ok))).try_flatten().boxed()
    }

    /// Blobs page by page, with options: what looks like folders, where to go on.
    pub fn list_pages(&self, options: ListOptions) -> impl Stream<Item = Result<BlobPage>> + Send + Unpin + use<> {
        list::pages(self.clone(), options)
    }

    pub(super) fn call(&self, name: &'static str, method: Method) -> Call {
        Call::new(name, method, self.path()).parameter("restype", "container")
    }

    pub(super) async fn send(&self, call: Call) -> Result<Reply, Failed> {
        if let Err(error) = self.name.parse::<ContainerName>() {
            let error = Error::Invalid(format!("'{}' is not a name of a container: {error}", self.name));
            return Err(Failed { error, after_ambiguous: false });
        }
        self.pipeline.send(call.timeout(self.timeout)).await
    }

    pub(super) fn url_of(&self, path: &str) -> String {
        format!("{}{path}", self.pipeline.primary.url())
    }

    /// The path of a blob.
    pub(super) fn path_of(&self, blob: &str) -> String {
        let mut path = self.path();
        path.push('/');
        uri::encode(&mut path, blob, |byte| byte == b'/' || uri::is_unreserved(byte));
        path
    }

    fn path(&self) -> String {
        let mut path = String::with_capacity(self.name.len() + 64);
        path.push('/');
        uri::encode(&mut path, &self.name, uri::is_unreserved);
        path
    }
}
