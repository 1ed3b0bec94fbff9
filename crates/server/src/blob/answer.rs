//! What the engine knows of blobs and containers, in the words of the wire, and the headers that answers share.

use super::upload::Sums;
use crate::reply::Reply;
use larimar_engine::blob::{BlobProperties, Container, Leased, Written};
use larimar_model::blob::BlobType;
use larimar_wire::blob::format_md5;
use larimar_wire::sas::Grant;
use larimar_wire::signature::http_date;

/// The properties of a blob as the wire tells them.
pub(super) fn told_blob(blob: &BlobProperties, is_snapshot: bool) -> larimar_wire::blob::BlobProperties<'_> {
    larimar_wire::blob::BlobProperties {
        kind: blob.kind,
        created: blob.created,
        modified: blob.last_modified,
        etag: blob.etag(),
        length: blob.length,
        content: &blob.content,
        sequence_number: (blob.kind == BlobType::Page).then_some(blob.sequence_number),
        appended: (blob.kind == BlobType::Append).then_some(blob.appended_blocks),
        tier: blob.tier.map(|(tier, changed)| (tier, Some(changed))),
        lease: (!is_snapshot).then_some(blob.lease),
        copy: blob.copy.as_ref(),
        tag_count: blob.tags.len(),
        metadata: &blob.metadata,
    }
}

/// The properties of a container as the wire tells them.
pub(super) fn told_container(container: &Container) -> larimar_wire::blob::ContainerProperties<'_> {
    larimar_wire::blob::ContainerProperties {
        modified: container.last_modified,
        etag: container.etag(),
        lease: container.lease,
        access: container.public_access,
        metadata: &container.metadata,
    }
}

impl Reply {
    /// With what a write tells.
    pub(super) fn with_written(self, written: Written) -> Self {
        self.with("etag", written.etag().to_string()).with("last-modified", http_date(written.last_modified))
    }

    /// With the checksums of a body that was taken.
    pub(super) fn with_sums(self, sums: &Sums) -> Self {
        self.with_md5("content-md5", sums.md5).with("x-ms-content-crc64", sums.crc64_text())
    }

    /// With an MD5 sum, if there is one.
    pub(super) fn with_md5(self, name: &str, md5: Option<[u8; 16]>) -> Self {
        self.with_some(name, md5.map(|md5| format_md5(&md5)))
    }

    /// With what a lease operation tells.
    pub(super) fn with_leased(self, leased: Leased) -> Self {
        self.with_some("x-ms-lease-id", leased.id.map(|id| id.to_string()))
            .with_some("x-ms-lease-time", leased.seconds_left)
    }

    /// With what everybody may know of a container.
    pub(super) fn with_container(self, container: &Container) -> Self {
        self.with_headers(|add| told_container(container).headers(add))
    }

    /// With what everybody may know of a blob, but for what depends on the bytes that are sent. What a token says comes
    /// in the place of the blob's own.
    pub(super) fn with_blob(self, blob: &BlobProperties, is_snapshot: bool, grant: Option<&Grant>) -> Self {
        let overrides = grant.and_then(|grant| grant.overrides.as_deref());
        self.with_headers(|add| told_blob(blob, is_snapshot).headers(overrides, add))
    }

    /// With the headers that `tell` hands over.
    pub(super) fn with_headers(self, tell: impl FnOnce(&mut dyn FnMut(&str, &str))) -> Self {
        let mut reply = Some(self);
        tell(&mut |name, value| reply = reply.take().map(|reply| reply.with(name, value)));
        reply.expect("each header gives the answer back")
    }
}
