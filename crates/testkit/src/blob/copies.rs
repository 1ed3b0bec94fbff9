//! Copies within the server.

use super::blobs::new_blob;
use super::pages::{put_page_blob, write};
use super::site::{Site, blob, filled, id, plain_copy, refused};
use larimar_engine::Engine;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{AccessConditions, BlobReject, CopyRequest, CopySource, NewBlob, SourceCondition};
use larimar_model::blob::{BlobName, BlockListEntry, BlockListKind, ByteRange, Conditions, ETagCondition, Tags};
use larimar_model::{Guid, Metadata};

fn request() -> CopyRequest {
    let source_url = "http://127.0.0.1/account/container/source".to_owned();
    CopyRequest { id: Guid([5; 16]), source_url, tags: Some(Tags::new()), ..plain_copy() }
}

/// A copy has the source's bytes, blocks, content headers and metadata, unless other metadata is given.
pub async fn a_copy_has_bytes_blocks_and_properties<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (from, to, none) = (blob("from"), blob("to"), AccessConditions::default());
    for number in 0..200 {
        site.put_block(&from, &id(number), &filled(number as u8, 20_000)).await.expect("a block");
    }
    let list: Vec<_> = (0..200).map(|n| BlockListEntry::Latest(id(n))).collect();
    let put = site.blobs.put_block_list(site.at(&from), &list, &new_blob(), &none, site.now()).await;
    put.expect("it is committed");
    let tagged = CopyRequest { tags: None, ..request() };
    site.blobs
        .copy_blob(&site.source(&from, None), site.at(&to), &tagged, &none, site.now())
        .await
        .expect("it is copied");
    let properties = site.blobs.properties(site.at(&to), None, &none, site.now()).await.expect("it is there");
    assert_eq!(properties.tags, new_blob().tags);
    let copied = site.blobs.copy_blob(&site.source(&from, None), site.at(&to), &request(), &none, site.now()).await;
    let (written, info) = copied.expect("it is copied");
    assert_eq!((info.id, info.length), (Guid([5; 16]), 4_000_000));
    assert!(site.read(&to).await == site.read(&from).await);
    let properties = site.blobs.properties(site.at(&to), None, &none, site.now()).await.expect("it is there");
    assert_eq!((properties.etag(), properties.copy), (written.etag(), Some(info)));
    assert_eq!((properties.content, properties.metadata), (new_blob().content, new_blob().metadata));
    assert!(properties.tags.is_empty() && properties.tier.is_none());
    let blocks = async |name: &BlobName| {
        let list = site.blobs.block_list(site.at(name), None, BlockListKind::All, &none, site.now()).await;
        list.expect("a list").committed
    };
    assert_eq!(blocks(&to).await, blocks(&from).await);
    let range = ByteRange { start: 1_999_990, last: Some(2_000_010) };
    let part = site.read_of(&to, None, Some(range)).await;
    assert_eq!(part, site.read_of(&from, None, Some(range)).await);
    // The copy is its own: the source may go.
    site.blobs.delete_blob(site.at(&from), None, &none, site.now()).await.expect("it is deleted");
    assert_eq!(site.read(&to).await.map(|bytes| bytes.len()), Ok(4_000_000));
    site.expect_payloads(1, "the copy's").await;
    let mut metadata = Metadata::new();
    metadata.insert("other", "metadata").expect("metadata");
    let other = CopyRequest { metadata: Some(metadata.clone()), ..request() };
    let again = blob("again");
    site.blobs
        .copy_blob(&site.source(&to, None), site.at(&again), &other, &none, site.now())
        .await
        .expect("it is copied");
    let properties = site.blobs.properties(site.at(&again), None, &none, site.now()).await.expect("it is there");
    assert_eq!(properties.metadata, metadata);
}

/// A copy of a page blob has its pages and no others, also from a snapshot.
pub async fn a_copy_of_pages_keeps_the_holes<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (from, to, none) = (blob("from"), blob("to"), AccessConditions::default());
    put_page_blob(site, &from, 40 << 20).await;
    write(site, &from, 512, &filled(1, 1024)).await.expect("pages");
    write(site, &from, 33 << 20, &filled(2, 512)).await.expect("pages");
    let taken = site.blobs.snapshot_blob(site.at(&from), None, &none, site.now()).await.expect("a snapshot").0;
    write(site, &from, 0, &filled(3, 512)).await.expect("pages");
    let snapshot = CopySource { snapshot: Some(taken), ..site.source(&from, None) };
    site.blobs.copy_blob(&snapshot, site.at(&to), &request(), &none, site.now()).await.expect("it is copied");
    assert!(site.read(&to).await == site.read_of(&from, Some(taken), None).await);
    let list = site.blobs.page_ranges(site.at(&to), (None, None), None, &none, site.now()).await.expect("pages");
    assert_eq!(list.written, [512..1536, (33 << 20)..(33 << 20) + 512]);
}

