//! Payloads and rows live as long as something points to them.

use super::appends::{append, put_append};
use super::pages::{put_page_blob, write};
use super::site::{ACCOUNT, Site, blob, filled, id, refused};
use larimar_engine::blob::bytes::{ByteStore, Extent, Owner, Owners};
use larimar_engine::blob::{AccessConditions, BlobReject, ListQuery, NewBlob, Reclaimer};
use larimar_engine::{Engine, EngineError, SpaceId, Spaces as _};
use larimar_model::blob::{BlobName, BlockListEntry, BlockListKind, Conditions, ETagCondition, ListInclude, PageRange};
use std::sync::{Arc, Mutex};
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
    site.blobs
        .delete_blob(site.at(&name), None, &AccessConditions::default(), site.now())
        .await
        .expect("it is deleted");
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

/// A refused write leaves no bytes.
pub async fn refused_writes_leave_nothing<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    let conditions = Conditions { if_match: Some(ETagCondition::Foreign), ..Conditions::NONE };
    let access = AccessConditions { conditions, ..AccessConditions::default() };
    assert_eq!(site.put_if(&name, b"x", &access).await, refused(BlobReject::ConditionNotMet));
    let extent = site.payload(&name, b"x").await;
    let append = site.blobs.append_block(site.at(&name), extent, Default::default(), &access, site.now()).await;
    assert_eq!(append, refused(BlobReject::BlobNotFound));
    site.expect_payloads(0, "nothing was kept").await;
    assert_eq!(site.rows().await, []);
}

/// A block that several lists and snapshots share is kept until the last of them is deleted.
pub async fn commits_and_snapshots_keep_what_they_share<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (name, none) = (blob("b"), AccessConditions::default());
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

/// Reclaiming removes the bytes of a deleted container, and none that rows point to.
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
    assert_eq!(site.blobs.owners(site.now()).release(owner, &[orphan]).await, Ok(vec![true]));
    let container = "container".parse().expect("a name");
    site.blobs
        .delete_container(ACCOUNT, &container, &AccessConditions::default(), site.now())
        .await
        .expect("it is deleted");
    site.blobs.bytes().reclaim(&site.blobs.owners(site.now())).await.expect("it is reclaimed");
    site.expect_payloads(1, "the other container's").await;
    let owner = Owner { space: other_id, blob: "kept" };
    assert_eq!(site.blobs.owners(site.now()).release(owner, &[extent, orphan]).await, Ok(vec![false, true]));
    let elsewhere = Owner { space: other_id, blob: "b" };
    assert_eq!(site.blobs.owners(site.now()).release(elsewhere, &[extent]).await, Ok(vec![true]));
}

/// The `Reclaimer` removes the bytes of a deleted container: blobs of every type, their snapshots and uncommitted
/// blocks. It may stop at any point and start again.
pub async fn the_bytes_of_a_deleted_container_are_reclaimed<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let none = AccessConditions::default();
    let (long, disk, log, begun) = (blob("long"), blob("disk"), blob("log"), blob("begun"));
    for n in 0..300 {
        site.put_block(&long, &id(n), &filled(n as u8, 20)).await.expect("a block");
    }
    let list: Vec<_> = (0..300).map(|n| BlockListEntry::Latest(id(n))).collect();
    site.commit(&long, &list).await.expect("it is committed");
    site.blobs.snapshot_blob(site.at(&long), None, &none, site.now()).await.expect("a snapshot");
    site.put(&long, b"other").await;
    put_page_blob(site, &disk, 64 << 10).await;
    write(site, &disk, 0, &filled(1, 1024)).await.expect("pages");
    put_append(site, &log).await;
    append(site, &log, b"line", Default::default()).await.expect("it is appended");
    site.put_block(&begun, &id(1), b"block").await.expect("a block");
    site.expect_payloads(304, "all").await;

    let container = "container".parse().expect("a name");
    site.blobs.delete_container(ACCOUNT, &container, &none, site.now()).await.expect("it is deleted");
    for steps in 0..4 {
        let mut cut_off = Reclaimer::new(Duration::from_secs(3600));
        for _ in 0..steps {
            cut_off.step(&site.blobs).await.expect("no fault");
        }
    }
    let mut reclaimer = Reclaimer::new(Duration::ZERO);
    let other = site.second();
    while reclaimer.step(&other.blobs).await.expect("no fault") {}
    site.expect_payloads(0, "all is reclaimed").await;
    assert_eq!(other.blobs.engine().claim_dropped(SpaceId::SYSTEM).await, Ok(None));
}

