//! What is logged when the machine's clock jumps.
//!
//! The test starts itself again in a process of its own. If another test of the process reaches a log line first, on a thread
//! without a subscriber, `tracing` remembers for all threads that nobody wants that line.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::io::Write;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{name, settings};
use larimar_engine::{Act, Expect, Op, Rows as _, SpaceId, Spaces as _};
use larimar_engine_local::LocalEngine;
use larimar_model::Timestamp;
use tempfile::TempDir;

const NOW: &str = "2026-11-16T00:00:00Z";

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

async fn write(engine: &LocalEngine, table: SpaceId, now: Timestamp) {
    let op = Op { row: "row", expect: Expect::Any, act: Act::Put(b"body") };
    engine.apply(table, "p", &[op], now).await.unwrap();
}

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_clock_that_jumps_is_warned_of_once_and_so_is_a_start_ahead_of_it() {
    let test = std::env::current_exe().unwrap();
    let status = Command::new(test).args(["--ignored", "--exact", "clock_log::alone", "--nocapture"]).status().unwrap();
    assert!(status.success());
}

#[tokio::test]
#[ignore = "started by the test above, in a process of its own"]
async fn alone() {
    let folder = TempDir::new().unwrap();
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let engine = LocalEngine::open(&settings(folder.path())).unwrap();
    let table = engine.create_space(name("t"), b"").await.unwrap().unwrap();
    for seconds in [0, 10, 20] {
        write(&engine, table, at(NOW).after(Duration::from_secs(seconds))).await;
    }
    assert!(!log.text().contains("clock"), "{}", log.text());
    for _ in 0..50 {
        write(&engine, table, at("2099-01-01")).await;
        write(&engine, table, at(NOW)).await;
    }
    assert_eq!(log.text().matches("clock jumped ahead").count(), 1, "{}", log.text());
    assert_eq!(log.text().lines().count(), 1, "however often it jumps: {}", log.text());
    drop(engine);
    drop(LocalEngine::open(&settings(folder.path())).unwrap());
    assert!(log.text().contains("versions run ahead of the clock"), "{}", log.text());
}
