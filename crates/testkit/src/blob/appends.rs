//! Append blobs.

use super::site::{Site, blob, filled, refused};
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{AccessConditions, Appended, BlobReject, NewBlob};
use larimar_engine::{Engine, EngineError};
use larimar_model::blob::{AppendConditions, BlobName, ByteRange};

pub(super) async fn append<E: Engine, B: ByteStore>(
    site: &Site<E, B>,
    name: &BlobName,
    bytes: &[u8],
    conditions: AppendConditions,
) -> Result<Appended, EngineError> {
    let extent = site.payload(name, bytes).await;
    site.blobs.append_block(site.at(name), extent, conditions, &AccessConditions::default(), site.now()).await
}

/// Makes an empty append blob.
pub(super) async fn put_append<E: Engine, B: ByteStore>(site: &Site<E, B>, name: &BlobName) {
    let put =
        site.blobs.put_append_blob(site.at(name), &NewBlob::default(), &AccessConditions::default(), site.now()).await;
    put.expect("it is put");
}

/// Each append begins where the last ended, and changes the etag.
pub async fn appends_follow_each_other<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("log");
    let none = AppendConditions::default();
    assert_eq!(append(site, &name, b"x", none).await, refused(BlobReject::BlobNotFound));
    put_append(site, &name).await;
    let first = append(site, &name, b"one", none).await.expect("it is appended");
    let second = append(site, &name, b"two!", none).await.expect("it is appended");
    assert_eq!((first.offset, first.blocks, second.offset, second.blocks), (0, 1, 3, 2));
    assert!(second.written.etag() > first.written.etag());
    assert_eq!(site.read(&name).await, Ok(b"onetwo!".to_vec()));
    let properties = site.blobs.properties(site.at(&name), None, &AccessConditions::default(), site.now()).await;
    assert_eq!(properties.map(|properties| (properties.length, properties.appended_blocks)), Ok((7, 2)));
}

/// The position and the size are conditions, and what they refuse leaves nothing.
pub async fn appends_are_conditional<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("log");
    put_append(site, &name).await;
    let at = |position| AppendConditions { position: Some(position), size_max: None };
    let within = |max| AppendConditions { position: None, size_max: Some(max) };
    append(site, &name, b"1234", at(0)).await.expect("it is appended");
    let wrong = append(site, &name, b"x", at(0)).await;
    assert_eq!(wrong, refused(BlobReject::AppendPositionConditionNotMet));
    assert_eq!(append(site, &name, b"56", within(5)).await, refused(BlobReject::MaxBlobSizeConditionNotMet));
    append(site, &name, b"56", within(6)).await.expect("it is appended");
    assert_eq!(site.read(&name).await, Ok(b"123456".to_vec()));
    site.expect_payloads(2, "what was refused is removed").await;
}

/// Many small appends read as one content.
pub async fn many_appends_are_read_in_ranges<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("log");
    put_append(site, &name).await;
    let mut content = Vec::new();
    for n in 0..300 {
        let bytes = filled(n as u8, 5 + n % 7);
        append(site, &name, &bytes, AppendConditions::default()).await.expect("it is appended");
        content.extend(bytes);
    }
    assert_eq!(site.read(&name).await, Ok(content.clone()));
    for start in (0..content.len()).step_by(61) {
        let last = (start + 20).min(content.len() - 1);
        let range = ByteRange { start: start as u64, last: Some(last as u64) };
        assert_eq!(site.read_of(&name, None, Some(range)).await, Ok(content[start..=last].to_vec()));
    }
}

/// A sealed append blob takes no more blocks, also its snapshots and copies; all else about it can change.
pub async fn a_sealed_blob_takes_no_more<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (name, none) = (blob("b"), AccessConditions::default());
    let at = site.at(&name);
    let put = async || site.blobs.put_append_blob(at, &NewBlob::default(), &none, site.now()).await;
    let append = async || {
        let extent = site.payload(&name, b"more").await;
        let appends = AppendConditions::default();
        site.blobs.append_block(at, extent, appends, &none, site.now()).await.map(|done| done.written)
    };
    let made = put().await.expect("an append blob");
    append().await.expect("it is open");
    let seal = async |position| site.blobs.seal_blob(at, position, &none, site.now()).await;
    assert_eq!(seal(Some(3)).await, refused(BlobReject::AppendPositionConditionNotMet));
    let sealed = seal(Some(4)).await.expect("it has four bytes");
    assert!(sealed.last_modified > made.last_modified);
    assert_eq!(seal(None).await, Ok(sealed));
    assert_eq!(append().await, refused(BlobReject::Sealed));
    site.blobs.set_metadata(at, &larimar_model::Metadata::new(), &none, site.now()).await.expect("metadata may change");
    let (snapshot, _) = site.blobs.snapshot_blob(at, None, &none, site.now()).await.expect("a snapshot");
    for version in [None, Some(snapshot)] {
        let properties = site.blobs.properties(at, version, &none, site.now()).await.expect("properties");
        assert!(properties.is_sealed && properties.length == 4);
    }
    put().await.expect("it is replaced");
    append().await.expect("the new blob is open");
    site.put(&blob("blocks"), b"x").await;
    let blocks = blob("blocks");
    let wrong = site.blobs.seal_blob(site.at(&blocks), None, &none, site.now()).await;
    assert_eq!(wrong, refused(BlobReject::InvalidBlobType));
    let missing = blob("missing");
    let missing = site.blobs.seal_blob(site.at(&missing), None, &none, site.now()).await;
    assert_eq!(missing, refused(BlobReject::BlobNotFound));
}
