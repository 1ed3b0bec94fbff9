//! Incremental copies: snapshots of a page blob become snapshots of another.

use super::appends::append;
use super::leases::OWN;
use super::pages::{bounds, clear, put_page_blob, resize, write};
use super::site::{Site, blob, filled, id, plain_copy, refused};
use crate::Dice;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{
    AccessConditions, BlobReject, IncrementalCopyRequest, LeaseReject, ListItem, ListQuery, NewBlob, Written,
};
use larimar_engine::{Engine, EngineError};
use larimar_model::blob::{
    BlobName, ByteRange, Conditions, ContentHeaders, CopyInfo, DeleteSnapshots, ETagCondition, LeaseAction,
    LeaseDuration, ListInclude, PageRange, SequenceConditions, SnapshotTime, Tags,
};
use larimar_model::{Guid, Metadata};

fn request(name: &BlobName) -> IncrementalCopyRequest {
    IncrementalCopyRequest {
        id: Guid([7; 16]),
        source_url: format!("http://127.0.0.1/account/container/{}?sig=secret", name.as_str()),
        source_blob: format!("account/container/{}", name.as_str()),
    }
}

pub(super) async fn copy<E: Engine, B: ByteStore>(
    site: &Site<E, B>,
    (from, snapshot): (&BlobName, SnapshotTime),
    to: &BlobName,
) -> Result<(Written, CopyInfo), EngineError> {
    let access = AccessConditions::default();
    let source = site.source(from, Some(snapshot));
    // Tests run one copy within another; their states are large and must not all be on one stack.
    Box::pin(site.blobs.copy_incremental(&source, site.at(to), &request(from), &access, site.now())).await
}

/// Copies a snapshot; returns that of the destination.
pub(super) async fn copied<E: Engine, B: ByteStore>(
    site: &Site<E, B>,
    from: (&BlobName, SnapshotTime),
    to: &BlobName,
) -> SnapshotTime {
    let (_, info) = copy(site, from, to).await.expect("it is copied");
    info.incremental.expect("it is incremental").snapshot
}

pub(super) async fn snapshot<E: Engine, B: ByteStore>(site: &Site<E, B>, name: &BlobName) -> SnapshotTime {
    let taken = site.blobs.snapshot_blob(site.at(name), None, &AccessConditions::default(), site.now()).await;
    taken.expect("a snapshot").0
}

/// The pages that a version has, and what was written and cleared since another.
async fn ranges<E: Engine, B: ByteStore>(
    site: &Site<E, B>,
    name: &BlobName,
    versions: (Option<SnapshotTime>, Option<SnapshotTime>),
) -> [Vec<(u64, u64)>; 2] {
    let list = site.blobs.page_ranges(site.at(name), versions, None, &AccessConditions::default(), site.now()).await;
    let list = list.expect("the pages");
    [bounds(list.written), bounds(list.cleared)]
}

/// The times of a blob's snapshots, as listed.
pub(super) async fn snapshots<E: Engine, B: ByteStore>(site: &Site<E, B>, name: &BlobName) -> Vec<SnapshotTime> {
    let include = ListInclude { snapshots: true, ..ListInclude::default() };
    let page = site.list(&ListQuery { include, ..super::lists::everything() }).await;
    let times = page.items.iter().filter_map(|item| match item {
        ListItem::Blob(listed) if listed.name == name.as_str() => listed.snapshot,
        ListItem::Blob(_) | ListItem::Prefix(_) => None,
    });
    times.collect()
}

