//! Keeps a fault that every request runs into from filling the log: one line at first, then one a minute with a count.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Limits how often log lines of one kind are written.
#[derive(Debug, Default)]
pub struct LogLimit {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: Option<Instant>,
    left_out: u64,
}

impl LogLimit {
    /// A limit that lets the first line pass.
    #[must_use]
    pub const fn new() -> Self {
        Self { state: Mutex::new(State { last: None, left_out: 0 }) }
    }

    /// Asks for a line: the number of lines left out since the last one if it may be written, nothing if it is left out.
    pub fn admit(&self) -> Option<u64> {
        self.admit_at(Instant::now())
    }

    fn admit_at(&self, now: Instant) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.last.is_some_and(|last| now.duration_since(last) < EVERY) {
            state.left_out += 1;
            return None;
        }
        state.last = Some(now);
        Some(std::mem::take(&mut state.left_out))
    }

    /// Ends a spell: the number of lines left out in it, and the next line passes.
    pub fn end(&self) -> u64 {
        std::mem::take(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner)).left_out
    }

    /// Whether no line was asked for during the last minute.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.last.is_none_or(|last| last.elapsed() >= EVERY)
    }
}

const EVERY: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_a_minute_passes_and_says_how_many_did_not() {
        let limit = LogLimit::new();
        let start = Instant::now();
        let at = |seconds| limit.admit_at(start + Duration::from_secs(seconds));
        assert_eq!([at(0), at(1), at(59), at(60), at(61), at(200)], [Some(0), None, None, Some(2), None, Some(1)]);
        assert_eq!((at(201), limit.end(), at(202)), (None, 1, Some(0)));
    }
}
