//! Lists of blobs, page by page.

use super::container::Container;
use super::content::ContentHeaders;
use super::list_xml;
use super::properties::BlobKind;
use crate::{ETag, Error, Result, Timestamp};
use futures_util::stream::{self, Stream, StreamExt as _};
use http::Method;
use larimar_model::limits::LIST_ITEMS_MAX;
use std::collections::BTreeMap;

/// A blob in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlobItem {
    /// The blob's name.
    pub name: String,
    /// Bytes of the content.
    pub size: u64,
    /// The version.
    pub etag: ETag,
    /// When content or metadata changed last.
    pub last_modified: Timestamp,
    /// The type of the content, such as `text/plain`.
    pub content_type: String,
    /// The headers that the blob is served with, its type among them.
    pub content_headers: ContentHeaders,
    /// The kind of the blob.
    pub kind: BlobKind,
    /// The number that the writers of a page blob agree by; 0 for other kinds.
    pub sequence_number: u64,
    /// Whether the blob is an append blob that cannot grow any more.
    pub is_sealed: bool,
    /// Names in lower case, with their values.
    pub metadata: BTreeMap<String, String>,
    /// The blob's tags, if the list was asked for them ([`ListOptions::tags`]).
    pub tags: BTreeMap<String, String>,
}

/// A page of a list of blobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlobPage {
    /// The blobs, by name.
    pub blobs: Vec<BlobItem>,
    /// What the names of further blobs begin with, up to the delimiter and with it; empty without a delimiter.
    pub prefixes: Vec<String>,
    /// Where the next page begins, if there is one.
    pub marker: Option<String>,
}

/// What a list of blobs holds.
///
/// ```
/// use larimar_client::ListOptions;
/// let folders = ListOptions::default().prefix("queue/2014/").delimiter("/").page_size(100);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct ListOptions {
    prefix: Option<String>,
    delimiter: Option<String>,
    marker: Option<String>,
    page_size: Option<usize>,
    tags: bool,
}

impl ListOptions {
    /// Only blobs whose names begin like this.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// Groups names that share the text up to this delimiter after the prefix; each group is listed once.
    pub fn delimiter(mut self, delimiter: impl Into<String>) -> Self {
        self.delimiter = Some(delimiter.into());
        self
    }

    /// Begins where an earlier page ended, with its [marker](BlobPage::marker).
    pub fn start_at(mut self, marker: impl Into<String>) -> Self {
        self.marker = Some(marker.into());
        self
    }

    /// At most this many blobs and prefixes in a page, from 1 to 5,000 (default: 5,000).
    pub const fn page_size(mut self, page_size: usize) -> Self {
        self.page_size = Some(page_size);
        self
    }

    /// Lists the blobs with their tags, which a service may refuse: accounts with a hierarchical namespace have none.
    pub const fn tags(mut self, tags: bool) -> Self {
        self.tags = tags;
        self
    }
}

/// All pages, from where the options say.
pub(super) fn pages(
    container: Container,
    options: ListOptions,
) -> impl Stream<Item = Result<BlobPage>> + Send + Unpin + use<> {
    let pages = stream::try_unfold(Some((container, options)), |state| async move {
        let Some((container, mut options)) = state else { return Ok(None) };
        let page = page(&container, &options).await?;
        options.marker.clone_from(&page.marker);
        let next = page.marker.is_some().then_some((container, options));
        Ok::<_, Error>(Some((page, next)))
    });
    // A boxed stream needs no pinning by the caller.
    pages.boxed()
}

async fn page(container: &Container, options: &ListOptions) -> Result<BlobPage> {
    let include = if options.tags { "metadata,tags" } else { "metadata" };
    let mut call = container.call("ListBlobs", Method::GET).parameter("comp", "list").parameter("include", include);
    let given = [("prefix", &options.prefix), ("delimiter", &options.delimiter), ("marker", &options.marker)];
    for (name, value) in given {
        if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
            call = call.parameter(name, value);
        }
    }
    if let Some(size) = options.page_size {
        if !(1..=LIST_ITEMS_MAX).contains(&size) {
            return Err(Error::Invalid(format!("a page of a list has from 1 to {LIST_ITEMS_MAX} blobs")));
        }
        call = call.parameter("maxresults", &size.to_string());
    }
    let reply = container.send(call).await?;
    list_xml::read(&reply.body)
}
