//! The workloads: how one operation of each is asked and how its answer is judged.
//!
//! `measure.rs` runs many of these side by side and times them.

use std::cell::Cell;
use std::rc::Rc;

use anyhow::{Context as _, ensure};
use memchr::memmem;

use crate::check::{continuation, count_rows, expect_count, expect_status, expect_text};
use crate::dataset::{CATEGORIES, Dataset, Key, NARROW_ROWS, Random, TRANSACTION_ROWS, WIDE_ROWS};
use crate::http::Connection;
use crate::measure::Outcome;
use crate::request::Requests;

const RANGE_ROWS: u64 = 100;
/// Partitions that spread inserts go to.
pub(crate) const SPREAD_PARTITIONS: u64 = 1_000;
/// Follow-up pages of one query; more is a server that never ends.
const FOLLOW_MAX: usize = 100;

/// One kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Workload {
    /// Read one entity by its keys.
    PointGet,
    /// Query 100 neighbouring rows of a partition.
    Range,
    /// Query a partition of 10,000 rows by a property; 100 rows match.
    Scan,
    /// Walk the whole table in pages of 1,000; one operation is one page.
    Page,
    /// Replace an entity.
    Replace,
    /// Merge two properties into an entity.
    Merge,
    /// Insert into one partition.
    InsertHot,
    /// Insert into one of 1,000 partitions.
    InsertSpread,
    /// Delete an entity.
    Delete,
    /// Eight point gets in ten requests, an insert and a replace.
    Mixed,
    /// Insert 100 entities in one transaction.
    Transaction,
}

impl Workload {
    /// Every workload in the order of measuring: reads first, so that a walk finds exactly what was
    /// loaded, and the one that adds most rows last.
    pub(crate) const ALL: [Self; 11] = [
        Self::PointGet,
        Self::Range,
        Self::Scan,
        Self::Page,
        Self::Replace,
        Self::Merge,
        Self::InsertHot,
        Self::InsertSpread,
        Self::Delete,
        Self::Mixed,
        Self::Transaction,
    ];

    /// Whether it changes the table.
    pub(crate) fn writes(self) -> bool {
        !matches!(self, Self::PointGet | Self::Range | Self::Scan | Self::Page)
    }

    /// The name in reports.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::PointGet => "point get",
            Self::Range => "range query of 100",
            Self::Scan => "filtered scan of 10,000",
            Self::Page => "table paging (1,000 a page)",
            Self::Replace => "replace",
            Self::Merge => "merge",
            Self::InsertHot => "insert, one partition",
            Self::InsertSpread => "insert, 1,000 partitions",
            Self::Delete => "delete",
            Self::Mixed => "mixed: 80 % gets, 20 % writes",
            Self::Transaction => "transaction of 100 inserts",
        }
    }
}

/// What the connections of one store share: fresh row numbers and the rows left to delete.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) dataset: Dataset,
    /// All rows before the first write: what a walk over the table has to find.
    rows: u64,
    /// Point gets answer this many bytes and no entity: the bare server.
    bare_bytes: Option<usize>,
    /// Given to the next inserted row, so that no key repeats.
    next_row: Cell<u64>,
    /// Given to the next transaction.
    next_transaction: Cell<u64>,
    /// The rows numbered `delete_next..delete_end` exist and wait to be deleted.
    delete_next: Cell<u64>,
    delete_end: Cell<u64>,
}

impl Store {
    /// A store that holds a data set and nothing else.
    pub(crate) fn new(dataset: Dataset) -> Self {
        Self {
            dataset,
            rows: dataset.rows(),
            bare_bytes: None,
            next_row: Cell::new(0),
            next_transaction: Cell::new(0),
            delete_next: Cell::new(0),
            delete_end: Cell::new(0),
        }
    }

    /// A store whose loading stopped early: `rows` are there, `dataset` is the whole part of them.
    pub(crate) fn partial(dataset: Dataset, rows: u64) -> Self {
        Self { rows, ..Self::new(dataset) }
    }

    /// A server that answers every point get with as many bytes.
    pub(crate) fn bare(dataset: Dataset, bytes: usize) -> Self {
        Self { bare_bytes: Some(bytes), ..Self::new(dataset) }
    }

    /// Announces `rows` more rows to delete and returns the numbers they have to be loaded under.
    pub(crate) fn announce_deletable(&self, rows: u64) -> std::ops::Range<u64> {
        let start = self.delete_end.get();
        self.delete_end.set(start + rows);
        start..start + rows
    }

    /// A number for a row that is inserted, given once.
    pub(crate) fn take_row(&self) -> u64 {
        take(&self.next_row)
    }

