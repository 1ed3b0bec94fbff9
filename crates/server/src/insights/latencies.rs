//! Latencies as a histogram that can be added to another: four buckets for each power of two of microseconds.

use super::codec::Reader;
use larimar_model::varint::put;
use std::time::Duration;

/// How often each latency occurred, to an eighth of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Latencies([u32; BUCKETS]);

impl Default for Latencies {
    fn default() -> Self {
        Self([0; BUCKETS])
    }
}

impl Latencies {
    pub(crate) fn record(&mut self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.0[bucket(micros)] += 1;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (sum, count) in self.0.iter_mut().zip(&other.0) {
            *sum = sum.saturating_add(*count);
        }
    }

    /// The latency in microseconds that this share of all did not exceed: the middle of its bucket.
    pub(crate) fn quantile(&self, share: f64) -> u64 {
        let total: u64 = self.0.iter().copied().map(u64::from).sum();
        let rank = ((total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.0.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank {
                let (low, next) = (lowest(bucket), lowest(bucket + 1));
                return low + (next - low) / 2;
            }
        }
        0
    }

    /// Only the buckets that are not empty are stored.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.0.iter().filter(|count| **count > 0).count() as u64);
        for (bucket, count) in self.0.iter().enumerate().filter(|(_, count)| **count > 0) {
            put(out, bucket as u64);
            put(out, u64::from(*count));
        }
    }

    pub(crate) fn decode(input: &mut Reader<'_>) -> Option<Self> {
        let mut all = Self::default();
        for _ in 0..input.count(BUCKETS)? {
            let bucket = input.count(BUCKETS - 1)?;
            all.0[bucket] = u32::try_from(input.number()?).ok()?;
        }
        Some(all)
    }
}

/// Up to 3 a bucket for each value, then four for each power of two.
fn bucket(micros: u64) -> usize {
    match micros {
        0..4 => micros as usize,
        _ => {
            let power = micros.ilog2() as usize;
            ((power - 1) * 4 + (micros >> (power - 2) & 3) as usize).min(BUCKETS - 1)
        }
    }
}

/// The least value of a bucket.
const fn lowest(bucket: usize) -> u64 {
    match bucket {
        0..4 => bucket as u64,
        _ => (4 + bucket as u64 % 4) << (bucket / 4 - 1),
    }
}

/// Up to two minutes; what takes longer is in the last one.
const BUCKETS: usize = 104;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_are_within_an_eighth(mut micros in prop::collection::vec(0..100_000_000_u64, 1..300), split in 0..300_usize) {
            let mut parts = [Latencies::default(), Latencies::default()];
            for (place, value) in micros.iter().enumerate() {
                parts[usize::from(place < split)].record(Duration::from_micros(*value));
            }
            let [mut all, other] = parts;
            let mut bytes = Vec::new();
            other.encode(&mut bytes);
            all.merge(&Latencies::decode(&mut Reader::new(&bytes)).expect("as encoded"));
            micros.sort_unstable();
            for share in [0.01, 0.5, 0.99, 1.0] {
                let rank = ((micros.len() as f64 * share).ceil() as usize).max(1);
                let (exact, shown) = (micros[rank - 1], all.quantile(share));
                prop_assert!(shown.abs_diff(exact) <= exact / 8 + 1, "{share}: {shown} for {exact}");
            }
        }
    }

    #[test]
    fn buckets_follow_each_other() {
        for bucket_number in 0..BUCKETS {
            assert_eq!(bucket(lowest(bucket_number)), bucket_number);
            assert_eq!(bucket(lowest(bucket_number + 1) - 1), bucket_number);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(Latencies::default().quantile(0.5), 0);
    }
}
