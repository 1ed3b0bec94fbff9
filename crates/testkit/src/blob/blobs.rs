//! Whole blobs: put, read, changed, overwritten, on conditions.

use super::site::{Site, blob, filled, plain_copy, refused};
use larimar_engine::Engine;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{AccessConditions, BlobReject, CopyRequest, CopySource, NewBlob};
use larimar_model::Metadata;
use larimar_model::blob::{
    AccessTier, BlobETag, BlobType, BlockListKind, ByteRange, Conditions, ContentHeaders, DeleteSnapshots,
    ETagCondition, LeaseAction, LeaseDuration, LeaseId, TagCondition, Tags,
};

/// Some properties that differ from none.
pub(super) fn new_blob() -> NewBlob {
    let mut new = NewBlob {
        content: ContentHeaders {
            content_type: Some("text/plain".to_owned()),
            md5: Some(vec![7; 16]),
            cache_control: Some("no-cache".to_owned()),
            ..ContentHeaders::default()
        },
        tier: Some(AccessTier::HOT),
        ..NewBlob::default()
    };
    new.metadata.insert("Name", "value").expect("metadata");
    new.tags.insert("tag", "of it").expect("a tag");
    new
}

/// Bytes of any number come back, with the properties that were given.
pub async fn a_blob_is_read_as_it_was_put<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    for (n, length) in [0, 1, 4096, 3 << 20].into_iter().enumerate() {
        let (name, bytes) = (blob(&format!("b{n}")), filled(n as u8, length));
        let extent = site.payload(&name, &bytes).await;
        let new = new_blob();
        let put = site
            .blobs
            .put_block_blob(site.at(&name), Some(extent), &new, &AccessConditions::default(), site.now())
            .await;
        let written = put.expect("it is put");
        assert_eq!(site.read(&name).await, Ok(bytes));
        let properties = site.blobs.properties(site.at(&name), None, &AccessConditions::default(), site.now()).await;
        let properties = properties.expect("it is there");
        assert_eq!((properties.kind, properties.length), (BlobType::Block, length as u64));
        assert_eq!((properties.etag(), properties.last_modified), (written.etag(), written.last_modified));
        assert_eq!((properties.content, properties.metadata, properties.tags), (new.content, new.metadata, new.tags));
        assert_eq!(properties.tier.map(|(tier, _)| tier), Some(AccessTier::HOT));
    }
    let empty = blob("without bytes");
    let (new, none) = (NewBlob::default(), AccessConditions::default());
    site.blobs.put_block_blob(site.at(&empty), None, &new, &none, site.now()).await.expect("it is put");
    assert_eq!(site.read(&empty).await, Ok(Vec::new()));
}

/// A range ends where the blob does, and must begin before.
pub async fn ranges_are_read_and_cut_at_the_end<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (name, bytes) = (blob("b"), filled(1, 2_500_000));
    site.put(&name, &bytes).await;
    for (start, last) in [(0, Some(0)), (5, Some(9)), (1_048_575, Some(1_048_577)), (100, None), (7, Some(u64::MAX))] {
        let read = site.read_of(&name, None, Some(ByteRange { start, last })).await.expect("it is read");
        let end = last.map_or(bytes.len(), |last| (last.saturating_add(1) as usize).min(bytes.len()));
        assert!(read == bytes[start as usize..end], "{start}-{last:?}");
    }
    let after = site.read_of(&name, None, Some(ByteRange { start: 2_500_000, last: None })).await;
    assert_eq!(after, refused(BlobReject::InvalidRange { length: 2_500_000 }));
    site.put(&name, b"").await;
    let empty = site.read_of(&name, None, Some(ByteRange { start: 0, last: Some(9) })).await;
    assert_eq!(empty, refused(BlobReject::InvalidRange { length: 0 }));
}

/// What is not there is not found by any operation that needs it.
pub async fn a_missing_blob_is_not_found<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    let (at, none) = (site.at(&name), AccessConditions::default());
    assert_eq!(site.read(&name).await, refused(BlobReject::BlobNotFound));
    let metadata = site.blobs.set_metadata(at, &Metadata::new(), &none, site.now()).await;
    assert_eq!(metadata, refused(BlobReject::BlobNotFound));
    assert_eq!(site.blobs.delete_blob(at, None, &none, site.now()).await, refused(BlobReject::BlobNotFound));
    assert_eq!(site.blobs.snapshot_blob(at, None, &none, site.now()).await, refused(BlobReject::BlobNotFound));
    let tags = site.blobs.set_tags(at, &Tags::new(), &none, site.now()).await;
    assert_eq!(tags, refused(BlobReject::BlobNotFound));
    site.put(&name, b"x").await;
    assert_eq!(site.blobs.delete_blob(at, None, &none, site.now()).await, Ok(()));
    assert_eq!(site.blobs.delete_blob(at, None, &none, site.now()).await, refused(BlobReject::BlobNotFound));
    assert_eq!(site.rows().await, []);
}

