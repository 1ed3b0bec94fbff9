//! Several servers change the same blobs: no server reclaims bytes of a write that another has acknowledged. The stores
//! have no grace period here, so what is discarded by mistake is lost at once.

use super::appends::append;
use super::concurrency::is_refused;
use super::counting::Interruption;
use super::pages::write;
use super::site::{Site, blob, filled, id};
use crate::Dice;
use futures_util::future::join_all;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{AccessConditions, BlobReject, ListItem, ListQuery, NewBlob};
use larimar_engine::{Engine, EngineError, Reject};
use larimar_model::blob::{
    BlobName, BlobType, BlockListEntry, DeleteSnapshots, ListInclude, PageRange, SequenceConditions, SnapshotTime,
};

/// Three servers write, snapshot and delete the same block, page and append blobs: every snapshot that was acknowledged and
/// not deleted reads at the end as it did when it was taken, and every blob is whole.
pub async fn three_servers_keep_every_snapshot_they_acknowledge<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let servers = [site.second(), site.second(), site.second()];
    let kinds = [(blob("block"), BlobType::Block), (blob("page"), BlobType::Page), (blob("log"), BlobType::Append)];
    for (name, kind) in &kinds {
        let mut seen = 0;
        // How often they conflict depends on the machine, so the test runs until there were enough conflicts.
        for round in 0..ROUNDS_MAX {
            let work = servers.iter().enumerate().flat_map(|(number, server)| {
                (0..3).map(move |worker| work(server, name, *kind, 100 * round + 10 * number as u64 + worker))
            });
            let taken: Vec<_> = join_all(work).await.into_iter().flatten().collect();
            seen += taken.len();
            expect_snapshots(site, name, taken).await;
            expect_whole(site, name).await;
            site.blobs.reclaim_container(site.container, site.now()).await.expect("it is reclaimed");
            expect_whole(site, name).await;
            if seen > 10 {
                break;
            }
        }
        assert!(seen > 10, "{seen} snapshots are too few to tell");
    }
}

/// Every snapshot holds what it held when it was taken, unless another server deleted it.
async fn expect_snapshots<E: Engine, B: ByteStore>(
    site: &Site<E, B>,
    name: &BlobName,
    taken: Vec<(SnapshotTime, Vec<u8>)>,
) {
    for (time, content) in taken {
        match site.read_of(name, Some(time), None).await {
            Ok(found) => assert!(found == content, "{name:?}: a snapshot changed"),
            Err(EngineError::Reject(Reject::Blob(BlobReject::BlobNotFound))) => {}
            Err(lost) => panic!("{name:?}: a snapshot is lost: {lost}"),
        }
    }
}

/// What one worker of a server does; returns the snapshots that it took, with what they held then.
async fn work<E: Engine, B: ByteStore>(
    site: &Site<E, B>,
    name: &BlobName,
    kind: BlobType,
    seed: u64,
) -> Vec<(SnapshotTime, Vec<u8>)> {
    let none = AccessConditions::default();
    let mut dice = Dice::new(seed);
    let mut taken = Vec::new();
    for step in 0..40_u64 {
        let at = site.at(name);
        let fill = (seed * 40 + step) as u8;
        let done = match dice.below(8) {
            0 => {
                let snapshots = [None, Some(DeleteSnapshots::Only), Some(DeleteSnapshots::Include)];
                site.blobs.delete_blob(at, *dice.pick(&snapshots), &none, site.now()).await
            }
            1 if !taken.is_empty() => {
                let (time, _) = taken.swap_remove(dice.below(taken.len() as u64) as usize);
                site.blobs.delete_snapshot(at, time, &none, site.now()).await
            }
            1..=3 => match site.blobs.snapshot_blob(at, None, &none, site.now()).await {
                Ok((time, _)) => match site.read_of(name, Some(time), None).await {
                    Ok(content) => {
                        taken.push((time, content));
                        Ok(())
                    }
                    other => other.map(drop),
                },
                Err(error) => Err(error),
            },
            _ => change(site, name, kind, fill, &mut dice).await,
        };
        match done {
            Ok(()) | Err(EngineError::Reject(_)) => {}
            // With so many concurrent changes of one blob, some run out of attempts.
            Err(EngineError::Fault(larimar_engine::Fault::Unavailable(text))) if text.contains("too many") => {}
            Err(fault) => panic!("{name:?} is damaged: {fault}"),
        }
    }
    taken
}

/// Changes a blob's bytes in one of the ways that its type has, or creates it.
async fn change<E: Engine, B: ByteStore>(
    site: &Site<E, B>,
    name: &BlobName,
    kind: BlobType,
    fill: u8,
    dice: &mut Dice,
) -> Result<(), EngineError> {
    let (none, new, at) = (AccessConditions::default(), NewBlob::default(), site.at(name));
    let create = dice.below(5) == 0;
    match kind {
        BlobType::Block if create => site.put_if(name, &filled(fill, 600), &none).await.map(drop),
        BlobType::Block => {
            let ids = [dice.below(4) as u32, dice.below(4) as u32];
            for n in ids {
                site.put_block(name, &id(n), &filled(fill, 300)).await?;
            }
            // Sometimes long enough for rows of its own.
            let repeats = if dice.below(3) == 0 { 70 } else { 1 };
            let list: Vec<_> = ids.repeat(repeats).into_iter().map(|n| BlockListEntry::Latest(id(n))).collect();
            let committed = site.commit(name, &list).await;
            committed.map(drop).or_else(|error| if is_refused(&error) { Ok(()) } else { Err(error) })
        }
        BlobType::Page if create => {
            site.blobs.put_page_blob(at, (64 << 10, 0), &new, &none, site.now()).await.map(drop)
        }
        BlobType::Page => {
            let start = dice.below(100) * 512;
            if dice.below(4) > 0 {
                return write(site, name, start, &filled(fill, 1024)).await.map(drop);
            }
            let range = PageRange::new(start, start + 4096).expect("pages");
            site.blobs.clear_pages(at, range, SequenceConditions::default(), &none, site.now()).await.map(drop)
        }
        BlobType::Append if create => site.blobs.put_append_blob(at, &new, &none, site.now()).await.map(drop),
        BlobType::Append => {
            // Many at a time, so that some become rows of their own.
            for n in 0..10 {
                append(site, name, &filled(fill.wrapping_add(n), 20), Default::default()).await?;
            }
            Ok(())
        }
    }
}

