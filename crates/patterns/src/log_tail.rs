//! T7, log tail: keys that put the newest entity first, so that the latest ones are the cheapest to read.
//!
//! Entities come in the order of their keys and in no other. A row key that decreases over time makes "the ten
//! latest expense claims" the first ten rows of the partition: one request that reads ten rows, however many there are.
//!
//! ```text
//! RowKey                                                   a claim of
//! 2516311871999999999_fffffffffffffffe_5bd1e9955bd1e995    2026-02-15, handed in last
//! 2516311871999999999_ffffffffffffffff_5bd1e9955bd1e995    2026-02-15, same tick, a moment before
//! 2516312735999999999_fffffffffffffffd_5bd1e9955bd1e995    2026-02-14
//! └─ ticks left until the year 10000
//!                     └─ counts down within the program
//!                                      └─ the program
//! ```
//!
//! **Guarantees.** Later times have lesser keys. Keys of one [`LogTailKeys`] for the same tick sort newest first, and
//! no two programs make the same key. [`LogTail::append`] is one request; [`LogTail::latest`] is one for each 1,000
//! entities asked for and reads no others.

use crate::Result;
use crate::key_text::KeyError;
use larimar_client::{Entity, Filter, Guid, Query, Table, Timestamp, keys};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The row key of an entity in a log tail: a time, and a suffix that distinguishes entities of the same time.
///
/// Keys compare as their texts do: the newest is the least.
///
/// ```
/// use larimar_client::Timestamp;
/// use larimar_patterns::log_tail::LogTailKey;
/// let older = LogTailKey::new("2026-02-14T00:00:00Z".parse()?, 1, 7);
/// let newer = LogTailKey::new("2026-02-15T00:00:00Z".parse()?, 1, 7);
/// assert!(newer.to_string() < older.to_string());
/// let read: LogTailKey = newer.to_string().parse()?;
/// assert_eq!(read.time().to_string(), "2026-02-15T00:00:00Z");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LogTailKey {
    ticks_left: u64,
    numbers_left: u64,
    writer: u64,
}

impl LogTailKey {
    /// The key of a time, a number that grows with each key of a writer, and a number that no other writer has.
    #[must_use]
    pub const fn new(time: Timestamp, number: u64, writer: u64) -> Self {
        Self { ticks_left: invert(time), numbers_left: u64::MAX - number, writer }
    }

    /// The time of the key, to the tick of 100 ns.
    #[must_use]
    pub const fn time(self) -> Timestamp {
        Timestamp::from_ticks(Timestamp::MAX.ticks() - self.ticks_left)
    }

    /// The number of the key among those of its writer.
    #[must_use]
    pub const fn number(self) -> u64 {
        u64::MAX - self.numbers_left
    }

    /// The number of the writer.
    #[must_use]
    pub const fn writer(self) -> u64 {
        self.writer
    }
}

impl fmt::Display for LogTailKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:019}_{:016x}_{:016x}", self.ticks_left, self.numbers_left, self.writer)
    }
}

impl FromStr for LogTailKey {
    type Err = KeyError;

    fn from_str(key: &str) -> Result<Self, KeyError> {
        let read = || {
            let (ticks, rest) = key.split_once('_')?;
            let (number, writer) = rest.split_once('_')?;
            let ticks_left = ticks.parse().ok().filter(|left| *left <= Timestamp::MAX.ticks())?;
            let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
            Some(Self { ticks_left, numbers_left: hexadecimal(number)?, writer: hexadecimal(writer)? })
        };
        // Only as it is written: two texts of one key would sort apart.
        read().filter(|read| read.to_string() == key).ok_or_else(|| KeyError::malformed("a log tail's parts", key))
    }
}

/// Makes keys, each of them once.
///
/// Clones share their numbers; a new one draws a writer's number at random.
#[derive(Clone, Debug)]
pub struct LogTailKeys {
    writer: u64,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    numbers: AtomicU64,
    latest_ticks: AtomicU64,
}

