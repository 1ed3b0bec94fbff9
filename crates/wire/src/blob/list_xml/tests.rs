//! Listings are written as the service's reference has them, and are XML whatever names there are.

use super::*;
use crate::xml::Element;
use larimar_model::Timestamp;
use larimar_model::blob::{
    BlobETag, BlobType, ContentHeaders, CopyInfo, IncrementalCopy, LeaseDuration, LeaseState, LeaseView, ListInclude,
    PublicAccess, Tags,
};
use larimar_model::{Guid, Metadata};
use proptest::prelude::*;

const ENDPOINT: &str = "http://127.0.0.1:10000/devstoreaccount1";
const START: &str = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"http://127.0.0.1:10000/devstoreaccount1\"";

fn time(text: &str) -> Timestamp {
    Timestamp::parse(text).expect("a time")
}

fn properties() -> BlobProperties {
    BlobProperties {
        kind: BlobType::Block,
        created: time("2022-05-05T00:00:00Z"),
        last_modified: time("2022-05-06T00:31:05.0707164Z"),
        length: 7,
        content: ContentHeaders::default(),
        metadata: Metadata::new(),
        tags: Tags::new(),
        tier: None,
        rehydration: None,
        lease: LeaseView::AVAILABLE,
        copy: None,
        sequence_number: 0,
        is_sealed: false,
        appended_blocks: 0,
        is_uncommitted: false,
    }
}

