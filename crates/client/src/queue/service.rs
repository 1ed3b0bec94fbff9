//! The Queue service as a whole: its queues.

use crate::pipeline::{Call, Pipeline};
use crate::{Error, Result};
use futures_util::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use http::Method;
use larimar_model::limits::LIST_ITEMS_MAX;
use larimar_wire::xml::Element;
use std::sync::Arc;

/// The Queue service of an account.
///
/// ```no_run
/// use futures_util::TryStreamExt as _;
/// # async fn run(account: larimar_client::Account) -> Result<(), larimar_client::Error> {
/// let mut queues = account.queues().list("index-");
/// while let Some(queue) = queues.try_next().await? {
///     println!("{}", queue.name);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct QueueService {
    pipeline: Arc<Pipeline>,
}

/// A queue in the list of queues.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueItem {
    /// The queue's name.
    pub name: String,
}

impl QueueService {
    pub(crate) const fn new(pipeline: Arc<Pipeline>) -> Self {
        Self { pipeline }
    }

    /// The queues whose names begin like this, by name; an empty prefix is that of all queues.
    pub fn list(&self, prefix: &str) -> impl Stream<Item = Result<QueueItem>> + Send + Unpin + use<> {
        let start = (self.clone(), prefix.to_owned(), Some(String::new()));
        let pages = stream::try_unfold(start, |(service, prefix, marker)| async move {
            let Some(marker) = marker else { return Ok(None) };
            let (queues, next) = service.page(&prefix, &marker).await?;
            Ok::<_, Error>(Some((stream::iter(queues.into_iter().map(Ok)), (service, prefix, next))))
        });
        pages.try_flatten().boxed()
    }

    async fn page(&self, prefix: &str, marker: &str) -> Result<(Vec<QueueItem>, Option<String>)> {
        let mut call = Call::new("ListQueues", Method::GET, "/").parameter("comp", "list");
        for (name, value) in [("prefix", prefix), ("marker", marker)] {
            if !value.is_empty() {
                call = call.parameter(name, value);
            }
        }
        let reply = self.pipeline.send(call).await?;
        let not_understood = |error: larimar_wire::xml::XmlError| Error::Answer(error.to_string());
        // A queue is an element with its name, and the list a handful more.
        let root = Element::parse_up_to(&reply.body, LIST_ITEMS_MAX * 2 + 16).map_err(not_understood)?;
        let mut queues = Vec::new();
        for queue in root.child("Queues").map_err(not_understood)?.map_or(&[][..], |queues| &queues.children) {
            let name = queue.child_text("Name").map_err(not_understood)?;
            let name = name.ok_or_else(|| Error::Answer("expected the name of a queue".to_owned()))?.to_owned();
            queues.push(QueueItem { name });
        }
        let next = root.child_text("NextMarker").map_err(not_understood)?.map(str::to_owned);
        Ok((queues, next))
    }
}
