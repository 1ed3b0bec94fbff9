//! The properties of blobs and containers in responses: as headers, and as XML for `list_xml.rs`.

use super::headers::format_md5;
use crate::sas::ResponseOverrides;
use crate::signature::http_date;
use crate::xml;
use larimar_model::blob::{
    AccessTier, BlobETag, BlobProperties, BlobType, ContentHeaders, CopyInfo, LeaseView, PublicAccess,
};
use larimar_model::{Metadata, Timestamp};

/// Passes the headers of Get Blob and Get Blob Properties to `add`, except `Content-Length`, `Content-MD5` and
/// `Content-Range`, which depend on the range that is read. The headers that a SAS sets replace the blob's own. Snapshots
/// have no lease.
pub fn blob_headers(
    blob: &BlobProperties,
    is_snapshot: bool,
    overrides: Option<&ResponseOverrides>,
    mut add: impl FnMut(&str, &str),
) {
    content_headers(&blob.content, overrides, &mut add);
    add("Last-Modified", &http_date(blob.last_modified));
    add("ETag", &blob.etag().to_string());
    add("Accept-Ranges", "bytes");
    add("x-ms-creation-time", &http_date(blob.created));
    add("x-ms-blob-type", blob.kind.as_str());
    if !is_snapshot {
        lease_headers(blob.lease, &mut add);
    }
    add("x-ms-server-encrypted", "true");
    match blob.kind {
        BlobType::Page => add("x-ms-blob-sequence-number", &blob.sequence_number.to_string()),
        BlobType::Append => add("x-ms-blob-committed-block-count", &blob.appended_blocks.to_string()),
        BlobType::Block => {}
    }
    if blob.is_sealed {
        add("x-ms-blob-sealed", "true");
    }
    if !blob.tags.is_empty() {
        add("x-ms-tag-count", &blob.tags.len().to_string());
    }
    if let Some(copy) = &blob.copy {
        copy_headers(copy, is_copy_pending(blob), &mut add);
    }
    metadata_headers(&blob.metadata, &mut add);
}

/// Passes the headers that only Get Blob Properties has to `add`.
pub fn tier_headers(blob: &BlobProperties, mut add: impl FnMut(&str, &str)) {
    let Some((tier, is_inferred)) = reported_tier(blob) else { return };
    add("x-ms-access-tier", tier.as_str());
    if is_inferred {
        add("x-ms-access-tier-inferred", "true");
    }
    if let Some(rehydration) = blob.rehydration {
        add("x-ms-archive-status", &archive_status(rehydration.to));
        add("x-ms-rehydrate-priority", rehydration.priority.as_str());
    }
    if let Some((_, changed)) = blob.tier {
        add("x-ms-access-tier-change-time", &http_date(changed));
    }
}

/// Appends the `Properties` element of a listing.
pub(super) fn write_blob(out: &mut Vec<u8>, blob: &BlobProperties, is_snapshot: bool, with_copy: bool) {
    xml::write_element(out, "Properties", |out| {
        let content = &blob.content;
        let content_type = content.content_type.as_deref().unwrap_or(ContentHeaders::TYPE_DEFAULT);
        let md5 = content.md5.as_deref().map(format_md5);
        xml::write_text(out, "Creation-Time", &http_date(blob.created));
        xml::write_text(out, "Last-Modified", &http_date(blob.last_modified));
        xml::write_text(out, "Etag", &blob.etag().to_unquoted());
        xml::write_text(out, "Content-Length", itoa::Buffer::new().format(blob.length));
        xml::write_lossy_text(out, "Content-Type", content_type);
        xml::write_lossy_text(out, "Content-Encoding", content.encoding.as_deref().unwrap_or(""));
        xml::write_lossy_text(out, "Content-Language", content.language.as_deref().unwrap_or(""));
        xml::write_text(out, "Content-MD5", md5.as_deref().unwrap_or(""));
        xml::write_lossy_text(out, "Cache-Control", content.cache_control.as_deref().unwrap_or(""));
        xml::write_lossy_text(out, "Content-Disposition", content.disposition.as_deref().unwrap_or(""));
        if blob.kind == BlobType::Page {
            xml::write_text(out, "x-ms-blob-sequence-number", itoa::Buffer::new().format(blob.sequence_number));
        }
        xml::write_text(out, "BlobType", blob.kind.as_str());
        write_tier(out, blob);
        if !is_snapshot {
            write_lease(out, blob.lease);
        }
        if let Some(copy) = blob.copy.as_ref().filter(|_| with_copy) {
            write_copy(out, copy, is_copy_pending(blob));
        }
        xml::write_text(out, "ServerEncrypted", "true");
        if blob.is_sealed {
            xml::write_text(out, "Sealed", "true");
        }
        if !blob.tags.is_empty() {
            xml::write_text(out, "TagCount", itoa::Buffer::new().format(blob.tags.len()));
        }
    });
}

