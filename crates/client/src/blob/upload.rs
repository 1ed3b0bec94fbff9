//! Uploads of block blobs: in one request, or in blocks if they are large.

use super::{Blob, BlobCondition, BlobKind, BlobProperties, ContentHeaders, properties};
use crate::pipeline::{Call, Failed};
use crate::{ETag, Error, Guid, Result, metadata};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use http::{HeaderName, Method};
use larimar_model::limits::{BLOCK_BYTES_MAX, BLOCKS_COMMITTED_MAX};
use larimar_wire::{uri, xml};
use md5::{Digest as _, Md5};
use std::collections::BTreeMap;

/// How a blob is written.
///
/// ```
/// use larimar_client::{BlobCondition, UploadOptions};
/// let options = UploadOptions::default()
///     .content_type("text/plain")
///     .metadata([("author", "Don")])
///     .condition(BlobCondition::Missing);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct UploadOptions {
    content: ContentHeaders,
    metadata: BTreeMap<String, String>,
    tags: BTreeMap<String, String>,
    pub(super) condition: BlobCondition,
    block_size: usize,
    concurrency: usize,
    checks_md5: bool,
}

impl Default for UploadOptions {
    fn default() -> Self {
        Self {
            content: ContentHeaders::default(),
            metadata: BTreeMap::new(),
            tags: BTreeMap::new(),
            condition: BlobCondition::Always,
            block_size: 8 << 20,
            concurrency: 4,
            checks_md5: false,
        }
    }
}

impl UploadOptions {
    /// The type of the content (default: `application/octet-stream`).
    pub fn content_type(mut self, content_type: impl Into<String>) -> Self {
        self.content.content_type = Some(content_type.into());
        self
    }

    /// The headers that the blob is served with, all of them.
    ///
    /// The service compares the MD5 with the content when a blob is uploaded in one request, and keeps it unseen when
    /// it is uploaded in blocks.
    pub fn content_headers(mut self, headers: ContentHeaders) -> Self {
        self.content = headers;
        self
    }

