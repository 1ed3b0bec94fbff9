//! Writes log lines to standard error on a thread of its own, so that requests never wait until the log is read.
//!
//! Lines wait in a bounded buffer. If standard error is a pipe that is not read, further lines are dropped and counted;
//! the count is logged once lines are written again.

use parking_lot::{Condvar, Mutex};
use std::io::Write;
use std::time::{Duration, Instant};

/// Takes the lines of the log. Never blocks and never fails: a server works without its log.
pub(super) struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let mut state = STATE.lock();
        if state.pending.len() + line.len() <= PENDING_BYTES_MAX {
            state.pending.extend_from_slice(line);
        } else {
            state.dropped += 1;
        }
        CHANGED.notify_all();
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Starts the thread that writes.
pub(super) fn start() -> std::io::Result<()> {
    std::thread::Builder::new().name("larimar-log".to_owned()).spawn(write_lines).map(drop)
}

/// Waits until all lines are written, or until this much time has passed; whether they are.
pub(crate) fn flush(wait_max: Duration) -> bool {
    let until = Instant::now() + wait_max;
    let mut state = STATE.lock();
    while state.is_writing || !state.pending.is_empty() {
        if CHANGED.wait_until(&mut state, until).timed_out() {
            return false;
        }
    }
    true
}

fn write_lines() {
    let mut lines = Vec::new();
    let mut state = STATE.lock();
    loop {
        while state.pending.is_empty() && state.dropped == 0 {
            CHANGED.wait(&mut state);
        }
        std::mem::swap(&mut lines, &mut state.pending);
        let dropped = std::mem::take(&mut state.dropped);
        state.is_writing = true;
        drop(state);
        // The disk may be full, or the pipe closed.
        let _ = std::io::stderr().write_all(&lines);
        lines.clear();
        if dropped > 0 {
            tracing::warn!(lines = dropped, "log lines were dropped because standard error was not read");
        }
        state = STATE.lock();
        state.is_writing = false;
        CHANGED.notify_all();
    }
}

struct State {
    pending: Vec<u8>,
    /// Lines that found no room since the last line was written.
    dropped: u64,
    is_writing: bool,
}

static STATE: Mutex<State> = Mutex::new(State { pending: Vec::new(), dropped: 0, is_writing: false });
static CHANGED: Condvar = Condvar::new();

/// Bytes of lines that wait to be written: a few seconds of a busy log at level `debug`.
const PENDING_BYTES_MAX: usize = 1 << 20;