fn write_tier(out: &mut Vec<u8>, blob: &BlobProperties) {
    let Some((tier, is_inferred)) = reported_tier(blob) else { return };
    xml::write_text(out, "AccessTier", tier.as_str());
    if is_inferred {
        xml::write_text(out, "AccessTierInferred", "true");
    }
    if let Some(rehydration) = blob.rehydration {
        xml::write_text(out, "ArchiveStatus", &archive_status(rehydration.to));
        xml::write_text(out, "RehydratePriority", rehydration.priority.as_str());
    }
    if let Some((_, changed)) = blob.tier {
        xml::write_text(out, "AccessTierChangeTime", &http_date(changed));
    }
}

/// Whether the copy that made the blob is pending: its source is being rehydrated.
fn is_copy_pending(blob: &BlobProperties) -> bool {
    blob.rehydration.is_some_and(|rehydration| rehydration.is_copy)
}

/// The tier, and whether it is inferred because none was set.
const fn reported_tier(blob: &BlobProperties) -> Option<(AccessTier, bool)> {
    match (blob.tier, blob.kind) {
        (Some((tier, _)), _) => Some((tier, false)),
        (None, BlobType::Block) => Some((AccessTier::HOT, true)),
        (None, BlobType::Append | BlobType::Page) => None,
    }
}

fn content_headers(content: &ContentHeaders, overrides: Option<&ResponseOverrides>, add: &mut impl FnMut(&str, &str)) {
    let content_type = content.content_type.as_deref().unwrap_or(ContentHeaders::TYPE_DEFAULT);
    let of = |pick: fn(&ResponseOverrides) -> &Option<String>| overrides.and_then(|over| pick(over).as_deref());
    for (name, over, own) in [
        ("Content-Type", of(|over| &over.content_type), Some(content_type)),
        ("Content-Encoding", of(|over| &over.content_encoding), content.encoding.as_deref()),
        ("Content-Language", of(|over| &over.content_language), content.language.as_deref()),
        ("Content-Disposition", of(|over| &over.content_disposition), content.disposition.as_deref()),
        ("Cache-Control", of(|over| &over.cache_control), content.cache_control.as_deref()),
    ] {
        if let Some(value) = over.or(own).filter(|value| !value.is_empty()) {
            add(name, value);
        }
    }
}

fn copy_headers(copy: &CopyInfo, is_pending: bool, add: &mut impl FnMut(&str, &str)) {
    add("x-ms-copy-id", &copy.id.to_string());
    add("x-ms-copy-status", if is_pending { CopyInfo::PENDING } else { CopyInfo::STATUS });
    add("x-ms-copy-source", &copy.source);
    if is_pending {
        add("x-ms-copy-progress", &format!("0/{}", copy.length));
    } else {
        add("x-ms-copy-progress", &format!("{0}/{0}", copy.length));
        add("x-ms-copy-completion-time", &http_date(copy.completed));
    }
    if let Some(incremental) = &copy.incremental {
        add("x-ms-incremental-copy", "true");
        add("x-ms-copy-destination-snapshot", &incremental.snapshot.to_string());
    }
}

/// The archive status of a blob that is being rehydrated to a tier.
fn archive_status(to: AccessTier) -> String {
    format!("rehydrate-pending-to-{}", to.as_str().to_ascii_lowercase())
}

