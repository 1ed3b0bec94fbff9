//! Put Blob of every type.

use super::BlobCall;
use crate::body::RequestBody;
use crate::error::{Failure, Result};
use crate::reply::Reply;
use larimar_engine::Engine;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{AccessConditions, BlobRef, Written};
use larimar_model::blob::ETagCondition;
use larimar_wire::blob::{BodyChecks, PutBlob, PutBlobContent};
use larimar_wire::error_code::ErrorCode;

impl<E: Engine, B: ByteStore> BlobCall<'_, E, B> {
    pub(super) async fn put_blob(&self, at: BlobRef<'_>, put: &PutBlob, body: &mut RequestBody) -> Result<Reply> {
        let (access, creates_only) = self.creating_access(&put.access)?;
        let written = match &put.content {
            PutBlobContent::Block(checks) => {
                return self.put_block_blob(at, put, (checks, body), (access, creates_only)).await;
            }
            PutBlobContent::BlockFrom { source, copy_headers, copy_tags } => {
                let copies = (*copy_headers, *copy_tags);
                return self.put_from(at, source, copies, put.blob.clone(), (access, creates_only)).await;
            }
            PutBlobContent::Append => self.blobs.put_append_blob(at, &put.blob, &access, self.now()).await,
            PutBlobContent::Page { length, sequence_number } => {
                self.blobs.put_page_blob(at, (*length, *sequence_number), &put.blob, &access, self.now()).await
            }
        };
        let written = written.map_err(|error| overwrite_error(error, creates_only))?;
        Ok(put_reply(written))
    }

    async fn put_block_blob(
        &self,
        at: BlobRef<'_>,
        put: &PutBlob,
        (checks, body): (&BodyChecks, &mut RequestBody),
        (access, creates_only): (AccessConditions, bool),
    ) -> Result<Reply> {
        let received = self.receive(at, body, checks, true).await?;
        let mut new = put.blob.clone();
        // The computed MD5 is stored, unless the client gave one for readers.
        new.content.md5 = new.content.md5.or(received.sums.md5.map(Vec::from));
        let written = self.blobs.put_block_blob(at, received.extent, &new, &access, self.now()).await;
        let written = written.map_err(|error| overwrite_error(error, creates_only))?;
        Ok(put_reply(written).with_checksums(&received.sums, self.both_checksums()))
    }

    /// The conditions of a write that may replace a blob, and whether the caller's signature allows only to create one:
    /// it has no `w`.
    pub(super) fn creating_access(&self, access: &AccessConditions) -> Result<(AccessConditions, bool)> {
        let mut access = access.clone();
        let may_overwrite = self.call.caller.permits_overwrite()?;
        if !may_overwrite {
            access.conditions.if_none_match = Some(ETagCondition::Any);
        }
        Ok((access, !may_overwrite))
    }
}

fn put_reply(written: Written) -> Reply {
    Reply::empty(201).with_written(written).with("x-ms-request-server-encrypted", "true")
}

/// The error of a signature that may only create, if there is a blob already.
pub(super) fn overwrite_error(error: impl Into<Failure>, creates_only: bool) -> Failure {
    match error.into() {
        Failure::Reply(reply) if creates_only && reply.code == ErrorCode::BlobAlreadyExists => {
            ErrorCode::UnauthorizedBlobOverwrite.into()
        }
        error => error,
    }
}