/// Nothing of the old blob shows through the new one, not even its type.
pub async fn an_overwrite_replaces_everything<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (name, none) = (blob("b"), AccessConditions::default());
    let at = site.at(&name);
    let extent = site.payload(&name, b"old").await;
    let put = site.blobs.put_block_blob(at, Some(extent), &new_blob(), &none, site.now()).await;
    let old = put.expect("it is put");
    let new = site.put(&name, b"new content").await;
    assert!(new.etag() > old.etag());
    let properties = site.blobs.properties(at, None, &none, site.now()).await.expect("it is there");
    assert_eq!((properties.content, properties.tier), (ContentHeaders::default(), None));
    assert!(properties.metadata.is_empty() && properties.tags.is_empty());
    assert_eq!(site.read(&name).await, Ok(b"new content".to_vec()));
    site.blobs.put_append_blob(at, &NewBlob::default(), &none, site.now()).await.expect("it is put");
    let properties = site.blobs.properties(at, None, &none, site.now()).await.expect("it is there");
    assert_eq!((properties.kind, properties.length), (BlobType::Append, 0));
    let wrong = NewBlob { tier: Some(AccessTier::HOT), ..NewBlob::default() };
    let tier = site.blobs.put_page_blob(at, (512, 0), &wrong, &none, site.now()).await;
    assert_eq!(tier, refused(BlobReject::InvalidBlobTier));
}

/// A condition on tags lets reads and writes pass only while the blob's tags satisfy it; it demands nothing of a blob that
/// is not there.
pub async fn conditions_on_tags_guard_reads_and_writes<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    let at = site.at(&name);
    let if_tags = TagCondition::parse("\"state\" = 'open'").expect("a condition");
    let open = AccessConditions { if_tags: Some(if_tags.clone()), ..AccessConditions::default() };
    let unmet = BlobReject::TagConditionNotMet;
    site.put_if(&name, b"1", &open).await.expect("there is nothing yet");
    assert_eq!(site.put_if(&name, b"2", &open).await, refused(unmet));
    let mut tags = Tags::new();
    tags.insert("state", "open").expect("a tag");
    assert_eq!(site.blobs.set_tags(at, &tags, &open, site.now()).await, refused(unmet));
    site.blobs.set_tags(at, &tags, &AccessConditions::default(), site.now()).await.expect("tags are set");
    site.blobs.properties(at, None, &open, site.now()).await.expect("the tag is there");
    let (snapshot, _) = site.blobs.snapshot_blob(at, None, &open, site.now()).await.expect("the tag is there");
    site.blobs.set_tags(at, &Tags::new(), &open, site.now()).await.expect("the tag is still there");
    let cool = "Cool".parse().expect("a tier");
    let acquire = LeaseAction::Acquire { duration: LeaseDuration::Infinite, proposed: None };
    let fresh = LeaseId(larimar_model::Guid([7; 16]));
    for outcome in [
        site.blobs.properties(at, None, &open, site.now()).await.map(drop),
        site.blobs.open(at, None, None, &open, site.now()).await.map(drop),
        site.blobs.block_list(at, None, BlockListKind::All, &open, site.now()).await.map(drop),
        site.blobs.set_tier(at, None, (cool, None), &open, site.now()).await.map(drop),
        site.blobs.set_metadata(at, &Metadata::new(), &open, site.now()).await.map(drop),
        site.blobs.snapshot_blob(at, None, &open, site.now()).await.map(drop),
        site.blobs.lease_blob(at, (acquire, fresh), &open, site.now()).await.map(drop),
        site.blobs.delete_blob(at, Some(DeleteSnapshots::Include), &open, site.now()).await,
    ] {
        assert_eq!(outcome, refused(unmet));
    }
    // A snapshot keeps the tags that the blob had.
    let copy = blob("copy");
    let request = CopyRequest { tags: Some(Tags::new()), ..plain_copy() };
    let source = CopySource { at, snapshot: None, conditions: Conditions::NONE, if_tags: Some(&if_tags) };
    let (to, none) = (site.at(&copy), AccessConditions::default());
    let copied = site.blobs.copy_blob(&source, to, &request, &none, site.now()).await;
    assert_eq!(copied.map(drop), refused(unmet));
    let source = CopySource { snapshot: Some(snapshot), ..source };
    site.blobs.copy_blob(&source, to, &request, &none, site.now()).await.expect("the snapshot has the tag");
    site.blobs.delete_snapshot(at, snapshot, &open, site.now()).await.expect("the snapshot has the tag");
}

