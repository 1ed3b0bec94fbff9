//! A process that is killed at any moment: what it acknowledged is there, and nothing else stays.
//!
//! The test starts itself again as the process to be killed, which prints a line for each payload it acknowledges.

use crate::stores::files::{files_in, open};
use larimar_bytes::{Durability, FileBytes};
use larimar_engine::blob::bytes::{ByteStore, ByteWriter, Extent};
use larimar_testkit::bytes::{OWNER, Rows, eventually, payload, read_all};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

const FOLDER: &str = "LARIMAR_TEST_CRASH_FOLDER";
const ROUNDS: u64 = 4;
const WRITERS: u64 = 6;

#[tokio::test]
async fn what_was_acknowledged_survives_kill_and_the_rest_is_swept() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut acknowledged = Vec::new();
    for round in 0..ROUNDS {
        acknowledged.extend(write_and_kill(folder.path(), 40 + round as usize * 17));
        let store = open(folder.path(), Durability::Sync);
        let mut rows = Rows::default();
        for (extent, seed) in &acknowledged {
            rows.point(OWNER, *extent);
            let found = read_all(&store, extent).await.expect("an acknowledged payload is read");
            assert!(found == payload(*seed, size(*seed)), "seed {seed}");
        }
        let reclaimed = store.reclaim(&rows).await.expect("a sweep ends");
        assert_eq!(reclaimed.seen - reclaimed.removed, acknowledged.len() as u64);
        eventually("the rest is removed", || async { store.statistics().discarded == 0 }).await;
        let reclaimed = store.reclaim(&rows).await.expect("a sweep ends");
        assert_eq!((reclaimed.seen, reclaimed.removed), (acknowledged.len() as u64, 0));
        for (extent, _) in &acknowledged {
            assert!(read_all(&store, extent).await.is_ok(), "a sweep keeps what is pointed to");
        }
    }
    let store = open(folder.path(), Durability::Sync);
    store.reclaim(&Rows::default()).await.expect("a sweep ends");
    eventually("nothing is left", || async { files_in(folder.path()).is_empty() }).await;
}

/// Runs the writers until so many payloads are acknowledged, then kills them in the middle of the next ones.
fn write_and_kill(folder: &Path, count: usize) -> Vec<(Extent, u64)> {
    let mut child = Command::new(std::env::current_exe().expect("our own path"))
        .args(["--ignored", "--exact", "stores::crash::writes_until_it_is_killed", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the process starts");
    let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut acknowledged = Vec::new();
    let mut killed = false;
    for line in lines {
        let line = line.expect("a line");
        // The last line may be cut.
        acknowledged.extend(line.strip_prefix("acknowledged ").and_then(parse));
        if acknowledged.len() >= count && !killed {
            child.kill().expect("the process is killed");
            killed = true;
        }
    }
    let status = child.wait().expect("the process ends");
    assert!(killed, "the process ended by itself: {status}");
    acknowledged
}

fn parse(line: &str) -> Option<(Extent, u64)> {
    let mut numbers = line.split(' ');
    let file = u128::from_str_radix(numbers.next()?, 16).ok()?.to_be_bytes();
    let mut next = || numbers.next()?.parse().ok();
    let (offset, length, seed): (u64, u64, u64) = (next()?, next()?, next()?);
    (numbers.next() == Some(".")).then_some((Extent { file, offset, length }, seed))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started and killed by the test above"]
async fn writes_until_it_is_killed() {
    let folder = PathBuf::from(std::env::var_os(FOLDER).expect("the folder's name"));
    let store = Arc::new(open(&folder, Durability::Sync));
    let writers: Vec<_> = (0..WRITERS).map(|writer| tokio::spawn(write(Arc::clone(&store), writer))).collect();
    for writer in writers {
        writer.await.expect("a writer ends with the process only");
    }
}

async fn write(store: Arc<FileBytes>, writer: u64) {
    for number in 0..1_000_000 {
        let seed = number * WRITERS + writer;
        let bytes = payload(seed, size(seed));
        let mut writer =
            store.begin(OWNER, seed.is_multiple_of(2).then_some(bytes.len() as u64)).await.expect("it begins");
        for from in (0..bytes.len()).step_by(100_000) {
            writer.write(bytes.slice(from..bytes.len().min(from + 100_000))).await.expect("bytes are taken");
        }
        let extent = writer.finish().await.expect("it ends");
        let Extent { offset, length, .. } = extent;
        let line = format!("acknowledged {} {offset} {length} {seed} .\n", extent.file_name());
        std::io::stdout().lock().write_all(line.as_bytes()).expect("the test listens");
    }
}

fn size(seed: u64) -> usize {
    [10, 3_000, 500_000, 66_000, 2_200_000][seed as usize % 5] + seed as usize
}
