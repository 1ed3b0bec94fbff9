//! What answers tell of a blob and of a container: headers here, XML for `list_xml.rs`.

use super::headers::format_md5;
use crate::sas::ResponseOverrides;
use crate::signature::http_date;
use crate::xml;
use larimar_model::blob::{
    AccessTier, BlobETag, BlobType, ContentHeaders, CopyInfo, LeaseView, PublicAccess, RehydratePriority,
};
use larimar_model::{Metadata, Timestamp};

/// What is told of a blob or a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct BlobProperties<'a> {
    /// Its type.
    pub kind: BlobType,
    /// When it was made.
    pub created: Timestamp,
    /// When it was changed.
    pub modified: Timestamp,
    /// Its etag.
    pub etag: BlobETag,
    /// Its bytes.
    pub length: u64,
    /// What readers are told of its bytes.
    pub content: &'a ContentHeaders,
    /// A page blob's sequence number.
    pub sequence_number: Option<u64>,
    /// How often an append blob was appended to.
    pub appended: Option<u32>,
    /// Whether an append blob is sealed.
    pub is_sealed: bool,
    /// The tier that it was given, and when that was changed.
    pub tier: Option<(AccessTier, Option<Timestamp>)>,
    /// The tier that it is being rehydrated to, how urgently, and whether a copy does it.
    pub rehydration: Option<(AccessTier, RehydratePriority, bool)>,
    /// Its lease; snapshots have none.
    pub lease: Option<LeaseView>,
    /// The copy that made it.
    pub copy: Option<&'a CopyInfo>,
    /// How many tags it has.
    pub tag_count: usize,
    /// Its metadata.
    pub metadata: &'a Metadata,
}

impl BlobProperties<'_> {
    /// Hands over the headers of Get Blob and Get Blob Properties but for `Content-Length`, `Content-MD5` and
    /// `Content-Range`, which depend on what is read. Headers of a token come in the place of the blob's own.
    pub fn headers(&self, overrides: Option<&ResponseOverrides>, mut add: impl FnMut(&str, &str)) {
        self.content_headers(overrides, &mut add);
        add("Last-Modified", &http_date(self.modified));
        add("ETag", &self.etag.to_string());
        add("Accept-Ranges", "bytes");
        add("x-ms-creation-time", &http_date(self.created));
        add("x-ms-blob-type", self.kind.as_str());
        if let Some(lease) = self.lease {
            lease_headers(lease, &mut add);
        }
        add("x-ms-server-encrypted", "true");
        if let Some(number) = self.sequence_number {
            add("x-ms-blob-sequence-number", &number.to_string());
        }
        if let Some(count) = self.appended {
            add("x-ms-blob-committed-block-count", &count.to_string());
        }
        if self.is_sealed {
            add("x-ms-blob-sealed", "true");
        }
        if self.tag_count > 0 {
            add("x-ms-tag-count", &self.tag_count.to_string());
        }
        if let Some(copy) = self.copy {
            add("x-ms-copy-id", &copy.id.to_string());
            add("x-ms-copy-status", if self.is_copy_pending() { CopyInfo::PENDING } else { CopyInfo::STATUS });
            add("x-ms-copy-source", &copy.source);
            if self.is_copy_pending() {
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
        metadata_headers(self.metadata, &mut add);
    }

    /// Hands over the headers that only Get Blob Properties has.
    pub fn tier_headers(&self, mut add: impl FnMut(&str, &str)) {
        let Some((tier, is_inferred)) = self.told_tier() else { return };
        add("x-ms-access-tier", tier.as_str());
        if is_inferred {
            add("x-ms-access-tier-inferred", "true");
        }
        if let Some((to, priority, _)) = self.rehydration {
            add("x-ms-archive-status", &archive_status(to));
            add("x-ms-rehydrate-priority", priority.as_str());
        }
        if let Some((_, Some(changed))) = self.tier {
            add("x-ms-access-tier-change-time", &http_date(changed));
        }
    }

    /// Whether the copy that made it is not done: it comes from the archive.
    fn is_copy_pending(&self) -> bool {
        self.rehydration.is_some_and(|(_, _, is_copy)| is_copy)
    }

    fn content_headers(&self, overrides: Option<&ResponseOverrides>, add: &mut impl FnMut(&str, &str)) {
        let content_type = self.content.content_type.as_deref().unwrap_or(ContentHeaders::TYPE_DEFAULT);
        let of = |pick: fn(&ResponseOverrides) -> &Option<String>| overrides.and_then(|over| pick(over).as_deref());
        for (name, over, own) in [
            ("Content-Type", of(|over| &over.content_type), Some(content_type)),
            ("Content-Encoding", of(|over| &over.content_encoding), self.content.encoding.as_deref()),
            ("Content-Language", of(|over| &over.content_language), self.content.language.as_deref()),
            ("Content-Disposition", of(|over| &over.content_disposition), self.content.disposition.as_deref()),
            ("Cache-Control", of(|over| &over.cache_control), self.content.cache_control.as_deref()),
        ] {
            if let Some(value) = over.or(own).filter(|value| !value.is_empty()) {
                add(name, value);
            }
        }
    }

    /// The tier, and whether nobody gave it.
    fn told_tier(&self) -> Option<(AccessTier, bool)> {
        match (self.tier, self.kind) {
            (Some((tier, _)), _) => Some((tier, false)),
            (None, BlobType::Block) => Some((AccessTier::HOT, true)),
            (None, BlobType::Append | BlobType::Page) => None,
        }
    }

    /// Appends the element of a listing; `with_copy` tells whether the copy is part of it.
    pub(super) fn write(&self, out: &mut Vec<u8>, with_copy: bool) {
        xml::write_element(out, "Properties", |out| {
            let content_type = self.content.content_type.as_deref().unwrap_or(ContentHeaders::TYPE_DEFAULT);
            let md5 = self.content.md5.as_deref().map(format_md5);
            xml::write_text(out, "Creation-Time", &http_date(self.created));
            xml::write_text(out, "Last-Modified", &http_date(self.modified));
            xml::write_text(out, "Etag", &self.etag.to_unquoted());
            xml::write_text(out, "Content-Length", itoa::Buffer::new().format(self.length));
            xml::write_lossy_text(out, "Content-Type", content_type);
            xml::write_lossy_text(out, "Content-Encoding", self.content.encoding.as_deref().unwrap_or(""));
            xml::write_lossy_text(out, "Content-Language", self.content.language.as_deref().unwrap_or(""));
            xml::write_text(out, "Content-MD5", md5.as_deref().unwrap_or(""));
            xml::write_lossy_text(out, "Cache-Control", self.content.cache_control.as_deref().unwrap_or(""));
            xml::write_lossy_text(out, "Content-Disposition", self.content.disposition.as_deref().unwrap_or(""));
            if let Some(number) = self.sequence_number {
                xml::write_text(out, "x-ms-blob-sequence-number", itoa::Buffer::new().format(number));
            }
            xml::write_text(out, "BlobType", self.kind.as_str());
            self.write_tier(out);
            if let Some(lease) = self.lease {
                write_lease(out, lease);
            }
            if let Some(copy) = self.copy.filter(|_| with_copy) {
                write_copy(out, copy, self.is_copy_pending());
            }
            xml::write_text(out, "ServerEncrypted", "true");
            if self.is_sealed {
                xml::write_text(out, "Sealed", "true");
            }
            if self.tag_count > 0 {
                xml::write_text(out, "TagCount", itoa::Buffer::new().format(self.tag_count));
            }
        });
    }

    fn write_tier(&self, out: &mut Vec<u8>) {
        let Some((tier, is_inferred)) = self.told_tier() else { return };
        xml::write_text(out, "AccessTier", tier.as_str());
        if is_inferred {
            xml::write_text(out, "AccessTierInferred", "true");
        }
        if let Some((to, priority, _)) = self.rehydration {
            xml::write_text(out, "ArchiveStatus", &archive_status(to));
            xml::write_text(out, "RehydratePriority", priority.as_str());
        }
        if let Some((_, Some(changed))) = self.tier {
            xml::write_text(out, "AccessTierChangeTime", &http_date(changed));
        }
    }
}

/// The word for a blob on its way from the archive to a tier.
fn archive_status(to: AccessTier) -> String {
    format!("rehydrate-pending-to-{}", to.as_str().to_ascii_lowercase())
}

/// What is told of a container.
#[derive(Clone, Copy, Debug)]
pub struct ContainerProperties<'a> {
    /// When it was changed.
    pub modified: Timestamp,
    /// Its etag.
    pub etag: BlobETag,
    /// Its lease.
    pub lease: LeaseView,
    /// What anonymous callers may do.
    pub access: PublicAccess,
    /// Its metadata.
    pub metadata: &'a Metadata,
}

