//! Which partitions are busiest, counted in bounded memory.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Counts requests by partition and keeps the busiest.
///
/// It holds a bounded number of partitions, by the Space-Saving algorithm: a partition that is new when all places are
/// taken gets the place of the least busy one, and its count. So a partition with more than one of `capacity` of all
/// requests is always among them, and no count is too low; [`Hot::at_most_over`] says how much it may be too high.
///
/// ```
/// use larimar_patterns::spread_key::Heat;
/// let heat = Heat::new(100);
/// for request in 0..1000 {
///     heat.count(if request % 10 == 0 { format!("customer-{request}") } else { "2026-02-15".to_owned() });
/// }
/// let hottest = &heat.hottest(1)[0];
/// assert_eq!((hottest.partition_key.as_str(), hottest.requests), ("2026-02-15", 900));
/// assert!(hottest.share > 0.89, "append-only: today's partition takes nearly all of it");
/// ```
#[derive(Debug)]
pub struct Heat {
    capacity: usize,
    counted: Mutex<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    requests: u64,
    partitions: HashMap<String, Place>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    requests: u64,
    over: u64,
}

/// A busy partition.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Hot {
    /// The partition.
    pub partition_key: String,
    /// How many requests it had, at most.
    pub requests: u64,
    /// By how much that may be too high.
    pub at_most_over: u64,
    /// Its share of all requests, from 0 to 1.
    pub share: f64,
}

impl Heat {
    /// Counts with places for this many partitions, at least one.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), counted: Mutex::default() }
    }

    /// Counts a request to a partition.
    pub fn count(&self, partition_key: impl Into<String>) {
        let partition_key = partition_key.into();
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.requests += 1;
        if let Some(place) = counted.partitions.get_mut(&partition_key) {
            place.requests += 1;
            return;
        }
        let mut inherited = 0;
        if counted.partitions.len() >= self.capacity {
            let least = counted.partitions.iter().min_by_key(|(_, place)| place.requests).map(|(key, _)| key.clone());
            inherited = least.and_then(|key| counted.partitions.remove(&key)).map_or(0, |place| place.requests);
        }
        counted.partitions.insert(partition_key, Place { requests: inherited + 1, over: inherited });
    }

    /// The busiest partitions, the busiest first.
    #[must_use]
    pub fn hottest(&self, count: usize) -> Vec<Hot> {
        let counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        #[expect(clippy::cast_precision_loss, reason = "a share needs no more")]
        let share = |requests: u64| requests as f64 / counted.requests.max(1) as f64;
        let hot = |(partition_key, place): (&String, &Place)| Hot {
            partition_key: partition_key.clone(),
            requests: place.requests,
            at_most_over: place.over,
            share: share(place.requests),
        };
        let mut hottest: Vec<_> = counted.partitions.iter().map(hot).collect();
        hottest.sort_by(|a, b| b.requests.cmp(&a.requests).then_with(|| a.partition_key.cmp(&b.partition_key)));
        hottest.truncate(count);
        hottest
    }
}
