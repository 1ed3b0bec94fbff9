//! Page blobs of many scattered pages: their base rows are long, so that writes are stored as deltas.

use super::pages::{bounds, clear, put_page_blob, resize, write};
use super::site::{Site, blob, filled};
use crate::Dice;
use larimar_engine::Engine;
use larimar_engine::blob::AccessConditions;
use larimar_engine::blob::bytes::ByteStore;
use larimar_model::blob::{BlobName, ByteRange, DeleteSnapshots, SnapshotTime};
use std::collections::BTreeMap;

async fn snapshot<E: Engine, B: ByteStore>(site: &Site<E, B>, name: &BlobName) -> SnapshotTime {
    let taken = site.blobs.snapshot_blob(site.at(name), None, &AccessConditions::default(), site.now()).await;
    taken.expect("a snapshot").0
}

/// Writes every other page, `count` times.
async fn scatter<E: Engine, B: ByteStore>(site: &Site<E, B>, name: &BlobName, pages: std::ops::Range<u64>) {
    for page in pages {
        write(site, name, page * 1024, &filled(page as u8, 512)).await.expect("a page");
    }
}

/// A write of one page among many scattered ones stores about as much as it changes, and a read reads few rows.
pub async fn scattered_pages_are_written_in_small_rows<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("disk");
    put_page_blob(site, &name, 64 << 20).await;
    let (count, writes) = (u64::from(site.rounds(1200, 400)), 200);
    scatter(site, &name, 0..count).await;
    let mut visited = 0;
    let before = site.written();
    for n in 0..writes {
        scatter(site, &name, count + n..count + n + 1).await;
        let from = site.visited();
        site.read_of(&name, None, Some(ByteRange { start: n * 1024, last: Some(n * 1024) })).await.expect("a byte");
        visited = visited.max(site.visited() - from);
    }
    let after = site.written();
    let (rows, bytes) = ((after.0 - before.0) / writes, (after.1 - before.1) / writes);
    // All pages are 30 bytes each, the blob's row is about 150.
    assert!(bytes <= 1200, "{bytes} bytes were written for each of {writes} pages beside {count} others");
    assert!(rows <= 4, "{rows} rows were written for each page");
    assert!(visited <= 65, "{visited} rows were read for one page");
}

/// Small writes all over a region that is full copy few bytes besides their own.
pub async fn small_writes_over_a_full_region_copy_little<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("disk");
    let (length, part) = (16_u64 << 20, 4 << 20);
    put_page_blob(site, &name, length).await;
    let mut array = Vec::new();
    for n in 0..length / part {
        let bytes = filled(n as u8, part as usize);
        write(site, &name, n * part, &bytes).await.expect("pages");
        array.extend(bytes);
    }
    let before = site.blobs.bytes().statistics().bytes_written;
    let mut dice = Dice::new(3);
    // Each adds two runs; above 2,048 of them some are joined.
    let writes = u64::from(site.rounds(1300, 300));
    for n in 0..writes {
        let (start, bytes) = (dice.below(length / 512) * 512, filled(n as u8, 512));
        write(site, &name, start, &bytes).await.expect("a page");
        array[start as usize..start as usize + 512].copy_from_slice(&bytes);
    }
    let bytes = (site.blobs.bytes().statistics().bytes_written - before) / writes;
    assert!(bytes <= 20_000, "{bytes} bytes were written for each of {writes} pages");
    assert!(site.read(&name).await == Ok(array), "the blob");
}

/// The rows that a read visits do not grow with the snapshots of the blob.
pub async fn a_page_blob_with_many_snapshots_reads_few_rows<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("disk");
    put_page_blob(site, &name, 64 << 20).await;
    let count = u64::from(site.rounds(1000, 300));
    let mut snapshots = Vec::new();
    for n in 0..count {
        // The second region has rows of its own only for some snapshots.
        let page = if n % 7 == 0 { (16 << 20) + 512 } else { 1024 };
        write(site, &name, page, &n.to_be_bytes().repeat(64)).await.expect("a page");
        snapshots.push(snapshot(site, &name).await);
    }
    for (version, last) in [(None, count - 1), (Some(count / 2), count / 2), (Some(3), 3)] {
        let time = version.map(|n| snapshots[n as usize]);
        for (page, newest) in
            [(1024, (0..=last).rev().find(|n| n % 7 != 0)), ((16 << 20) + 512, (0..=last).rev().find(|n| n % 7 == 0))]
        {
            let before = site.visited();
            let read = site.read_of(&name, time, Some(ByteRange { start: page, last: Some(page + 511) })).await;
            assert_eq!(read, Ok(newest.expect("it was written").to_be_bytes().repeat(64)), "{version:?}, {page}");
            let visited = site.visited() - before;
            assert!(visited <= 290, "{visited} rows were read of version {version:?} of {count}");
            assert!(version.is_some() || visited <= 150, "{visited} rows were read of the blob with {count} snapshots");
        }
    }
}

/// Payloads of pages that were overwritten are removed after some more writes, and all of them with the blob.
pub async fn payloads_that_small_rows_hide_are_removed_with_the_next_long_row<E: Engine, B: ByteStore>(
    site: &Site<E, B>,
) {
    let name = blob("disk");
    put_page_blob(site, &name, 64 << 20).await;
    scatter(site, &name, 0..120).await;
    for _ in 0..3 {
        scatter(site, &name, 0..50).await;
    }
    assert!(site.payloads() <= 120 + 65, "{} payloads", site.payloads());
    clear(site, &name, 0, 32 << 20).await.expect("cleared");
    site.expect_payloads(0, "cleared pages take no room").await;
    let rows = site.rows().await;
    assert_eq!(rows.len(), 1, "nothing but the blob's row is left: {rows:?}");
}

