//! Which backups are kept.

use crate::generation::Generation;
use larimar_model::Timestamp;
use std::time::Duration;

/// Which backups are kept: those that either rule keeps, and always the latest. Those of a time to come, taken while the
/// clock was ahead, are kept and not counted, so they never displace the one that was just taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Those that are not older, and the one before them: with it, the archive reaches back over the whole time.
    pub time: Option<Duration>,
    /// The latest, so many of them.
    pub count: Option<usize>,
}

impl Keep {
    /// Whether there is a rule.
    #[must_use]
    pub const fn is_set(&self) -> bool {
        self.time.is_some() || self.count.is_some()
    }

    /// How many of the oldest backups are not kept, by their names, the oldest first.
    pub(crate) fn surplus(&self, names: &[String], now: Timestamp) -> usize {
        if !self.is_set() {
            return 0;
        }
        let is_past = |name: &&String| Generation::time_of(name).is_some_and(|taken| taken <= now);
        let names = &names[..names.iter().take_while(is_past).count()];
        let by_count = names.len().saturating_sub(self.count.unwrap_or(0));
        let by_time = self.time.map_or(by_count, |time| {
            let is_old = |name: &String| Generation::time_of(name).is_some_and(|taken| taken < now.before(time));
            // The last of the old ones is what moments after it are restored from.
            names.iter().take_while(|name| is_old(name)).count().saturating_sub(1)
        });
        by_count.min(by_time).min(names.len().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_either_rule_keeps_is_kept_and_always_the_latest() {
        let names: Vec<String> = (1..=9).map(|day| format!("2026110{day}T120000.0000000Z-{day}")).collect();
        let now = Timestamp::parse("2026-11-10T12:00:00Z").expect("a time");
        let day = Duration::from_secs(86_400);
        for (time, count, surplus) in [
            (None, None, 0),
            (None, Some(1), 8),
            (None, Some(0), 8),
            (None, Some(3), 6),
            (None, Some(20), 0),
            // Those of the last three days are from the 7th on, and the one of the 6th goes before them.
            (Some(3 * day), None, 5),
            (Some(day / 2), None, 8),
            (Some(30 * day), None, 0),
            (Some(3 * day), Some(2), 5),
            (Some(3 * day), Some(7), 2),
        ] {
            let keep = Keep { time, count };
            assert_eq!(keep.surplus(&names, now), surplus, "{keep:?}");
            assert_eq!(keep.surplus(&names[..1], now), 0, "{keep:?}");
            assert_eq!(keep.surplus(&[], now), 0, "{keep:?}");
        }
        // After a clock that was ahead, those of the future stay and do not count.
        let between = Timestamp::parse("2026-11-04T12:00:00Z").expect("a time");
        for (count, surplus) in [(1, 3), (2, 2), (4, 0), (9, 0)] {
            assert_eq!(Keep { time: None, count: Some(count) }.surplus(&names, between), surplus, "{count}");
        }
        // A clock that was set back keeps more.
        let early = Timestamp::parse("2026-01-01T00:00:00Z").expect("a time");
        assert_eq!(Keep { time: Some(day), count: None }.surplus(&names, early), 0);
    }
}