/// The first copy creates the destination, later ones add a snapshot each; its properties show the last one.
pub async fn each_incremental_copy_is_a_snapshot_of_the_destination<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (from, to, none) = (blob("from"), blob("to"), AccessConditions::default());
    let mut metadata = Metadata::new();
    metadata.insert("of", "source").expect("metadata");
    let content = ContentHeaders { content_type: Some("disk/image".to_owned()), ..ContentHeaders::default() };
    let new = NewBlob { content: content.clone(), metadata: metadata.clone(), ..NewBlob::default() };
    site.blobs.put_page_blob(site.at(&from), (4096, 9), &new, &none, site.now()).await.expect("it is put");
    write(site, &from, 512, &filled(1, 1024)).await.expect("pages");
    let first = snapshot(site, &from).await;
    write(site, &from, 2048, &filled(2, 512)).await.expect("pages");
    clear(site, &from, 512, 1024).await.expect("cleared");
    let second = snapshot(site, &from).await;
    write(site, &from, 0, &filled(3, 4096)).await.expect("pages that no copy has");
    let mut taken = Vec::new();
    let mut last = None;
    for time in [first, second] {
        let (written, info) = copy(site, (&from, time), &to).await.expect("it is copied");
        let properties = site.blobs.properties(site.at(&to), None, &none, site.now()).await.expect("it is there");
        assert_eq!((properties.etag(), properties.copy.as_ref()), (written.etag(), Some(&info)));
        assert_eq!((properties.length, properties.sequence_number, info.length), (4096, 9, 4096));
        assert_eq!((&properties.content, &properties.metadata), (&content, &metadata));
        assert_eq!(info.source, "http://127.0.0.1/account/container/from", "without the signature");
        let incremental = info.incremental.expect("it is incremental");
        assert_eq!(incremental.source_snapshot, time);
        taken.push(incremental.snapshot);
        assert_eq!(snapshots(site, &to).await, taken);
        let made = site.blobs.properties(site.at(&to), Some(incremental.snapshot), &none, site.now()).await;
        assert_eq!(made.expect("the snapshot is there").copy, properties.copy);
        let (created, etag) = *last.get_or_insert((properties.created, properties.etag()));
        assert_eq!(properties.created, created, "it stays the same blob");
        assert_eq!(properties.etag() > etag, time == second);
    }
    for (copied, time) in taken.iter().zip([first, second]) {
        assert_eq!(site.read_of(&to, Some(*copied), None).await, site.read_of(&from, Some(time), None).await);
        assert_eq!(ranges(site, &to, (Some(*copied), None)).await, ranges(site, &from, (Some(time), None)).await);
    }
    let expected = [vec![(2048, 2560)], vec![(512, 1024)]];
    assert_eq!(ranges(site, &to, (Some(taken[1]), Some(taken[0]))).await, expected, "only what differs is copied");
    site.blobs.delete_blob(site.at(&to), Some(DeleteSnapshots::Include), &none, site.now()).await.expect("deleted");
    assert!(site.rows().await.iter().all(|(of, _)| of == from.as_str()), "nothing is left of the destination");
}

/// A copy writes the bytes and the rows of what has changed, however much there is.
pub async fn an_incremental_copy_costs_what_differs<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (from, to) = (blob("from"), blob("to"));
    put_page_blob(site, &from, 96 << 20).await;
    for region in 0..6 {
        write(site, &from, region * (16 << 20), &filled(region as u8, 100 * 1024)).await.expect("pages");
    }
    let first = copied(site, (&from, snapshot(site, &from).await), &to).await;
    write(site, &from, 32 << 20, &filled(9, 1024)).await.expect("pages");
    let time = snapshot(site, &from).await;
    let bytes = site.blobs.bytes().statistics().bytes_written;
    let (rows, _) = site.written();
    let second = copied(site, (&from, time), &to).await;
    assert_eq!(site.blobs.bytes().statistics().bytes_written - bytes, 1024);
    assert_eq!(site.written().0 - rows, 3, "the region, the snapshot and the blob");
    let changed = [vec![(32 << 20, (32 << 20) + 1024)], Vec::new()];
    assert_eq!(ranges(site, &to, (Some(second), Some(first))).await, changed);
    // What is the same is not copied at all.
    let again = snapshot(site, &from).await;
    let third = copied(site, (&from, again), &to).await;
    assert_eq!(site.blobs.bytes().statistics().bytes_written - bytes, 1024);
    assert_eq!(ranges(site, &to, (Some(third), Some(second))).await, [Vec::new(), Vec::new()]);
}

