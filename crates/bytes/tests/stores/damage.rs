//! Files that were damaged: what a read touches is checked, and nothing is removed because of what cannot be read.

use crate::stores::files::Temporary;
use larimar_bytes::Durability;
use larimar_engine::Fault;
use larimar_engine::blob::bytes::{ByteStore, Extent};
use larimar_testkit::bytes::{OWNER, Rows, eventually, payload, put, read_all};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

#[tokio::test]
async fn a_changed_byte_is_found_out_and_the_file_named() {
    let store = Temporary::open(Durability::Sync);
    for size in [200_000, 400_000] {
        let bytes = payload(1, size);
        let extent = put(&*store, OWNER, &bytes).await.expect("a payload is written");
        let path = store.file_of(&extent);
        // The second frame begins behind the first and its checksum.
        flip(&path, extent.offset + 65_540);
        let fault = store.read(&extent, 65_536..65_537).await.expect_err("the second frame is damaged");
        assert!(matches!(&fault, Fault::Damaged(text) if text.contains(&extent.file_name())), "{fault}");
        assert!(store.read(&extent, 0..65_536).await.expect("the first is not") == bytes[..65_536]);
        assert!(store.read(&extent, 131_072..200_000).await.expect("nor the others") == bytes[131_072..200_000]);
        flip(&path, extent.offset + 65_540);
        assert!(read_all(&*store, &extent).await.expect("it is whole again") == bytes);
    }
}

#[tokio::test]
async fn a_file_that_ends_early_is_damaged() {
    let store = Temporary::open(Durability::Sync);
    let extent = put(&*store, OWNER, &payload(1, 400_000)).await.expect("a payload is written");
    let file = OpenOptions::new().write(true).open(store.file_of(&extent)).expect("the file");
    file.set_len(extent.offset + 70_000).expect("the file is cut");
    assert!(store.read(&extent, 0..65_536).await.is_ok());
    let fault = store.read(&extent, 65_536..65_537).await.expect_err("the end is missing");
    assert!(matches!(&fault, Fault::Damaged(text) if text.contains("ends early")), "{fault}");
}

#[tokio::test]
async fn an_extent_that_points_elsewhere_is_damage() {
    let store = Temporary::open(Durability::Sync);
    let first = put(&*store, OWNER, &payload(1, 1000)).await.expect("a payload is written");
    let second = put(&*store, OWNER, &payload(2, 1000)).await.expect("a payload is written");
    assert_eq!(first.file, second.file, "they share a pack");
    for wrong in [Extent { offset: second.offset - 1, ..second }, Extent { length: 999, ..second }] {
        assert!(matches!(store.read(&wrong, 0..10).await, Err(Fault::Damaged(_))), "{wrong:?}");
        store.discard(vec![wrong]);
    }
    eventually("all is done", || async { store.statistics().discarded == 0 }).await;
    assert!(read_all(&*store, &second).await.is_ok(), "what is no record is not removed");
}

#[tokio::test]
async fn a_damaged_header_costs_nothing_that_is_wanted() {
    let store = Temporary::open(Durability::Sync);
    let mut extents = Vec::new();
    for size in [1000, 1001, 1002, 300_000, 1003] {
        extents.push(put(&*store, OWNER, &payload(size as u64, size)).await.expect("a payload is written"));
    }
    for damaged in [extents[1], extents[2], extents[3]] {
        // A letter of the owner's name.
        flip(&store.file_of(&damaged), damaged.offset - 10);
    }
    let store = store.reopen();
    let reclaimed = store.reclaim(&Rows::default()).await.expect("a sweep ends");
    assert_eq!((reclaimed.seen, reclaimed.removed), (2, 2), "the others are found around the damage");
    eventually("all is done", || async { store.statistics().discarded == 0 }).await;
    for kept in [extents[1], extents[2], extents[3]] {
        assert!(read_all(&*store, &kept).await.is_ok(), "its owner is unknown, so it stays");
    }
}

#[tokio::test]
async fn a_damaged_header_at_the_end_of_a_pack_costs_nothing_that_is_wanted() {
    let store = Temporary::open(Durability::Sync);
    put(&*store, OWNER, &payload(1, 1000)).await.expect("a payload is written");
    let last = put(&*store, OWNER, &payload(2, 1000)).await.expect("a payload is written");
    let path = store.file_of(&last);
    let store = store.reopen();
    flip(&path, last.offset - 10);
    assert_eq!(store.reclaim(&Rows::default()).await.expect("a sweep ends").removed, 1);
    eventually("all is done", || async { store.statistics().discarded == 0 }).await;
    assert_eq!(store.statistics().payloads_removed, 1);
    assert!(read_all(&*store, &last).await.is_ok(), "the owner of the last is unknown, so it stays");
}

#[tokio::test]
async fn a_torn_end_of_a_pack_does_not_keep_it() {
    let store = Temporary::open(Durability::Sync);
    let extent = put(&*store, OWNER, &payload(1, 1000)).await.expect("a payload is written");
    let path = store.file_of(&extent);
    let file = OpenOptions::new().write(true).open(&path).expect("the file");
    let store = store.reopen();
    // A crash writes no mark of the end, but perhaps some of what it was about to write.
    file.write_all_at(b"LRMB\x01 and what else a power cut leaves", extent.offset + 1004).expect("a torn end");
    let mut rows = Rows::default();
    rows.point(OWNER, extent);
    assert_eq!(store.reclaim(&rows).await.expect("a sweep ends").removed, 0);
    assert!(read_all(&*store, &extent).await.is_ok());
    assert_eq!(store.reclaim(&Rows::default()).await.expect("a sweep ends").removed, 1);
    eventually("the pack is removed", || async { !path.exists() }).await;
}

fn flip(path: &Path, at: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).expect("the file");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("a byte");
    file.write_all_at(&[byte[0] ^ 1], at).expect("a byte");
}
