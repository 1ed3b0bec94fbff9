//! Latencies in microseconds, to three significant digits: cheap to record, merge and ask for a percentile.

use std::time::Duration;

/// Longer latencies are counted as this one.
const LONGEST: Duration = Duration::from_secs(3600);

/// Counts of latencies.
#[derive(Clone)]
pub(crate) struct Histogram(hdrhistogram::Histogram<u64>);

impl Default for Histogram {
    fn default() -> Self {
        let longest = LONGEST.as_micros() as u64;
        Self(hdrhistogram::Histogram::new_with_max(longest, 3).expect("an hour to three digits is supported"))
    }
}

impl Histogram {
    /// Adds one latency.
    pub(crate) fn record(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
    }

    /// Adds all of another histogram.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("both have the same range");
    }

    /// How many latencies it holds.
    pub(crate) fn total(&self) -> u64 {
        self.0.len()
    }

    /// The latency that `share` (0 to 1) of all do not exceed, or zero if there are none.
    pub(crate) fn percentile(&self, share: f64) -> Duration {
        Duration::from_micros(self.0.value_at_quantile(share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_is_known_within_a_thousandth() {
        for micros in (0..20_000).chain([65_536, 1_000_000, 123_456_789, 3_600_000_000]) {
            let mut histogram = Histogram::default();
            histogram.record(Duration::from_micros(micros));
            let found = histogram.percentile(0.5).as_micros();
            assert!(found.abs_diff(micros.into()) <= u128::from(micros / 1000), "{micros} became {found}");
        }
        let mut histogram = Histogram::default();
        histogram.record(Duration::MAX);
        assert!(histogram.percentile(1.0) >= LONGEST);
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
