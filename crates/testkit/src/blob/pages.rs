//! Page blobs.

use super::site::{Site, blob, filled, refused};
use crate::Dice;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{AccessConditions, BlobReject, NewBlob, PageBlobChange, PagesWritten};
use larimar_engine::{Engine, EngineError};
use larimar_model::blob::{BlobName, ByteRange, PageRange, SequenceConditions, SequenceNumberAction};

/// Makes a page blob of a length.
pub(super) async fn put_page_blob<E: Engine, B: ByteStore>(site: &Site<E, B>, name: &BlobName, length: u64) {
    let (new, none) = (NewBlob::default(), AccessConditions::default());
    site.blobs.put_page_blob(site.at(name), (length, 0), &new, &none, site.now()).await.expect("it is put");
}

/// Writes pages from one on.
pub(super) async fn write<E: Engine, B: ByteStore>(
    site: &Site<E, B>,
    name: &BlobName,
    start: u64,
    bytes: &[u8],
) -> Result<PagesWritten, EngineError> {
    let range = PageRange::new(start, start + bytes.len() as u64).expect("pages");
    let extent = site.payload(name, bytes).await;
    let none = SequenceConditions::default();
    site.blobs.put_pages(site.at(name), (range, extent), none, &AccessConditions::default(), site.now()).await
}

pub(super) async fn clear<E: Engine, B: ByteStore>(
    site: &Site<E, B>,
    name: &BlobName,
    start: u64,
    end: u64,
) -> Result<PagesWritten, EngineError> {
    let range = PageRange::new(start, end).expect("pages");
    let none = SequenceConditions::default();
    site.blobs.clear_pages(site.at(name), range, none, &AccessConditions::default(), site.now()).await
}

async fn ranges<E: Engine, B: ByteStore>(site: &Site<E, B>, name: &BlobName) -> Vec<(u64, u64)> {
    let list =
        site.blobs.page_ranges(site.at(name), (None, None), None, &AccessConditions::default(), site.now()).await;
    bounds(list.expect("the pages").written)
}

pub(super) fn bounds(ranges: Vec<std::ops::Range<u64>>) -> Vec<(u64, u64)> {
    ranges.into_iter().map(|range| (range.start, range.end)).collect()
}

pub(super) async fn resize<E: Engine, B: ByteStore>(
    site: &Site<E, B>,
    name: &BlobName,
    length: u64,
) -> Result<PagesWritten, EngineError> {
    let change = PageBlobChange { length: Some(length), ..PageBlobChange::default() };
    site.blobs.change_page_blob(site.at(name), &change, &AccessConditions::default(), site.now()).await
}

/// Pages read as they were last written, others as zeros; the written ranges are listed.
pub async fn pages_are_written_and_cleared_in_place<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("disk");
    put_page_blob(site, &name, 4096).await;
    assert_eq!(site.read(&name).await, Ok(vec![0; 4096]));
    let first = write(site, &name, 512, &filled(1, 1024)).await.expect("pages");
    let second = write(site, &name, 1024, &filled(2, 1024)).await.expect("pages");
    assert!(second.written.etag() > first.written.etag());
    let mut content = vec![0; 4096];
    content[512..1536].copy_from_slice(&filled(1, 1024));
    content[1024..2048].copy_from_slice(&filled(2, 1024));
    assert_eq!(site.read(&name).await, Ok(content.clone()));
    assert_eq!(ranges(site, &name).await, [(512, 2048)]);
    clear(site, &name, 1024, 1536).await.expect("cleared");
    content[1024..1536].fill(0);
    assert_eq!(site.read(&name).await, Ok(content.clone()));
    assert_eq!(ranges(site, &name).await, [(512, 1024), (1536, 2048)]);
    let part = site.read_of(&name, None, Some(ByteRange { start: 1000, last: Some(1600) })).await;
    assert_eq!(part, Ok(content[1000..=1600].to_vec()));
    clear(site, &name, 0, 4096).await.expect("cleared");
    assert_eq!(ranges(site, &name).await, []);
    site.expect_payloads(0, "cleared pages take no room").await;
}

