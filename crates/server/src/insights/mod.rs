//! Insights: what the traffic of each table looks like, in bounded memory and on disk.
//!
//! The handlers of the Table service count what a request did in [`Insights::observe`]: in the sketches of the thread's
//! shard, by account and table (`table.rs`). `writer.rs` takes them once a minute and adds them to rows of the system's
//! space (`rows.rs`), from which `report.rs` makes the answer of the admin endpoint.
//!
//! All sketches can be added to each other, so the figures of threads, minutes, hours and servers are one type. What a
//! client can make up (keys, shapes of queries, names of tables) is kept only as far as [`frequent::Frequent`] has room.

mod account;
mod codec;
mod distinct;
mod frequent;
mod hash_key;
mod key_ranges;
mod latencies;
mod peaks;
mod places;
mod report;
mod rows;
mod table;
mod writer;

pub(crate) use hash_key::HashKey;
pub(crate) use report::{ReportQuery, report};
pub(crate) use table::{OperationKind, Outcome, QueryFigures, TableFigures, WriteFigures};
pub use writer::InsightsWriter;

use crate::metrics::{shard_count, thread_number};
use account::{AccountFigures, TABLES_MAX};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use writer::Pending;

/// The figures of all accounts that are not stored yet.
pub(crate) struct Insights {
    shards: Box<[Shard]>,
    /// Tables of an account that a shard tracks.
    tables_max: AtomicUsize,
    /// The number of the rows that this server writes.
    number: u8,
    /// The key of the hashes that this server proposes, if the store has none.
    proposed_key: HashKey,
    /// Figures that are being stored. One task at a time stores them.
    pending: tokio::sync::Mutex<Pending>,
    /// One report at a time bounds the memory of reports.
    reports: tokio::sync::Mutex<()>,
}

/// The figures of the threads that share a shard. Aligned, so that shards do not share a cache line.
#[derive(Default)]
#[repr(align(128))]
struct Shard(Mutex<Observed>);

#[derive(Default)]
struct Observed {
    /// `None` until the store has been asked for it. Nothing is observed before.
    key: Option<HashKey>,
    accounts: FxHashMap<String, AccountFigures>,
}

impl Insights {
    /// Nothing observed yet. `random` decides which rows the server writes.
    pub(crate) fn new(random: [u8; HashKey::BYTES]) -> Self {
        Self {
            shards: (0..shard_count().min(SHARDS_MAX)).map(|_| Shard::default()).collect(),
            tables_max: AtomicUsize::new(TABLES_MAX),
            number: random[0] % rows::NUMBERS,
            proposed_key: HashKey(random),
            pending: tokio::sync::Mutex::default(),
            reports: tokio::sync::Mutex::default(),
        }
    }

    /// Divides the tables that can be tracked among so many accounts.
    pub(crate) fn set_accounts(&self, accounts: usize) {
        self.tables_max.store((TABLES_OF_SHARD / accounts.max(1)).clamp(TABLES_MIN, TABLES_MAX), Relaxed);
    }

    /// Counts a request to a table.
    pub(crate) fn observe(&self, account: &str, table: &str, observe: impl FnOnce(&mut TableFigures, HashKey)) {
        let mut observed = self.shards[thread_number() & (self.shards.len() - 1)].0.lock();
        let Some(key) = observed.key else { return };
        let accounts = &mut observed.accounts;
        let figures = match accounts.get_mut(account) {
            Some(figures) => figures,
            None => {
                let tables_max = self.tables_max.load(Relaxed);
                // With very many accounts, some are not observed in some minutes.
                if accounts.len() >= TABLES_OF_SHARD / tables_max {
                    return;
                }
                accounts.entry(account.to_owned()).or_insert_with(|| AccountFigures::new(tables_max))
            }
        };
        observe(figures.table(key, table), key);
    }

    /// From now on, requests are observed.
    fn set_key(&self, key: HashKey) {
        for shard in &self.shards {
            shard.0.lock().key = Some(key);
        }
    }

    /// Takes what was observed since the last call.
    fn take(&self) -> BTreeMap<String, AccountFigures> {
        let mut sums: BTreeMap<String, AccountFigures> = BTreeMap::new();
        for shard in &self.shards {
            let taken = std::mem::take(&mut shard.0.lock().accounts);
            for (account, figures) in taken {
                sums.entry(account).or_default().merge(figures);
            }
        }
        sums
    }

    /// Takes what was observed of one account since the last call.
    fn take_of(&self, account: &str) -> Option<AccountFigures> {
        let mut sum: Option<AccountFigures> = None;
        for shard in &self.shards {
            let taken = shard.0.lock().accounts.remove(account);
            if let Some(figures) = taken {
                sum.get_or_insert_default().merge(figures);
            }
        }
        sum
    }
}

impl fmt::Debug for Insights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Insights").field("number", &self.number).finish_non_exhaustive()
    }
}

/// A power of two. The lock of a shard is held for about a microsecond, so threads may share one.
const SHARDS_MAX: usize = 4;
/// Tables that a shard tracks, of all accounts. A table has at most 192 KiB (tested below), so that all shards have at most
/// 48 MiB, and twice that while a minute is stored.
const TABLES_OF_SHARD: usize = 64;
/// Tables of an account at least that a shard tracks, so that it tracks at most 32 accounts at a time.
const TABLES_MIN: usize = 2;

#[cfg(test)]
mod tests;
