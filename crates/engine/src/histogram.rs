//! A histogram that many threads may add to: a count for each bucket, the sum, and the total.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A histogram with fixed upper bounds.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [f64],
    counts: Vec<AtomicU64>,
    /// The sum in millionths, so that it can be atomic.
    sum_micro: AtomicU64,
}

/// What a histogram held at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistogramSnapshot {
    /// The upper bound of each bucket but the last, which has none.
    pub bounds: &'static [f64],
    /// How many values fell into each bucket; one more than bounds.
    pub counts: Vec<u64>,
    /// The sum of all values.
    pub sum: f64,
}

impl Histogram {
    /// Bounds for durations in seconds: 10 µs to 10 s.
    pub const SECONDS: &'static [f64] = &[
        0.00001, 0.000_025, 0.00005, 0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
        1.0, 2.5, 5.0, 10.0,
    ];
    /// Bounds for counts: 1 to 100,000.
    pub const COUNTS: &'static [f64] =
        &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10_000.0, 100_000.0];

    /// An empty histogram.
    #[must_use]
    pub fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(), sum_micro: AtomicU64::new(0) }
    }

    /// Adds a value.
    pub fn record(&self, value: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket].fetch_add(1, Relaxed);
        self.sum_micro.fetch_add((value * 1e6) as u64, Relaxed);
    }

    /// What the histogram holds now.
    #[must_use]
    pub fn snapshot(&self) -> HistogramSnapshot {
        HistogramSnapshot {
            bounds: self.bounds,
            counts: self.counts.iter().map(|count| count.load(Relaxed)).collect(),
            sum: self.sum_micro.load(Relaxed) as f64 / 1e6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_the_bucket_whose_bound_they_do_not_exceed() {
        let histogram = Histogram::new(Histogram::COUNTS);
        for value in [1.0, 2.0, 3.0, 200_000.0] {
            histogram.record(value);
        }
        let snapshot = histogram.snapshot();
        assert_eq!(snapshot.counts[..3], [1, 1, 1]);
        assert_eq!(snapshot.counts.last(), Some(&1));
        assert!((snapshot.sum - 200_006.0).abs() < 1e-3);
    }
}