/// Pages lie inside the blob.
pub async fn pages_outside_of_the_blob_are_refused<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("disk");
    put_page_blob(site, &name, 1024).await;
    let outside = write(site, &name, 512, &filled(1, 1024)).await;
    assert_eq!(outside, refused(BlobReject::InvalidPageRange));
    assert_eq!(clear(site, &name, 1024, 1536).await, refused(BlobReject::InvalidPageRange));
    assert_eq!(resize(site, &name, 100).await, refused(BlobReject::InvalidPageRange));
    site.put(&name, b"a block blob").await;
    assert_eq!(write(site, &name, 0, &filled(1, 512)).await, refused(BlobReject::InvalidBlobType));
    assert_eq!(resize(site, &name, 512).await, refused(BlobReject::InvalidBlobType));
    site.expect_payloads(1, "what was refused is removed").await;
}

/// A blob that shrinks and grows again has zeros at its end.
pub async fn a_resized_blob_forgets_what_was_cut_off<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("disk");
    put_page_blob(site, &name, 2048).await;
    write(site, &name, 0, &filled(1, 2048)).await.expect("pages");
    resize(site, &name, 512).await.expect("it shrinks");
    assert_eq!(site.read(&name).await, Ok(filled(1, 2048)[..512].to_vec()));
    resize(site, &name, 1024).await.expect("it grows");
    assert_eq!(site.read(&name).await, Ok([&filled(1, 2048)[..512], &[0; 512]].concat()));
    let large = 1 << 40;
    resize(site, &name, large).await.expect("it grows");
    write(site, &name, large - 512, &filled(2, 512)).await.expect("pages");
    let end = site.read_of(&name, None, Some(ByteRange { start: large - 1024, last: None })).await;
    assert_eq!(end, Ok([vec![0; 512], filled(2, 512)].concat()));
    assert_eq!(ranges(site, &name).await, [(0, 512), (large - 512, large)]);
}

/// Sequence numbers are set, grow, and are conditions.
pub async fn sequence_numbers_guard_writes<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (name, none) = (blob("disk"), AccessConditions::default());
    let at = site.at(&name);
    put_page_blob(site, &name, 1024).await;
    let change = async |action| {
        let change = PageBlobChange { sequence_number: Some(action), ..PageBlobChange::default() };
        site.blobs.change_page_blob(at, &change, &none, site.now()).await.map(|done| done.sequence_number)
    };
    assert_eq!(change(SequenceNumberAction::Update(7)).await, Ok(7));
    assert_eq!(change(SequenceNumberAction::Max(3)).await, Ok(7));
    assert_eq!(change(SequenceNumberAction::Increment).await, Ok(8));
    assert_eq!(change(SequenceNumberAction::Update(i64::MAX as u64)).await, Ok(i64::MAX as u64));
    let greatest = change(SequenceNumberAction::Increment).await;
    assert_eq!(greatest, refused(BlobReject::SequenceNumberIncrementTooLarge));
    assert_eq!(change(SequenceNumberAction::Update(8)).await, Ok(8));
    let page = PageRange::new(0, 512).expect("a page");
    for (conditions, is_met) in [
        (SequenceConditions { less_or_equal: Some(8), ..Default::default() }, true),
        (SequenceConditions { less: Some(8), ..Default::default() }, false),
        (SequenceConditions { equal: Some(9), ..Default::default() }, false),
    ] {
        let cleared = site.blobs.clear_pages(at, page, conditions, &none, site.now()).await;
        match cleared {
            Ok(done) => assert!(is_met && done.sequence_number == 8),
            other => {
                assert!(!is_met);
                assert_eq!(other, refused(BlobReject::SequenceNumberConditionNotMet));
            }
        }
    }
}