    fn take_deletable(&self) -> Option<u64> {
        let number = self.delete_next.get();
        (number < self.delete_end.get()).then(|| self.delete_next.replace(number + 1))
    }
}

fn take(counter: &Cell<u64>) -> u64 {
    counter.replace(counter.get() + 1)
}

/// One connection at work.
pub(crate) struct Worker {
    connection: Connection,
    requests: Requests,
    store: Rc<Store>,
    random: Random,
    key: Key,
    /// The continuation of the walk as a query string, and the rows it has seen.
    next: String,
    walked: u64,
}

impl Worker {
    /// A worker on a connection of its own; equal seeds ask for equal keys.
    pub(crate) fn new(connection: Connection, requests: Requests, store: Rc<Store>, seed: u64) -> Self {
        Self {
            connection,
            requests,
            store,
            random: Random::new(seed),
            key: Key::default(),
            next: String::new(),
            walked: 0,
        }
    }

    /// Replaces a broken connection.
    pub(crate) fn reconnect(&mut self, connection: Connection) {
        self.connection = connection;
        self.next.clear();
        self.walked = 0;
    }

    /// One operation: asked, answered, checked.
    pub(crate) async fn operate(&mut self, workload: Workload) -> anyhow::Result<Outcome> {
        match workload {
            Workload::PointGet => self.point_get().await?,
            Workload::Range => self.range().await?,
            Workload::Scan => self.scan().await?,
            Workload::Page => self.page().await?,
            Workload::Replace => self.replace().await?,
            Workload::Merge => {
                let number = self.pick_narrow();
                let answer = self.connection.exchange(self.requests.merge(&self.key, number)).await?;
                expect_status(&answer, 204)?;
            }
            Workload::InsertHot => {
                let row = self.store.take_row();
                self.key.set("hot", 0, row);
                self.insert(row).await?;
            }
            Workload::InsertSpread => self.insert_spread().await?,
            Workload::Mixed => match self.random.below(10) {
                0 => self.insert_spread().await?,
                1 => self.replace().await?,
                _ => self.point_get().await?,
            },
            Workload::Delete => {
                let Some(number) = self.store.take_deletable() else { return Ok(Outcome::Exhausted) };
                set_deletable(&mut self.key, number);
                let answer = self.connection.exchange(self.requests.delete(&self.key)).await?;
                expect_status(&answer, 204)?;
            }
            Workload::Transaction => {
                let number = take(&self.store.next_transaction) * TRANSACTION_ROWS;
                self.transaction(|index, key| {
                    key.set("t", (number + index) / NARROW_ROWS, (number + index) % NARROW_ROWS);
                    number + index
                })
                .await?;
            }
        }
        Ok(Outcome::Done)
    }

    /// Loads 100 entities of the data set, the first of which has this number in loading order.
    pub(crate) async fn load(&mut self, first: u64) -> anyhow::Result<()> {
        self.transaction(|index, key| {
            key.set_loaded(first + index);
            first + index
        })
        .await
    }

    /// Loads 100 rows that are there to be deleted.
    pub(crate) async fn load_deletable(&mut self, first: u64) -> anyhow::Result<()> {
        self.transaction(|index, key| {
            set_deletable(key, first + index);
            first + index
        })
        .await
    }

    /// One transaction of inserts, checked.
    async fn transaction(&mut self, name: impl FnMut(u64, &mut Key) -> u64) -> anyhow::Result<()> {
        let answer = self.connection.exchange(self.requests.transaction(name)).await?;
        expect_status(&answer, 202)?;
        expect_count(&answer, b"HTTP/1.1 204", TRANSACTION_ROWS)
    }

    async fn replace(&mut self) -> anyhow::Result<()> {
        let number = self.pick_narrow();
        let answer = self.connection.exchange(self.requests.replace(&self.key, number)).await?;
        expect_status(&answer, 204)
    }

    async fn insert_spread(&mut self) -> anyhow::Result<()> {
        let row = self.store.take_row();
        self.key.set("s", self.random.below(SPREAD_PARTITIONS), row);
        self.insert(row).await
    }

    async fn insert(&mut self, number: u64) -> anyhow::Result<()> {
        let answer = self.connection.exchange(self.requests.insert(&self.key, number)).await?;
        expect_status(&answer, 204)
    }

