//! Reads during changes: whatever another server does between two calls of the engine, a read returns one version.

use super::pages::{bounds, put_page_blob, write};
use super::servers::interruption;
use super::site::{Site, blob, drain, filled, id, names, plain_copy, refused};
use larimar_engine::Engine;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{AccessConditions, BlobReject, ListQuery};
use larimar_model::Metadata;
use larimar_model::blob::{BlockListEntry, BlockListKind, DeleteSnapshots, ListInclude};

/// Moments at which another server makes its change: more than the engine calls of any of these reads.
const MOMENTS: u64 = 8;

/// A read never returns new pages with an old etag.
pub async fn an_etag_comes_with_the_pages_of_its_version<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let none = AccessConditions::default();
    for moment in 0..MOMENTS {
        let name = blob(&format!("disk-{moment}"));
        put_page_blob(site, &name, 1024).await;
        let first = write(site, &name, 0, &filled(1, 1024)).await.expect("pages").written.etag();
        let others = vec![interruption(site, &name, moment, |site, name| async move {
            write(&site, &name, 0, &filled(2, 1024)).await.map(drop)
        })];
        let open = site.interrupted(others, site.blobs.open(site.at(&name), None, None, &none, site.now())).await;
        let open = open.expect("it is there");
        let is_first = open.properties.etag() == first;
        // The first bytes may be removed by now, but never replaced by others.
        match drain(open).await {
            Ok(bytes) => assert_eq!(bytes == filled(1, 1024), is_first, "moment {moment}"),
            Err(error) => assert!(is_first, "moment {moment}: {error:?}"),
        }
    }
}

/// Get Page Ranges returns the pages of the version whose etag it returns.
pub async fn a_list_of_pages_is_of_one_version<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let none = AccessConditions::default();
    for moment in 0..MOMENTS {
        let name = blob(&format!("disk-{moment}"));
        put_page_blob(site, &name, 1024).await;
        let first = write(site, &name, 0, &filled(1, 512)).await.expect("pages").written.etag();
        let others = vec![interruption(site, &name, moment, |site, name| async move {
            write(&site, &name, 512, &filled(2, 512)).await.map(drop)
        })];
        let list = site.blobs.page_ranges(site.at(&name), (None, None), None, &none, site.now());
        let list = site.interrupted(others, list).await.expect("it is there");
        let expected = if list.properties.etag() == first { (0, 512) } else { (0, 1024) };
        assert_eq!(bounds(list.written), [expected], "moment {moment}");
    }
}

/// Changes since a snapshot are computed from that snapshot, or refused.
pub async fn changes_since_a_snapshot_that_is_deleted_meanwhile_are_refused<E: Engine, B: ByteStore>(
    site: &Site<E, B>,
) {
    let none = AccessConditions::default();
    for (moment, is_of_snapshot) in (0..2 * MOMENTS).map(|moment| (moment / 2, moment % 2 == 0)) {
        let name = blob(&format!("disk-{moment}-{is_of_snapshot}"));
        let at = site.at(&name);
        put_page_blob(site, &name, 1024).await;
        write(site, &name, 0, &filled(1, 1024)).await.expect("pages");
        let (since, _) = site.blobs.snapshot_blob(at, None, &none, site.now()).await.expect("a snapshot");
        write(site, &name, 0, &filled(2, 512)).await.expect("pages");
        let (later, _) = site.blobs.snapshot_blob(at, None, &none, site.now()).await.expect("a snapshot");
        // All pages are in rows of the later snapshot, so that the earlier one's are reclaimed.
        let others = vec![interruption(site, &name, moment, move |site, name| async move {
            site.blobs.delete_snapshot(site.at(&name), since, &AccessConditions::default(), site.now()).await
        })];
        let of = is_of_snapshot.then_some(later);
        let list = site.blobs.page_ranges(at, (of, Some(since)), None, &none, site.now());
        match site.interrupted(others, list).await {
            Ok(list) => assert_eq!(bounds(list.written), [(0, 512)], "moment {moment}"),
            other => assert_eq!(other, refused(BlobReject::PreviousSnapshotNotFound), "moment {moment}"),
        }
    }
}