impl LogTailKeys {
    /// Keys of a new writer.
    #[must_use]
    pub fn new() -> Self {
        let random = u128::from_be_bytes(*Guid::random().as_bytes());
        // The version of the Guid stands in the middle; both halves together are random in every bit.
        let writer = (random >> 64) as u64 ^ (random as u64).rotate_left(32);
        Self { writer, state: Arc::default() }
    }

    /// A key for now. Each one is newer than those before it, also if the clock stands still or is put back.
    #[must_use]
    pub fn next(&self) -> LogTailKey {
        let now = Timestamp::now().ticks();
        let before = self.state.latest_ticks.fetch_max(now, Relaxed);
        self.at(Timestamp::from_ticks(now.max(before)))
    }

    /// A key for a time. Of two keys for the same time, the later one is the newer.
    #[must_use]
    pub fn at(&self, time: Timestamp) -> LogTailKey {
        LogTailKey::new(time, self.state.numbers.fetch_add(1, Relaxed), self.writer)
    }
}

impl Default for LogTailKeys {
    fn default() -> Self {
        Self::new()
    }
}

/// A table whose partitions hold their newest entities first.
///
/// The row keys of entities are made here: the entity's own row key is replaced.
#[derive(Clone, Debug)]
pub struct LogTail {
    table: Table,
    keys: LogTailKeys,
}

impl LogTail {
    /// The log tails of a table, which must be there.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self { table, keys: LogTailKeys::new() }
    }

    /// The table.
    #[must_use]
    pub const fn table(&self) -> &Table {
        &self.table
    }

    /// Adds an entity as the newest of its partition: one request.
    ///
    /// # Errors
    /// A request that failed.
    pub async fn append<E: Entity + Sync>(&self, entity: &E) -> Result<LogTailKey> {
        self.write(self.keys.next(), entity).await
    }

    /// Adds an entity for a time: one request.
    ///
    /// # Errors
    /// A request that failed.
    pub async fn append_at<E: Entity + Sync>(&self, time: Timestamp, entity: &E) -> Result<LogTailKey> {
        self.write(self.keys.at(time), entity).await
    }

    async fn write<E: Entity + Sync>(&self, key: LogTailKey, entity: &E) -> Result<LogTailKey> {
        self.table.insert(&crate::stored::Renamed::new(entity, key.to_string())).await?;
        Ok(key)
    }

    /// The latest entities of a partition, newest first: one request for each 1,000 of them.
    ///
    /// # Errors
    /// A request that failed, or entities that are no `E`.
    pub async fn latest<E: Entity + Send + 'static>(&self, partition_key: &str, count: usize) -> Result<Vec<E>> {
        Ok(self.query(partition_key).limit(count).all().await?)
    }

    /// All entities of a partition, newest first, as a query to narrow and to stream.
    pub fn query<E: Entity + Send + 'static>(&self, partition_key: &str) -> Query<E> {
        self.table.query().partition(partition_key)
    }

    /// The entities of a span of time, its start included and its end not, newest first.
    pub fn between<E: Entity + Send + 'static>(&self, partition_key: &str, span: Range<Timestamp>) -> Query<E> {
        self.query(partition_key).filter(between(span))
    }
}

/// The filter for rows of a span of time, its start included and its end not.
///
/// ```
/// use larimar_client::Timestamp;
/// let day = "2026-02-14T00:00:00Z".parse()?.."2026-02-15T00:00:00Z".parse()?;
/// let filter = larimar_patterns::log_tail::between(day);
/// assert_eq!(filter.as_str(), "RowKey ge '2516311872000000000' and RowKey lt '2516312736000000000'");
/// # Ok::<(), larimar_client::TimestampError>(())
/// ```
#[must_use]
pub fn between(span: Range<Timestamp>) -> Filter {
    if span.start >= span.end {
        return Filter::nothing();
    }
    // The newest row lies one tick before the end. A key is longer than these bounds, so it comes after its own ticks.
    let first = invert(span.end) + 1;
    let end = invert(span.start) + 1;
    keys::row_key().between(format!("{first:019}"), format!("{end:019}"))
}

const fn invert(time: Timestamp) -> u64 {
    Timestamp::MAX.ticks().saturating_sub(time.ticks())
}