/// A write whose bytes another server reclaimed is refused, whichever operation commits them and whatever happened to
/// the blob meanwhile; readers notice nothing, and the same write succeeds when it is repeated.
pub async fn a_write_that_a_sweep_overtakes_is_refused<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (new, none, other) = (NewBlob::default(), AccessConditions::default(), site.second());
    for state in ["absent", "there", "deleted", "replaced"] {
        for kind in ["whole", "block", "append", "pages"] {
            let name = blob(&format!("{state}-{kind}"));
            let at = site.at(&name);
            let create = async || match kind {
                "append" => drop(site.blobs.put_append_blob(at, &new, &none, site.now()).await.expect("a blob")),
                "pages" => put_page_blob(site, &name, 1024).await,
                _ => drop(site.put(&name, b"first").await),
            };
            if state != "absent" {
                create().await;
            }
            let extent = site.payload(&name, &filled(1, 512)).await;
            other.blobs.bytes().reclaim(&other.blobs.owners(site.now())).await.expect("it is reclaimed");
            match state {
                "deleted" => site.blobs.delete_blob(at, None, &none, site.now()).await.expect("it is deleted"),
                "replaced" => create().await,
                _ => {}
            }
            if state == "absent" || state == "deleted" {
                let include = ListInclude { uncommitted: true, ..Default::default() };
                let query = ListQuery { prefix: name.as_str().to_owned(), items_max: 9, include, ..Default::default() };
                assert!(site.list(&query).await.items.is_empty(), "{name:?} is listed");
                let list = site.blobs.block_list(at, None, BlockListKind::All, &none, site.now()).await;
                assert_eq!(list, refused(BlobReject::BlobNotFound), "{name:?}");
            }
            let is_missing = matches!((state, kind), ("absent" | "deleted", "append" | "pages"));
            let expected = if is_missing { BlobReject::BlobNotFound } else { BlobReject::WriteTooLate };
            assert_eq!(commit_payload(site, &name, kind, extent).await, refused(expected), "{name:?}");
            if is_missing {
                create().await;
                assert_eq!(commit_payload(site, &name, kind, extent).await, refused(BlobReject::WriteTooLate));
            }
            let again = site.payload(&name, &filled(2, 512)).await;
            commit_payload(site, &name, kind, again).await.expect("it is repeated");
            let found = site.read(&name).await;
            assert!(found.is_ok() || kind == "block", "{name:?}: {found:?}");
        }
    }
}

async fn commit_payload<E: Engine, B: ByteStore>(
    site: &Site<E, B>,
    name: &BlobName,
    kind: &str,
    extent: Extent,
) -> Result<(), EngineError> {
    let (at, new, none, now) = (site.at(name), NewBlob::default(), AccessConditions::default(), site.now());
    match kind {
        "whole" => site.blobs.put_block_blob(at, Some(extent), &new, &none, now).await.map(drop),
        "block" => site.blobs.put_block(at, &id(1), extent, None, now).await,
        "append" => site.blobs.append_block(at, extent, Default::default(), &none, now).await.map(drop),
        _ => {
            let range = PageRange::new(0, 512).expect("pages");
            site.blobs.put_pages(at, (range, extent), Default::default(), &none, now).await.map(drop)
        }
    }
}

