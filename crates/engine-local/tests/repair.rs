//! `larimar repair`: what it mends, what it leaves alone, and what it keeps.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::support::{keys, name, settings};
use larimar_engine::{Act, Expect, Op, Rows as _, SpaceId, Spaces as _};
use larimar_engine_local::repair::{Action, repair};
use larimar_engine_local::store::StoreError;
use larimar_engine_local::store::journal::State;
use larimar_engine_local::{LocalEngine, repair};
use larimar_model::Timestamp;
use tempfile::TempDir;

const ROWS: usize = 5;

/// A folder whose journal holds one commit a row, the last one of 20,000 bytes; where each begins and ends.
async fn written() -> (TempDir, SpaceId, Vec<usize>) {
    let folder = TempDir::new().unwrap();
    let engine = LocalEngine::open(&settings(folder.path())).unwrap();
    let table = engine.create_space(name("t"), b"").await.unwrap().unwrap();
    let mut ends = vec![end(&folder)];
    for row in 0..ROWS {
        let body = vec![b'x'; if row + 1 == ROWS { 20_000 } else { 10 }];
        let op = Op { row: &format!("r{row}"), expect: Expect::Absent, act: Act::Put(&body) };
        engine.apply(table, "p", &[op], Timestamp::from_ticks(1)).await.unwrap();
        ends.push(end(&folder));
    }
    drop(engine);
    (folder, table, ends)
}

fn end(folder: &TempDir) -> usize {
    repair::inspect(folder.path()).unwrap().journals.last().unwrap().intact_bytes as usize
}

fn change(folder: &TempDir, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let path = repair::inspect(folder.path()).unwrap().journals.last().unwrap().path.clone();
    let mut bytes = std::fs::read(&path).unwrap();
    change(&mut bytes);
    std::fs::write(path, &bytes).unwrap();
    // A loss of power takes this back as well.
    let _ = std::fs::remove_file(folder.path().join("watermark"));
    bytes
}

async fn rows(folder: &TempDir, table: SpaceId) -> Vec<String> {
    let engine = LocalEngine::open(&settings(folder.path())).unwrap();
    // It takes writes as well.
    let op = Op { row: "after", expect: Expect::Any, act: Act::Put(b"1") };
    engine.apply(table, "p", &[op], Timestamp::from_ticks(1)).await.unwrap();
    keys(&engine, table).await
}

#[tokio::test]
async fn an_intact_or_torn_store_is_left_alone() {
    let (folder, table, ends) = written().await;
    assert_eq!(repair(folder.path(), false).unwrap().action, Action::None);
    change(&folder, |bytes| bytes.truncate(ends[ROWS] - 3));
    let done = repair(folder.path(), true).unwrap();
    assert_eq!((done.found.state.clone(), done.action.clone()), (State::Torn, Action::None));
    assert!(done.to_string().contains("cut short"), "{done}");
    assert_eq!(rows(&folder, table).await, ["after", "r0", "r1", "r2", "r3"]);
}

#[tokio::test]
async fn a_hole_in_the_last_commit_is_cut_and_a_copy_kept() {
    let (folder, table, ends) = written().await;
    let hole = ends[ROWS - 1] + 5000;
    let bytes = change(&folder, |bytes| bytes[hole..hole + 4096].fill(0));
    let Err(StoreError::DamagedTail(_)) = LocalEngine::open(&settings(folder.path())) else { panic!("opened") };
    let Action::Cut { commits_lost: 0, copies, .. } = repair(folder.path(), false).unwrap().action else {
        panic!("not cut")
    };
    let copy = std::fs::read_dir(copies).unwrap().next().unwrap().unwrap().path();
    assert!(std::fs::read(copy).unwrap() == bytes, "the copy is the journal as it was");
    assert_eq!(rows(&folder, table).await, ["after", "r0", "r1", "r2", "r3"]);
}