/// Random changes of the source: every snapshot of the destination reads as the one it was copied from, whichever
/// snapshots are deleted and wherever the engine stops.
pub async fn incremental_copies_read_as_their_sources_wherever_the_engine_stops<E: Engine, B: ByteStore>(
    site: &Site<E, B>,
) {
    let (from, to, none) = (blob("from"), blob("to"), AccessConditions::default());
    let mut dice = Dice::new(13);
    put_page_blob(site, &from, BASE + PAGES * 512).await;
    // What each snapshot of the destination holds.
    let mut expected: Vec<(SnapshotTime, Vec<u8>)> = Vec::new();
    for number in 0..site.rounds(300, 40) {
        for step in 0..dice.below(4) {
            change(site, &from, &mut dice, (number * 4 + step as u32) as u8).await;
        }
        let time = snapshot(site, &from).await;
        let content = tail(site, &from, time).await;
        match dice.below(3) {
            0 => {}
            1 => site.stop_after(dice.below(16)),
            _ => site.stop_after_write(),
        }
        let done = copy(site, (&from, time), &to).await;
        site.go_on();
        if let Err(error) = &done {
            assert!(matches!(error, EngineError::Fault(_)), "{error:?}");
        }
        let there = snapshots(site, &to).await;
        let new: Vec<_> = there.iter().filter(|time| expected.iter().all(|(known, _)| known != *time)).collect();
        match new[..] {
            [] => assert!(done.is_err(), "copy {number} is acknowledged and not there"),
            [new] => {
                let properties = site.blobs.properties(site.at(&to), None, &none, site.now()).await;
                let info = properties.expect("it is there").copy.expect("it is a copy");
                assert_eq!(info.incremental.map(|last| (last.snapshot, last.source_snapshot)), Some((*new, time)));
                expected.push((*new, content));
            }
            _ => panic!("a copy made several snapshots"),
        }
        assert_eq!(there.len(), expected.len(), "copy {number}: no snapshot is lost");
        if dice.below(3) == 0 && !expected.is_empty() {
            let (gone, _) = expected.swap_remove(dice.below(expected.len() as u64) as usize);
            site.blobs.delete_snapshot(site.at(&to), gone, &none, site.now()).await.expect("it is deleted");
        }
        if dice.below(8) == 0 {
            site.blobs.reclaim_container(site.container, site.now()).await.expect("it is reclaimed");
        }
        for (time, content) in &expected {
            assert!(tail(site, &to, *time).await == *content, "copy {number}: a snapshot has other bytes");
        }
        expected.truncate(6);
        for time in snapshots(site, &to).await.into_iter().filter(|time| expected.iter().all(|(kept, _)| kept != time))
        {
            site.blobs.delete_snapshot(site.at(&to), time, &none, site.now()).await.expect("it is deleted");
        }
    }
    assert!(!expected.is_empty(), "copies were made");
}

/// Where the pages of the random test begin: some in each of two regions.
const BASE: u64 = (16 << 20) - 4 * 512;
const PAGES: u64 = 8;

async fn change<E: Engine, B: ByteStore>(site: &Site<E, B>, name: &BlobName, dice: &mut Dice, seed: u8) {
    let properties = site.blobs.properties(site.at(name), None, &AccessConditions::default(), site.now()).await;
    let pages = (properties.expect("it is there").length - BASE) / 512;
    let start = dice.below(pages);
    let end = start + 1 + dice.below(pages - start);
    let (first, last) = (BASE + start * 512, BASE + end * 512);
    match dice.below(8) {
        0 => resize(site, name, BASE + (1 + dice.below(PAGES)) * 512).await,
        1..=2 => clear(site, name, first, last).await,
        _ => write(site, name, first, &filled(seed, (last - first) as usize)).await,
    }
    .expect("the source is changed");
}

/// The pages of the random test.
async fn tail<E: Engine, B: ByteStore>(site: &Site<E, B>, name: &BlobName, time: SnapshotTime) -> Vec<u8> {
    let range = Some(ByteRange { start: BASE, last: None });
    site.read_of(name, Some(time), range).await.expect("a snapshot is read whole")
}

