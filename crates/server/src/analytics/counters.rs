//! Sums over the requests of a service, by minute and operation.
//!
//! A request adds to the shard of its thread, as in `metrics.rs`, so that threads do not contend; the writer empties the
//! shards from time to time.

use crate::metrics::{shard_count, thread_number};
use larimar_model::Timestamp;
use larimar_wire::analytics::{Period, Sample, Totals};
use parking_lot::Mutex;

/// Sums that have not been fetched yet.
pub(super) struct Counters {
    shards: Box<[Shard]>,
}

/// The sums of the threads that share a shard. Aligned, so that shards do not share a cache line.
#[derive(Default)]
#[repr(align(128))]
struct Shard(Mutex<Vec<Bucket>>);

/// The requests of one operation within one minute.
pub(super) struct Bucket {
    /// The minute's start.
    pub(super) minute: Timestamp,
    pub(super) operation: &'static str,
    pub(super) totals: Totals,
}

impl Counters {
    pub(super) fn new() -> Self {
        Self { shards: (0..shard_count()).map(|_| Shard::default()).collect() }
    }

    /// Adds a request that ended at this time. Returns whether there was room for it.
    pub(super) fn count(&self, ended: Timestamp, operation: &'static str, sample: &Sample) -> bool {
        let minute = Period::Minute.start(ended);
        let mut buckets = self.shards[thread_number() & (self.shards.len() - 1)].0.lock();
        // Few operations and hardly ever two minutes: a search from the end beats hashing.
        let found = buckets.iter().rposition(|bucket| bucket.minute == minute && bucket.operation == operation);
        let index = match found {
            Some(index) => index,
            None if buckets.len() < BUCKETS_MAX => {
                buckets.push(Bucket { minute, operation, totals: Totals::default() });
                buckets.len() - 1
            }
            None => return false,
        };
        buckets[index].totals.count(sample);
        true
    }

    /// Takes all sums out.
    pub(super) fn take(&self) -> Vec<Bucket> {
        self.shards.iter().flat_map(|shard| std::mem::take(&mut *shard.0.lock())).collect()
    }
}

/// Buckets of a shard at most; more are dropped until the writer fetches them.
const BUCKETS_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use larimar_wire::analytics::{Authentication, Outcome};
    use std::time::Duration;

    const SAMPLE: Sample = Sample {
        authentication: Authentication::Key,
        outcome: Outcome::Success,
        ingress: 1,
        egress: 2,
        end_to_end: Duration::from_millis(3),
        server: Duration::from_millis(2),
    };

    fn minute(number: u64) -> Timestamp {
        Period::Minute.start(Timestamp::EDM_MIN.after(Duration::from_secs(60 * number)))
    }

    #[test]
    fn requests_of_all_threads_are_summed_by_minute_and_operation() {
        let counters = Counters::new();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for number in 0..100 {
                        let ended = minute(number % 2).after(Duration::from_secs(59));
                        assert!(counters.count(ended, "QueryEntity", &SAMPLE));
                    }
                });
            }
        });
        let of = |buckets: &[Bucket], at| -> u64 {
            buckets.iter().filter(|bucket| bucket.minute == at).map(|bucket| bucket.totals.requests()).sum()
        };
        let taken = counters.take();
        assert_eq!((of(&taken, minute(0)), of(&taken, minute(1))), (400, 400));
        assert!(counters.take().is_empty());
    }

    #[test]
    fn what_nobody_fetches_stays_bounded() {
        let counters = Counters::new();
        let kept = (0..2000).filter(|number| counters.count(minute(*number), "QueryEntity", &SAMPLE)).count();
        assert_eq!(kept, BUCKETS_MAX);
        assert!(counters.count(minute(0), "QueryEntity", &SAMPLE));
    }
}
