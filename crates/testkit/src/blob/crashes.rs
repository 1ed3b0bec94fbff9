//! Every version of a blob keeps its bytes, wherever the engine stops and whether or not garbage is reclaimed
//! afterwards: random operations compared with arrays in memory.

use super::appends::{append, put_append};
use super::pages::{bounds, clear, put_page_blob, resize, write};
use super::site::{Site, blob, filled, id, plain_copy, refused};
use super::versions::{Common, Versions, act, listed, read_versions, settle};
use crate::Dice;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{AccessConditions, BlobReject};
use larimar_engine::{Engine, EngineError};
use larimar_model::blob::{BlobName, BlockListEntry, ByteRange, SnapshotTime};
use std::collections::BTreeMap;

/// The pages of a version: what was written to each, if anything.
type Pages = Vec<Option<u8>>;

/// Where the pages of the model begin: some in each of two regions. The first region has many other pages as well, so
/// that its row is long and writes are stored beside it.
const BASE: u64 = (16 << 20) - 4 * 512;
const PAGES: u64 = 8;
const OTHERS: u64 = 100;

/// Where one of the other pages is.
const fn place_of_other(number: u64) -> u64 {
    number * 1024
}

/// Makes the blob that page blobs of the model begin as, with nothing but the other pages.
async fn put_template<E: Engine, B: ByteStore>(site: &Site<E, B>, template: &BlobName) {
    put_page_blob(site, template, BASE + PAGES * 512).await;
    for number in 0..OTHERS {
        write(site, template, place_of_other(number), &filled(number as u8, 512)).await.expect("a page");
    }
}

async fn copy<E: Engine, B: ByteStore>(
    site: &Site<E, B>,
    (source, snapshot): (&BlobName, Option<SnapshotTime>),
    name: &BlobName,
) -> Result<(), EngineError> {
    let source = site.source(source, snapshot);
    site.blobs
        .copy_blob(&source, site.at(name), &plain_copy(), &AccessConditions::default(), site.now())
        .await
        .map(drop)
}

#[derive(Clone, Copy, Debug)]
enum PageStep {
    Put,
    Write(u64, u64, u8),
    Clear(u64, u64),
    Resize(u64),
    Restore(SnapshotTime),
    Common(Common),
}

/// With few snapshots an epoch lasts for more writes than are stored beside a row.
fn page_step(model: &Versions<Pages>, dice: &mut Dice, seed: u8, has_few_snapshots: bool) -> PageStep {
    let Some(pages) = &model.current else { return PageStep::Put };
    let count = pages.len() as u64;
    let start = dice.below(count);
    let end = start + 1 + dice.below((count - start).min(5));
    let what = dice.below(16);
    if has_few_snapshots && (3..=10).contains(&what) && dice.below(30) > 0 {
        return PageStep::Write(start, end, seed);
    }
    match (what, model.some_snapshot(dice)) {
        (0..=1, _) => PageStep::Clear(start, end),
        (2, _) => PageStep::Clear(0, count),
        (3..=5, _) => PageStep::Common(Common::Snapshot),
        (6..=8, Some(time)) => PageStep::Common(Common::DeleteSnapshot(time)),
        (9, Some(_)) => PageStep::Common(Common::DeleteSnapshots),
        (10, _) => match (dice.below(6), model.some_snapshot(dice)) {
            (0, _) => PageStep::Common(Common::Delete),
            (1, _) => PageStep::Put,
            (2..=3, Some(time)) => PageStep::Restore(time),
            _ => PageStep::Resize(1 + dice.below(PAGES)),
        },
        _ => PageStep::Write(start, end, seed),
    }
}

fn after_page_step(model: &Versions<Pages>, step: PageStep) -> Versions<Pages> {
    let mut pages = model.current.clone().unwrap_or_default();
    match step {
        PageStep::Put => pages = vec![None; PAGES as usize],
        PageStep::Write(start, end, seed) => pages[start as usize..end as usize].fill(Some(seed)),
        PageStep::Clear(start, end) => pages[start as usize..end as usize].fill(None),
        PageStep::Resize(count) => pages.resize(count as usize, None),
        PageStep::Restore(time) => pages.clone_from(&model.snapshots[&time]),
        PageStep::Common(step) => return model.after(step),
    }
    model.with(pages)
}

async fn run_page_step<E: Engine, B: ByteStore>(
    site: &Site<E, B>,
    name: &BlobName,
    step: PageStep,
) -> Result<(), EngineError> {
    let place = |page: u64| BASE + page * 512;
    match step {
        PageStep::Put => copy(site, (&blob("template"), None), name).await,
        PageStep::Write(start, end, seed) => {
            let bytes = vec![seed; ((end - start) * 512) as usize];
            write(site, name, place(start), &bytes).await.map(drop)
        }
        PageStep::Clear(start, end) => clear(site, name, place(start), place(end)).await.map(drop),
        PageStep::Resize(count) => resize(site, name, place(count)).await.map(drop),
        PageStep::Restore(time) => copy(site, (name, Some(time)), name).await,
        PageStep::Common(step) => act(site, name, step).await,
    }
}