/// The properties of a container.
#[derive(Clone, Copy, Debug)]
pub struct ContainerProperties<'a> {
    /// When it was changed.
    pub modified: Timestamp,
    /// Its etag.
    pub etag: BlobETag,
    /// Its lease.
    pub lease: LeaseView,
    /// What callers without credentials may do.
    pub access: PublicAccess,
    /// Its metadata.
    pub metadata: &'a Metadata,
}

impl ContainerProperties<'_> {
    /// Passes the headers of Get Container Properties to `add`.
    pub fn headers(&self, mut add: impl FnMut(&str, &str)) {
        add("Last-Modified", &http_date(self.modified));
        add("ETag", &self.etag.to_string());
        lease_headers(self.lease, &mut add);
        if let Some(access) = self.access.as_str() {
            add("x-ms-blob-public-access", access);
        }
        add("x-ms-has-immutability-policy", "false");
        add("x-ms-has-legal-hold", "false");
        add("x-ms-default-encryption-scope", ENCRYPTION_SCOPE);
        add("x-ms-deny-encryption-scope-override", "false");
        metadata_headers(self.metadata, &mut add);
    }

    /// Appends the `Properties` element of a listing.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        xml::write_element(out, "Properties", |out| {
            xml::write_text(out, "Last-Modified", &http_date(self.modified));
            xml::write_text(out, "Etag", &self.etag.to_string());
            write_lease(out, self.lease);
            if let Some(access) = self.access.as_str() {
                xml::write_text(out, "PublicAccess", access);
            }
            xml::write_text(out, "DefaultEncryptionScope", ENCRYPTION_SCOPE);
            xml::write_text(out, "DenyEncryptionScopeOverride", "false");
            xml::write_text(out, "HasImmutabilityPolicy", "false");
            xml::write_text(out, "HasLegalHold", "false");
        });
    }
}

fn lease_headers(lease: LeaseView, add: &mut impl FnMut(&str, &str)) {
    add("x-ms-lease-status", lease.state.status().as_str());
    add("x-ms-lease-state", lease.state.as_str());
    if let Some(duration) = lease.duration {
        add("x-ms-lease-duration", duration.as_str());
    }
}

fn metadata_headers(metadata: &Metadata, add: &mut impl FnMut(&str, &str)) {
    for (name, value) in metadata.iter() {
        add(&format!("x-ms-meta-{name}"), value);
    }
}

pub(super) fn write_lease(out: &mut Vec<u8>, lease: LeaseView) {
    xml::write_text(out, "LeaseStatus", lease.state.status().as_str());
    xml::write_text(out, "LeaseState", lease.state.as_str());
    if let Some(duration) = lease.duration {
        xml::write_text(out, "LeaseDuration", duration.as_str());
    }
}

fn write_copy(out: &mut Vec<u8>, copy: &CopyInfo, is_pending: bool) {
    xml::write_text(out, "CopyId", &copy.id.to_string());
    xml::write_text(out, "CopyStatus", if is_pending { CopyInfo::PENDING } else { CopyInfo::STATUS });
    xml::write_lossy_text(out, "CopySource", &copy.source);
    if is_pending {
        xml::write_text(out, "CopyProgress", &format!("0/{}", copy.length));
        return;
    }
    xml::write_text(out, "CopyProgress", &format!("{0}/{0}", copy.length));
    xml::write_text(out, "CopyCompletionTime", &http_date(copy.completed));
    if let Some(incremental) = &copy.incremental {
        xml::write_text(out, "IncrementalCopy", "true");
        xml::write_text(out, "CopyDestinationSnapshot", &incremental.snapshot.to_string());
    }
}

/// The default encryption scope.
const ENCRYPTION_SCOPE: &str = "$account-encryption-key";

#[cfg(test)]
mod tests {
    use super::*;
    use larimar_model::Guid;
    use larimar_model::blob::{LeaseDuration, LeaseState, Tags};

    fn time(text: &str) -> Timestamp {
        Timestamp::parse(text).expect("a time")
    }

    fn copied() -> CopyInfo {
        CopyInfo {
            id: Guid::parse("5974b586-0df3-4e2d-ad0c-18e3892bfca2").expect("a Guid"),
            source: "http://h/c/b".to_owned(),
            length: 7,
            incremental: None,
            completed: time("2022-05-06T00:31:05Z"),
        }
    }

