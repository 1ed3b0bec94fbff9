//! T12, key spreading: partition keys that spread what would otherwise all go to one partition.
//!
//! A partition is served in one place, and the original service takes up to 2,000 entities a second there. Keys that
//! grow with time (a date, a sequence) send all writes of the moment to the last partition: the append-only
//! anti-pattern. A number put before the key spreads them over buckets; readers query all buckets, in parallel.
//!
//! ```text
//! PartitionKey       RowKey
//! 000_2026-02-15     …
//! 001_2026-02-15     …
//! 002_2026-02-15     …
//! 003_2026-02-15     …
//! └─ the hash of the entity's id, modulo 4
//! ```
//!
//! **Guarantees.** The bucket of an id is the same in every program and in every version of this crate (see
//! [`hash`]). A write and a read by id cost one request. [`SpreadKey::read`] returns what is in all buckets ordered by
//! row key, with at least one request for each bucket; it is not a snapshot.
//!
//! **More buckets.** Raise the number when the buckets are hot: writers first take the new number, and readers find the
//! old entities, for the buckets of the smaller number are among those of the greater. An entity that was written under
//! a smaller number may lie in another bucket than its id says now: tell [`SpreadKey::earlier`] of that number, and
//! [`SpreadKey::get`] looks there too. The number must not become smaller while entities are in buckets beyond it.
//!
//! **Which partition is hot?** Throttled requests ([`larimar_client::Error::is_throttled`]) name no partition. Count
//! what the program sends with [`Heat`]: it keeps the busiest partitions in bounded memory. On the server's side the
//! request logs (`$logs`) have the partition in each address.

mod heat;
mod merge;

pub use heat::{Heat, Hot};

use crate::stored::Raw;
use crate::{Error, Result};
use futures_util::Stream;
use larimar_client::{Entity, Filter, Table};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Spreads keys over a number of buckets.
///
/// ```
/// use larimar_patterns::spread_key::SpreadKey;
/// let spread = SpreadKey::new(16)?;
/// assert_eq!(spread.by_hash("2026-02-15", "employee-000123"), "008_2026-02-15");
/// assert_eq!(spread.by_turns("2026-02-15"), "000_2026-02-15");
/// assert_eq!(spread.by_turns("2026-02-15"), "001_2026-02-15");
/// assert_eq!(spread.partitions("2026-02-15").count(), 16);
/// # Ok::<(), larimar_patterns::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SpreadKey {
    buckets: usize,
    earlier: Vec<usize>,
    turn: Arc<AtomicUsize>,
}

impl SpreadKey {
    /// The most buckets: every read asks each of them.
    pub const BUCKETS_MAX: usize = 1000;

    /// Spreads over this many buckets, from 1 to 1,000.
    ///
    /// # Errors
    /// Another number of buckets.
    pub fn new(buckets: usize) -> Result<Self> {
        Ok(Self { buckets: checked(buckets)?, earlier: Vec::new(), turn: Arc::default() })
    }

    /// Also looks for entities where they were put when there were fewer buckets.
    ///
    /// # Errors
    /// A number that is not smaller than the present one.
    pub fn earlier(mut self, buckets: usize) -> Result<Self> {
        if checked(buckets)? >= self.buckets {
            let now = self.buckets;
            return Err(Error::Invalid(format!("expected fewer buckets than the {now} of now, found {buckets}")));
        }
        self.earlier.push(buckets);
        Ok(self)
    }

    /// How many buckets there are.
    #[must_use]
    pub const fn buckets(&self) -> usize {
        self.buckets
    }

    /// The partition key for an id: always the same one, so the entity can be found again by its id.
    #[must_use]
    pub fn by_hash(&self, key: &str, id: &str) -> String {
        partition(bucket(id, self.buckets), key)
    }

    /// The partition key for the next write: the buckets take turns. It spreads evenly, also over few entities, but
    /// to find one of them takes a look into all buckets.
    #[must_use]
    pub fn by_turns(&self, key: &str) -> String {
        partition(self.turn.fetch_add(1, Relaxed) % self.buckets, key)
    }

    /// The partition keys of all buckets.
    pub fn partitions(&self, key: &str) -> impl Iterator<Item = String> {
        (0..self.buckets).map(move |bucket| partition(bucket, key))
    }

    /// The key that was spread; `None` if the partition key is none of these.
    #[must_use]
    pub fn key<'p>(&self, partition_key: &'p str) -> Option<&'p str> {
        let (bucket, key) = partition_key.split_at_checked(BUCKET_DIGITS)?;
        let is_one = bucket.bytes().all(|byte| byte.is_ascii_digit()) && bucket.parse::<usize>().ok()? < self.buckets;
        key.strip_prefix('_').filter(|_| is_one)
    }

    /// Reads an entity that was put by the hash of its id: one request, and one more for each earlier number of buckets
    /// that put it elsewhere and was not needed before.
    ///
    /// # Errors
    /// A request that failed, or an entity that is not an `E`.
    pub async fn get<E: Entity>(&self, table: &Table, key: &str, id: &str, row_key: &str) -> Result<Option<E>> {
        let mut asked = Vec::new();
        for buckets in std::iter::once(self.buckets).chain(self.earlier.iter().rev().copied()) {
            let bucket = bucket(id, buckets);
            if asked.contains(&bucket) {
                continue;
            }
            asked.push(bucket);
            if let Some(entity) = table.get(&partition(bucket, key), row_key).await? {
                return Ok(Some(entity));
            }
        }
        Ok(None)
    }

    /// Reads what is in all buckets and passes a filter, ordered by row key: the buckets are asked side by side and
    /// their answers merged as they come. [`Filter::everything`] leaves nothing out.
    pub fn read<E: Entity + Send + 'static>(
        &self,
        table: &Table,
        key: &str,
        filter: Filter,
    ) -> impl Stream<Item = Result<E>> + Send + Unpin + use<E> {
        let buckets = self.partitions(key).map(|partition_key| {
            let rows = table.query::<Raw<E>>().partition(partition_key).filter(filter.clone());
            rows.try_map(|row| Ok((merge::order(&row.0.row_key), E::from_dynamic(row.0)?))).stream()
        });
        merge::by_row_key(buckets.collect())
    }
}

/// The hash that chooses a bucket: FNV-1a of the UTF-8 bytes, with 64 bits, and then its two halves joined by xor.
///
/// It is written down here because stored keys depend on it: it never changes.
///
/// ```
/// use larimar_patterns::spread_key::hash;
/// assert_eq!(hash(""), 0xcbf2_9ce4 ^ 0x8422_2325);
/// assert_eq!(hash("a"), 0xaf63_dc4c ^ 0x8601_ec8c);
/// ```
#[must_use]
pub const fn hash(id: &str) -> u32 {
    let bytes = id.as_bytes();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut next = 0;
    while next < bytes.len() {
        hash = (hash ^ bytes[next] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        next += 1;
    }
    (hash >> 32) as u32 ^ hash as u32
}

const fn bucket(id: &str, buckets: usize) -> usize {
    hash(id) as usize % buckets
}

fn partition(bucket: usize, key: &str) -> String {
    format!("{bucket:0BUCKET_DIGITS$}_{key}")
}

fn checked(buckets: usize) -> Result<usize> {
    match buckets {
        1..=SpreadKey::BUCKETS_MAX => Ok(buckets),
        _ => Err(Error::Invalid(format!("expected 1 to {} buckets, found {buckets}", SpreadKey::BUCKETS_MAX))),
    }
}

/// Always three, so that the number of buckets can change without the keys changing their form.
const BUCKET_DIGITS: usize = 3;
