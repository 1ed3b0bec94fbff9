//! A disk that fills up and has room again, on a real file system of a few megabytes.
//!
//! The test starts itself again inside a namespace of its own, where it may mount a small file system. Where the
//! system allows no such namespace there is nothing to test on, and it says so.

use crate::stores::files::{files_in, open};
use larimar_bytes::{Durability, FileBytes};
use larimar_engine::Fault;
use larimar_engine::blob::bytes::{ByteStore, Extent};
use larimar_testkit::bytes::{OWNER, Rows, eventually, payload, put, read_all};
use std::path::PathBuf;
use std::process::Command;

const FOLDER: &str = "LARIMAR_TEST_SMALL_DISK";

#[test]
fn a_full_disk_refuses_writes_keeps_what_is_there_and_heals() {
    if !Command::new("unshare").args(["-rm", "true"]).status().is_ok_and(|status| status.success()) {
        println!("not run: no namespace to mount a small file system in");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let script = "mount -t tmpfs -o size=40m none \"$0\" && exec \"$1\" --ignored --exact stores::disk_full::on_a_small_disk --nocapture";
    let status = Command::new("unshare")
        .args(["-rm", "sh", "-c", script])
        .args([folder.path().as_os_str(), std::env::current_exe().expect("our own path").as_os_str()])
        .env(FOLDER, folder.path())
        .status();
    assert!(status.is_ok_and(|status| status.success()), "the test on the small disk failed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by the test above, on a small file system"]
async fn on_a_small_disk() {
    let disk = PathBuf::from(std::env::var_os(FOLDER).expect("the folder's name"));
    let ballast = disk.join("ballast");
    let store = open(&disk.join("data"), Durability::Sync);
    let mut kept = Vec::new();
    for (round, size) in [100_000, 3_000_000, 20_000].into_iter().enumerate() {
        std::fs::write(&ballast, vec![1; 25 << 20]).expect("room for ballast");
        fill(&store, size, &mut kept).await;
        check(&store, &kept).await;
        std::fs::remove_file(&ballast).expect("the ballast is there");
        let bytes = payload(round as u64, size);
        let extent = put(&store, OWNER, &bytes).await.expect("there is room again");
        kept.push((extent, bytes));
        check(&store, &kept).await;
        let half: Vec<_> = kept.drain(..kept.len() / 2 + 1).map(|(extent, _)| extent).collect();
        store.discard(half);
        eventually("all is done", || async { store.statistics().discarded == 0 }).await;
        store.discard(kept.drain(..).map(|(extent, _)| extent).collect());
        eventually("there is room for the next round", || async { used(&disk) < 8 << 20 }).await;
    }
    drop(store);
    let store = open(&disk.join("data"), Durability::Sync);
    let reclaimed = store.reclaim(&Rows::default()).await.expect("a sweep ends");
    assert_eq!(reclaimed.seen, 0);
    eventually("nothing is left", || async { files_in(&disk).is_empty() }).await;
}

/// Writes until the disk is full; nothing of what is refused stays.
async fn fill(store: &FileBytes, size: usize, kept: &mut Vec<(Extent, larimar_engine::blob::bytes::Bytes)>) {
    for seed in 0..5_000 {
        let bytes = payload(seed, size);
        match put(store, OWNER, &bytes).await {
            Ok(extent) => kept.push((extent, bytes)),
            Err(Fault::Unavailable(_)) => {
                assert!(matches!(put(store, OWNER, &bytes).await, Err(Fault::Unavailable(_))), "it is still full");
                return;
            }
            Err(other) => panic!("{other}"),
        }
    }
    panic!("the disk should be full by now");
}

async fn check(store: &FileBytes, kept: &[(Extent, larimar_engine::blob::bytes::Bytes)]) {
    for (extent, bytes) in kept {
        assert!(read_all(store, extent).await.expect("what was acknowledged is read") == *bytes);
    }
}

fn used(disk: &std::path::Path) -> u64 {
    files_in(disk).iter().filter_map(|path| path.metadata().ok()).map(|metadata| metadata.len()).sum()
}
