//! Reads of blobs: their bytes, properties and metadata.

use super::answer::told_blob;
use super::permit::Public;
use super::upload::Summing;
use super::{Ask, access, blob_ref};
use crate::auth::Caller;
use crate::error;
use crate::http::storage_error_reply;
use crate::reply::{Reply, Streamed};
use bytes::Bytes;
use futures_util::stream;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{BlobProperties, BlobReject, Container, Content, OpenBlob};
use larimar_engine::{Engine, EngineError, Reject};
use larimar_model::blob::{BlobName, ContainerName, SnapshotTime};
use larimar_wire::blob::{BlobRead, GetBlob};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::sas::Need;
use std::io;
use std::ops::Range;

impl<E: Engine, B: ByteStore> Ask<'_, E, B> {
    pub(super) async fn get_blob(
        &self,
        container: &ContainerName,
        name: &BlobName,
        get: &GetBlob,
    ) -> Result<Reply, ErrorReply> {
        let container = self.readable(container, name, get.read.snapshot).await?;
        let at = blob_ref(&container, name);
        let opened = self.blobs.open(at, get.read.snapshot, get.range, &access(&get.read.guard), self.now()).await;
        let opened = match opened {
            Err(EngineError::Reject(Reject::Blob(BlobReject::InvalidRange { length }))) => {
                return Ok(self.outside(length));
            }
            other => other.map_err(|error| error::engine_error(&error))?,
        };
        let OpenBlob { properties, range, content } = opened;
        let reply = Reply::empty(200).with_blob(&properties, get.read.snapshot.is_some(), self.grant());
        let reply = match get.range {
            Some(_) => self.ranged(reply, &properties, &range, get, at).await?,
            None => reply.with_md5("content-md5", properties.content.md5),
        };
        let bytes = range.end - range.start;
        Ok(Reply { stream: Some(Streamed { pieces: Box::pin(pieces(content)), bytes }), ..reply })
    }

    /// The head of an answer with some of the bytes.
    async fn ranged(
        &self,
        reply: Reply,
        properties: &BlobProperties,
        range: &Range<u64>,
        get: &GetBlob,
        at: larimar_engine::blob::BlobRef<'_>,
    ) -> Result<Reply, ErrorReply> {
        let told = format!("bytes {}-{}/{}", range.start, range.end.saturating_sub(1), properties.length);
        let mut reply = Reply { status: 206, ..reply }
            .with("content-range", told)
            .with_md5("x-ms-blob-content-md5", properties.content.md5);
        if get.range_md5 {
            // The request's reader made sure that the range is short.
            let opened = self.blobs.open(at, get.read.snapshot, get.range, &access(&get.read.guard), self.now()).await;
            let mut content = opened.map_err(|error| error::engine_error(&error))?.content;
            let mut sums = Summing::new(true);
            while let Some(piece) = content.next().await.map_err(|fault| error::fault(&fault))? {
                sums.add(&piece);
            }
            reply = reply.with_md5("content-md5", sums.finish().md5);
        }
        Ok(reply)
    }

    /// The answer to a range that begins after the end.
    fn outside(&self, length: u64) -> Reply {
        let error = ErrorReply::new(ErrorCode::InvalidRange);
        storage_error_reply(&error, self.call.request_id, self.now())
            .with("x-ms-error-code", error.code.as_str())
            .with("content-range", format!("bytes */{length}"))
    }

    pub(super) async fn blob_properties(
        &self,
        container: &ContainerName,
        name: &BlobName,
        read: &BlobRead,
    ) -> Result<Reply, ErrorReply> {
        let properties = self.properties_of(container, name, read).await?;
        let is_snapshot = read.snapshot.is_some();
        Ok(Reply::empty(200)
            .with_blob(&properties, is_snapshot, self.grant())
            .with("content-length", properties.length)
            .with_md5("content-md5", properties.content.md5)
            .with_headers(|add| told_blob(&properties, is_snapshot).tier_headers(add)))
    }

    pub(super) async fn blob_metadata(
        &self,
        container: &ContainerName,
        name: &BlobName,
        read: &BlobRead,
    ) -> Result<Reply, ErrorReply> {
        let properties = self.properties_of(container, name, read).await?;
        let written = larimar_engine::blob::Written { last_modified: properties.last_modified };
        Ok(Reply::empty(200).with_written(written).with_metadata(&properties.metadata))
    }

    async fn properties_of(
        &self,
        container: &ContainerName,
        name: &BlobName,
        read: &BlobRead,
    ) -> Result<BlobProperties, ErrorReply> {
        let container = self.readable(container, name, read.snapshot).await?;
        let at = blob_ref(&container, name);
        let found = self.blobs.properties(at, read.snapshot, &access(&read.guard), self.now()).await;
        found.map_err(|error| error::engine_error(&error))
    }

    /// Finds a container whose blob the caller may read.
    pub(super) async fn readable(
        &self,
        container: &ContainerName,
        name: &BlobName,
        snapshot: Option<SnapshotTime>,
    ) -> Result<Container, ErrorReply> {
        let snapshot = snapshot.map(|snapshot| snapshot.to_string());
        let need = Need::read_blob(container.as_str(), name.as_str(), snapshot.as_deref());
        let is_stranger = matches!(self.call.caller, Caller::Anonymous);
        if !is_stranger {
            self.permit(&need)?;
        }
        let found = match self.find(container).await {
            Err(error) if is_stranger && error.code == ErrorCode::ContainerNotFound => {
                return Err(ErrorReply::new(ErrorCode::ResourceNotFound));
            }
            other => other?,
        };
        self.permit_read(&need, &found, Public::Read)?;
        Ok(found)
    }
}

/// The bytes of a blob as a body. One that cannot be read to its end ends the connection.
fn pieces<B: ByteStore>(content: Content<B>) -> impl stream::Stream<Item = io::Result<Bytes>> + Send {
    stream::unfold(Some(content), async |content| {
        let mut content = content?;
        match content.next().await {
            Ok(Some(piece)) => Some((Ok(piece), Some(content))),
            Ok(None) => None,
            Err(fault) => {
                tracing::error!(%fault, "a blob could not be read to its end");
                Some((Err(io::Error::other(fault.to_string())), None))
            }
        }
    })
}