/// The destination cannot be read or changed otherwise; its snapshots are ordinary ones, and it can be leased and
/// deleted.
pub async fn the_destination_of_incremental_copies_is_for_copies_only<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (from, to, other, none) = (blob("from"), blob("to"), blob("other"), AccessConditions::default());
    put_page_blob(site, &from, 1024).await;
    write(site, &from, 0, &filled(1, 512)).await.expect("pages");
    let made = copied(site, (&from, snapshot(site, &from).await), &to).await;
    let (at, new, blobs) = (site.at(&to), NewBlob::default(), &site.blobs);
    let barred = BlobReject::IncrementalCopyBlob;
    let pages = PageRange::new(0, 512).expect("pages");
    let sequence = SequenceConditions::default();
    assert_eq!(site.read(&to).await, refused(barred));
    assert_eq!(blobs.page_ranges(at, (None, None), None, &none, site.now()).await, refused(barred));
    assert_eq!(write(site, &to, 0, &filled(2, 512)).await, refused(barred));
    assert_eq!(blobs.clear_pages(at, pages, sequence, &none, site.now()).await, refused(barred));
    assert_eq!(resize(site, &to, 512).await, refused(barred));
    assert_eq!(blobs.put_page_blob(at, (512, 0), &new, &none, site.now()).await, refused(barred));
    assert_eq!(site.put_if(&to, b"x", &none).await, refused(barred));
    assert_eq!(blobs.set_metadata(at, &Metadata::new(), &none, site.now()).await, refused(barred));
    assert_eq!(blobs.set_content(at, &ContentHeaders::default(), &none, site.now()).await, refused(barred));
    assert_eq!(blobs.set_tags(at, &Tags::new(), &none, site.now()).await, refused(barred));
    assert_eq!(blobs.snapshot_blob(at, None, &none, site.now()).await, refused(barred));
    assert_eq!(site.put_block(&to, &id(1), b"x").await, refused(BlobReject::InvalidBlobType));
    assert_eq!(site.commit(&to, &[]).await, refused(barred));
    assert_eq!(append(site, &to, b"x", Default::default()).await, refused(barred));
    let tier = ("P10".parse().expect("a tier"), None);
    assert_eq!(blobs.set_tier(at, None, tier, &none, site.now()).await, refused(barred));
    let of_blob = site.source(&to, None);
    assert_eq!(blobs.copy_blob(&of_blob, site.at(&other), &plain_copy(), &none, site.now()).await, refused(barred));
    let of_source = site.source(&from, None);
    assert_eq!(blobs.copy_blob(&of_source, at, &plain_copy(), &none, site.now()).await, refused(barred));
    let part = blobs.copy_bytes(&of_blob, (None, 4096), site.at(&other), |_| {}, site.now()).await;
    assert_eq!(part, refused(barred));
    // A copy of its snapshot is an ordinary blob.
    let of_snapshot = site.source(&to, Some(made));
    blobs.copy_blob(&of_snapshot, site.at(&other), &plain_copy(), &none, site.now()).await.expect("it is copied");
    assert_eq!(site.read(&other).await, site.read_of(&from, None, None).await);
    write(site, &other, 0, &filled(2, 512)).await.expect("it is written to");
    let acquire = LeaseAction::Acquire { duration: LeaseDuration::Infinite, proposed: Some(OWN) };
    blobs.lease_blob(at, (acquire, OWN), &none, site.now()).await.expect("it is leased");
    let time = snapshot(site, &from).await;
    assert_eq!(copy(site, (&from, time), &to).await, refused(LeaseReject::IdMissing));
    let owner = AccessConditions { lease: Some(OWN), ..AccessConditions::default() };
    let with_lease = site.source(&from, Some(time));
    blobs.copy_incremental(&with_lease, at, &request(&from), &owner, site.now()).await.expect("with the lease");
    assert_eq!(blobs.delete_blob(at, None, &owner, site.now()).await, refused(BlobReject::SnapshotsPresent));
    blobs.delete_snapshot(at, made, &none, site.now()).await.expect("a snapshot is deleted");
    blobs.delete_blob(at, Some(DeleteSnapshots::Include), &owner, site.now()).await.expect("it is deleted");
    site.put(&to, b"another blob").await;
    site.expect_payloads(3, "the source's, that of the ordinary copy and the other blob's").await;
}

