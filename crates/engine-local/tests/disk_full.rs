//! A disk that fills up and has room again, on a real file system of a few megabytes.
//!
//! The test starts itself again inside a namespace of its own, where it may mount a small file system. Where
//! the system allows no such namespace there is nothing to test on, and it says so.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{eventually, keys, name, read, settings};
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

#[test]
fn the_reserve_outlasts_a_program_that_takes_every_byte_until_clients_delete() {
    run("disk_full::beside_a_greedy_program");
}

#[test]
fn a_dropped_table_makes_room_although_the_reserve_is_lost() {
    run("disk_full::without_the_reserve");
}

#[test]
fn dropped_rows_in_memory_need_no_room_and_the_others_are_kept() {
    run("disk_full::with_dropped_rows_in_memory");
}

#[test]
fn a_table_that_was_dropped_before_makes_room_with_no_byte_free() {
    run("disk_full::with_a_table_dropped_before");
}

#[test]
fn a_disk_without_room_to_make_room_says_how_much_to_free_and_resumes_then() {
    run("disk_full::until_an_operator_frees_space");
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
    take_every_byte(disk);
    eventually("the store is open again", || is_freeing(engine)).await;
    assert_eq!(reserve(disk), RESERVE, "the reserve is kept until a client deletes");
}

/// Takes what is free, and what the server frees by itself meanwhile: journals of rows that are in tables.
fn take_every_byte(disk: &Path) {
    let mut ballast = std::fs::File::create(disk.join("ballast")).unwrap();
    let ends = std::time::Instant::now() + std::time::Duration::from_secs(3);
    while std::time::Instant::now() < ends {
        take_all(&mut ballast);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn take_all(ballast: &mut std::fs::File) {
    for bytes in [1 << 20, 4096, 1] {
        while std::io::Write::write_all(ballast, &vec![1; bytes]).is_ok() {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by a test above, on a small file system"]
async fn beside_a_greedy_program() {
    let disk = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let settings = Settings { reserve_bytes: RESERVE, ..settings(&disk.join("data")) };
    let engine = LocalEngine::open(&settings).unwrap();
    let table = engine.create_space(name("t"), b"").await.unwrap().unwrap();
    write_rows(&engine, table, ROWS).await;
    take_every_byte(&disk);
    eventually("only deletes are taken", || is_freeing(&engine)).await;
    assert_eq!(reserve(&disk), RESERVE);
    drop_table(&engine, "t").await;
    eventually("writes resume", || engine.ready().is_ok() && reserve(&disk) == RESERVE).await;
    assert!(engine.create_space(name("another"), b"").await.unwrap().is_some());
}

/// Another program took the reserve too, and what is in memory does not fit into what is free. The rows are dropped, so
/// they need no room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by a test above, on a small file system"]
async fn without_the_reserve() {
    let disk = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let (settings, other) = lose_the_reserve(&disk, ROWS, 600 << 10).await;
    let engine = LocalEngine::open(&settings).unwrap();
    assert!(is_freeing(&engine), "the disk is full");
    drop_table(&engine, "t").await;
    eventually("writes resume", || engine.ready().is_ok() && reserve(&disk) == RESERVE).await;
    write(&engine, other, "new").await.unwrap();
    drop(engine);
    let engine = LocalEngine::open(&settings).unwrap();
    assert_eq!(
        rows(&engine, other).await,
        [("kept".to_owned(), 8), ("late".to_owned(), 9), ("new".to_owned(), 20_000)]
    );
}

/// Nothing but memory and the journal has the dropped rows, so only the journal can give space back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by a test above, on a small file system"]
async fn with_dropped_rows_in_memory() {
    let disk = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let (settings, other) = lose_the_reserve(&disk, 300, 600 << 10).await;
    let engine = LocalEngine::open(&settings).unwrap();
    assert!(is_freeing(&engine), "the disk is full");
    drop_table(&engine, "t").await;
    eventually("the journal's space is in the reserve", || reserve(&disk) > 5 << 20).await;
    assert!(is_freeing(&engine), "that is not enough");
    assert_eq!(rows(&engine, other).await, [("kept".to_owned(), 8), ("late".to_owned(), 9)]);
    drop(engine);
    std::fs::remove_file(disk.join("ballast")).unwrap();
    let engine = LocalEngine::open(&settings).unwrap();
    eventually("writes resume", || engine.ready().is_ok() && reserve(&disk) == RESERVE).await;
    assert_eq!(rows(&engine, other).await, [("kept".to_owned(), 8), ("late".to_owned(), 9)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by a test above, on a small file system"]
async fn with_a_table_dropped_before() {
    let disk = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let settings = Settings { reserve_bytes: RESERVE, ..settings(&disk.join("data")) };
    let engine = LocalEngine::open(&settings).unwrap();
    let table = engine.create_space(name("t"), b"").await.unwrap().unwrap();
    write_rows(&engine, table, ROWS).await;
    drop_table(&engine, "t").await;
    engine.close().unwrap();
    drop(engine);
    take_all(&mut std::fs::File::create(disk.join("ballast")).unwrap());
    let engine = LocalEngine::open(&settings).unwrap();
    eventually("writes resume", || engine.ready().is_ok() && reserve(&disk) == RESERVE).await;
    assert!(engine.create_space(name("t"), b"").await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by a test above, on a small file system"]
async fn until_an_operator_frees_space() {
    let disk = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let (settings, other) = lose_the_reserve(&disk, ROWS, 0).await;
    let engine = LocalEngine::open(&settings).unwrap();
    eventually("an operator sees what to free", || is_stuck(&engine)).await;
    assert!(engine.drop_space(name("t")).await.is_err(), "not even a drop has room");
    eventually("an operator sees what to free", || is_stuck(&engine)).await;
    let text = engine.ready().unwrap_err().to_string();
    let mib: u64 = text.split_once(": free ").unwrap().1.split_once(" MiB").unwrap().0.parse().unwrap();
    let ballast = std::fs::File::options().write(true).open(disk.join("ballast")).unwrap();
    ballast.set_len(ballast.metadata().unwrap().len() - (mib << 20)).unwrap();
    drop_table(&engine, "t").await;
    eventually("writes resume", || engine.ready().is_ok() && reserve(&disk) == RESERVE).await;
    assert_eq!(rows(&engine, other).await, [("kept".to_owned(), 8), ("late".to_owned(), 9)]);
}

/// Leaves a store with rows in the table `t`, the last of which are only in memory and the journal, and two rows in
/// another table, where one was replaced and one deleted; on a disk with so much room, and without the reserve.
async fn lose_the_reserve(disk: &Path, rows: usize, free: usize) -> (Settings, SpaceId) {
    let settings = Settings { reserve_bytes: RESERVE, ..settings(&disk.join("data")) };
    // More is in memory than a server with less memory would leave there.
    let writer = Settings { memory_bytes: Some(1 << 30), ..settings.clone() };
    let engine = LocalEngine::open(&writer).unwrap();
    let table = engine.create_space(name("t"), b"").await.unwrap().unwrap();
    let other = engine.create_space(name("other"), b"").await.unwrap().unwrap();
    write(&engine, other, "kept").await.unwrap();
    write(&engine, other, "gone").await.unwrap();
    engine.close().unwrap();
    drop(engine);
    let engine = LocalEngine::open(&writer).unwrap();
    write_rows(&engine, table, rows).await;
    for (row, act) in [("kept", Act::Put(b"replaced")), ("late", Act::Put(b"in memory")), ("gone", Act::Delete)] {
        let op = Op { row, expect: Expect::Any, act };
        engine.apply(other, "p", &[op], Timestamp::from_ticks(1)).await.unwrap();
    }
    drop(engine);
    std::fs::File::create(disk.join("data/reserve")).unwrap();
    let room = disk.join("room");
    std::fs::write(&room, vec![1; free]).unwrap();
    take_all(&mut std::fs::File::create(disk.join("ballast")).unwrap());
    std::fs::remove_file(room).unwrap();
    (settings, other)
}

/// Four memtables of 1/32 of the disk, and half of one.
const ROWS: usize = 1500;

async fn write_rows(engine: &LocalEngine, table: SpaceId, rows: usize) {
    for number in 0..rows {
        write(engine, table, &format!("r{number:06}")).await.unwrap();
    }
}

/// Whether an operator sees what to free.
fn is_stuck(engine: &LocalEngine) -> bool {
    engine.ready().is_err_and(|fault| fault.to_string().contains("too little room to make some: free "))
}

/// Drops a table, trying again while the engine makes room.
async fn drop_table(engine: &LocalEngine, table: &str) {
    let started = std::time::Instant::now();
    loop {
        match engine.drop_space(name(table)).await {
            Ok(dropped) => return assert!(dropped),
            Err(error) => assert!(started.elapsed().as_secs() < 60, "no drop is taken: {error}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
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

/// The rows of a table, with the length of their bodies.
async fn rows(engine: &LocalEngine, table: SpaceId) -> Vec<(String, usize)> {
    let mut rows = Vec::new();
    for row in keys(engine, table).await {
        let (_, body) = read(engine, table, "p", &row).await.unwrap();
        rows.push((row, body.len()));
    }
    rows
}

async fn sorted(engine: &LocalEngine, table: SpaceId) -> BTreeSet<String> {
    keys(engine, table).await.into_iter().collect()
}