/// Conditions on the source and on the destination have different errors, as have missing blobs.
pub async fn a_copy_checks_both_sides<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (from, to, none) = (blob("from"), blob("to"), AccessConditions::default());
    let missing = site.blobs.copy_blob(&site.source(&from, None), site.at(&to), &request(), &none, site.now()).await;
    assert_eq!(missing, refused(BlobReject::SourceNotFound));
    site.put(&from, b"from").await;
    site.put(&to, b"to").await;
    let foreign = Conditions { if_match: Some(ETagCondition::Foreign), ..Conditions::NONE };
    let absent = Conditions { if_none_match: Some(ETagCondition::Any), ..Conditions::NONE };
    let of_source = CopySource { conditions: foreign, ..site.source(&from, None) };
    let copy = async |source: &CopySource<'_>, conditions| {
        let access = AccessConditions { conditions, ..AccessConditions::default() };
        site.blobs.copy_blob(source, site.at(&to), &request(), &access, site.now()).await.map(|_| ())
    };
    assert_eq!(
        copy(&of_source, Conditions::NONE).await,
        refused(BlobReject::SourceConditionNotMet(SourceCondition::IfMatch))
    );
    assert_eq!(copy(&site.source(&from, None), foreign).await, refused(BlobReject::ConditionNotMet));
    assert_eq!(copy(&site.source(&from, None), absent).await, refused(BlobReject::BlobExists));
    let new = NewBlob::default();
    site.blobs.put_append_blob(site.at(&to), &new, &none, site.now()).await.expect("it is put");
    assert_eq!(copy(&site.source(&from, None), Conditions::NONE).await, refused(BlobReject::InvalidBlobType));
    site.expect_payloads(1, "what was refused is removed").await;
}

/// Ranges of blobs become blocks of others, and all bytes are seen on their way.
pub async fn bytes_are_copied_into_blocks<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (from, to) = (blob("from"), blob("to"));
    let bytes = filled(9, 2_500_000);
    site.put(&from, &bytes).await;
    let range = Some(ByteRange { start: 100, last: Some(2_000_099) });
    let mut seen = Vec::new();
    let inspect = |bytes: &larimar_engine::blob::bytes::Bytes| seen.extend_from_slice(bytes);
    let copied =
        site.blobs.copy_bytes(&site.source(&from, None), (range, 2_000_000), site.at(&to), inspect, site.now()).await;
    let (extent, _) = copied.expect("bytes are copied");
    assert!(seen == bytes[100..2_000_100]);
    site.blobs.put_block(site.at(&to), &id(1), extent.expect("bytes"), None, site.now()).await.expect("a block");
    site.commit(&to, &[BlockListEntry::Latest(id(1))]).await.expect("it is committed");
    assert!(site.read(&to).await == Ok(bytes[100..2_000_100].to_vec()));
    let after = Some(ByteRange { start: 2_500_000, last: None });
    let outside = site.blobs.copy_bytes(&site.source(&from, None), (after, 9), site.at(&to), |_| {}, site.now()).await;
    assert_eq!(outside, refused(BlobReject::InvalidRange { length: 2_500_000 }));
    let part = (range, 1_999_999);
    let large = site.blobs.copy_bytes(&site.source(&from, None), part, site.at(&to), |_| {}, site.now()).await;
    assert_eq!(large, refused(BlobReject::SourceTooLarge { bytes_max: 1_999_999 }));
}

/// A copy onto itself changes the properties and keeps the bytes.
pub async fn a_blob_is_copied_onto_itself<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (name, none) = (blob("b"), AccessConditions::default());
    let bytes = filled(3, 100_000);
    let put = site.put(&name, &bytes).await;
    let mut metadata = Metadata::new();
    metadata.insert("new", "metadata").expect("metadata");
    let request = CopyRequest { metadata: Some(metadata.clone()), ..request() };
    let copied = site.blobs.copy_blob(&site.source(&name, None), site.at(&name), &request, &none, site.now()).await;
    assert!(copied.expect("it is copied").0.etag() > put.etag());
    let properties = site.blobs.properties(site.at(&name), None, &none, site.now()).await.expect("it is there");
    assert_eq!(properties.metadata, metadata);
    assert!(site.read(&name).await == Ok(bytes));
    site.expect_payloads(1, "the old bytes are removed").await;
}
