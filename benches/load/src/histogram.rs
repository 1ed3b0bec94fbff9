//! Latencies as counts in buckets of about 1.6 % width: cheap to record, merge and ask for a percentile.

use std::time::Duration;

/// Buckets per doubling; below this many microseconds every value has its own bucket.
const STEPS: u64 = 64;
const BUCKETS: usize = 64 * 32;

/// Counts of latencies in microseconds, from 1 µs to more than an hour.
#[derive(Clone)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0 }
    }
}

impl Histogram {
    /// Adds one latency.
    pub(crate) fn record(&mut self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.counts[bucket(micros)] += 1;
        self.total += 1;
    }

    /// Adds all of another histogram.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
    }

    /// How many latencies it holds.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The latency that `share` (0 to 1) of all do not exceed, or zero if there are none.
    pub(crate) fn percentile(&self, share: f64) -> Duration {
        let rank = ((self.total as f64 * share).ceil() as u64).clamp(1, self.total.max(1));
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Duration::from_micros(highest(index));
            }
        }
        Duration::ZERO
    }
}

fn bucket(micros: u64) -> usize {
    let index = if micros < STEPS {
        micros
    } else {
        let shift = u64::from(micros.ilog2() - STEPS.ilog2());
        (shift + 1) * STEPS + (micros >> shift) - STEPS
    };
    usize::try_from(index).map_or(BUCKETS - 1, |index| index.min(BUCKETS - 1))
}

/// The largest value that falls into a bucket.
fn highest(index: usize) -> u64 {
    let index = index as u64;
    if index < STEPS {
        return index;
    }
    let shift = index / STEPS - 1;
    ((index % STEPS + STEPS + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_its_value_within_two_percent() {
        for micros in (0..20_000).chain([65_536, 1_000_000, 123_456_789, 3_600_000_000]) {
            let top = highest(bucket(micros));
            assert!(top >= micros && top - micros <= micros / 50 + 1, "{micros} became {top}");
            assert!(top == 0 || bucket(top) == bucket(micros));
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_count_ranks() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(0.5), Duration::ZERO);
        for micros in 1..=50 {
            histogram.record(Duration::from_micros(micros));
        }
        let mut upper = Histogram::default();
        for micros in 51..=60 {
            upper.record(Duration::from_micros(micros));
        }
        histogram.merge(&upper);
        assert_eq!(histogram.total(), 60);
        assert_eq!(histogram.percentile(0.0), Duration::from_micros(1));
        assert_eq!(histogram.percentile(0.5), Duration::from_micros(30));
        assert_eq!(histogram.percentile(0.99), Duration::from_micros(60));
        assert_eq!(histogram.percentile(1.0), Duration::from_micros(60));
    }
}