fn list(request: &ListBlobs, entries: &[ListEntry<'_>], next: Option<&ListMarker>) -> String {
    let mut out = Vec::new();
    write_blob_list(&mut out, ENDPOINT, "abc", request, entries.iter().copied(), next);
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn x2_blobs_are_listed_as_the_reference_has_them() {
    let blob = ListedBlob { name: "a/b.txt", snapshot: None, properties: &properties() };
    let request = ListBlobs {
        prefix: Some("a".to_owned()),
        delimiter: Some("/".to_owned()),
        count_max: Some(2),
        ..ListBlobs::default()
    };
    let next = ListMarker { name: "b".to_owned(), snapshot: None };
    let expected = format!(
        "{START} ContainerName=\"abc\"><Prefix>a</Prefix><MaxResults>2</MaxResults><Delimiter>/</Delimiter><Blobs><BlobPrefix><Name>a/</Name></BlobPrefix><Blob><Name>a/b.txt</Name><Properties><Creation-Time>Thu, 05 May 2022 00:00:00 GMT</Creation-Time><Last-Modified>Fri, 06 May 2022 00:31:05 GMT</Last-Modified><Etag>0x8DA2EF7B4C134DC</Etag><Content-Length>7</Content-Length><Content-Type>application/octet-stream</Content-Type><Content-Encoding /><Content-Language /><Content-MD5 /><Cache-Control /><Content-Disposition /><BlobType>BlockBlob</BlobType><AccessTier>Hot</AccessTier><AccessTierInferred>true</AccessTierInferred><LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState><ServerEncrypted>true</ServerEncrypted></Properties></Blob></Blobs><NextMarker>{}</NextMarker></EnumerationResults>",
        next.encode()
    );
    assert_eq!(list(&request, &[ListEntry::Prefix("a/"), ListEntry::Blob(blob)], Some(&next)), expected);
    assert!(list(&ListBlobs::default(), &[], None).ends_with("<Blobs /><NextMarker /></EnumerationResults>"));
}

/// An incremental copy.
fn copied() -> CopyInfo {
    CopyInfo {
        id: Guid::parse("5974b586-0df3-4e2d-ad0c-18e3892bfca2").expect("a Guid"),
        source: "http://h/c/b".to_owned(),
        length: 7,
        completed: time("2022-05-06T00:31:05Z"),
        incremental: Some(IncrementalCopy {
            snapshot: "2022-05-06T00:31:05.1Z".parse().expect("a time"),
            source: "account/c/b".to_owned(),
            source_snapshot: "2022-05-06".parse().expect("a time"),
        }),
    }
}

#[test]
fn listings_include_what_is_asked_for() {
    let content = ContentHeaders {
        md5: Some(b"Check Integrity!".to_vec()),
        language: Some("de".to_owned()),
        ..Default::default()
    };
    let mut metadata = Metadata::new();
    metadata.insert("k", "v").expect("metadata");
    let mut tags = Tags::new();
    tags.insert("t", "u").expect("a tag");
    let leased = LeaseView { state: LeaseState::Leased, duration: Some(LeaseDuration::Seconds(15)) };
    let full = BlobProperties {
        content,
        metadata,
        tags,
        copy: Some(copied()),
        lease: leased,
        tier: Some(("Cool".parse().expect("a tier"), time("2022-05-06"))),
        ..properties()
    };
    let page_blob = BlobProperties { kind: BlobType::Page, sequence_number: 3, tier: None, ..full.clone() };
    let snapshot = "2011-03-09T01:42:34.936Z".parse().expect("a time");
    let entries = [
        ListEntry::Blob(ListedBlob { name: "b", snapshot: Some(snapshot), properties: &page_blob }),
        ListEntry::Blob(ListedBlob { name: "b", snapshot: None, properties: &full }),
        ListEntry::Uncommitted { name: "c", lease: LeaseView { state: LeaseState::Available, duration: None } },
    ];
    let all = ListInclude { snapshots: true, metadata: true, uncommitted: true, copy: true, tags: true };
    let text = list(&ListBlobs { include: all, ..ListBlobs::default() }, &entries, None);
    for part in [
        "<Blob><Name>b</Name><Snapshot>2011-03-09T01:42:34.9360000Z</Snapshot><Properties>",
        "<Content-MD5>Q2hlY2sgSW50ZWdyaXR5IQ==</Content-MD5>",
        "<x-ms-blob-sequence-number>3</x-ms-blob-sequence-number><BlobType>PageBlob</BlobType><CopyId>",
        "<AccessTier>Cool</AccessTier><AccessTierChangeTime>Fri, 06 May 2022 00:00:00 GMT</AccessTierChangeTime>",
        "<LeaseStatus>locked</LeaseStatus><LeaseState>leased</LeaseState><LeaseDuration>fixed</LeaseDuration>",
        "<CopyStatus>success</CopyStatus><CopySource>http://h/c/b</CopySource><CopyProgress>7/7</CopyProgress>",
        "<IncrementalCopy>true</IncrementalCopy><CopyDestinationSnapshot>2022-05-06T00:31:05.1000000Z</CopyDestinationSnapshot>",
        "<TagCount>1</TagCount></Properties><Metadata><k>v</k></Metadata><Tags><TagSet><Tag><Key>t</Key><Value>u</Value></Tag></TagSet></Tags></Blob>",
        "<Blob><Name>c</Name><Properties><Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType>",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let plain = list(&ListBlobs::default(), &entries, None);
    for part in ["<Metadata>", "<Tags>", "<CopyId>"] {
        assert!(!plain.contains(part), "{part}\n{plain}");
    }
}

#[test]
fn names_that_xml_cannot_say_are_escaped() {
    let text = list(
        &ListBlobs { prefix: Some("a\u{1}".to_owned()), ..ListBlobs::default() },
        &[ListEntry::Prefix("é\u{FFFF}/")],
        None,
    );
    assert!(text.contains("<Prefix Encoded=\"true\">a%01</Prefix>"), "{text}");
    assert!(text.contains("<BlobPrefix><Name Encoded=\"true\">%C3%A9%EF%BF%BF%2F</Name></BlobPrefix>"), "{text}");
}

#[test]
fn x2_containers_are_listed_as_the_reference_has_them() {
    let mut metadata = Metadata::new();
    metadata.insert("k", "v").expect("metadata");
    let modified = time("2022-05-06T00:31:05.0707164Z");
    let properties = ContainerProperties {
        modified,
        etag: BlobETag(modified),
        lease: LeaseView::AVAILABLE,
        access: PublicAccess::Container,
        metadata: &metadata,
    };
    let write = |request: &ListContainers, next| {
        let mut out = Vec::new();
        write_container_list(&mut out, ENDPOINT, request, [ListedContainer { name: "abc", properties }], next);
        String::from_utf8(out).expect("UTF-8")
    };
    let inside = "<Container><Name>abc</Name><Properties><Last-Modified>Fri, 06 May 2022 00:31:05 GMT</Last-Modified><Etag>&quot;0x8DA2EF7B4C134DC&quot;</Etag><LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState><PublicAccess>container</PublicAccess><DefaultEncryptionScope>$account-encryption-key</DefaultEncryptionScope><DenyEncryptionScopeOverride>false</DenyEncryptionScopeOverride><HasImmutabilityPolicy>false</HasImmutabilityPolicy><HasLegalHold>false</HasLegalHold></Properties>";
    assert_eq!(
        write(&ListContainers::default(), None),
        format!("{START}><Containers>{inside}</Container></Containers><NextMarker /></EnumerationResults>")
    );
    let request = ListContainers {
        prefix: Some("a".to_owned()),
        marker: Some("1!YQ".to_owned()),
        count_max: Some(1),
        metadata: true,
        ..ListContainers::default()
    };
    assert_eq!(
        write(&request, Some("b")),
        format!(
            "{START}><Prefix>a</Prefix><Marker>1!YQ</Marker><MaxResults>1</MaxResults><Containers>{inside}<Metadata><k>v</k></Metadata></Container></Containers><NextMarker>1!Yg</NextMarker></EnumerationResults>"
        )
    );
}

proptest! {
    #[test]
    fn any_name_comes_back(name in "\\PC{1,20}|[\u{0}-\u{20}]{1,8}", prefix: String, content_type in "[ -~é]{0,20}") {
        let content = ContentHeaders { content_type: Some(content_type), ..ContentHeaders::default() };
        let properties = BlobProperties { content, ..properties() };
        let blob = ListedBlob { name: &name, snapshot: None, properties: &properties };
        let request = ListBlobs { prefix: Some(prefix), ..ListBlobs::default() };
        let text = list(&request, &[ListEntry::Blob(blob)], None);
        let root = Element::parse(text.as_bytes()).expect("XML");
        let told = &root.child("Blobs").expect("one").expect("blobs").children[0].children[0].text;
        let is_escaped = text.contains("<Name Encoded=\"true\">");
        let read = if is_escaped { uri::decode_path(told).expect("escapes").into_owned() } else { told.clone() };
        prop_assert_eq!(read, name);
    }
}