    async fn point_get(&mut self) -> anyhow::Result<()> {
        self.pick_narrow();
        let answer = self.connection.exchange(self.requests.point_get(&self.key)).await?;
        expect_status(&answer, 200)?;
        if let Some(bytes) = self.store.bare_bytes {
            ensure!(answer.body.len() == bytes, "{} bytes instead of {bytes}", answer.body.len());
            return Ok(());
        }
        expect_text(&answer, "PartitionKey", &self.key.partition)?;
        expect_text(&answer, "RowKey", &self.key.row)
    }

    async fn range(&mut self) -> anyhow::Result<()> {
        let partition = self.random.below(self.store.dataset.narrow_partitions());
        let start = self.random.below(NARROW_ROWS - RANGE_ROWS + 1);
        let mut end = Key::default();
        end.set("p", partition, start + RANGE_ROWS);
        self.key.set("p", partition, start);
        let mut last = Key::default();
        last.set("p", partition, start + RANGE_ROWS - 1);
        let (mut rows, mut next) = (0, String::new());
        for _ in 0..FOLLOW_MAX {
            let answer = self.connection.exchange(self.requests.range(&self.key, &end.row, &next)).await?;
            expect_status(&answer, 200)?;
            if next.is_empty() {
                expect_text(&answer, "RowKey", &self.key.row)?;
            }
            rows += count_rows(&answer);
            if !continuation(&answer, &mut next) {
                expect_text(&answer, "RowKey", &last.row)?;
                ensure!(rows == RANGE_ROWS, "a range of {rows} rows instead of {RANGE_ROWS}");
                return Ok(());
            }
        }
        anyhow::bail!("a range that does not end")
    }

    async fn scan(&mut self) -> anyhow::Result<()> {
        let category = self.random.below(CATEGORIES);
        let expected = WIDE_ROWS / CATEGORIES;
        let (mut rows, mut matching, mut next) = (0, 0, String::new());
        let wanted = format!(r#""Category":"c{category:02}""#);
        for _ in 0..FOLLOW_MAX {
            let answer = self.connection.exchange(self.requests.scan(category, &next)).await?;
            expect_status(&answer, 200)?;
            rows += count_rows(&answer);
            matching += memmem::find_iter(answer.body, wanted.as_bytes()).count() as u64;
            if !continuation(&answer, &mut next) {
                ensure!(
                    rows == expected && matching == expected,
                    "a scan of {rows} rows, {matching} of them matching, instead of {expected}"
                );
                return Ok(());
            }
        }
        anyhow::bail!("a scan that does not end")
    }

    /// One page of a walk over the table; the walk starts again at its end.
    async fn page(&mut self) -> anyhow::Result<()> {
        let answer = self.connection.exchange(self.requests.page(&self.next)).await?;
        expect_status(&answer, 200)?;
        let rows = count_rows(&answer);
        self.walked += rows;
        if continuation(&answer, &mut self.next) {
            ensure!(rows <= 1_000, "a page of {rows} rows");
            return Ok(());
        }
        let (walked, expected) = (std::mem::take(&mut self.walked), self.store.rows);
        ensure!(walked == expected, "a walk over {walked} rows instead of {expected}");
        Ok(())
    }

    /// Walks the whole table once: proves that every loaded row is there, and warms the caches.
    pub(crate) async fn walk(&mut self) -> anyhow::Result<()> {
        for _ in 0..=self.store.rows {
            self.page().await?;
            if self.next.is_empty() {
                return Ok(());
            }
        }
        anyhow::bail!("a walk that does not end")
    }

    /// Sets the key to a random loaded entity and returns its number.
    fn pick_narrow(&mut self) -> u64 {
        let number = self.random.below(self.store.dataset.narrow_rows());
        self.key.set_narrow(number);
        number
    }
}

/// The rows of a data set in this partition family are there to be deleted.
fn set_deletable(key: &mut Key, number: u64) {
    key.set("d", number / NARROW_ROWS, number % NARROW_ROWS);
}

/// Asks for one loaded entity, whose number chooses it, and returns the size of the answer's body.
pub(crate) async fn probe(connection: &mut Connection, requests: &mut Requests) -> anyhow::Result<usize> {
    let mut key = Key::default();
    key.set_narrow(0);
    let answer = connection.exchange(requests.point_get(&key)).await.context("a point get")?;
    expect_status(&answer, 200)?;
    expect_text(&answer, "RowKey", &key.row)?;
    Ok(answer.body.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_to_delete_are_handed_out_once() {
        let store = Store::new(Dataset::new(0));
        assert_eq!(store.take_deletable(), None);
        assert_eq!(store.announce_deletable(2), 0..2);
        assert_eq!([store.take_deletable(), store.take_deletable(), store.take_deletable()], [Some(0), Some(1), None]);
        assert_eq!(store.announce_deletable(1), 2..3);
    }
}