/// What cannot be copied incrementally is refused, and leaves nothing.
pub async fn incremental_copies_are_checked<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (from, to, twin, none) = (blob("from"), blob("to"), blob("twin"), AccessConditions::default());
    let missing = SnapshotTime(site.now());
    assert_eq!(copy(site, (&from, missing), &to).await, refused(BlobReject::SourceNotFound));
    for name in [&from, &twin] {
        put_page_blob(site, name, 1024).await;
        write(site, name, 0, &filled(1, 512)).await.expect("pages");
    }
    let base = site.source(&from, None);
    let of_base = site.blobs.copy_incremental(&base, site.at(&to), &request(&from), &none, site.now()).await;
    assert_eq!(of_base, refused(BlobReject::IncrementalCopySourceMustBeSnapshot));
    let block = blob("block");
    site.put(&block, b"x").await;
    let of_block = snapshot(site, &block).await;
    assert_eq!(copy(site, (&block, of_block), &to).await, refused(BlobReject::InvalidSourceBlobType));
    let (first, of_twin, second) =
        (snapshot(site, &from).await, snapshot(site, &twin).await, snapshot(site, &from).await);
    for there in [&twin, &block] {
        assert_eq!(copy(site, (&from, first), there).await, refused(BlobReject::BlobExists));
    }
    let (written, _) = copy(site, (&from, second), &to).await.expect("it is copied");
    assert_eq!(copy(site, (&from, second), &to).await, refused(BlobReject::IncrementalCopyOfEarlierSnapshot));
    assert_eq!(copy(site, (&from, first), &to).await, refused(BlobReject::IncrementalCopyOfEarlierSnapshot));
    assert_eq!(copy(site, (&twin, of_twin), &to).await, refused(BlobReject::IncrementalCopyBlobMismatch));
    let third = snapshot(site, &from).await;
    for (if_match, if_none_match, reject) in [
        (Some(ETagCondition::Foreign), None, BlobReject::ConditionNotMet),
        (None, Some(ETagCondition::Any), BlobReject::BlobExists),
        (None, Some(ETagCondition::Is(written.etag())), BlobReject::ConditionNotMet),
    ] {
        let access =
            AccessConditions { conditions: Conditions { if_match, if_none_match, ..Conditions::NONE }, ..none.clone() };
        let later = site.source(&from, Some(third));
        let done = site.blobs.copy_incremental(&later, site.at(&to), &request(&from), &access, site.now()).await;
        assert_eq!(done, refused(reject));
    }
    site.blobs.delete_snapshot(site.at(&from), second, &none, site.now()).await.expect("it is deleted");
    assert_eq!(copy(site, (&from, third), &to).await, refused(BlobReject::PreviousSnapshotNotFound));
    assert_eq!(snapshots(site, &to).await.len(), 1, "nothing was copied");
    // Uncommitted blocks are replaced, as for other copies.
    let blocks = blob("blocks");
    site.put_block(&blocks, &id(1), b"block").await.expect("a block");
    copied(site, (&from, third), &blocks).await;
    assert!(site.rows().await.iter().all(|(_, row)| !row.starts_with('u')), "the block is removed");
    // A source that was replaced has no earlier snapshot to compare with.
    let next = blob("next");
    copied(site, (&from, third), &next).await;
    put_page_blob(site, &from, 1024).await;
    let anew = snapshot(site, &from).await;
    assert_eq!(copy(site, (&from, anew), &next).await, refused(BlobReject::SourceOverwritten));
    // The source's, its twin's, the block blob's, and those of three copies.
    site.expect_payloads(6, "what was refused is removed").await;
}