impl ContainerProperties<'_> {
    /// Hands over the headers of Get Container Properties.
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

    /// Appends the element of a listing.
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

/// The scope that everything is encrypted in if nobody says otherwise.
const ENCRYPTION_SCOPE: &str = "$account-encryption-key";

#[cfg(test)]
mod tests {
    use super::*;
    use larimar_model::Guid;
    use larimar_model::blob::{LeaseDuration, LeaseState};

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

    fn page_blob<'a>(content: &'a ContentHeaders, copy: &'a CopyInfo, metadata: &'a Metadata) -> BlobProperties<'a> {
        let modified = time("2022-05-06T00:31:05.0707164Z");
        BlobProperties {
            kind: BlobType::Page,
            created: time("2022-05-05T00:00:00Z"),
            modified,
            etag: BlobETag(modified),
            length: 7,
            content,
            sequence_number: Some(3),
            appended: None,
            tier: None,
            rehydration: None,
            is_sealed: false,
            lease: Some(LeaseView { state: LeaseState::Leased, duration: Some(LeaseDuration::Infinite) }),
            copy: Some(copy),
            tag_count: 2,
            metadata,
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
        let copy = copied();
        let overrides = ResponseOverrides { content_type: Some("text/x".to_owned()), ..ResponseOverrides::default() };
        let mut headers = Vec::new();
        let blob = page_blob(&content, &copy, &metadata);
        blob.headers(Some(&overrides), |name, value| headers.push(format!("{name}: {value}")));
        blob.tier_headers(|name, value| headers.push(format!("{name}: {value}")));
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
        let (content, copy, metadata) = (ContentHeaders::default(), copied(), Metadata::new());
        let blob = BlobProperties { kind: BlobType::Block, ..page_blob(&content, &copy, &metadata) };
        let tiers = |tier| {
            let mut headers = Vec::new();
            BlobProperties { tier, ..blob }.tier_headers(|name, value| headers.push(format!("{name}: {value}")));
            headers
        };
        assert_eq!(
            tiers(Some(("Cool".parse().expect("a tier"), Some(blob.modified)))),
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
