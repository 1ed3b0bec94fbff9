//! The Blob service as a whole: its containers.

use crate::pipeline::{Call, Pipeline};
use crate::{Error, Result};
use futures_util::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use http::Method;
use larimar_wire::xml::{Element, XmlError};
use std::sync::Arc;

/// The Blob service of an account.
///
/// ```no_run
/// use futures_util::TryStreamExt as _;
/// # async fn run(account: larimar_client::Account) -> Result<(), larimar_client::Error> {
/// let containers: Vec<_> = account.blobs().list("").try_collect().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct BlobService {
    pipeline: Arc<Pipeline>,
}

/// A container in the list of containers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContainerItem {
    /// The container's name.
    pub name: String,
}

impl BlobService {
    pub(crate) const fn new(pipeline: Arc<Pipeline>) -> Self {
        Self { pipeline }
    }

    /// The containers whose names begin like this, by name; an empty prefix is that of all containers.
    pub fn list(&self, prefix: &str) -> impl Stream<Item = Result<ContainerItem>> + Send + Unpin + use<> {
        let start = (self.clone(), prefix.to_owned(), Some(String::new()));
        let pages = stream::try_unfold(start, |(service, prefix, marker)| async move {
            let Some(marker) = marker else { return Ok(None) };
            let (containers, next) = service.page(&prefix, &marker).await?;
            Ok::<_, Error>(Some((stream::iter(containers.into_iter().map(Ok)), (service, prefix, next))))
        });
        pages.try_flatten().boxed()
    }

    async fn page(&self, prefix: &str, marker: &str) -> Result<(Vec<ContainerItem>, Option<String>)> {
        let mut call = Call::new("ListContainers", Method::GET, "/").parameter("comp", "list");
        for (name, value) in [("prefix", prefix), ("marker", marker)] {
            if !value.is_empty() {
                call = call.parameter(name, value);
            }
        }
        let reply = self.pipeline.send(call).await?;
        let not_understood = |error: XmlError| Error::Answer(error.to_string());
        let root = Element::parse_up_to(&reply.body, ELEMENTS_MAX).map_err(not_understood)?;
        let mut containers = Vec::new();
        for container in root.child("Containers").map_err(not_understood)?.map_or(&[][..], |all| &all.children) {
            let name = container.child_text("Name").map_err(not_understood)?;
            let name = name.ok_or_else(|| Error::Answer("expected the name of a container".to_owned()))?.to_owned();
            containers.push(ContainerItem { name });
        }
        let next = root.child_text("NextMarker").map_err(not_understood)?.map(str::to_owned);
        Ok((containers, next))
    }
}

/// A page has 5,000 containers at most, and each about a dozen elements.
const ELEMENTS_MAX: usize = 200_000;