/// Reclaiming takes nothing from an operation of the same process, however long that takes.
pub async fn a_write_under_way_is_not_swept<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    let hold = site.blobs.hold(site.at(&name));
    let extent = site.payload(&name, b"slow").await;
    let left = site.payload(&blob("other"), b"left").await;
    let reclaimed = site.blobs.bytes().reclaim(&site.blobs.owners(site.now())).await.expect("it is reclaimed");
    assert_eq!((reclaimed.seen, reclaimed.removed, reclaimed.removed_bytes), (2, 1, left.length));
    commit_payload(site, &name, "whole", extent).await.expect("it is put");
    drop(hold);
    site.blobs.bytes().reclaim(&site.blobs.owners(site.now())).await.expect("it is reclaimed");
    assert_eq!(site.read(&name).await, Ok(b"slow".to_vec()));
}

/// A server releases payloads while another one commits them, at any moment of that: either the commit is refused or
/// the bytes are there.
pub async fn a_sweep_beside_a_commit_takes_nothing_committed<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    for after in 0..12 {
        for kind in ["whole", "block"] {
            let name = blob(&format!("{kind}-{after}"));
            let extent = site.payload(&name, b"bytes").await;
            let (other, of, now) = (site.second(), name.clone(), site.now());
            let done = Arc::new(Mutex::new(None));
            let outcome = Arc::clone(&done);
            let commit = async move {
                let mut put = commit_payload(&other, &of, kind, extent).await;
                if put.is_ok() && kind == "block" {
                    put = other.commit(&of, &[BlockListEntry::Latest(id(1))]).await.map(drop);
                }
                *outcome.lock().expect("no panic while locked") = Some(put);
            };
            let owners = site.blobs.owners(now);
            let sweep = site.blobs.bytes().reclaim(&owners);
            site.interrupted(vec![(after, Box::pin(commit))], sweep).await.expect("it is reclaimed");
            let committed = done.lock().expect("no panic while locked").take();
            match committed {
                Some(Ok(())) => {
                    let found = site.read(&name).await;
                    assert_eq!(found, Ok(b"bytes".to_vec()), "{name:?}: an acknowledged blob is lost");
                }
                Some(Err(EngineError::Reject(_))) | None => {}
                Some(Err(fault)) => panic!("{fault}"),
            }
        }
    }
}

/// The row that refuses late writes is removed a day later, when no such write can be under way.
pub async fn what_a_sweep_remembers_is_forgotten_after_a_day<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    site.payload(&name, b"left").await;
    site.blobs.bytes().reclaim(&site.blobs.owners(site.now())).await.expect("it is reclaimed");
    site.blobs.reclaim_container(site.container, site.now()).await.expect("it is reclaimed");
    assert_eq!(site.rows().await.len(), 1);
    site.advance(Duration::from_secs(90_000)).await;
    site.blobs.reclaim_container(site.container, site.now()).await.expect("it is reclaimed");
    assert_eq!(site.rows().await, []);
}

/// Uncommitted blocks are removed a week after the last of them; blobs and younger blocks stay.
pub async fn blocks_that_nobody_commits_are_removed_after_a_week<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (lost, begun, whole) = (blob("lost"), blob("begun"), blob("whole"));
    site.put_block(&lost, &id(1), b"block").await.expect("a block");
    site.put(&whole, b"whole").await;
    site.put_block(&whole, &id(1), b"block").await.expect("a block");
    // The engine's clock may differ from the site's: the pass is given a time far ahead of both.
    let young =
        site.blobs.reclaim_container(site.container, larimar_model::Timestamp::EDM_MIN).await.expect("it is reclaimed");
    assert_eq!((young.expired, young.rows), (0, 0));
    site.advance(Duration::from_secs(8 * 86_400 * 365)).await;
    let reclaimed = site.blobs.reclaim_container(site.container, site.now()).await.expect("it is reclaimed");
    assert_eq!((reclaimed.expired, reclaimed.rows), (2, 2));
    site.put_block(&begun, &id(1), b"block").await.expect("a block");
    assert_eq!(site.commit(&lost, &[BlockListEntry::Latest(id(1))]).await, refused(BlobReject::InvalidBlockList));
    assert_eq!(site.read(&whole).await, Ok(b"whole".to_vec()));
    assert_eq!(site.rows().await.len(), 3);
    site.expect_payloads(2, "a blob and a block").await;
}
