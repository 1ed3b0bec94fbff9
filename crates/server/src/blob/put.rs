//! Put Blob of every type, and Copy Blob.

use super::permit::overwrite_error;
use super::{BlobCall, blob_ref};
use crate::body::RequestBody;
use crate::error;
use crate::reply::Reply;
use larimar_engine::Engine;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{Access, Container};
use larimar_model::blob::{BlobName, ContainerName};
use larimar_wire::blob::{BodyChecks, PutBlob, PutBlobContent};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::sas::Need;

impl<E: Engine, B: ByteStore> BlobCall<'_, E, B> {
    pub(super) async fn put_block_blob(
        &self,
        container: &ContainerName,
        name: &BlobName,
        put: &PutBlob,
        checks: &BodyChecks,
        body: &mut RequestBody,
    ) -> Result<Reply, ErrorReply> {
        let found = self.creatable(container, name, !put.blob.tags.is_empty()).await?;
        let at = blob_ref(&found, name);
        let (access, creates_only) = self.creating_access(&put.access)?;
        let received = self.receive(at, body, checks, true).await?;
        let mut new = put.blob.clone();
        // The service keeps the sum that it made, unless the client gave one for readers.
        new.content.md5 = new.content.md5.or(received.sums.md5.map(Vec::from));
        let written = self.blobs.put_block_blob(at, received.extent, &new, &access, self.now()).await;
        let written = written.map_err(|error| overwrite_error(error::engine_error(&error), creates_only))?;
        Ok(Reply::empty(201)
            .with_written(written)
            .with_sums(&received.sums, self.told_sums())
            .with("x-ms-request-server-encrypted", "true"))
    }

    /// Put Blob without a body: append and page blobs, and bytes of another blob.
    pub(super) async fn put_other(
        &self,
        container: &ContainerName,
        name: &BlobName,
        put: &PutBlob,
    ) -> Result<Reply, ErrorReply> {
        let copies_tags = matches!(put.content, PutBlobContent::BlockFrom { copy_tags: true, .. });
        let found = self.creatable(container, name, copies_tags || !put.blob.tags.is_empty()).await?;
        let at = blob_ref(&found, name);
        let new = put.blob.clone();
        let (access, creates_only) = self.creating_access(&put.access)?;
        let put = match &put.content {
            PutBlobContent::Append => self.blobs.put_append_blob(at, &new, &access, self.now()).await,
            PutBlobContent::Page { length, sequence_number } => {
                self.blobs.put_page_blob(at, (*length, *sequence_number), &new, &access, self.now()).await
            }
            PutBlobContent::BlockFrom { source, copy_headers, copy_tags } => {
                let copies = (*copy_headers, *copy_tags);
                return self.put_from(&found, name, source, copies, new, (access, creates_only)).await;
            }
            PutBlobContent::Block(_) => return Err(ErrorReply::new(ErrorCode::InvalidInput)),
        };
        let written = put.map_err(|error| overwrite_error(error::engine_error(&error), creates_only))?;
        Ok(Reply::empty(201).with_written(written).with("x-ms-request-server-encrypted", "true"))
    }

    /// Finds a container where the caller may make or overwrite a blob.
    pub(super) async fn creatable(
        &self,
        container: &ContainerName,
        name: &BlobName,
        has_tags: bool,
    ) -> Result<Container, ErrorReply> {
        self.permit(&Need::create_blob(container.as_str(), name.as_str()))?;
        if has_tags {
            self.permit(&Need::tag_blob(container.as_str(), name.as_str(), None))?;
        }
        refuse_logs(container)?;
        self.find(container).await
    }

    /// What a write demands of what is there, with what the caller's token demands.
    pub(super) fn creating_access(&self, access: &Access) -> Result<(Access, bool), ErrorReply> {
        let (conditions, creates_only) = self.creating(access.conditions)?;
        Ok((Access { conditions, ..access.clone() }, creates_only))
    }
}

/// The logs are the service's own: clients read and delete them, and write none.
pub(super) fn refuse_logs(container: &ContainerName) -> Result<(), ErrorReply> {
    if container.as_str() == ContainerName::LOGS {
        return Err(ErrorReply::new(ErrorCode::AuthorizationFailure));
    }
    Ok(())
}