/// Reads a blob and all of its snapshots.
async fn expect_whole<E: Engine, B: ByteStore>(site: &Site<E, B>, name: &BlobName) {
    let include = ListInclude { snapshots: true, ..Default::default() };
    let query = ListQuery { items_max: 5_000, include, ..Default::default() };
    for item in site.list(&query).await.items {
        let ListItem::Blob(found) = item else { panic!("no prefixes") };
        let name_of = blob(&found.name);
        if name_of.as_str() == name.as_str() {
            let read = site.read_of(name, found.snapshot, None).await;
            assert!(read.is_ok(), "{name:?} {:?}: {read:?}", found.snapshot);
        }
    }
}

/// A server puts a block and commits it while another one reclaims after an overwrite, at any two moments of that: a
/// block that is uncommitted at one moment and committed at the next is not taken for garbage.
pub async fn a_block_that_is_committed_beside_a_cleaning_stays<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    for (first, second) in moments() {
        let name = blob(&format!("b-{first}-{second}"));
        site.put(&name, b"first").await;
        let none = AccessConditions::default();
        site.blobs.snapshot_blob(site.at(&name), None, &none, site.now()).await.expect("a snapshot");
        let extent = site.payload(&name, b"second").await;
        let others = vec![
            interruption(site, &name, first, |site, name| async move { site.put_block(&name, &id(1), b"block").await }),
            interruption(site, &name, second, |site, name| async move {
                site.commit(&name, &[BlockListEntry::Latest(id(1))]).await.map(drop)
            }),
        ];
        let new = NewBlob::default();
        let put = site.blobs.put_block_blob(site.at(&name), Some(extent), &new, &none, site.now());
        site.interrupted(others, put).await.expect("it is put");
        expect_whole(site, &name).await;
    }
}

/// A server puts a block again while another one commits it, at any moment of that: one of the two blocks is committed,
/// and its bytes are there.
pub async fn a_block_that_is_put_again_beside_a_commit_stays<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    for (first, second) in moments() {
        let name = blob(&format!("b-{first}-{second}"));
        site.put_block(&name, &id(1), b"one").await.expect("a block");
        let others = vec![
            interruption(site, &name, first, |site, name| async move { site.put_block(&name, &id(1), b"two").await }),
            interruption(
                site,
                &name,
                second,
                |site, name| async move { site.put_block(&name, &id(1), b"three").await },
            ),
        ];
        let list = [BlockListEntry::Latest(id(1))];
        site.interrupted(others, site.commit(&name, &list)).await.expect("it is committed");
        let found = site.read(&name).await.expect("its bytes are there");
        assert!([&b"one"[..], b"two", b"three"].contains(&&found[..]), "{found:?}");
    }
}

/// A server takes a snapshot of a page blob and writes pages while another one reclaims after a snapshot, at any two
/// moments of that: all pages of the blob and of the new snapshot are complete.
pub async fn pages_written_beside_a_cleaning_stay<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let none = AccessConditions::default();
    for (first, second) in moments() {
        let name = blob(&format!("p-{first}-{second}"));
        site.blobs
            .put_page_blob(site.at(&name), (4096, 0), &NewBlob::default(), &none, site.now())
            .await
            .expect("it is put");
        write(site, &name, 0, &filled(1, 1024)).await.expect("pages");
        let (old, _) = site.blobs.snapshot_blob(site.at(&name), None, &none, site.now()).await.expect("a snapshot");
        write(site, &name, 512, &filled(2, 1024)).await.expect("pages");
        let others = vec![
            interruption(site, &name, first, |site, name| async move {
                site.blobs.snapshot_blob(site.at(&name), None, &AccessConditions::default(), site.now()).await.map(drop)
            }),
            interruption(site, &name, second, |site, name| async move {
                write(&site, &name, 1024, &filled(3, 512)).await.map(drop)
            }),
        ];
        let deleted = site.blobs.delete_snapshot(site.at(&name), old, &none, site.now());
        site.interrupted(others, deleted).await.expect("it is deleted");
        expect_whole(site, &name).await;
        let found = site.read(&name).await.expect("it is read");
        assert!(found[..512] == filled(1, 1024)[..512] && found[512..1024] == filled(2, 1024)[..512]);
    }
}

/// Pairs of moments in an operation: the number of engine calls before the first, and between the two.
fn moments() -> impl Iterator<Item = (u64, u64)> {
    (0..10).flat_map(|first| (0..10).map(move |second| (first, second)))
}

/// What another server does before a call of the engine.
pub(super) fn interruption<E: Engine, B: ByteStore, F>(
    site: &Site<E, B>,
    name: &BlobName,
    after: u64,
    act: impl FnOnce(Site<E, B>, BlobName) -> F,
) -> Interruption
where
    F: Future<Output = Result<(), EngineError>> + Send + 'static,
{
    let done = act(site.second(), name.clone());
    let done = async move {
        match done.await {
            Ok(()) | Err(EngineError::Reject(_)) => {}
            Err(fault) => panic!("{fault}"),
        }
    };
    (after, Box::pin(done))
}

const ROUNDS_MAX: u64 = 50;
