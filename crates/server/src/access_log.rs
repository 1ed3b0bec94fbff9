//! The access log: one line of JSON for each request, in a file that a thread of its own writes.
//!
//! `http/underway.rs` makes the lines, `access_log/line.rs` decides what is in one, `access_log/file.rs` writes them. Lines
//! wait in a bounded buffer: while the disk is full or slow, further lines are dropped and counted, and no request waits.

mod file;
mod line;

pub use file::AccessLogError;
pub(crate) use line::{AccessLine, Accessed, End};

use crate::metrics::Metrics;
use file::LogFile;
use parking_lot::{Condvar, Mutex};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Takes the lines of the access log.
pub struct AccessLog {
    state: Mutex<State>,
    changed: Condvar,
    metrics: Arc<Metrics>,
}

#[derive(Default)]
struct State {
    pending: Vec<u8>,
    /// If the file has to be opened again: how many of the pending bytes belong to the old one.
    reopen_after: Option<usize>,
    is_writing: bool,
    is_closed: bool,
}

impl AccessLog {
    /// Opens the file and starts the thread that appends to it.
    ///
    /// # Errors
    /// A path that is not a regular file, or a file that cannot be opened.
    pub fn start(path: &Path, metrics: Arc<Metrics>) -> Result<Arc<Self>, AccessLogError> {
        let file = LogFile::open(path)?;
        let log = Arc::new(Self { state: Mutex::default(), changed: Condvar::new(), metrics });
        let writer = Arc::clone(&log);
        let thread = std::thread::Builder::new().name("larimar-access".to_owned());
        thread.spawn(move || writer.write_lines(file)).map_err(AccessLogError::Thread)?;
        Ok(log)
    }

    /// Opens the file again before the next line, as after a rotation that renamed it. Earlier lines go to the old file.
    pub fn reopen(&self) {
        let mut state = self.state.lock();
        state.reopen_after = Some(state.pending.len());
        drop(state);
        self.changed.notify_all();
    }

    /// Takes no further lines, and waits until all are written or this much time has passed; whether they are.
    pub fn close(&self, wait_max: Duration) -> bool {
        let until = Instant::now() + wait_max;
        let mut state = self.state.lock();
        state.is_closed = true;
        self.changed.notify_all();
        while state.is_writing || !state.pending.is_empty() {
            if self.changed.wait_until(&mut state, until).timed_out() {
                return false;
            }
        }
        true
    }

    /// Adds a line. Never waits: a line that finds no room is dropped and counted.
    pub(crate) fn write(&self, line: &AccessLine, end: End) {
        let line = line.to_json(end);
        let mut state = self.state.lock();
        if state.is_closed || state.pending.len() + line.len() > PENDING_BYTES_MAX {
            drop(state);
            self.metrics.access_lines_lost(1);
            return;
        }
        state.pending.extend_from_slice(&line);
        drop(state);
        self.changed.notify_all();
    }

    fn write_lines(&self, mut file: LogFile) {
        let mut lines = Vec::new();
        let mut state = self.state.lock();
        loop {
            while state.pending.is_empty() && state.reopen_after.is_none() {
                if state.is_closed {
                    return;
                }
                self.changed.wait(&mut state);
            }
            std::mem::swap(&mut lines, &mut state.pending);
            let reopen_after = state.reopen_after.take();
            state.is_writing = true;
            drop(state);
            let (old, new) = lines.split_at(reopen_after.unwrap_or_default());
            self.metrics.access_lines_lost(file.append(old));
            if reopen_after.is_some() {
                file.reopen();
            }
            self.metrics.access_lines_lost(file.append(new));
            lines.clear();
            state = self.state.lock();
            state.is_writing = false;
            self.changed.notify_all();
        }
    }
}

impl fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessLog").finish_non_exhaustive()
    }
}

/// Bytes of lines that wait to be written: about a tenth of a second of a busy server.
const PENDING_BYTES_MAX: usize = 4 << 20;

#[cfg(test)]
mod tests;
