//! Counts the bytes that the files take on disk, on its own thread.
//!
//! The files are counted by a walk, as their number is not known at the start. The pause between two walks grows with their
//! duration, so that they take a hundredth of one core however many files there are.

use super::Shared;
use parking_lot::{Condvar, Mutex};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The bytes at the last walk.
#[derive(Debug, Default)]
pub(super) struct DiskUse {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    bytes: Option<u64>,
    is_stopped: bool,
}

impl DiskUse {
    /// The bytes, once all files were counted.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.state.lock().bytes
    }

    /// Stops the thread, also within a walk.
    pub(super) fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.wake.notify_one();
    }

    fn is_stopped(&self) -> bool {
        self.state.lock().is_stopped
    }

    /// Waits before the next walk; `false` if there is none.
    fn pause(&self, pause: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.is_stopped {
            self.wake.wait_for(&mut state, pause);
        }
        !state.is_stopped
    }
}

/// The thread that counts.
pub(super) fn run(shared: &Arc<Shared>) {
    loop {
        let started = Instant::now();
        match count(shared) {
            Ok(Some(bytes)) => shared.disk_use.state.lock().bytes = Some(bytes),
            Ok(None) => return,
            // The last figure stays: what reads and writes the files reports such an error.
            Err(error) => tracing::debug!(%error, "the files of blobs could not be counted"),
        }
        if !shared.disk_use.pause((PAUSE_FACTOR * started.elapsed()).max(PAUSE_MIN)) {
            return;
        }
    }
}

/// The bytes of all files, or nothing if the store is closed meanwhile.
fn count(shared: &Shared) -> Result<Option<u64>, Error> {
    let mut bytes = 0;
    for folder in std::iter::once(shared.folder.packs()).chain(shared.folder.file_folders()) {
        for entry in std::fs::read_dir(folder)? {
            if shared.disk_use.is_stopped() {
                return Ok(None);
            }
            match entry?.metadata() {
                // Packs have holes where payloads were removed.
                Ok(metadata) => bytes += metadata.blocks() * BLOCK_BYTES,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok((!shared.disk_use.is_stopped()).then_some(bytes))
}

/// The unit of `st_blocks`, whatever the file system's own is.
const BLOCK_BYTES: u64 = 512;
const PAUSE_FACTOR: u32 = 100;
const PAUSE_MIN: Duration = Duration::from_secs(60);
