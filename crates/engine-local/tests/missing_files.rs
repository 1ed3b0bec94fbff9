//! A data folder that once held data never opens as a new one: every single file and folder of it is taken away in turn.
//!
//! Either the store opens with everything that was acknowledged, or it refuses by name and nothing on disk has changed.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::support::{keys, name, settings};
use larimar_engine::{Act, Expect, Op, Rows as _, SpaceId, Spaces as _};
use larimar_engine_local::store::StoreError;
use larimar_engine_local::store::check::Kind;
use larimar_engine_local::{LocalEngine, Settings};
use larimar_model::Timestamp;
use tempfile::TempDir;

/// A folder with rows in tables, in the journal and both, of a process that was killed.
async fn written(is_clean: bool) -> (TempDir, SpaceId) {
    let folder = TempDir::new().unwrap();
    let engine = LocalEngine::open(&settings(folder.path())).unwrap();
    let table = engine.create_space(name("t"), b"").await.unwrap().unwrap();
    for row in 0..10 {
        put(&engine, table, &format!("flushed{row}"), 100).await;
    }
    engine.close().unwrap();
    drop(engine);
    let engine = LocalEngine::open(&settings(folder.path())).unwrap();
    for row in 0..10 {
        put(&engine, table, &format!("journalled{row}"), 100).await;
    }
    if is_clean {
        engine.close().unwrap();
    }
    drop(engine);
    (folder, table)
}

async fn put(engine: &LocalEngine, table: SpaceId, row: &str, bytes: usize) {
    let body = vec![b'x'; bytes];
    let op = Op { row, expect: Expect::Absent, act: Act::Put(&body) };
    engine.apply(table, "p", &[op], Timestamp::from_ticks(1)).await.unwrap();
}

/// Everything below a folder: files with their bytes, folders with none.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_owned();
            if path.is_dir() {
                folders.push(path);
                found.insert(name, None);
            } else {
                let mut bytes = std::fs::read(&path).unwrap();
                if path.extension().is_some_and(|end| end == "jnl") {
                    // Its unused end is up to 64 MiB of zeros.
                    bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
                }
                found.insert(name, Some(bytes));
            }
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    for (name, bytes) in contents(from) {
        match bytes {
            None => std::fs::create_dir_all(to.join(name)).unwrap(),
            Some(bytes) => {
                std::fs::create_dir_all(to.join(&name).parent().unwrap()).unwrap();
                std::fs::write(to.join(name), bytes).unwrap();
            }
        }
    }
}

fn remove(path: &Path) {
    if path.is_dir() { std::fs::remove_dir_all(path).unwrap() } else { std::fs::remove_file(path).unwrap() }
}

#[tokio::test]
async fn without_any_one_file_a_store_opens_whole_or_refuses_by_name() {
    for is_clean in [false, true] {
        let (folder, table) = written(is_clean).await;
        let expected = keys(&LocalEngine::open(&settings(folder.path())).unwrap(), table).await;
        assert_eq!(expected.len(), 20);
        let mut refused = Vec::new();
        for name in contents(folder.path()).into_keys() {
            let damaged = TempDir::new().unwrap();
            copy(folder.path(), damaged.path());
            remove(&damaged.path().join(&name));
            let before = contents(damaged.path());
            match LocalEngine::open(&settings(damaged.path())) {
                Ok(engine) => assert_eq!(keys(&engine, table).await, expected, "without {}", name.display()),
                Err(error @ StoreError::Refused { .. }) => {
                    let mut after = contents(damaged.path());
                    // The lock is taken before anything is looked at.
                    after.retain(|name, _| *name != Path::new("lock") || before.contains_key(name));
                    assert!(after == before, "changed without {}", name.display());
                    let text = error.to_string();
                    assert!(text.contains(name.to_str().unwrap()), "without {}: {text}", name.display());
                    assert!(text.contains("larimar repair") && text.contains("missing"), "{text}");
                    refused.push(name.display().to_string());
                }
                Err(other) => panic!("without {}: {other}", name.display()),
            }
        }
        for name in ["store", "store/version", "store/keyspaces", "store/keyspaces/1", "store/keyspaces/1/current"] {
            assert!(refused.iter().any(|refused| refused == name), "{name} is not among {refused:?}");
        }
        assert!(refused.iter().any(|name| name.starts_with("store/keyspaces/1/tables/")), "{refused:?}");
        assert!(refused.iter().any(|name| name.ends_with(".jnl")), "{refused:?}");
    }
}