/// The pages of a version, as Get Blob and Get Page Ranges return them.
async fn pages_of<E: Engine, B: ByteStore>(
    site: &Site<E, B>,
    name: &BlobName,
    snapshot: Option<SnapshotTime>,
) -> Pages {
    let range = Some(ByteRange { start: BASE, last: None });
    let bytes = site.read_of(name, snapshot, range).await.expect("a version is read whole");
    let ranges =
        site.blobs.page_ranges(site.at(name), (snapshot, None), range, &AccessConditions::default(), site.now()).await;
    let ranges = bounds(ranges.expect("the pages").written);
    let pages = bytes.chunks(512).enumerate().map(|(number, page)| {
        assert!(page.iter().all(|byte| *byte == page[0]), "a page is of one write");
        let place = BASE + number as u64 * 512;
        let is_written = ranges.iter().any(|(start, end)| (*start..*end).contains(&place));
        assert_eq!(page[0] != 0, is_written, "a page without bytes is not listed, and a written one is");
        is_written.then_some(page[0])
    });
    let pages = pages.collect();
    let number = (bytes.len() / 512) as u64 % OTHERS;
    let place = place_of_other(number);
    let other = site.read_of(name, snapshot, Some(ByteRange { start: place, last: Some(place + 1023) })).await;
    assert_eq!(other, Ok([filled(number as u8, 512), vec![0; 512]].concat()), "pages that no step touches");
    pages
}

async fn found_pages<E: Engine, B: ByteStore>(site: &Site<E, B>, name: &BlobName) -> Versions<Pages> {
    let (times, is_there) = listed(site, name).await;
    let mut found = Versions::default();
    for time in times {
        found.snapshots.insert(time, pages_of(site, name, Some(time)).await);
    }
    if is_there {
        found.current = Some(pages_of(site, name, None).await);
    }
    found
}

/// Lets the engine stop at any call, often just after the commit.
fn perhaps_stop<E: Engine, B: ByteStore>(site: &Site<E, B>, dice: &mut Dice) {
    match dice.below(4) {
        0 => {}
        1 => site.stop_after(dice.below(12)),
        _ => site.stop_after_write(),
    }
}

/// Sometimes reclaims, which may be stopped as well.
async fn perhaps_reclaim<E: Engine, B: ByteStore>(site: &Site<E, B>, dice: &mut Dice) {
    if dice.below(16) > 0 {
        return;
    }
    if dice.below(2) == 0 {
        site.stop_after(dice.below(12));
    }
    let reclaimed = site.blobs.reclaim_container(site.container, site.now()).await;
    assert!(matches!(reclaimed, Ok(_) | Err(EngineError::Fault(_))), "{reclaimed:?}");
    site.go_on();
}

/// Pages that were cleared after their snapshot was deleted stay cleared, though the snapshot's rows are still there.
pub async fn cleared_pages_do_not_show_a_snapshot_whose_clean_up_did_not_run<E: Engine, B: ByteStore>(
    site: &Site<E, B>,
) {
    let (name, none) = (blob("disk"), AccessConditions::default());
    put_page_blob(site, &name, 4096).await;
    write(site, &name, 0, &filled(1, 1024)).await.expect("pages");
    let (time, _) = site.blobs.snapshot_blob(site.at(&name), None, &none, site.now()).await.expect("a snapshot");
    write(site, &name, 0, &filled(2, 512)).await.expect("pages");
    site.stop_after_write();
    site.blobs.delete_snapshot(site.at(&name), time, &none, site.now()).await.expect("it is deleted");
    site.go_on();
    assert_eq!(site.read_of(&name, Some(time), None).await, refused(BlobReject::BlobNotFound));
    clear(site, &name, 0, 4096).await.expect("cleared");
    let is_clear = async || site.read(&name).await.map(|bytes| bytes == [0; 4096]);
    assert_eq!(is_clear().await, Ok(true));
    site.blobs.reclaim_container(site.container, site.now()).await.expect("it is reclaimed");
    assert_eq!(is_clear().await, Ok(true), "after the clean-up");
}