#[tokio::test]
async fn damage_before_intact_commits_is_cut_only_when_forced() {
    let (folder, table, ends) = written().await;
    let before = change(&folder, |bytes| bytes[ends[2] + 30] ^= 1);
    let Err(StoreError::DamagedMiddle(_)) = LocalEngine::open(&settings(folder.path())) else { panic!("opened") };
    let refused = repair(folder.path(), false).unwrap();
    let Action::Refused { commits_lost: 2, .. } = refused.action else { panic!("{refused}") };
    assert!(change(&folder, |_| {}) == before, "nothing was changed");
    assert!(refused.to_string().contains("--force"), "{refused}");
    let Action::Cut { commits_lost: 2, .. } = repair(folder.path(), true).unwrap().action else { panic!("not cut") };
    assert_eq!(rows(&folder, table).await, ["after", "r0", "r1"]);
}

#[tokio::test]
async fn a_store_in_use_is_not_repaired() {
    let (folder, _, _) = written().await;
    let _engine = LocalEngine::open(&settings(folder.path())).unwrap();
    assert!(matches!(repair(folder.path(), true), Err(StoreError::Locked { .. })));
}

#[tokio::test]
async fn folders_that_are_not_ours_are_left_alone() {
    let folder = TempDir::new().unwrap();
    let foreign = folder.path().join("repaired/important");
    std::fs::create_dir_all(&foreign).unwrap();
    std::fs::write(foreign.join("file"), "text").unwrap();
    let error = repair(folder.path(), true).unwrap_err();
    assert!(error.to_string().contains("no store") || format!("{error:?}").contains("no store"), "{error:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "not even a lock is made");
    drop(LocalEngine::open(&settings(folder.path())).unwrap());
    assert_eq!(repair(folder.path(), true).unwrap().action, Action::None);
    assert!(foreign.join("file").exists());
}

/// Everything below a folder, with the contents of files.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        }
        found.insert(path.clone(), std::fs::read(&path).unwrap_or_default());
    }
    found
}

#[tokio::test]
async fn names_that_we_also_use_do_not_make_a_folder_ours() {
    let foreign = [
        &["store/goods.txt"][..],
        &["store"],
        &["inventory"],
        &["blobs/photo.jpg", "store/version"],
        &["store/list.jnl", "inventory", "blobs/files/photo.jpg"],
    ];
    for files in foreign {
        let folder = TempDir::new().unwrap();
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "text").unwrap();
        }
        let before = contents(folder.path());
        for result in [
            repair(folder.path(), false).map(|_| ()),
            repair(folder.path(), true).map(|_| ()),
            repair::reset_clock(folder.path(), Timestamp::from_ticks(1)).map(|_| ()),
        ] {
            let error = format!("{:?}", result.unwrap_err());
            assert!(error.contains("no store of Larimar"), "{files:?}: {error}");
        }
        assert_eq!(contents(folder.path()), before, "{files:?}");
    }
}

#[tokio::test]
async fn a_reset_of_the_clock_makes_no_store_where_there_is_none() {
    let folder = TempDir::new().unwrap();
    let error = repair::reset_clock(folder.path(), Timestamp::from_ticks(1)).unwrap_err();
    assert!(format!("{error:?}").contains("no store of Larimar"), "{error:?}");
    // Folders for the bytes of blobs are made before the store is.
    std::fs::create_dir_all(folder.path().join("blobs/files/00")).unwrap();
    std::fs::create_dir_all(folder.path().join("blobs/packs")).unwrap();
    let before = contents(folder.path());
    let error = repair::reset_clock(folder.path(), Timestamp::from_ticks(1)).unwrap_err();
    assert!(format!("{error:?}").contains("no store of Larimar"), "{error:?}");
    assert_eq!(contents(folder.path()), before);
    // One that lost its store is refused by the name of what is missing.
    drop(LocalEngine::open(&settings(folder.path())).unwrap());
    std::fs::remove_dir_all(folder.path().join("store")).unwrap();
    let error = repair::reset_clock(folder.path(), Timestamp::from_ticks(1)).unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
}