#[tokio::test]
async fn a_sealed_journal_is_missed_until_its_rows_are_in_tables() {
    let folder = TempDir::new().unwrap();
    // Memtables this large are not flushed before the journals are counted.
    let settings = Settings { memory_bytes: Some(1 << 30), ..settings(folder.path()) };
    let engine = LocalEngine::open(&settings).unwrap();
    let table = engine.create_space(name("t"), b"").await.unwrap().unwrap();
    let journals = || {
        // Only the names: tables come and go while the engine is open.
        let entries = std::fs::read_dir(folder.path().join("store")).unwrap();
        let names = entries.map(|entry| PathBuf::from(entry.unwrap().file_name()));
        names.filter(|name| name.extension().is_some_and(|end| end == "jnl")).collect::<Vec<_>>()
    };
    let mut row = 0;
    while !journals().contains(&PathBuf::from("1.jnl")) {
        for _ in 0..8 {
            put(&engine, table, &format!("r{row:06}"), 1 << 20).await;
            row += 1;
        }
        assert!(row < 400, "a new journal after 64 MiB");
    }
    put(&engine, table, "last", 10).await;
    row += 1;
    drop(engine);
    let engine = LocalEngine::open(&settings).unwrap();
    assert_eq!(keys(&engine, table).await.len(), row);
    drop(engine);
    for name in journals() {
        let damaged = TempDir::new().unwrap();
        copy(folder.path(), damaged.path());
        remove(&damaged.path().join("store").join(&name));
        let settings = Settings { folder: damaged.path().to_owned(), ..settings.clone() };
        match LocalEngine::open(&settings) {
            Ok(engine) => {
                assert_ne!(name, Path::new("1.jnl"), "the last row is only there");
                assert_eq!(keys(&engine, table).await.len(), row, "without {}", name.display());
            }
            Err(error) => assert!(error.to_string().contains(name.to_str().unwrap()), "{error}"),
        }
    }
}

