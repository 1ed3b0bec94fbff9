//! A folder that is opened again has what was acknowledged, and no other process opens it meanwhile.

use crate::stores::files::Temporary;
use larimar_bytes::{Admission, Durability, FileBytes, FileSettings};
use larimar_engine::Fault;
use larimar_engine::blob::bytes::{ByteStore, ByteWriter};
use larimar_testkit::bytes::{OWNER, Rows, eventually, payload, put, read_all};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_restart() {
    let mut store = Temporary::open(Durability::Sync);
    let mut rows = Rows::default();
    let mut written = Vec::new();
    for round in 0..3 {
        for size in [0, 1, 5_000, 70_000, 300_000, 2 << 20] {
            let bytes = payload(round * 7 + size as u64, size);
            let extent = put(&*store, OWNER, &bytes).await.expect("a payload is written");
            rows.point(OWNER, extent);
            written.push((extent, bytes));
        }
        store = store.reopen();
        for (extent, bytes) in &written {
            assert!(read_all(&*store, extent).await.expect("it is read") == *bytes);
        }
        let reclaimed = store.reclaim(&rows).await.expect("a sweep ends");
        assert_eq!((reclaimed.seen, reclaimed.removed), (written.len() as u64, 0));
    }
}

#[tokio::test]
async fn what_was_discarded_before_a_restart_is_swept_after_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = |grace| FileSettings {
        folder: folder.path().join("blobs"),
        durability: Durability::Sync,
        grace,
        admission: Admission::default(),
    };
    let store = FileBytes::open(&settings(Duration::from_secs(3600))).expect("the store opens");
    let mut extents = Vec::new();
    for size in [100, 200, 300_000] {
        extents.push(put(&store, OWNER, &payload(1, size)).await.expect("a payload is written"));
    }
    store.discard(extents.clone());
    assert_eq!(store.statistics().discarded, 3);
    assert_eq!(store.reclaim(&Rows::default()).await.expect("a sweep ends").removed, 0, "the grace is not over");
    assert!(read_all(&store, &extents[2]).await.is_ok(), "within the time of grace readers go on");
    drop(store);
    let store = FileBytes::open(&settings(Duration::ZERO)).expect("the store opens");
    assert_eq!(store.reclaim(&Rows::default()).await.expect("a sweep ends").removed, 3);
    eventually("nothing is left", || async { crate::stores::files::files_in(folder.path()).is_empty() }).await;
}

#[tokio::test]
async fn a_folder_is_opened_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = FileSettings {
        folder: folder.path().join("blobs"),
        durability: Durability::Sync,
        grace: Duration::ZERO,
        admission: Admission::default(),
    };
    let first = FileBytes::open(&settings).expect("the store opens");
    assert!(matches!(FileBytes::open(&settings), Err(Fault::Unavailable(text)) if text.contains("in use")));
    drop(first);
    FileBytes::open(&settings).expect("the store opens again");
}

/// A process that is being started has all files of this one until it runs its program.
#[test]
fn a_folder_is_free_again_while_processes_are_started() {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                Command::new("true").status().expect("a process");
            }
        });
        let reopened = std::panic::catch_unwind(|| {
            let mut store = Temporary::open(Durability::System);
            for _ in 0..300 {
                store = store.reopen();
            }
        });
        done.store(true, Ordering::Relaxed);
        reopened.expect("the store opens every time");
    });
}

#[tokio::test]
async fn a_writer_that_outlives_its_store_is_refused() {
    let store = Temporary::open(Durability::Sync);
    let mut small = store.begin(OWNER, Some(10)).await.expect("a payload begins");
    small.write(payload(1, 10)).await.expect("the bytes are taken");
    drop(store);
    assert!(matches!(small.finish().await, Err(Fault::Unavailable(_))));
}
