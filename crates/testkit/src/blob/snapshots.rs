//! Snapshots.

use super::appends::{append, put_append};
use super::pages::{put_page_blob, write};
use super::site::{Site, blob, filled, id, refused};
use larimar_engine::Engine;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{AccessConditions, BlobReject};
use larimar_model::Metadata;
use larimar_model::blob::{BlockListEntry, DeleteSnapshots};

/// A snapshot has the bytes and properties of its time, whatever becomes of the blob.
pub async fn a_snapshot_keeps_what_was_there<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (name, none) = (blob("b"), AccessConditions::default());
    let at = site.at(&name);
    let put = site.put(&name, b"first").await;
    let mut metadata = Metadata::new();
    metadata.insert("of", "the blob").expect("metadata");
    let set = site.blobs.set_metadata(at, &metadata, &none, site.now()).await.expect("it is set");
    assert!(set.etag() > put.etag());
    let (first, written) = site.blobs.snapshot_blob(at, None, &none, site.now()).await.expect("a snapshot");
    assert_eq!(written.etag(), set.etag());
    let mut own = Metadata::new();
    own.insert("of", "the snapshot").expect("metadata");
    let (second, _) = site.blobs.snapshot_blob(at, Some(&own), &none, site.now()).await.expect("a snapshot");
    assert!(second > first);
    site.put(&name, b"second").await;
    assert_eq!(site.read_of(&name, Some(first), None).await, Ok(b"first".to_vec()));
    assert_eq!(site.read_of(&name, Some(second), None).await, Ok(b"first".to_vec()));
    assert_eq!(site.read(&name).await, Ok(b"second".to_vec()));
    for (snapshot, expected) in [(first, &metadata), (second, &own)] {
        let properties = site.blobs.properties(at, Some(snapshot), &none, site.now()).await.expect("it is there");
        assert_eq!((&properties.metadata, properties.etag()), (expected, set.etag()));
    }
    site.expect_payloads(2, "the snapshots share one").await;
}

/// Long lists, appends and pages of a snapshot stay as they were, though the blob shares the rows.
pub async fn snapshots_of_pages_and_appends_stay<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let none = AccessConditions::default();
    let (log, disk, list) = (blob("log"), blob("disk"), blob("list"));
    put_append(site, &log).await;
    put_page_blob(site, &disk, 2048).await;
    let mut content = Vec::new();
    for n in 0..200_u32 {
        append(site, &log, &filled(n as u8, 3), Default::default()).await.expect("it is appended");
        content.extend(filled(n as u8, 3));
    }
    write(site, &disk, 512, &filled(1, 512)).await.expect("pages");
    site.put_block(&list, &id(1), b"ab").await.expect("a block");
    let entries = vec![BlockListEntry::Latest(id(1)); 600];
    site.commit(&list, &entries).await.expect("it is committed");
    let mut taken = Vec::new();
    for name in [&log, &disk, &list] {
        let snapshot = site.blobs.snapshot_blob(site.at(name), None, &none, site.now()).await.expect("a snapshot").0;
        taken.push(snapshot);
    }
    for n in 0..200_u32 {
        append(site, &log, &filled(n as u8, 4), Default::default()).await.expect("it is appended");
    }
    write(site, &disk, 512, &filled(2, 1024)).await.expect("pages");
    site.put(&list, b"short").await;
    assert_eq!(site.read_of(&log, Some(taken[0]), None).await, Ok(content.clone()));
    let pages = [vec![0; 512], filled(1, 512), vec![0; 1024]].concat();
    assert_eq!(site.read_of(&disk, Some(taken[1]), None).await, Ok(pages));
    assert_eq!(site.read_of(&list, Some(taken[2]), None).await, Ok(b"ab".repeat(600)));
    // The blob goes; what only it had is removed.
    site.put(&log, b"new").await;
    assert_eq!(site.read_of(&log, Some(taken[0]), None).await, Ok(content));
    for name in [&log, &disk, &list] {
        let include = Some(DeleteSnapshots::Include);
        site.blobs.delete_blob(site.at(name), include, &none, site.now()).await.expect("it is deleted");
    }
    assert_eq!(site.rows().await, []);
}

