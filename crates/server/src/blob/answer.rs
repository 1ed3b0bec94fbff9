//! What the engine knows of blobs and containers, in the words of the wire, and the headers that answers share.

use super::BlobCall;
use super::upload::Sums;
use crate::reply::Reply;
use larimar_engine::blob::{BlobProperties, Container, Leased, Written};
use larimar_wire::blob::{blob_headers, format_md5};
use larimar_wire::sas::Grant;
use larimar_wire::signature::http_date;

/// The properties of a container as the wire tells them.
pub(super) fn container_properties(container: &Container) -> larimar_wire::blob::ContainerProperties<'_> {
    larimar_wire::blob::ContainerProperties {
        modified: container.last_modified,
        etag: container.etag(),
        lease: container.lease,
        access: container.public_access,
        metadata: &container.metadata,
    }
}

/// Which checksums the answer to a write carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToldSums {
    Both,
    Md5,
    Crc64,
}

impl<E, B> BlobCall<'_, E, B> {
    /// Whether answers may carry CRC-64: before 2019-02-02 there was only MD5 (recorded).
    pub(super) fn knows_crc64(&self) -> bool {
        self.call.head.version().is_none_or(|version| version >= "2019-02-02")
    }

    /// The checksum of a write that was checked against the client's MD5, or not: the MD5 then, and CRC-64 otherwise
    /// (recorded for Put Block, Append Block, Put Page and their From-URL forms).
    pub(super) fn told_sum(&self, is_checked_by_md5: bool) -> ToldSums {
        if is_checked_by_md5 || !self.knows_crc64() { ToldSums::Md5 } else { ToldSums::Crc64 }
    }

    /// The checksums of Put Blob, which are both (recorded).
    pub(super) fn told_sums(&self) -> ToldSums {
        if self.knows_crc64() { ToldSums::Both } else { ToldSums::Md5 }
    }
}

impl Reply {
    /// With what a write tells.
    pub(super) fn with_written(self, written: Written) -> Self {
        self.with("etag", written.etag().to_string()).with("last-modified", http_date(written.last_modified))
    }

    /// With checksums of the bytes that a write took.
    pub(super) fn with_sums(self, sums: &Sums, told: ToldSums) -> Self {
        let with_md5 = |reply: Self| reply.with_md5("content-md5", sums.md5.as_ref().map(<[u8; 16]>::as_slice));
        let with_crc64 = |reply: Self| reply.with("x-ms-content-crc64", sums.crc64_text());
        match told {
            ToldSums::Both => with_crc64(with_md5(self)),
            ToldSums::Md5 => with_md5(self),
            ToldSums::Crc64 => with_crc64(self),
        }
    }

    /// With an MD5 sum, if there is one.
    pub(super) fn with_md5(self, name: &str, md5: Option<&[u8]>) -> Self {
        self.with_some(name, md5.map(format_md5))
    }

    /// With what a lease operation tells.
    pub(super) fn with_leased(self, leased: Leased) -> Self {
        self.with_some("x-ms-lease-id", leased.id.map(|id| id.to_string()))
            .with_some("x-ms-lease-time", leased.seconds_left)
    }

    /// With what everybody may know of a container.
    pub(super) fn with_container(self, container: &Container) -> Self {
        self.with_headers(|add| container_properties(container).headers(add))
    }

    /// With what everybody may know of a blob, but for what depends on the bytes that are sent. What a token says comes
    /// in the place of the blob's own.
    pub(super) fn with_blob(self, blob: &BlobProperties, is_snapshot: bool, grant: Option<&Grant>) -> Self {
        let overrides = grant.and_then(|grant| grant.overrides.as_deref());
        self.with_headers(|add| blob_headers(blob, is_snapshot, overrides, add))
    }

    /// With the headers that `tell` hands over.
    pub(super) fn with_headers(self, tell: impl FnOnce(&mut dyn FnMut(&str, &str))) -> Self {
        let mut reply = Some(self);
        tell(&mut |name, value| reply = reply.take().map(|reply| reply.with(name, value)));
        reply.expect("each header gives the answer back")
    }
}
