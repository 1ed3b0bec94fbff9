//! Small payloads share packs, and packs go when nothing in them is wanted.

use crate::stores::files::Temporary;
use larimar_bytes::Durability;
use larimar_engine::blob::bytes::{ByteStore, Extent};
use larimar_testkit::bytes::{OWNER, Rows, eventually, payload, put, read_all};

#[tokio::test]
async fn small_payloads_share_a_file_and_large_ones_do_not() {
    let store = Temporary::open(Durability::Sync);
    let mut large = Vec::new();
    for seed in 0..20 {
        put(&*store, OWNER, &payload(seed, 3000)).await.expect("a payload is written");
        large.push(put(&*store, OWNER, &payload(seed, 300_000)).await.expect("a payload is written"));
    }
    assert_eq!(store.files().len(), 21);
    store.discard(large);
    eventually("files of their own are removed", || async { store.files().len() == 1 }).await;
}

#[tokio::test]
async fn a_pack_that_is_full_goes_with_its_last_payload() {
    let store = Temporary::open(Durability::System);
    let bytes = payload(1, 250_000);
    let mut extents = Vec::new();
    while extents.first().map(|first: &Extent| first.file) == extents.last().map(|last| last.file) {
        extents.push(put(&*store, OWNER, &bytes).await.expect("a payload is written"));
        assert!(extents.len() < 1000, "a second pack should have begun by now");
    }
    let in_second = extents.pop().expect("the second pack has one");
    let last = extents.pop().expect("the first has many");
    assert_eq!(store.files().len(), 2);
    store.discard(extents);
    eventually("all is done", || async { store.statistics().discarded == 0 }).await;
    assert_eq!(store.files().len(), 2);
    assert!(read_all(&*store, &last).await.expect("it is read") == bytes);
    store.discard(vec![last]);
    eventually("the first pack is removed", || async { store.files().len() == 1 }).await;
    assert!(read_all(&*store, &in_second).await.expect("it is read") == bytes);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn dead_payloads_give_their_blocks_back_before_their_pack_goes() {
    use std::os::unix::fs::MetadataExt;
    let store = Temporary::open(Durability::Sync);
    let mut extents = Vec::new();
    for seed in 0..20 {
        extents.push(put(&*store, OWNER, &payload(seed, 200_000)).await.expect("a payload is written"));
    }
    let kept = extents.remove(7);
    let path = store.file_of(&kept);
    let stored = || path.metadata().expect("the pack is there").blocks() * 512;
    assert!(stored() >= 20 * 200_000, "{} bytes for twenty payloads", stored());
    store.discard(extents);
    eventually("all is done", || async { store.statistics().discarded == 0 }).await;
    assert!(stored() < 3 * 200_000, "{} bytes for one payload", stored());
    assert!(read_all(&*store, &kept).await.expect("it is read") == payload(7, 200_000));
    let mut rows = Rows::default();
    rows.point(OWNER, kept);
    let store = store.reopen();
    let reclaimed = store.reclaim(&rows).await.expect("a sweep ends");
    assert_eq!((reclaimed.seen, reclaimed.removed), (1, 0));
}

#[tokio::test]
async fn packs_of_an_earlier_start_are_counted_when_they_are_needed() {
    let store = Temporary::open(Durability::Sync);
    let mut extents = Vec::new();
    for seed in 0..10 {
        extents.push(put(&*store, OWNER, &payload(seed, 2000)).await.expect("a payload is written"));
    }
    store.discard(extents.drain(..5).collect());
    eventually("all is done", || async { store.statistics().discarded == 0 }).await;
    let store = store.reopen();
    store.discard(extents.drain(..4).collect());
    eventually("all is done", || async { store.statistics().discarded == 0 }).await;
    assert_eq!(store.statistics().payloads_removed, 4);
    assert!(read_all(&*store, &extents[0]).await.expect("the last is read") == payload(9, 2000));
    store.discard(extents);
    eventually("the pack is removed", || async { store.files().is_empty() }).await;
    let reclaimed = store.reclaim(&Rows::default()).await.expect("a sweep ends");
    assert_eq!(reclaimed.seen, 0);
}

#[tokio::test]
async fn what_the_files_take_is_counted_after_a_start_without_holes() {
    let store = Temporary::open(Durability::Sync);
    eventually("nothing is counted", || async { store.statistics().stored_bytes == Some(0) }).await;
    let large = put(&*store, OWNER, &payload(1, 3_000_000)).await.expect("a payload is written");
    let small = put(&*store, OWNER, &payload(2, 200_000)).await.expect("a payload is written");
    put(&*store, OWNER, &payload(3, 3000)).await.expect("a payload is written");
    let counted =
        |bytes: std::ops::Range<u64>| move |found: Option<u64>| found.is_some_and(|found| bytes.contains(&found));
    let store = store.reopen();
    let all = counted(3_203_000..3_400_000);
    eventually("all files are counted", || async { all(store.statistics().stored_bytes) }).await;
    store.discard(vec![large, small]);
    eventually("both are removed", || async { store.statistics().discarded == 0 }).await;
    let store = store.reopen();
    let rest = if cfg!(target_os = "linux") { counted(3000..100_000) } else { counted(3000..400_000) };
    eventually("the rest is counted", || async { rest(store.statistics().stored_bytes) }).await;
}
