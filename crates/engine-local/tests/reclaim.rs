//! Rows of a dropped table are removed from disk without further writes to the store.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use crate::support::{eventually, keys, name, settings};
use larimar_engine::{Act, Engine, Expect, Op, Rows as _, SpaceId, Spaces as _};
use larimar_engine_local::LocalEngine;
use larimar_model::Timestamp;
use tempfile::TempDir;

const PARTITIONS: usize = 30;
const ROWS: usize = 100;

async fn fill(engine: &LocalEngine, table: SpaceId) {
    let mut seed = 1_u64;
    for partition in 0..PARTITIONS {
        let rows: Vec<String> = (0..ROWS).map(|row| format!("r{row}")).collect();
        let bodies: Vec<Vec<u8>> = (0..ROWS).map(|_| noise(&mut seed)).collect();
        let op = |(row, body)| Op { row, expect: Expect::Absent, act: Act::Put(body) };
        let ops: Vec<Op<'_>> = rows.iter().map(String::as_str).zip(bodies.iter().map(Vec::as_slice)).map(op).collect();
        engine.apply(table, &partition.to_string(), &ops, Timestamp::from_ticks(1)).await.unwrap();
    }
}

/// Bytes that do not compress.
fn noise(seed: &mut u64) -> Vec<u8> {
    let next = || {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed as u8
    };
    std::iter::repeat_with(next).take(2000).collect()
}

fn table_bytes(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder.join("store/keyspaces/1/tables")).unwrap();
    files.filter_map(|file| file.unwrap().metadata().ok()).map(|metadata| metadata.len()).sum()
}

#[tokio::test]
async fn the_rows_of_a_dropped_table_leave_an_idle_store() {
    let folder = TempDir::new().unwrap();
    let engine = LocalEngine::open(&settings(folder.path())).unwrap();
    let (dropped, kept) = (name("dropped"), name("kept"));
    let table = engine.create_space(dropped, b"").await.unwrap().unwrap();
    let other = engine.create_space(kept, b"").await.unwrap().unwrap();
    fill(&engine, table).await;
    let op = Op { row: "row", expect: Expect::Absent, act: Act::Put(b"body") };
    engine.apply(other, "p", &[op], Timestamp::from_ticks(1)).await.unwrap();
    engine.close().unwrap();
    drop(engine);
    let engine = LocalEngine::open(&settings(folder.path())).unwrap();
    let before = table_bytes(folder.path());
    assert!(before > (PARTITIONS * ROWS * 2000) as u64, "{before} bytes");
    assert!(engine.drop_space(dropped).await.unwrap());
    // No writes from here on.
    eventually("the table's files shrink", || table_bytes(folder.path()) < before / 20).await;
    assert_eq!(engine.statistics().dropped_spaces, 0);
    assert_eq!(keys(&engine, other).await, ["row"]);
    drop(engine);
    let engine = LocalEngine::open(&settings(folder.path())).unwrap();
    assert_eq!(keys(&engine, other).await, ["row"]);
    assert!(table_bytes(folder.path()) < before / 20);
}

#[tokio::test]
async fn a_compaction_on_request_frees_deleted_rows_at_once_and_one_runs_at_a_time() {
    let folder = TempDir::new().unwrap();
    let engine = LocalEngine::open(&settings(folder.path())).unwrap();
    let table = engine.create_space(name("table"), b"").await.unwrap().unwrap();
    fill(&engine, table).await;
    engine.close().unwrap();
    drop(engine);
    let engine = LocalEngine::open(&settings(folder.path())).unwrap();
    let before = table_bytes(folder.path());
    let rows: Vec<String> = (0..ROWS).map(|row| format!("r{row}")).collect();
    for partition in 1..PARTITIONS {
        let op = |row| Op { row, expect: Expect::Present, act: Act::Delete };
        let ops: Vec<Op<'_>> = rows.iter().map(|row| op(row.as_str())).collect();
        engine.apply(table, &partition.to_string(), &ops, Timestamp::from_ticks(1)).await.unwrap();
    }
    let kept = keys(&engine, table).await;
    let (first, second) = tokio::join!(engine.compact(), engine.compact());
    assert!(first.is_ok() || second.is_ok(), "{first:?} {second:?}");
    for refused in [&first, &second].into_iter().filter_map(|outcome| outcome.as_ref().err()) {
        assert!(refused.to_string().contains("running already"), "{refused}");
    }
    let after = table_bytes(folder.path());
    assert!(after < before / 10, "{before} bytes before, {after} after: {first:?} {second:?}");
    assert_eq!(engine.statistics().reclaimable_bytes, 0);
    assert_eq!(keys(&engine, table).await, kept);
    let again = engine.compact().await.unwrap().unwrap();
    assert!(again.bytes_after <= again.bytes_before + (1 << 16), "{again:?}");
}

/// The first read of a row takes its blocks from the disk, the second one from the cache.
#[tokio::test]
async fn reads_of_blocks_are_counted_as_hits_and_misses_of_the_cache() {
    let folder = TempDir::new().unwrap();
    let engine = LocalEngine::open(&settings(folder.path())).unwrap();
    let table = engine.create_space(name("table"), b"").await.unwrap().unwrap();
    fill(&engine, table).await;
    engine.close().unwrap();
    drop(engine);
    let engine = LocalEngine::open(&settings(folder.path())).unwrap();
    let reads = || engine.statistics().block_reads.into_iter().find(|reads| reads.of == "rows").unwrap();
    let start = reads();
    let key = larimar_engine::Key { space: table, partition: "1", row: "r1" };
    assert!(engine.get(key, |row| row.is_some()).await.unwrap());
    let first = reads();
    assert_eq!((first.hits, first.misses), (start.hits, start.misses + 1));
    assert!(engine.get(key, |row| row.is_some()).await.unwrap());
    assert_eq!((reads().hits, reads().misses), (first.hits + 1, first.misses));
}
