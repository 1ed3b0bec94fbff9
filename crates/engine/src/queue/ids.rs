//! Names of messages.

use larimar_model::{Guid, Timestamp};
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes names that order as the messages were added in this process, and repeat nowhere.
#[derive(Debug, Default)]
pub struct MessageIds {
    last: AtomicU64,
}

impl MessageIds {
    /// A new name: sixty bits that grow, from the clock on, and randomness. It has the form of a Guid of version 8.
    ///
    /// # Panics
    /// If the system has no randomness.
    #[expect(clippy::disallowed_methods, reason = "this is the source of message ids")]
    #[must_use]
    pub fn next(&self, now: Timestamp) -> Guid {
        let step = |last: u64| Some(now.ticks().max(last + 1));
        let last = self.last.fetch_update(Ordering::AcqRel, Ordering::Acquire, step).unwrap_or_else(|last| last);
        let number = now.ticks().max(last + 1);
        let mut random = [0; 8];
        getrandom::fill(&mut random).expect("the system has randomness");
        let high = number << 4 & !0xFFFF | 0x8000 | number & 0xFFF;
        let low = u64::from_be_bytes(random) >> 2 | 0b10 << 62;
        Guid((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_grow_when_the_clock_stands_jumps_back_or_ahead() {
        let ids = MessageIds::default();
        let day = 864_000_000_000;
        let times = [day * 739_000, day * 739_000, day * 738_000, day * 740_000, day * 740_000 + 1];
        let names = times.map(|ticks| ids.next(Timestamp::from_ticks(ticks)));
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        for name in names {
            let text = name.to_string();
            assert_eq!(&text[14..15], "8", "{text}");
            assert!("89ab".contains(&text[19..20]), "{text}");
        }
    }
}