/// A blob with snapshots is deleted only if the request states whether to delete them.
pub async fn a_blob_with_snapshots_is_deleted_only_with_them<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (name, none) = (blob("b"), AccessConditions::default());
    let at = site.at(&name);
    site.put(&name, b"one").await;
    let (first, _) = site.blobs.snapshot_blob(at, None, &none, site.now()).await.expect("a snapshot");
    site.put(&name, b"two").await;
    let (second, _) = site.blobs.snapshot_blob(at, None, &none, site.now()).await.expect("a snapshot");
    let plain = site.blobs.delete_blob(at, None, &none, site.now()).await;
    assert_eq!(plain, refused(BlobReject::SnapshotsPresent));
    let only = Some(DeleteSnapshots::Only);
    site.blobs.delete_blob(at, only, &none, site.now()).await.expect("the snapshots are deleted");
    for snapshot in [first, second] {
        assert_eq!(site.read_of(&name, Some(snapshot), None).await, refused(BlobReject::BlobNotFound));
    }
    assert_eq!(site.read(&name).await, Ok(b"two".to_vec()));
    site.expect_payloads(1, "the blob's own").await;
    site.blobs.snapshot_blob(at, None, &none, site.now()).await.expect("a snapshot");
    let include = Some(DeleteSnapshots::Include);
    site.blobs.delete_blob(at, include, &none, site.now()).await.expect("all are deleted");
    assert_eq!(site.rows().await, []);
    site.expect_payloads(0, "nothing is left").await;
}

/// One snapshot goes, the others and the blob stay.
pub async fn one_snapshot_is_deleted_alone<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (name, none) = (blob("b"), AccessConditions::default());
    let at = site.at(&name);
    site.put(&name, b"one").await;
    let (first, _) = site.blobs.snapshot_blob(at, None, &none, site.now()).await.expect("a snapshot");
    site.put(&name, b"two").await;
    let (second, _) = site.blobs.snapshot_blob(at, None, &none, site.now()).await.expect("a snapshot");
    site.blobs.delete_snapshot(at, first, &none, site.now()).await.expect("it is deleted");
    let again = site.blobs.delete_snapshot(at, first, &none, site.now()).await;
    assert_eq!(again, refused(BlobReject::BlobNotFound));
    assert_eq!(site.read_of(&name, Some(second), None).await, Ok(b"two".to_vec()));
    site.expect_payloads(1, "the blob and the snapshot share one").await;
    site.blobs.delete_snapshot(at, second, &none, site.now()).await.expect("it is deleted");
    assert_eq!(site.read(&name).await, Ok(b"two".to_vec()));
    site.blobs.delete_blob(at, None, &none, site.now()).await.expect("no snapshot is left");
}

/// Snapshots that are taken at the same time have different names.
pub async fn snapshots_at_one_time_are_distinct<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (name, none) = (blob("b"), AccessConditions::default());
    site.put(&name, b"one").await;
    let now = site.now();
    let mut taken = Vec::new();
    for _ in 0..5 {
        taken.push(site.blobs.snapshot_blob(site.at(&name), None, &none, now).await.expect("a snapshot").0);
    }
    taken.dedup();
    assert_eq!(taken.len(), 5);
}

/// Overwriting a blob with many snapshots reads only a few of them to find garbage.
pub async fn an_overwrite_does_not_read_all_snapshots<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (name, none) = (blob("b"), AccessConditions::default());
    let at = site.at(&name);
    let count = site.rounds(1500, 60);
    for n in 0..count {
        // Now more and now fewer snapshots have the same content.
        if n % 3 != 1 {
            site.put(&name, &n.to_be_bytes()).await;
        }
        site.blobs.snapshot_blob(at, None, &none, site.now()).await.expect("a snapshot");
    }
    let payloads = site.payloads();
    for content in ["shared with the last snapshot", "shared with none"] {
        let before = site.visited();
        site.put(&name, content.as_bytes()).await;
        let visited = site.visited() - before;
        assert!(visited <= 4, "{visited} rows were read of a blob with {count} snapshots");
    }
    site.expect_payloads(payloads + 1, "the content that no snapshot has is gone").await;
    let include = Some(DeleteSnapshots::Include);
    site.blobs.delete_blob(at, include, &none, site.now()).await.expect("it is deleted");
    site.expect_payloads(0, "nothing is left").await;
}