/// Any sequence of writes reads as an array does, across regions, snapshots, and so many runs that they are joined.
pub async fn random_writes_read_as_an_array_does<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("disk");
    let length = 17 << 20;
    let region = 16 << 20;
    put_page_blob(site, &name, length).await;
    let mut array = vec![0_u8; length as usize];
    let mut frozen = None;
    let mut dice = Dice::new(4);
    for step in 0..700_u64 {
        // Most around the border of two regions.
        let near = if dice.below(4) == 0 { 0 } else { region - 100 * 512 };
        let start = near + dice.below(200) * 512;
        let count = 1 + dice.below(if step % 50 == 0 { 100 } else { 2 });
        let end = (start + count * 512).min(length);
        if dice.below(6) == 0 {
            clear(site, &name, start, end).await.expect("cleared");
            array[start as usize..end as usize].fill(0);
        } else {
            let bytes = filled(step as u8, (end - start) as usize);
            write(site, &name, start, &bytes).await.expect("pages");
            array[start as usize..end as usize].copy_from_slice(&bytes);
        }
        if step == 350 {
            let taken = site.blobs.snapshot_blob(site.at(&name), None, &AccessConditions::default(), site.now()).await;
            frozen = Some((taken.expect("a snapshot").0, array.clone()));
        }
    }
    assert!(site.read(&name).await == Ok(array), "the blob");
    let (snapshot, array) = frozen.expect("a snapshot");
    assert!(site.read_of(&name, Some(snapshot), None).await == Ok(array), "the snapshot");
    let include = Some(larimar_model::blob::DeleteSnapshots::Include);
    site.blobs
        .delete_blob(site.at(&name), include, &AccessConditions::default(), site.now())
        .await
        .expect("it is deleted");
    assert_eq!(site.rows().await, []);
}

/// Exactly the ranges that were written and cleared since a snapshot are listed.
pub async fn changes_since_a_snapshot_are_told<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (name, none) = (blob("disk"), AccessConditions::default());
    let at = site.at(&name);
    put_page_blob(site, &name, 64 << 20).await;
    let border = 16 << 20;
    write(site, &name, 0, &filled(1, 2048)).await.expect("pages");
    write(site, &name, border - 512, &filled(1, 1024)).await.expect("pages");
    let (since, _) = site.blobs.snapshot_blob(at, None, &none, site.now()).await.expect("a snapshot");
    write(site, &name, 512, &filled(2, 512)).await.expect("pages");
    clear(site, &name, 1024, 1536).await.expect("cleared");
    clear(site, &name, 4096, 8192).await.expect("cleared");
    write(site, &name, 32 << 20, &filled(2, 512)).await.expect("pages");
    let list = site.blobs.page_ranges(at, (None, Some(since)), None, &none, site.now()).await.expect("changes");
    let far = 32 << 20;
    assert_eq!(bounds(list.written), [(512, 1024), (far, far + 512)]);
    assert_eq!(bounds(list.cleared), [(1024, 1536)]);
    let (later, _) = site.blobs.snapshot_blob(at, None, &none, site.now()).await.expect("a snapshot");
    let none_since = site.blobs.page_ranges(at, (None, Some(later)), None, &none, site.now()).await.expect("changes");
    assert_eq!((none_since.written, none_since.cleared), (vec![], vec![]));
    let newer = site.blobs.page_ranges(at, (Some(since), Some(later)), None, &none, site.now()).await;
    assert_eq!(newer, refused(BlobReject::PreviousSnapshotCannotBeNewer));
    site.blobs.delete_snapshot(at, since, &none, site.now()).await.expect("it is deleted");
    let gone = site.blobs.page_ranges(at, (None, Some(since)), None, &none, site.now()).await;
    assert_eq!(gone, refused(BlobReject::PreviousSnapshotNotFound));
}