/// A copy has the pages of the version whose metadata it has.
pub async fn a_copy_of_pages_is_of_one_version<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let none = AccessConditions::default();
    for moment in 0..MOMENTS {
        let (name, copy) = (blob(&format!("disk-{moment}")), blob(&format!("copy-{moment}")));
        put_page_blob(site, &name, 1024).await;
        // With a snapshot, overwritten bytes stay until the next pass.
        site.blobs.snapshot_blob(site.at(&name), None, &none, site.now()).await.expect("a snapshot");
        write(site, &name, 0, &filled(1, 1024)).await.expect("pages");
        let others = vec![interruption(site, &name, moment, |site, name| async move {
            let mut metadata = Metadata::new();
            metadata.insert("version", "2").expect("metadata");
            site.blobs.set_metadata(site.at(&name), &metadata, &AccessConditions::default(), site.now()).await?;
            write(&site, &name, 0, &filled(2, 1024)).await.map(drop)
        })];
        let source = site.source(&name, None);
        let request = plain_copy();
        let copied = site.blobs.copy_blob(&source, site.at(&copy), &request, &none, site.now());
        site.interrupted(others, copied).await.expect("it is copied");
        let properties = site.blobs.properties(site.at(&copy), None, &none, site.now()).await.expect("it is there");
        let is_first = properties.metadata.iter().len() == 0;
        assert_eq!(site.read(&copy).await == Ok(filled(1, 1024)), is_first, "moment {moment}");
    }
}

/// Blocks are listed as committed or as uncommitted, all of a commit alike.
pub async fn a_list_of_blocks_is_of_one_version<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let none = AccessConditions::default();
    for moment in 0..MOMENTS {
        let name = blob(&format!("b-{moment}"));
        for number in 0..3 {
            site.put_block(&name, &id(number), b"block").await.expect("a block");
        }
        let others = vec![interruption(site, &name, moment, |site, name| async move {
            let list: Vec<_> = (0..3).map(|number| BlockListEntry::Latest(id(number))).collect();
            site.commit(&name, &list).await.map(drop)
        })];
        let list = site.blobs.block_list(site.at(&name), None, BlockListKind::All, &none, site.now());
        let list = site.interrupted(others, list).await.expect("it is there");
        let counts = (list.committed.len(), list.uncommitted.len());
        assert!([(0, 3), (3, 0)].contains(&counts), "moment {moment}: {counts:?}");
    }
}

/// A listing with snapshots has each version of a blob once; of a blob that changes meanwhile it has the state before
/// or after.
pub async fn a_listing_beside_changes_has_each_version_once<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let none = AccessConditions::default();
    let query = ListQuery {
        items_max: 100,
        include: ListInclude { snapshots: true, ..ListInclude::default() },
        ..ListQuery::default()
    };
    for moment in 0..MOMENTS {
        let name = blob("b");
        site.put(&name, b"one").await;
        for _ in 0..3 {
            site.blobs.snapshot_blob(site.at(&name), None, &none, site.now()).await.expect("a snapshot");
        }
        let others = vec![interruption(site, &name, moment, |site, name| async move {
            let include = Some(DeleteSnapshots::Include);
            site.blobs.delete_blob(site.at(&name), include, &AccessConditions::default(), site.now()).await
        })];
        let page = site.blobs.list_blobs(site.container, &query, site.now());
        let page = site.interrupted(others, page).await.expect("a page");
        let listed = names(&page);
        assert!(listed.is_empty() || listed == ["b@", "b@", "b@", "b"], "moment {moment}: {listed:?}");
        let include = Some(DeleteSnapshots::Include);
        let _ = site.blobs.delete_blob(site.at(&name), include, &none, site.now()).await;
    }
}
