//! Memory stays flat while large payloads pass through.
//!
//! The test starts itself again, so that the memory it measures is that of one upload and one download only.

use crate::stores::files::open;
use larimar_bytes::Durability;
use larimar_engine::blob::bytes::{ByteStore, ByteWriter};
use larimar_testkit::bytes::{OWNER, payload};
use std::process::Command;

const MEBIBYTES: u64 = 512;
/// Far below the payload, far above what the buffers of a writer and a reader take.
const GROWTH_MAX: u64 = 64 << 20;

#[test]
fn memory_stays_flat_while_a_large_payload_passes_through() {
    let status = Command::new(std::env::current_exe().expect("our own path"))
        .args(["--ignored", "--exact", "stores::memory::streams_a_large_payload", "--nocapture"])
        .status();
    assert!(status.is_ok_and(|status| status.success()), "the process that streams failed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by the test above, in a process of its own"]
async fn streams_a_large_payload() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), Durability::System);
    let piece = payload(1, 1 << 20);
    let before = peak_bytes();
    let mut writer = store.begin(OWNER, None).await.expect("a payload begins");
    for _ in 0..MEBIBYTES {
        writer.write(piece.clone()).await.expect("a piece is taken");
    }
    let extent = writer.finish().await.expect("it ends");
    assert_eq!(extent.length, MEBIBYTES << 20);
    for at in (0..extent.length).step_by(1 << 20) {
        assert!(store.read(&extent, at..extent.length).await.expect("it is read") == piece);
    }
    let growth = peak_bytes() - before;
    assert!(growth < GROWTH_MAX, "{MEBIBYTES} MiB passed through, and memory grew by {growth} bytes");
}

/// The most memory that the process ever had.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak is among it");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}
