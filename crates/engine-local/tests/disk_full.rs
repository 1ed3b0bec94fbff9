//! A disk that fills up and has room again, on a real file system of a few megabytes.
//!
//! The test starts itself again inside a namespace of its own, where it may mount a small file system. Where
//! the system allows no such namespace there is nothing to test on, and it says so.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{eventually, keys, name, settings};
use larimar_engine::{Act, Engine, Expect, Fault, Op, Rows as _, SpaceId, Spaces as _, WriteError};
use larimar_engine_local::{LocalEngine, Settings};
use larimar_model::Timestamp;

const FOLDER: &str = "LARIMAR_TEST_SMALL_DISK";

#[test]
fn a_full_disk_costs_nothing_acknowledged_and_writes_resume_without_a_restart() {
    run("disk_full::on_a_small_disk");
}

#[test]
fn on_a_full_disk_clients_delete_and_drop_until_there_is_room_again() {
    run("disk_full::out_of_the_reserve");
}

/// Runs a test on a small file system.
fn run(test: &str) {
    if !Command::new("unshare").args(["-rm", "true"]).status().is_ok_and(|status| status.success()) {
        println!("not run: no namespace to mount a small file system in");
        return;
    }
    let folder = tempfile::TempDir::new().unwrap();
    let script = "mount -t tmpfs -o size=200m none \"$0\" && exec \"$1\" --ignored --exact \"$2\" --nocapture";
    let status = Command::new("unshare")
        .args(["-rm", "sh", "-c", script])
        .args([folder.path().as_os_str(), std::env::current_exe().unwrap().as_os_str(), test.as_ref()])
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by a test above, on a small file system"]
async fn out_of_the_reserve() {
    let disk = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    tracing_subscriber::fmt().with_ansi(false).with_env_filter("warn").with_writer(|| CountedLines).init();
    let settings = Settings { reserve_bytes: RESERVE, ..settings(&disk.join("data")) };
    let engine = LocalEngine::open(&settings).unwrap();
    assert_eq!(reserve(&disk), RESERVE);
    let second = name("second");
    let table = engine.create_space(name("first"), b"").await.unwrap().unwrap();
    let other = engine.create_space(second, b"").await.unwrap().unwrap();
    let mut rows = BTreeSet::new();
    let mut next = 0;
    fill_up(&disk, &engine, table, &mut next, &mut rows).await;

    // Deletes are taken, and nothing else.
    assert_eq!(sorted(&engine, table).await, rows, "reads go on and show what was acknowledged");
    let refused = write(&engine, table, "more").await.unwrap_err().to_string();
    assert!(refused.contains("the disk is full"), "{refused}");
    assert!(engine.create_space(name("third"), b"").await.is_err());
    for (number, row) in rows.clone().into_iter().enumerate() {
        if number % 10 != 0 {
            delete(&engine, table, &row).await;
            rows.remove(&row);
        }
    }
    eventually("the reserve is whole again", || engine.ready().is_ok() && reserve(&disk) == RESERVE).await;
    std::fs::remove_file(disk.join("ballast")).unwrap();
    assert_eq!(sorted(&engine, table).await, rows);
    write(&engine, table, "after").await.unwrap();
    rows.insert("after".to_owned());

    // So are drops, and the state outlives the process.
    let mut others = BTreeSet::new();
    fill_up(&disk, &engine, other, &mut next, &mut others).await;
    delete(&engine, table, "after").await;
    rows.remove("after");
    drop(engine);
    let engine = LocalEngine::open(&settings).unwrap();
    assert!(is_freeing(&engine), "the disk is still full");
    assert!(write(&engine, table, "more").await.is_err());
    assert_eq!(sorted(&engine, other).await, others);
    assert!(engine.drop_space(second).await.unwrap());
    eventually("the reserve is whole again", || engine.ready().is_ok() && reserve(&disk) == RESERVE).await;
    write(&engine, table, "last").await.unwrap();
    rows.insert("last".to_owned());
    assert_eq!(sorted(&engine, table).await, rows);
    drop(engine);
    let engine = LocalEngine::open(&settings).unwrap();
    assert_eq!(sorted(&engine, table).await, rows);
    let lines = LINES.load(Ordering::Relaxed);
    println!("{lines} lines were logged, {next} rows written");
    assert!(lines < LINES_MAX, "{lines} lines were logged");
}

const RESERVE: u64 = 24 << 20;
/// Two full disks: what fails in the store says so in up to five lines.
const LINES_MAX: usize = 60;
static LINES: AtomicUsize = AtomicUsize::new(0);

/// Shows lines of the log and counts them.
struct CountedLines;

impl std::io::Write for CountedLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LINES.fetch_add(bytes.iter().filter(|byte| **byte == b'\n').count(), Ordering::Relaxed);
        std::io::Write::write_all(&mut std::io::stderr(), bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn reserve(disk: &Path) -> u64 {
    disk.join("data/reserve").metadata().unwrap().len()
}

/// Whether only deletes and drops are taken.
fn is_freeing(engine: &LocalEngine) -> bool {
    engine.ready().is_err_and(|fault| fault.to_string().contains("only deletes"))
}

/// Fills the disk until only deletes are taken, and something else then takes what is left, so that the reserve is used.
async fn fill_up(disk: &Path, engine: &LocalEngine, table: SpaceId, next: &mut usize, rows: &mut BTreeSet<String>) {
    fill(engine, table, next, rows).await;
    assert!(is_freeing(engine), "{:?}", engine.ready());
    assert_eq!(reserve(disk), RESERVE, "a store that fills its disk by itself leaves the reserve alone");
    let mut ballast = std::fs::File::create(disk.join("ballast")).unwrap();
    for bytes in [1 << 20, 4096, 1] {
        while std::io::Write::write_all(&mut ballast, &vec![1; bytes]).is_ok() {}
    }
    eventually("the reserve is given up", || reserve(disk) == 0).await;
    eventually("the store is open again", || is_freeing(engine)).await;
}

/// Deletes a row, trying again while the engine makes room.
async fn delete(engine: &LocalEngine, table: SpaceId, row: &str) {
    let started = std::time::Instant::now();
    loop {
        let op = Op { row, expect: Expect::Any, act: Act::Delete };
        match engine.apply(table, "p", &[op], Timestamp::from_ticks(1)).await {
            Ok(_) => return,
            Err(error) => assert!(started.elapsed().as_secs() < 60, "no delete is taken: {error}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
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
