//! Holds: while a backup reads, payloads that its snapshot points to are not removed.
//!
//! A hold is taken before the snapshot. A payload that was discarded before then is not pointed to by the snapshot, because
//! it is discarded after the commit that stops pointing to it. So only what is discarded later has to be kept.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Instant;

/// The holds on a store of bytes.
#[derive(Clone, Debug, Default)]
pub struct PayloadHolds(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    count: usize,
    /// When the first of them began.
    since: Option<Instant>,
}

/// Keeps every payload that is discarded while it lives.
#[derive(Debug)]
#[must_use]
pub struct PayloadHold(PayloadHolds);

impl PayloadHolds {
    /// Begins a hold.
    pub fn hold(&self) -> PayloadHold {
        let mut state = self.0.lock();
        state.count += 1;
        state.since.get_or_insert_with(Instant::now);
        drop(state);
        PayloadHold(self.clone())
    }

    /// Whether a payload that was discarded at this time has to be kept.
    #[must_use]
    pub fn keeps(&self, discarded: Instant) -> bool {
        self.0.lock().since.is_some_and(|since| discarded >= since)
    }
}

impl Drop for PayloadHold {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
        state.count -= 1;
        if state.count == 0 {
            state.since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_discarded_before_the_first_hold_is_not_kept() {
        let holds = PayloadHolds::default();
        let before = Instant::now();
        assert!(!holds.keeps(before));
        std::thread::sleep(std::time::Duration::from_millis(2));
        let (first, second) = (holds.hold(), holds.hold());
        let after = Instant::now();
        assert!(!holds.keeps(before) && holds.keeps(after));
        drop(first);
        assert!(holds.keeps(after));
        drop(second);
        assert!(!holds.keeps(after));
    }
}