/// The flush at the end seals a journal of more than 64 MB, and removes it, although no commit follows.
#[tokio::test]
async fn a_journal_that_is_sealed_after_the_last_commit_is_not_missed() {
    let folder = TempDir::new().unwrap();
    let settings = Settings { memory_bytes: Some(1 << 30), ..settings(folder.path()) };
    let engine = LocalEngine::open(&settings).unwrap();
    let table = engine.create_space(name("t"), b"").await.unwrap().unwrap();
    let journal = |number: u32| folder.path().join(format!("store/{number}.jnl"));
    let mut rows = 0;
    let mut last = None;
    // Until the second journal has as many bytes, and rows that are in memory only.
    while last != Some(rows) {
        put(&engine, table, &format!("r{rows:06}"), 1 << 20).await;
        rows += 1;
        if last.is_none() && journal(1).exists() {
            last = Some(rows + 62);
        }
        assert!(rows < 400, "a new journal after 64 MB");
    }
    let noted = ["inventory", "watermark"].map(|name| (name, std::fs::read(folder.path().join(name)).unwrap()));
    engine.close().unwrap();
    drop(engine);
    assert!(journal(2).exists() && !journal(1).exists(), "it was sealed and removed");
    let engine = LocalEngine::open(&settings).unwrap();
    assert_eq!(keys(&engine, table).await.len(), rows);
    engine.close().unwrap();
    drop(engine);
    // A process that is killed before it notes the new journal.
    for (name, bytes) in noted {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let engine = LocalEngine::open(&settings).unwrap();
    assert_eq!(keys(&engine, table).await.len(), rows);
}

#[tokio::test]
async fn a_journal_cut_at_its_end_tells_how_many_commits_are_missing() {
    let (folder, table) = written(false).await;
    let path = folder.path().join("store/0.jnl");
    let found = larimar_engine_local::repair::inspect(folder.path()).unwrap().journals.pop().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    for (end, missing) in [(found.intact_bytes as usize - 3, 1), (found.intact_bytes as usize / 2, 3), (0, 10)] {
        std::fs::write(&path, &bytes[..end]).unwrap();
        let Err(StoreError::Refused { findings, .. }) = LocalEngine::open(&settings(folder.path())) else {
            panic!("cut at {end}, it opens")
        };
        let [finding] = &findings[..] else { panic!("{findings:?}") };
        let Kind::CommitsMissing(count) = finding.kind else { panic!("{finding}") };
        assert!(count >= missing, "{finding}");
    }
    // A loss of power may take the watermark back, and with it nothing that was acknowledged.
    std::fs::write(&path, &bytes).unwrap();
    std::fs::remove_file(folder.path().join("watermark")).unwrap();
    assert_eq!(keys(&LocalEngine::open(&settings(folder.path())).unwrap(), table).await.len(), 20);
}

#[tokio::test]
async fn a_first_start_that_was_killed_at_any_point_is_repeated() {
    let finished = TempDir::new().unwrap();
    drop(LocalEngine::open(&settings(finished.path())).unwrap());
    // Killed before the store got its name: with nothing, or with a part of anything, under the other name.
    let parts: Vec<PathBuf> = contents(&finished.path().join("store")).into_keys().collect();
    for kept in 0..=parts.len() {
        let folder = TempDir::new().unwrap();
        let unfinished = folder.path().join("store.unfinished");
        std::fs::create_dir(&unfinished).unwrap();
        copy(&finished.path().join("store"), &unfinished);
        for part in parts[kept..].iter().rev().filter(|part| unfinished.join(part).exists()) {
            remove(&unfinished.join(part));
        }
        let engine = LocalEngine::open(&settings(folder.path())).unwrap();
        engine.create_space(name("t"), b"").await.unwrap().unwrap();
    }
    // Killed after that, before there was an inventory or a watermark; so are stores of older releases.
    for missing in [&["inventory"][..], &["watermark"], &["inventory", "watermark"]] {
        let (folder, table) = written(false).await;
        missing.iter().for_each(|name| remove(&folder.path().join(name)));
        std::fs::write(folder.path().join("inventory.new"), "half of").unwrap();
        assert_eq!(keys(&LocalEngine::open(&settings(folder.path())).unwrap(), table).await.len(), 20);
        assert!(folder.path().join("inventory").exists());
    }
}

#[tokio::test]
async fn a_store_with_blobs_does_not_open_without_their_folder() {
    let (folder, _) = written(false).await;
    let blobs = folder.path().join("blobs");
    let make = || {
        std::fs::create_dir_all(blobs.join("packs")).unwrap();
        for first in 0..=u8::MAX {
            std::fs::create_dir_all(blobs.join("files").join(format!("{first:02x}"))).unwrap();
        }
    };
    make();
    LocalEngine::open(&settings(folder.path())).unwrap().record_blobs().unwrap();
    drop(LocalEngine::open(&settings(folder.path())).unwrap());
    for missing in ["blobs/files/7f", "blobs/packs", "blobs/files", "blobs"] {
        remove(&folder.path().join(missing));
        let error = LocalEngine::open(&settings(folder.path())).err().unwrap().to_string();
        assert!(error.contains(missing) && error.contains("missing"), "{error}");
        make();
        drop(LocalEngine::open(&settings(folder.path())).unwrap());
    }
    // And bytes of blobs without a store are not the beginning of a new one.
    let folder = TempDir::new().unwrap();
    std::fs::create_dir_all(folder.path().join("blobs/packs")).unwrap();
    std::fs::write(folder.path().join("blobs/packs/00000000000000000000000000000001"), "bytes").unwrap();
    let error = LocalEngine::open(&settings(folder.path())).err().unwrap().to_string();
    assert!(error.contains("store: it is missing"), "{error}");
}