/// Page blobs: writes, clears, sizes, copies over themselves.
pub async fn versions_keep_their_pages_wherever_the_engine_stops<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("disk");
    put_template(site, &blob("template")).await;
    // A database is slower.
    let steps = site.rounds(1200, 150);
    let mut writes_beside_a_row = 0;
    for seed in 0..3_u64 {
        let mut dice = Dice::new(seed + 1);
        let mut model = found_pages(site, &name).await;
        for number in 0..steps {
            let step = page_step(&model, &mut dice, 1 + (number % 250) as u8, seed == 2);
            let next = after_page_step(&model, step);
            perhaps_stop(site, &mut dice);
            let done = run_page_step(site, &name, step).await;
            site.go_on();
            perhaps_reclaim(site, &mut dice).await;
            let found = found_pages(site, &name).await;
            let is_snapshot = matches!(step, PageStep::Common(Common::Snapshot));
            settle(&mut model, (next, is_snapshot), &done, found, &format!("seed {seed}, step {number}, {step:?}"));
            if number % 50 == 0 {
                let rows = site.rows().await;
                let beside = |row: &str| row.starts_with('p') && row.len() == "p".len() + 16 + 8 + 8 + 8;
                writes_beside_a_row += rows.iter().filter(|(of, row)| *of == name.as_str() && beside(row)).count();
            }
        }
    }
    assert!(writes_beside_a_row > 0, "the model has writes that are stored beside a row");
}

/// Append blobs, whose versions share blocks.
pub async fn versions_keep_their_appends_wherever_the_engine_stops<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("log");
    let mut dice = Dice::new(9);
    let mut model = Versions::<Vec<u8>>::default();
    for number in 0..150_u8 {
        let added = filled(number, 1 + usize::from(number % 5));
        let step = match (dice.below(10), model.some_snapshot(&mut dice)) {
            (0..=1, _) if model.current.is_some() => Some(Common::Snapshot),
            (2, Some(time)) => Some(Common::DeleteSnapshot(time)),
            (3, Some(_)) => Some(Common::DeleteSnapshots),
            (4, _) if model.current.is_some() && dice.below(4) == 0 => Some(Common::Delete),
            _ => None,
        };
        if step.is_none() && model.current.is_none() {
            put_append(site, &name).await;
            model.current = Some(Vec::new());
        }
        let next = match (step, &model.current) {
            (Some(step), _) => model.after(step),
            (None, current) => model.with([current.as_deref().unwrap_or_default(), &added].concat()),
        };
        perhaps_stop(site, &mut dice);
        let done = match step {
            Some(step) => act(site, &name, step).await,
            None => append(site, &name, &added, Default::default()).await.map(drop),
        };
        site.go_on();
        perhaps_reclaim(site, &mut dice).await;
        let found = read_versions(site, &name).await;
        let is_snapshot = matches!(step, Some(Common::Snapshot));
        settle(&mut model, (next, is_snapshot), &done, found, &format!("step {number}, {step:?}"));
    }
}

/// Block blobs whose lists, short and long, reuse blocks of the list before.
pub async fn versions_keep_their_blocks_wherever_the_engine_stops<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("list");
    let mut dice = Dice::new(5);
    let mut model = Versions::<Vec<u8>>::default();
    // The blocks of the current list, which the next may reuse.
    let mut blocks: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for number in 0..site.rounds(600, 100) {
        let step = match (dice.below(10), model.some_snapshot(&mut dice)) {
            (0..=2, _) if model.current.is_some() => Some(Common::Snapshot),
            (3..=4, Some(time)) => Some(Common::DeleteSnapshot(time)),
            (5, Some(_)) => Some(Common::DeleteSnapshots),
            (6, _) if model.current.is_some() && dice.below(8) == 0 => Some(Common::Delete),
            _ => None,
        };
        let (mut kept, content) = (BTreeMap::new(), filled(number as u8, 1 + (number % 7) as usize));
        let is_list = dice.below(2) == 0;
        let (mut list, mut bytes) = (Vec::new(), content.clone());
        if step.is_none() && is_list {
            site.put_block(&name, &id(number), &content).await.expect("a block");
            kept = blocks.iter().filter(|_| dice.below(2) == 0).map(|(id, bytes)| (*id, bytes.clone())).collect();
            // A long list has rows of its own.
            let times = if dice.below(4) == 0 { 200 } else { 1 };
            list = kept.keys().map(|number| BlockListEntry::Committed(id(*number))).collect();
            list.extend(vec![BlockListEntry::Latest(id(number)); times]);
            bytes = kept.values().flatten().copied().chain(content.repeat(times)).collect();
            kept.insert(number, content.clone());
        }
        let next = step.map_or_else(|| model.with(bytes), |step| model.after(step));
        perhaps_stop(site, &mut dice);
        let done = match step {
            Some(step) => act(site, &name, step).await,
            None if is_list => site.commit(&name, &list).await.map(drop),
            None => site.put_if(&name, &content, &AccessConditions::default()).await.map(drop),
        };
        site.go_on();
        perhaps_reclaim(site, &mut dice).await;
        let found = read_versions(site, &name).await;
        if found.current != model.current {
            blocks = kept;
        }
        let is_snapshot = matches!(step, Some(Common::Snapshot));
        settle(&mut model, (next, is_snapshot), &done, found, &format!("step {number}, {step:?}"));
    }
}
