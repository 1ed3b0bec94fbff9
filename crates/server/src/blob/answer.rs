//! The headers that responses of the Blob service share.

use super::BlobCall;
use super::upload::Checksums;
use crate::reply::Reply;
use larimar_engine::blob::{BlobProperties, Container, Leased, Written};
use larimar_wire::blob::{blob_headers, format_md5};
use larimar_wire::sas::Grant;
use larimar_wire::signature::http_date;

/// The properties of a container, for the wire.
pub(super) fn container_properties(container: &Container) -> larimar_wire::blob::ContainerProperties<'_> {
    larimar_wire::blob::ContainerProperties {
        modified: container.last_modified,
        etag: container.etag(),
        lease: container.lease,
        access: container.public_access,
        metadata: &container.metadata,
    }
}

/// The checksums in the response to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyChecksums {
    Both,
    Md5,
    Crc64,
}

impl<E, B> BlobCall<'_, E, B> {
    /// Whether the client's version has CRC-64: before 2019-02-02 there was only MD5 (recorded).
    pub(super) fn has_crc64(&self) -> bool {
        self.call.head.is_since("2019-02-02")
    }

    /// The checksum in the response to a write: MD5 if the client sent one, otherwise CRC-64 (recorded for Put Block,
    /// Append Block, Put Page and their From-URL forms).
    pub(super) fn reply_checksum(&self, is_checked_by_md5: bool) -> ReplyChecksums {
        if is_checked_by_md5 || !self.has_crc64() { ReplyChecksums::Md5 } else { ReplyChecksums::Crc64 }
    }

    /// The checksums in the response of Put Blob: both (recorded).
    pub(super) fn both_checksums(&self) -> ReplyChecksums {
        if self.has_crc64() { ReplyChecksums::Both } else { ReplyChecksums::Md5 }
    }
}

impl Reply {
    /// With the etag and the time of a write.
    pub(super) fn with_written(self, written: Written) -> Self {
        self.with("etag", written.etag().to_string()).with("last-modified", http_date(written.last_modified))
    }

    /// With checksums of the bytes that were written.
    pub(super) fn with_checksums(self, sums: &Checksums, checksums: ReplyChecksums) -> Self {
        let with_md5 = |reply: Self| reply.with_md5("content-md5", sums.md5.as_ref().map(<[u8; 16]>::as_slice));
        let with_crc64 = |reply: Self| reply.with("x-ms-content-crc64", sums.crc64_text());
        match checksums {
            ReplyChecksums::Both => with_crc64(with_md5(self)),
            ReplyChecksums::Md5 => with_md5(self),
            ReplyChecksums::Crc64 => with_crc64(self),
        }
    }

    /// With an MD5, if there is one.
    pub(super) fn with_md5(self, name: &str, md5: Option<&[u8]>) -> Self {
        self.with_some(name, md5.map(format_md5))
    }

    /// With the result of a lease operation.
    pub(super) fn with_leased(self, leased: Leased) -> Self {
        self.with_some("x-ms-lease-id", leased.id.map(|id| id.to_string()))
            .with_some("x-ms-lease-time", leased.seconds_left)
    }

    /// With the properties of a container.
    pub(super) fn with_container(self, container: &Container) -> Self {
        self.with_headers(|add| container_properties(container).headers(add))
    }

    /// With the properties of a blob, except those that depend on the range that is sent. The headers that a signature
    /// sets replace the blob's own.
    pub(super) fn with_blob(self, blob: &BlobProperties, is_snapshot: bool, grant: Option<&Grant>) -> Self {
        let overrides = grant.and_then(|grant| grant.overrides.as_deref());
        self.with_headers(|add| blob_headers(blob, is_snapshot, overrides, add))
    }

    /// With the headers that `write` passes to its argument.
    pub(super) fn with_headers(self, write: impl FnOnce(&mut dyn FnMut(&str, &str))) -> Self {
        let mut reply = Some(self);
        write(&mut |name, value| reply = reply.take().map(|reply| reply.with(name, value)));
        reply.expect("each header gives the answer back")
    }
}
