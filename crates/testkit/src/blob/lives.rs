//! Payloads and rows live as long as something points to them.

use super::site::{ACCOUNT, Site, blob, filled, id, refused};
use larimar_engine::Engine;
use larimar_engine::blob::bytes::{ByteStore, Owner, Owners};
use larimar_engine::blob::{Access, BlobReject};
use larimar_model::blob::{BlockListEntry, Conditions, ETagCondition};
use std::time::Duration;

/// Overwrites and deletions leave nothing.
pub async fn what_is_replaced_or_deleted_is_removed<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    for n in 0..5 {
        site.put(&name, &filled(n, 100)).await;
    }
    site.expect_payloads(1, "the last").await;
    for n in 0..5 {
        site.put_block(&name, &id(n), b"block").await.expect("a block");
    }
    site.put(&name, b"").await;
    site.expect_payloads(0, "an empty blob has none").await;
    site.put(&name, b"x").await;
    site.blobs.delete_blob(site.at(&name), None, &Access::default(), site.now()).await.expect("it is deleted");
    site.expect_payloads(0, "all").await;
    assert_eq!(site.rows().await, []);
}

/// A block that is put again under its id takes the place of the first, whose bytes are removed at once.
pub async fn a_block_that_is_put_again_leaves_nothing<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    for n in 0..5 {
        site.put_block(&name, &id(1), &filled(n, 100)).await.expect("a block");
        site.put_block(&name, &id(2), &filled(n, 100)).await.expect("a block");
    }
    site.expect_payloads(2, "the last of each").await;
    site.commit(&name, &[BlockListEntry::Latest(id(1))]).await.expect("it is committed");
    site.expect_payloads(1, "the one that was named").await;
    assert_eq!(site.read(&name).await, Ok(filled(4, 100)));
}

/// What is refused is discarded with its bytes.
pub async fn refused_writes_leave_nothing<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    let conditions = Conditions { if_match: Some(ETagCondition::Foreign), ..Conditions::NONE };
    let access = Access { conditions, lease: None };
    assert_eq!(site.put_if(&name, b"x", &access).await, refused(BlobReject::ConditionNotMet));
    let extent = site.payload(&name, b"x").await;
    let append = site.blobs.append_block(site.at(&name), extent, Default::default(), &access, site.now()).await;
    assert_eq!(append, refused(BlobReject::BlobNotFound));
    site.expect_payloads(0, "nothing was kept").await;
    assert_eq!(site.rows().await, []);
}

/// A block that several lists and snapshots share lives until the last of them goes.
pub async fn commits_and_snapshots_keep_what_they_share<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (name, none) = (blob("b"), Access::default());
    let at = site.at(&name);
    for n in 0..4 {
        site.put_block(&name, &id(n), &filled(n as u8, 50)).await.expect("a block");
    }
    let entry = |n| BlockListEntry::Latest(id(n));
    site.commit(&name, &[0, 1, 2, 3].map(entry)).await.expect("it is committed");
    let (taken, _) = site.blobs.snapshot_blob(at, None, &none, site.now()).await.expect("a snapshot");
    site.commit(&name, &[1, 2].map(entry)).await.expect("it is committed");
    site.put_block(&name, &id(9), b"nine").await.expect("a block");
    site.commit(&name, &[2, 9].map(entry)).await.expect("it is committed");
    site.expect_payloads(5, "four of the snapshot, one of the blob").await;
    let all: Vec<u8> = (0..4).flat_map(|n| filled(n, 50)).collect();
    assert_eq!(site.read_of(&name, Some(taken), None).await, Ok(all));
    site.blobs.delete_snapshot(at, taken, &none, site.now()).await.expect("it is deleted");
    site.expect_payloads(2, "two of the blob").await;
    assert_eq!(site.read(&name).await, Ok([&filled(2, 50)[..], b"nine"].concat()));
}

/// The bytes of a deleted container are found by the sweep; those that rows point to are not touched.
pub async fn a_sweep_removes_what_a_container_left<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (name, kept) = (blob("b"), blob("kept"));
    let other = "other".parse().expect("a name");
    let created = site.blobs.create_container(ACCOUNT, &other, &Default::default(), site.now()).await;
    let other_id = created.expect("a container").id;
    let at = larimar_engine::blob::BlobRef { container: other_id, name: &kept };
    let extent = {
        use larimar_engine::blob::bytes::{ByteWriter, Bytes};
        let mut writer = site.blobs.begin(at, None).await.expect("a payload");
        writer.write(Bytes::from_static(b"kept")).await.expect("bytes");
        writer.finish().await.expect("a payload")
    };
    site.blobs.put_block(at, &id(1), extent, None, site.now()).await.expect("a block");
    site.put(&name, b"lost").await;
    let orphan = site.payload(&name, b"never committed").await;
    let owner = Owner { space: site.container, blob: "b" };
    assert_eq!(site.blobs.live(owner, &[orphan]).await, Ok(vec![false]));
    let container = "container".parse().expect("a name");
    site.blobs.delete_container(ACCOUNT, &container, &Access::default(), site.now()).await.expect("it is deleted");
    site.blobs.bytes().sweep(&*site.blobs).await.expect("a sweep");
    site.expect_payloads(1, "the other container's").await;
    let owner = Owner { space: other_id, blob: "kept" };
    assert_eq!(site.blobs.live(owner, &[extent, orphan]).await, Ok(vec![true, false]));
    let elsewhere = Owner { space: other_id, blob: "b" };
    assert_eq!(site.blobs.live(elsewhere, &[extent]).await, Ok(vec![false]));
}

/// Blocks are forgotten a week after the last of them, blobs and younger blocks are not.
pub async fn blocks_that_nobody_commits_are_removed_after_a_week<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (lost, begun, whole) = (blob("lost"), blob("begun"), blob("whole"));
    site.put_block(&lost, &id(1), b"block").await.expect("a block");
    site.put(&whole, b"whole").await;
    site.put_block(&whole, &id(1), b"block").await.expect("a block");
    // The engine's clock may be another than the site's: the sweep is told a time that is far ahead of both.
    let young = site.blobs.sweep_container(site.container, larimar_model::Timestamp::EDM_MIN).await.expect("a sweep");
    assert_eq!((young.abandoned, young.rows), (0, 0));
    site.advance(Duration::from_secs(8 * 86_400 * 365)).await;
    let swept = site.blobs.sweep_container(site.container, site.now()).await.expect("a sweep");
    assert_eq!((swept.abandoned, swept.rows), (2, 2));
    site.put_block(&begun, &id(1), b"block").await.expect("a block");
    assert_eq!(site.commit(&lost, &[BlockListEntry::Latest(id(1))]).await, refused(BlobReject::InvalidBlockList));
    assert_eq!(site.read(&whole).await, Ok(b"whole".to_vec()));
    assert_eq!(site.rows().await.len(), 3);
    site.expect_payloads(2, "a blob and a block").await;
}
