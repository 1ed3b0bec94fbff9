//! Reads of blobs: their bytes, properties and metadata.

use super::BlobCall;
use super::answer::ReplyChecksums;
use super::upload::ChecksumBuilder;
use crate::auth::Caller;
use crate::error::Result;
use crate::http::storage_error_reply;
use crate::in_flight::{Held, Share, UNCOUNTED_BYTES, counted_piece};
use crate::reply::{Reply, Streamed};
use crate::yielding::Yielder;
use bytes::Bytes;
use futures_util::stream;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{BlobProperties, BlobRef, BlobReject, Content, OpenBlob};
use larimar_engine::{Engine, EngineError, Reject};
use larimar_model::limits;
use larimar_wire::blob::{BlobRead, GetBlob, RangeChecksum, tier_headers};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::sas::Grant;
use std::io;
use std::ops::Range;
use std::time::Duration;
use tokio::sync::oneshot;

impl<E: Engine, B: ByteStore> BlobCall<'_, E, B> {
    pub(super) async fn get_blob(&self, at: BlobRef<'_>, get: &GetBlob) -> Result<Reply> {
        let opened = self.blobs.open(at, get.read.snapshot, get.range, &get.read.access, self.now()).await;
        let opened = match opened {
            Err(EngineError::Reject(Reject::Blob(BlobReject::InvalidRange { length }))) => {
                return Ok(self.range_not_satisfiable(length));
            }
            other => other?,
        };
        let OpenBlob { properties, range, content } = opened;
        let reply = Reply::empty(200).with_blob(&properties, get.read.snapshot.is_some(), self.grant());
        let bytes = range.end - range.start;
        let reply = match get.range {
            Some(_) => ranged(reply, &properties, &range),
            None => reply.with_md5("content-md5", properties.content.md5.as_deref()),
        };
        if let Some(sum) = get.range_checksum {
            // The length of an open range is known only now.
            if bytes > limits::RANGE_SUM_BYTES_MAX {
                return Err(ErrorReply::of_header(ErrorCode::InvalidHeaderValue, sum.header(), "true").into());
            }
            let held = self.call.hold(bytes).await?;
            return range_with_checksum(Reply { held, ..reply }, content, bytes, sum).await;
        }
        // Memory for the first piece is taken before the response starts, while the request can still be refused.
        let share = self.call.share;
        let first = Some(share.take_piece(bytes, None).await?);
        let pieces = pieces(Sending { content, left: bytes, share: share.clone(), first, last: None });
        Ok(Reply { stream: Some(Streamed { pieces: Box::pin(pieces), bytes }), ..reply })
    }

    /// The response to a range that starts after the end of the blob.
    fn range_not_satisfiable(&self, length: u64) -> Reply {
        let error = ErrorReply::new(ErrorCode::InvalidRange);
        storage_error_reply(&error, self.call.request_id, self.now())
            .with("x-ms-error-code", error.code.as_str())
            .with("content-range", format!("bytes */{length}"))
    }

    pub(super) async fn blob_properties(&self, at: BlobRef<'_>, read: &BlobRead) -> Result<Reply> {
        let properties = self.properties_of(at, read).await?;
        let is_snapshot = read.snapshot.is_some();
        Ok(Reply::empty(200)
            .with_blob(&properties, is_snapshot, self.grant())
            .with("content-length", properties.length)
            .with_md5("content-md5", properties.content.md5.as_deref())
            .with_headers(|add| tier_headers(&properties, add)))
    }

    pub(super) async fn blob_metadata(&self, at: BlobRef<'_>, read: &BlobRead) -> Result<Reply> {
        let properties = self.properties_of(at, read).await?;
        let written = larimar_engine::blob::Written { last_modified: properties.last_modified };
        Ok(Reply::empty(200).with_written(written).with_metadata(&properties.metadata))
    }

    async fn properties_of(&self, at: BlobRef<'_>, read: &BlobRead) -> Result<BlobProperties> {
        let found = self.blobs.properties(at, read.snapshot, &read.access, self.now()).await;
        Ok(found?)
    }

    /// The caller's signature, if the request has one.
    const fn grant(&self) -> Option<&Grant> {
        match &self.call.caller {
            Caller::Guest(guest) => Some(guest.grant()),
            Caller::Owner | Caller::Anonymous => None,
        }
    }
}

/// The head of a partial response.
fn ranged(reply: Reply, properties: &BlobProperties, range: &Range<u64>) -> Reply {
    let content_range = format!("bytes {}-{}/{}", range.start, range.end.saturating_sub(1), properties.length);
    Reply { status: 206, ..reply }
        .with("content-range", content_range)
        .with_md5("x-ms-blob-content-md5", properties.content.md5.as_deref())
}

/// A response with a short range and its checksum. Both come from one read, as the blob may change meanwhile.
async fn range_with_checksum<B: ByteStore>(
    reply: Reply,
    mut content: Content<B>,
    bytes: u64,
    sum: RangeChecksum,
) -> Result<Reply> {
    let (mut sums, mut body) = (ChecksumBuilder::new(sum == RangeChecksum::Md5), Vec::with_capacity(bytes as usize));
    let mut yielder = Yielder::default();
    while let Some(piece) = content.next().await? {
        sums.add(&piece);
        body.extend_from_slice(&piece);
        yielder.after(piece.len()).await;
    }
    let checksums = match sum {
        RangeChecksum::Md5 => ReplyChecksums::Md5,
        RangeChecksum::Crc64 => ReplyChecksums::Crc64,
    };
    Ok(Reply { body, ..reply.with_checksums(&sums.finish(), checksums) })
}

/// A blob that is being sent to a client.
struct Sending<B> {
    content: Content<B>,
    /// The number of bytes not yet read.
    left: u64,
    share: Share,
    /// Memory for the first piece.
    first: Option<Held>,
    /// Ready when the last piece has been sent.
    last: Option<oneshot::Receiver<()>>,
}

impl<B: ByteStore> Sending<B> {
    /// Reads the next piece after the previous one was sent, so that a slow client holds one piece at most.
    async fn next(&mut self) -> std::result::Result<Option<Bytes>, String> {
        if let Some(last) = self.last.take() {
            // The sender is only ever dropped.
            let _ = last.await;
        }
        let mut held = match self.first.take() {
            Some(first) => first,
            None => {
                let taken = self.share.take_piece(self.left, Some(PIECE_WAIT)).await;
                taken.map_err(|_| "there was no memory for the next piece".to_owned())?
            }
        };
        let piece = self.content.next_within(held.bytes().max(UNCOUNTED_BYTES)).await;
        let piece = piece.map_err(|fault| fault.to_string())?;
        Ok(piece.map(|piece| {
            self.left = self.left.saturating_sub(piece.len() as u64);
            held.try_resize(held.bytes().min(piece.len() as u64));
            let (piece, sent) = counted_piece(piece, held);
            self.last = Some(sent);
            piece
        }))
    }
}

/// The bytes of a blob as a stream. A read error closes the connection.
fn pieces<B: ByteStore>(sending: Sending<B>) -> impl stream::Stream<Item = io::Result<Bytes>> + Send {
    stream::unfold(Some(sending), async |sending| {
        let mut sending = sending?;
        match sending.next().await {
            Ok(Some(piece)) => Some((Ok(piece), Some(sending))),
            Ok(None) => None,
            Err(reason) => {
                tracing::error!(reason, "reading a blob failed while it was being sent");
                Some((Err(io::Error::other(reason)), None))
            }
        }
    })
}

/// How long a response that has started waits for memory. It holds none meanwhile.
const PIECE_WAIT: Duration = Duration::from_secs(60);
