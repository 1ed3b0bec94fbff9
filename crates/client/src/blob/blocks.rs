//! Block blobs block by block, for content that is too large to be held at once.

use super::{Blob, UploadOptions, upload};
use crate::{ETag, Error, Result};
use bytes::Bytes;
use http::Method;
use larimar_model::limits::{BLOCK_BYTES_MAX, BLOCKS_UNCOMMITTED_MAX};
use larimar_wire::xml::{Element, XmlError};

impl Blob {
    /// Sends one block of a block blob that [`Blob::commit_blocks`] will make. The blob does not change until then.
    ///
    /// The id is base64, and as long as those of all other blocks of the blob. A block of the same id is replaced. The
    /// service discards blocks that are not committed within a week.
    ///
    /// # Errors
    /// A container that does not exist, an id that the service refuses, no bytes or more than 4,000 MiB.
    pub async fn put_block(&self, id: &str, bytes: impl Into<Bytes>) -> Result<()> {
        let bytes = bytes.into();
        if bytes.is_empty() || bytes.len() as u64 > BLOCK_BYTES_MAX {
            return Err(Error::Invalid(format!("expected a block of 1 to {BLOCK_BYTES_MAX} bytes")));
        }
        let call = self.call("PutBlock", Method::PUT).parameter("comp", "block").parameter("blockid", id);
        self.send(upload::with_content(call, bytes, false)?).await?;
        Ok(())
    }

    /// Makes the blob of these blocks, in this order, in the place of what was there. Of the options, block size and
    /// concurrency do not count.
    ///
    /// # Errors
    /// A block that was not sent, more than 50,000 blocks, or a condition that does not hold ([`Error::is_conflict`]).
    pub async fn commit_blocks<I: AsRef<str>>(
        &self,
        ids: impl IntoIterator<Item = I>,
        options: &UploadOptions,
    ) -> Result<ETag> {
        let call = upload::with_blocks(self.call("PutBlockList", Method::PUT), ids);
        let call = options.condition.put_on(options.put_on(call)?)?;
        super::properties::etag(&self.send(call).await?.headers)
    }

    /// Ids and sizes of the blocks that were sent and not committed; none if there is no such blob.
    ///
    /// # Errors
    /// A container that does not exist, or a blob that is not a block blob.
    pub async fn uncommitted_blocks(&self) -> Result<Vec<(String, u64)>> {
        let call = self.call("GetBlockList", Method::GET).parameter("comp", "blocklist");
        // A write that depends on it follows, so the secondary would not do.
        let reply = match self.send(call.parameter("blocklisttype", "uncommitted").changing()).await {
            Err(failed) if failed.error.code() == Some("BlobNotFound") => return Ok(Vec::new()),
            other => other?,
        };
        let not_understood = |error: XmlError| Error::Answer(error.to_string());
        let list = Element::parse_up_to(&reply.body, BLOCKS_UNCOMMITTED_MAX * 3 + 16).map_err(not_understood)?;
        let blocks = list.child("UncommittedBlocks").map_err(not_understood)?.map_or(&[][..], |list| &list.children);
        let read = |block: &Element| {
            let id = block.child_text("Name").ok()??;
            Some((id.to_owned(), block.child_text("Size").ok()??.parse().ok()?))
        };
        let read = |block| read(block).ok_or_else(|| Error::Answer("expected blocks with name and size".to_owned()));
        blocks.iter().map(read).collect()
    }
}