/// What a version of the model has in each page: the number of the write.
type Array = Vec<Option<u32>>;

/// Where the pages of the model begin: 150 in each of two regions.
const BASE: u64 = (16 << 20) - 150 * 512;
const PAGES: usize = 300;

fn bytes_of(array: &Array) -> Vec<u8> {
    array.iter().flat_map(|page| page.unwrap_or(0).to_be_bytes().repeat(128)).collect()
}

async fn check_version<E: Engine, B: ByteStore>(
    site: &Site<E, B>,
    name: &BlobName,
    (time, array): (Option<SnapshotTime>, &Array),
    what: &str,
) {
    let range = Some(ByteRange { start: BASE, last: None });
    let read = site.read_of(name, time, range).await.expect("a version");
    assert!(read == bytes_of(array), "{what}: the bytes of {time:?}");
    let list =
        site.blobs.page_ranges(site.at(name), (time, None), range, &AccessConditions::default(), site.now()).await;
    let written = bounds(list.expect("the pages").written);
    for (page, content) in array.iter().enumerate() {
        let place = BASE + page as u64 * 512;
        let is_listed = written.iter().any(|(start, end)| (*start..*end).contains(&place));
        assert_eq!(is_listed, content.is_some(), "{what}: page {page} of {time:?}");
    }
}

/// The pages that differ between a snapshot and the blob.
async fn check_difference<E: Engine, B: ByteStore>(
    site: &Site<E, B>,
    name: &BlobName,
    (since, earlier): (SnapshotTime, &Array),
    later: &Array,
    what: &str,
) {
    let range = Some(ByteRange { start: BASE, last: None });
    let list = site
        .blobs
        .page_ranges(site.at(name), (None, Some(since)), range, &AccessConditions::default(), site.now())
        .await;
    let list = list.expect("the changes");
    let (written, cleared) = (bounds(list.written), bounds(list.cleared));
    for (page, now) in later.iter().enumerate() {
        let before = earlier.get(page).copied().flatten();
        let place = BASE + page as u64 * 512;
        let is_in = |ranges: &[(u64, u64)]| ranges.iter().any(|(start, end)| (*start..*end).contains(&place));
        // Pages whose bytes were moved count as written too.
        assert!(is_in(&written) || now.is_none() || before == *now, "{what}: page {page} was written since {since:?}");
        assert!(!is_in(&written) || now.is_some(), "{what}: page {page} has no bytes");
        assert_eq!(is_in(&cleared), before.is_some() && now.is_none(), "{what}: page {page} since {since:?}");
    }
}

/// Random writes, clears, sizes and snapshots, made and deleted, leave in every version what arrays in memory have.
pub async fn scattered_pages_of_all_versions_read_as_arrays_do<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("disk");
    put_page_blob(site, &name, BASE + PAGES as u64 * 512).await;
    let place = |page: usize| BASE + page as u64 * 512;
    let (mut array, mut dice): (Array, _) = (vec![None; PAGES], Dice::new(11));
    let mut snapshots: BTreeMap<SnapshotTime, Array> = BTreeMap::new();
    let put = async |page: usize, count: usize, number: u32| {
        write(site, &name, place(page), &number.to_be_bytes().repeat(128 * count)).await.expect("pages");
    };
    for page in (0..PAGES).step_by(2) {
        put(page, 1, 1).await;
        array[page] = Some(1);
    }
    let steps = site.rounds(1500, 300);
    for number in 2..steps {
        let page = dice.below(array.len() as u64) as usize;
        let count = (1 + dice.below(3) as usize).min(array.len() - page);
        let some = snapshots.keys().nth(dice.below(snapshots.len().max(1) as u64) as usize).copied();
        match (dice.below(100), some) {
            (0..=1, _) => drop(snapshots.insert(snapshot(site, &name).await, array.clone())),
            (2, Some(time)) => {
                let deleted =
                    site.blobs.delete_snapshot(site.at(&name), time, &AccessConditions::default(), site.now()).await;
                deleted.expect("it is deleted");
                snapshots.remove(&time);
            }
            (3, _) => {
                // Both ends of what is left are in the second region, now and then in the first.
                let length = if dice.below(8) == 0 { PAGES / 2 - 3 } else { PAGES - dice.below(60) as usize };
                resize(site, &name, place(length)).await.expect("resized");
                array.resize(length, None);
            }
            (4..=20, _) => {
                clear(site, &name, place(page), place(page + count)).await.expect("cleared");
                array[page..page + count].fill(None);
            }
            _ => {
                put(page, count, number).await;
                array[page..page + count].fill(Some(number));
            }
        }
        let what = format!("step {number}");
        if number % 10 == 0 {
            check_version(site, &name, (None, &array), &what).await;
        }
        if let Some((time, earlier)) = some.and_then(|time| snapshots.get_key_value(&time)).filter(|_| number % 10 == 5)
        {
            check_version(site, &name, (Some(*time), earlier), &what).await;
            check_difference(site, &name, (*time, earlier), &array, &what).await;
        }
    }
    for (time, array) in &snapshots {
        check_version(site, &name, (Some(*time), array), "at the end").await;
    }
    let include = Some(DeleteSnapshots::Include);
    site.blobs
        .delete_blob(site.at(&name), include, &AccessConditions::default(), site.now())
        .await
        .expect("it is deleted");
    assert_eq!(site.rows().await, []);
}
