//! A disk that fills up and has room again, on a real file system of a few megabytes.
//!
//! The test starts itself again inside a namespace of its own, where it may mount a small file system. Where
//! the system allows no such namespace there is nothing to test on, and it says so.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use larimar_engine::{Act, Engine, Expect, Fault, Op, SpaceId, WriteError};
use larimar_engine_local::LocalEngine;
use larimar_model::Timestamp;
use support::{eventually, keys, name, settings};

const FOLDER: &str = "LARIMAR_TEST_SMALL_DISK";

#[test]
fn a_full_disk_costs_nothing_acknowledged_and_writes_resume_without_a_restart() {
    if !Command::new("unshare").args(["-rm", "true"]).status().is_ok_and(|status| status.success()) {
        println!("not run: no namespace to mount a small file system in");
        return;
    }
    let folder = tempfile::TempDir::new().unwrap();
    let script = "mount -t tmpfs -o size=200m none \"$0\" && exec \"$1\" --ignored --exact on_a_small_disk --nocapture";
    let status = Command::new("unshare")
        .args(["-rm", "sh", "-c", script])
        .args([folder.path().as_os_str(), std::env::current_exe().unwrap().as_os_str()])
        .env(FOLDER, folder.path())
        .status()
        .unwrap();
    assert!(status.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by the test above, on a small file system"]
async fn on_a_small_disk() {
    let disk = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let ballast = disk.join("ballast");
    let settings = settings(&disk.join("data"));
    let engine = LocalEngine::open(&settings).unwrap();
    let table = engine.create_space(name("t"), b"").await.unwrap().unwrap();

    let mut acknowledged = BTreeSet::new();
    let mut next = 0;
    // Half of the disk stays free for a journal beside the tables that it is flushed to.
    for ballast_bytes in [150 << 20, 60 << 20] {
        std::fs::write(&ballast, vec![1; ballast_bytes]).unwrap();
        let refused = fill(&engine, table, &mut next, &mut acknowledged).await;
        assert!(engine.ready().is_err(), "a full disk is not ready");
        assert_eq!(sorted(&engine, table).await, acknowledged, "reads go on and show what was acknowledged");

        std::fs::remove_file(&ballast).unwrap();
        eventually("writes resume", || engine.ready().is_ok()).await;
        assert_eq!(sorted(&engine, table).await, acknowledged, "{refused} was refused and stays away");
    }
    write(&engine, table, "last").await.unwrap();
    acknowledged.insert("last".to_owned());
    drop(engine);
    let engine = LocalEngine::open(&settings).unwrap();
    assert_eq!(sorted(&engine, table).await, acknowledged);
}

/// Writes until the disk is full; returns the row that was refused.
async fn fill(engine: &LocalEngine, table: SpaceId, next: &mut usize, acknowledged: &mut BTreeSet<String>) -> String {
    loop {
        let row = format!("r{next:06}");
        *next += 1;
        match write(engine, table, &row).await {
            Ok(()) => assert!(acknowledged.insert(row)),
            Err(WriteError::Fault(Fault::Unavailable(_))) => return row,
            Err(other) => panic!("{other}"),
        }
        assert!(*next < 100_000, "the disk should be full by now");
    }
}

async fn write(engine: &LocalEngine, table: SpaceId, row: &str) -> Result<(), WriteError> {
    // Bytes that do not compress.
    let mut seed = row.bytes().fold(1_u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)) | 1);
    let body: Vec<u8> = std::iter::repeat_with(|| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as u8
    })
    .take(20_000)
    .collect();
    let op = Op { row, expect: Expect::Absent, act: Act::Put(&body) };
    engine.apply(table, "p", &[op], Timestamp::from_ticks(1)).await.map(|_| ())
}

async fn sorted(engine: &LocalEngine, table: SpaceId) -> BTreeSet<String> {
    keys(engine, table).await.into_iter().collect()
}