    fn page_blob() -> BlobProperties {
        let mut tags = Tags::new();
        tags.insert("t", "u").expect("a tag");
        tags.insert("v", "w").expect("a tag");
        BlobProperties {
            kind: BlobType::Page,
            created: time("2022-05-05T00:00:00Z"),
            last_modified: time("2022-05-06T00:31:05.0707164Z"),
            length: 7,
            content: ContentHeaders::default(),
            metadata: Metadata::new(),
            tags,
            tier: None,
            rehydration: None,
            lease: LeaseView { state: LeaseState::Leased, duration: Some(LeaseDuration::Infinite) },
            copy: Some(copied()),
            sequence_number: 3,
            is_sealed: false,
            appended_blocks: 0,
            is_uncommitted: false,
        }
    }

    #[test]
    fn x2_headers_tell_all_that_there_is() {
        let mut metadata = Metadata::new();
        metadata.insert("a", "1").expect("metadata");
        let content = ContentHeaders {
            content_type: Some("text/plain".to_owned()),
            cache_control: Some("no-cache".to_owned()),
            ..ContentHeaders::default()
        };
        let overrides = ResponseOverrides { content_type: Some("text/x".to_owned()), ..ResponseOverrides::default() };
        let mut headers = Vec::new();
        let blob = BlobProperties { content, metadata, ..page_blob() };
        blob_headers(&blob, false, Some(&overrides), |name, value| headers.push(format!("{name}: {value}")));
        tier_headers(&blob, |name, value| headers.push(format!("{name}: {value}")));
        assert_eq!(
            headers,
            [
                "Content-Type: text/x",
                "Cache-Control: no-cache",
                "Last-Modified: Fri, 06 May 2022 00:31:05 GMT",
                "ETag: \"0x8DA2EF7B4C134DC\"",
                "Accept-Ranges: bytes",
                "x-ms-creation-time: Thu, 05 May 2022 00:00:00 GMT",
                "x-ms-blob-type: PageBlob",
                "x-ms-lease-status: locked",
                "x-ms-lease-state: leased",
                "x-ms-lease-duration: infinite",
                "x-ms-server-encrypted: true",
                "x-ms-blob-sequence-number: 3",
                "x-ms-tag-count: 2",
                "x-ms-copy-id: 5974b586-0df3-4e2d-ad0c-18e3892bfca2",
                "x-ms-copy-status: success",
                "x-ms-copy-source: http://h/c/b",
                "x-ms-copy-progress: 7/7",
                "x-ms-copy-completion-time: Fri, 06 May 2022 00:31:05 GMT",
                "x-ms-meta-a: 1",
            ]
        );
    }

    #[test]
    fn a_tier_that_nobody_gave_is_inferred() {
        let tiers = |tier| {
            let mut headers = Vec::new();
            let blob = BlobProperties { kind: BlobType::Block, tier, ..page_blob() };
            tier_headers(&blob, |name, value| headers.push(format!("{name}: {value}")));
            headers
        };
        assert_eq!(
            tiers(Some(("Cool".parse().expect("a tier"), page_blob().last_modified))),
            ["x-ms-access-tier: Cool", "x-ms-access-tier-change-time: Fri, 06 May 2022 00:31:05 GMT"]
        );
        assert_eq!(tiers(None), ["x-ms-access-tier: Hot", "x-ms-access-tier-inferred: true"]);
    }

    #[test]
    fn headers_of_a_container() {
        let metadata = Metadata::new();
        let modified = time("2022-05-06T00:31:05Z");
        let container = ContainerProperties {
            modified,
            etag: BlobETag(modified),
            lease: LeaseView::AVAILABLE,
            access: PublicAccess::Blob,
            metadata: &metadata,
        };
        let mut headers = Vec::new();
        container.headers(|name, value| headers.push(format!("{name}: {value}")));
        assert!(headers.contains(&"x-ms-lease-state: available".to_owned()), "{headers:?}");
        assert!(headers.contains(&"x-ms-blob-public-access: blob".to_owned()), "{headers:?}");
    }
}