    /// Gives the blob tags, at most ten.
    pub fn tags<N: Into<String>, V: Into<String>>(mut self, pairs: impl IntoIterator<Item = (N, V)>) -> Self {
        self.tags.extend(pairs.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// Adds metadata, for which the rules of [`Blob::set_metadata`] hold.
    pub fn metadata<N: Into<String>, V: Into<String>>(mut self, pairs: impl IntoIterator<Item = (N, V)>) -> Self {
        self.metadata.extend(pairs.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// Writes only if this holds.
    pub fn condition(mut self, condition: impl Into<BlobCondition>) -> Self {
        self.condition = condition.into();
        self
    }

    /// The largest content of one request (default: 8 MiB). Larger blobs are sent in blocks of this size, which has to
    /// make at most 50,000.
    pub const fn block_size(mut self, bytes: usize) -> Self {
        self.block_size = bytes;
        self
    }

    /// How many blocks are under way at once (default: 4).
    pub const fn concurrency(mut self, blocks: usize) -> Self {
        self.concurrency = blocks;
        self
    }

    /// Sends the MD5 of every request's content, for the service to check. TLS makes that needless.
    pub const fn check_md5(mut self, checks: bool) -> Self {
        self.checks_md5 = checks;
        self
    }

    /// The call with everything that the options say of the blob itself.
    pub(super) fn put_on(&self, call: Call) -> Result<Call> {
        let call = metadata::put_on(call, &metadata::checked(&self.metadata)?)?;
        let mut content = self.content.clone();
        content.content_type.get_or_insert_with(|| DEFAULT_TYPE.to_owned());
        let call = content.put_on(call)?;
        if self.tags.is_empty() {
            return Ok(call);
        }
        let mut tags = String::new();
        for (name, value) in &self.tags {
            let separator = if tags.is_empty() { "" } else { "&" };
            tags.push_str(separator);
            uri::encode(&mut tags, name, uri::is_unreserved);
            tags.push('=');
            uri::encode(&mut tags, value, uri::is_unreserved);
        }
        call.header_text(X_MS_TAGS, &tags)
    }

    fn check(&self, length: usize) -> Result<()> {
        if self.block_size == 0 || self.block_size as u64 > BLOCK_BYTES_MAX || self.concurrency == 0 {
            let message = "expected blocks of 1 byte to 4,000 MiB, and at least one at once";
            return Err(Error::Invalid(message.to_owned()));
        }
        if length.div_ceil(self.block_size) > BLOCKS_COMMITTED_MAX {
            return Err(Error::Invalid(format!("a blob has at most {BLOCKS_COMMITTED_MAX} blocks: make them larger")));
        }
        Ok(())
    }
}

impl Blob {
    /// Writes the blob as a block blob, in the place of what was there.
    ///
    /// Content of more than a [block](UploadOptions::block_size) is sent in blocks; the blob changes when the last of
    /// them is there. An upload that is abandoned leaves blocks behind, which the service discards after a week.
    ///
    /// If the answer to an upload with a condition is lost and the next attempt is refused, the client looks whether
    /// the blob is what was to be written.
    ///
    /// # Errors
    /// A container that does not exist; a condition that does not hold ([`Error::is_conflict`]): 409 if the blob was to
    /// be missing, 412 else.
    pub async fn upload(&self, content: impl Into<Bytes>, options: UploadOptions) -> Result<ETag> {
        let content = content.into();
        options.check(content.len())?;
        let wanted = Wanted::new(BlobKind::Block, &content, &options)?;
        let call = if content.len() <= options.block_size {
            let call = self.call("PutBlob", Method::PUT).header(X_MS_BLOB_TYPE, "BlockBlob");
            with_content(call, content, options.checks_md5)?
        } else {
            let ids = self.put_blocks(&content, &options).await?;
            with_blocks(self.call("PutBlockList", Method::PUT), ids)
        };
        self.write(wanted.put_on(call, &options)?, &options.condition, &wanted).await
    }

    /// Makes an append blob of no content, in the place of what was there.
    ///
    /// # Errors
    /// A container that does not exist, or a condition that does not hold ([`Error::is_conflict`]).
    pub async fn create_append(&self, options: UploadOptions) -> Result<ETag> {
        let wanted = Wanted::new(BlobKind::Append, &Bytes::new(), &options)?;
        let call = self.call("PutBlob", Method::PUT).header(X_MS_BLOB_TYPE, "AppendBlob");
        self.write(wanted.put_on(call, &options)?, &options.condition, &wanted).await
    }

    /// Makes an append blob of no content unless the blob is there; returns whether it made it. The condition of the
    /// options does not count.
    ///
    /// # Errors
    /// A container that does not exist.
    pub async fn create_append_if_missing(&self, options: UploadOptions) -> Result<bool> {
        match self.create_append(options.condition(BlobCondition::Missing)).await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some("BlobAlreadyExists") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends what makes the blob. If the answer to an earlier attempt was lost and a later one is refused, what is
    /// stored shows whether the blob was written.
    async fn write(&self, call: Call, condition: &BlobCondition, wanted: &Wanted) -> Result<ETag> {
        match self.send(condition.put_on(call)?).await {
            Ok(reply) => properties::etag(&reply.headers),
            Err(Failed { error, after_ambiguous: true }) if error.is_conflict() => {
                match self.properties_after_write().await? {
                    Some(stored) if wanted.is_stored(&stored) => Ok(stored.etag),
                    _ => Err(error),
                }
            }
            Err(failed) => Err(failed.error),
        }
    }

    /// Sends the content in blocks, and returns their ids in order.
    async fn put_blocks(&self, content: &Bytes, options: &UploadOptions) -> Result<Vec<String>> {
        // Blocks of other uploads of the same blob may be waiting too.
        let upload = Guid::random();
        let starts = (0..content.len()).step_by(options.block_size);
        let blocks = starts.enumerate().map(|(index, start)| {
            let id = STANDARD.encode(format!("{upload}-{index:06}"));
            let block = content.slice(start..content.len().min(start + options.block_size));
            (id, block)
        });
        let (ids, blocks): (Vec<_>, Vec<_>) = blocks.map(|(id, block)| (id.clone(), (id, block))).unzip();
        let checks_md5 = options.checks_md5;
        let sent = blocks.into_iter().map(|(id, block)| {
            let blob = self.clone();
            async move {
                let call = blob.call("PutBlock", Method::PUT).parameter("comp", "block").parameter("blockid", &id);
                blob.send(with_content(call, block, checks_md5)?).await.map(drop).map_err(Error::from)
            }
        });
        stream::iter(sent).buffer_unordered(options.concurrency).try_collect::<()>().await?;
        Ok(ids)
    }
}

/// A call with content, and its MD5 if that is to be checked.
pub(super) fn with_content(call: Call, content: Bytes, checks_md5: bool) -> Result<Call> {
    let call = match checks_md5 {
        true => call.header_text(CONTENT_MD5, &md5_of(&content))?,
        false => call,
    };
    Ok(call.body("application/octet-stream", content))
}

/// A call that makes a blob of these blocks.
pub(super) fn with_blocks<I: AsRef<str>>(call: Call, ids: impl IntoIterator<Item = I>) -> Call {
    let mut list = Vec::new();
    // Blocks that a lost attempt committed are found as well as those that wait.
    xml::write_element(&mut list, "BlockList", |list| {
        ids.into_iter().for_each(|id| xml::write_text(list, "Latest", id.as_ref()));
    });
    call.parameter("comp", "blocklist").body("application/xml", list)
}

fn md5_of(content: &[u8]) -> String {
    STANDARD.encode(Md5::digest(content))
}

/// What is stored when a write is done.
struct Wanted {
    kind: BlobKind,
    size: u64,
    content_type: String,
    metadata: BTreeMap<String, String>,
    /// Known where a lost answer could make it needed.
    md5: Option<String>,
}

impl Wanted {
    fn new(kind: BlobKind, content: &Bytes, options: &UploadOptions) -> Result<Self> {
        let is_conditional = options.condition != BlobCondition::Always && options.content.content_md5.is_none();
        Ok(Self {
            kind,
            size: content.len() as u64,
            content_type: options.content.content_type.clone().unwrap_or_else(|| DEFAULT_TYPE.to_owned()),
            metadata: metadata::checked(&options.metadata)?,
            md5: match is_conditional && kind == BlobKind::Block {
                true => Some(md5_of(content)),
                false => options.content.content_md5.clone(),
            },
        })
    }

    fn put_on(&self, call: Call, options: &UploadOptions) -> Result<Call> {
        let call = options.put_on(call)?;
        match &self.md5 {
            Some(md5) => call.header_text(X_MS_BLOB_CONTENT_MD5, md5),
            None => Ok(call),
        }
    }

    fn is_stored(&self, stored: &BlobProperties) -> bool {
        let Self { kind, size, content_type, metadata, md5 } = self;
        (stored.kind, stored.size, &stored.content_type, &stored.metadata) == (*kind, *size, content_type, metadata)
            && (md5.is_none() || stored.content_md5 == *md5)
    }
}

const DEFAULT_TYPE: &str = "application/octet-stream";
pub(super) const X_MS_BLOB_TYPE: HeaderName = HeaderName::from_static("x-ms-blob-type");
const X_MS_TAGS: HeaderName = HeaderName::from_static("x-ms-tags");
const X_MS_BLOB_CONTENT_MD5: HeaderName = HeaderName::from_static("x-ms-blob-content-md5");
const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");