/// Conditions are judged against the blob as it is when the operation takes effect.
pub async fn conditions_guard_reads_and_writes<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    let at = site.at(&name);
    let if_match = |etag: BlobETag| AccessConditions {
        conditions: Conditions { if_match: Some(ETagCondition::Is(etag)), ..Conditions::NONE },
        ..AccessConditions::default()
    };
    let if_none_match = |condition| AccessConditions {
        conditions: Conditions { if_none_match: Some(condition), ..Conditions::NONE },
        ..AccessConditions::default()
    };
    let absent = if_none_match(ETagCondition::Any);
    let first = site.put_if(&name, b"1", &absent).await.expect("there was none");
    assert_eq!(site.put_if(&name, b"2", &absent).await, refused(BlobReject::BlobExists));
    let second = site.put_if(&name, b"2", &if_match(first.etag())).await.expect("it matches");
    assert_eq!(site.put_if(&name, b"3", &if_match(first.etag())).await, refused(BlobReject::ConditionNotMet));
    assert_eq!(site.read(&name).await, Ok(b"2".to_vec()));
    let known = if_none_match(ETagCondition::Is(second.etag()));
    let read = site.blobs.properties(at, None, &known, site.now()).await;
    assert_eq!(read, refused(BlobReject::NotModified));
    let stale = site.blobs.properties(at, None, &if_match(first.etag()), site.now()).await;
    assert_eq!(stale, refused(BlobReject::ConditionNotMet));
    let delete = site.blobs.delete_blob(at, None, &if_match(first.etag()), site.now()).await;
    assert_eq!(delete, refused(BlobReject::ConditionNotMet));
    assert_eq!(site.blobs.delete_blob(at, None, &if_match(second.etag()), site.now()).await, Ok(()));
    let gone = site.put_if(&name, b"4", &if_match(second.etag())).await;
    assert_eq!(gone, refused(BlobReject::ConditionNotMet));
}

/// Tags and the tier are no change of the blob.
pub async fn properties_that_are_not_content_keep_the_etag<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (name, none) = (blob("b"), AccessConditions::default());
    let at = site.at(&name);
    let written = site.put(&name, b"x").await;
    let new = new_blob();
    site.blobs.set_tags(at, &new.tags, &none, site.now()).await.expect("tags are set");
    let cool: AccessTier = "Cool".parse().expect("a tier");
    site.blobs
        .set_tier(at, None, (cool, None), &AccessConditions::default(), site.now())
        .await
        .expect("the tier is set");
    let wrong = site
        .blobs
        .set_tier(at, None, ("P10".parse().expect("a tier"), None), &AccessConditions::default(), site.now())
        .await;
    assert_eq!(wrong, refused(BlobReject::InvalidBlobTier));
    let properties = site.blobs.properties(at, None, &none, site.now()).await.expect("it is there");
    assert_eq!((properties.etag(), properties.tags), (written.etag(), new.tags));
    assert_eq!(properties.tier.map(|(tier, _)| tier), Some(cool));
}

/// Each change has a later etag than the one before, also if the clock does not move.
pub async fn changes_have_increasing_etags<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (name, none) = (blob("b"), AccessConditions::default());
    let at = site.at(&name);
    let mut last = site.put(&name, b"x").await;
    let now = last.last_modified;
    let new = new_blob();
    for n in 0..6 {
        let written = match n % 3 {
            0 => site.blobs.set_metadata(at, &new.metadata, &none, now).await,
            1 => site.blobs.set_content(at, &new.content, &none, now).await,
            _ => site.blobs.put_block_blob(at, None, &new, &none, now).await,
        };
        let written = written.expect("it is changed");
        assert!(written.etag() > last.etag(), "change {n}");
        last = written;
    }
    let properties = site.blobs.properties(at, None, &none, site.now()).await.expect("it is there");
    assert_eq!((properties.metadata, properties.content), (new.metadata, new.content));
}

/// Names differ in case, slashes, any character, and up to their length.
pub async fn any_name_is_kept_apart<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let longest = "\u{E000}".repeat(1024);
    let names = ["a", "A", "a/", "a//b", "a/b", ".", "ä", "\u{1F600}", "\u{FFFF}", "a\u{0}b", "a b%20", &longest];
    for (n, name) in names.iter().enumerate() {
        site.put(&blob(name), &filled(n as u8, 10 + n)).await;
    }
    for (n, name) in names.iter().enumerate() {
        assert_eq!(site.read(&blob(name)).await, Ok(filled(n as u8, 10 + n)), "{name:?}");
    }
}
