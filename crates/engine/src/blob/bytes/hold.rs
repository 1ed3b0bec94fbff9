//! Holds: while a backup or the archive may still read them, payloads are not removed.
//!
//! A hold is taken before the snapshot, or before the commits, whose payloads it keeps. A payload that was discarded before
//! then is not pointed to by them, because it is discarded after the commit that stops pointing to it. So only what is
//! discarded later has to be kept.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// The holds on a store of bytes.
#[derive(Clone, Debug, Default)]
pub struct PayloadHolds(Arc<Mutex<BTreeMap<Instant, usize>>>);

/// Keeps every payload that is discarded while it lives.
#[derive(Debug)]
#[must_use]
pub struct PayloadHold {
    holds: PayloadHolds,
    since: Instant,
}

impl PayloadHolds {
    /// Begins a hold.
    pub fn hold(&self) -> PayloadHold {
        let mut holds = self.0.lock();
        let since = Instant::now();
        *holds.entry(since).or_default() += 1;
        drop(holds);
        PayloadHold { holds: self.clone(), since }
    }

    /// Whether a payload that was discarded at this time has to be kept.
    #[must_use]
    pub fn keeps(&self, discarded: Instant) -> bool {
        self.0.lock().first_key_value().is_some_and(|(since, _)| discarded >= *since)
    }
}

impl Drop for PayloadHold {
    fn drop(&mut self) {
        let mut holds = self.holds.0.lock();
        if let Some(count) = holds.get_mut(&self.since) {
            *count -= 1;
            if *count == 0 {
                holds.remove(&self.since);
            }
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

    #[test]
    fn a_later_hold_does_not_keep_what_only_an_earlier_one_kept() {
        let holds = PayloadHolds::default();
        let first = holds.hold();
        let between = Instant::now();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let second = holds.hold();
        let after = Instant::now();
        assert!(holds.keeps(between) && holds.keeps(after));
        drop(first);
        assert!(!holds.keeps(between) && holds.keeps(after));
        drop(second);
        assert!(!holds.keeps(after));
    }
}
