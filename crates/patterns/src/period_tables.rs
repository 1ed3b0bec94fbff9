//! T8, high-volume delete: a table for each hour, day, month or year, dropped whole when it has served its time.
//!
//! To delete a million entities one by one takes a million operations, and those compete with the writes that go on. A
//! table is deleted with one request, regardless of its size.
//!
//! ```text
//! Logins20260213 ─ dropped: older than what is kept
//! Logins20260214
//! Logins20260215 ← writes of today
//! ```
//!
//! **Guarantees.** A write goes to the table of its time and costs one request; the first one of a period three, since
//! it finds no table and makes it. Writers in several programs may be first at the same moment.
//! [`PeriodTables::stream`] reads table after table in the order of time; it is one request to list them and those of a
//! query in each.
//! [`PeriodTables::drop_before`] deletes no table that could hold anything of the time to keep, and no table that is not
//! one of these. A table's name stays taken for a while after it is deleted (on the original service for at least 40
//! seconds): keep longer than you write late.

use crate::{Error, Period, Result};
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use larimar_client::{Account, Column, ETag, Entity, Query, Table, Timestamp};
use std::ops::Range;

/// Tables of which each holds what belongs to one period.
#[derive(Clone, Debug)]
pub struct PeriodTables {
    account: Account,
    prefix: String,
    period: Period,
}

impl PeriodTables {
    /// Tables whose names begin with a prefix, `Logins20260215` and so on. No table is made before it is written to.
    ///
    /// ```
    /// # use larimar_client::Account;
    /// use larimar_patterns::{Period, period_tables::PeriodTables};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let account = Account::connect("UseDevelopmentStorage=true")?;
    /// let logins = PeriodTables::new(account, "Logins", Period::Day)?;
    /// assert_eq!(logins.name("2026-02-15T13:05:00Z".parse()?), "Logins20260215");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A prefix that does not begin with a letter, has other signs than letters and digits, ends with a digit (so that
    /// it is not clear where the period begins), or is too long.
    pub fn new(account: Account, prefix: impl Into<String>, period: Period) -> Result<Self> {
        let prefix = prefix.into();
        let is_plain = prefix.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let ends = (prefix.bytes().next(), prefix.bytes().next_back());
        let (Some(first), Some(last)) = ends else { return Err(invalid_prefix(&prefix)) };
        let name_bytes = prefix.len() + period.name(Timestamp::MIN).len();
        if !is_plain || !first.is_ascii_alphabetic() || last.is_ascii_digit() || name_bytes > TABLE_NAME_MAX {
            return Err(invalid_prefix(&prefix));
        }
        Ok(Self { account, prefix, period })
    }

    /// The period of each table.
    #[must_use]
    pub const fn period(&self) -> Period {
        self.period
    }

    /// The name of the table for a time.
    #[must_use]
    pub fn name(&self, time: Timestamp) -> String {
        format!("{}{}", self.prefix, self.period.name(time))
    }

    /// The table for a time, which need not be there yet.
    #[must_use]
    pub fn table(&self, time: Timestamp) -> Table {
        self.account.table(self.name(time))
    }

    /// Makes the table for a time if it does not exist, so that the first write of a period finds it: one request.
    ///
    /// # Errors
    /// A request that failed.
    pub async fn prepare(&self, time: Timestamp) -> Result<Table> {
        let table = self.table(time);
        table.create_if_missing().await?;
        Ok(table)
    }

    /// Inserts an entity into the table for a time: one request, but three for the first write of a period.
    ///
    /// # Errors
    /// A request that failed; [`larimar_client::Error::is_conflict`] if the entity is there.
    pub async fn insert<E: Entity + Sync>(&self, time: Timestamp, entity: &E) -> Result<ETag> {
        self.write(time, |table| async move { table.insert(entity).await }).await
    }

    /// Inserts an entity into the table for a time, or replaces it: one request, but three for the first write of a
    /// period.
    ///
    /// # Errors
    /// A request that failed.
    pub async fn insert_or_replace<E: Entity + Sync>(&self, time: Timestamp, entity: &E) -> Result<ETag> {
        self.write(time, |table| async move { table.insert_or_replace(entity).await }).await
    }

    /// Writes to the table for a time by a function, which is called again if the table had to be made.
    ///
    /// # Errors
    /// A request that failed.
    pub async fn write<T, W, F>(&self, time: Timestamp, write: W) -> Result<T>
    where
        W: Fn(Table) -> F,
        F: Future<Output = larimar_client::Result<T>>,
    {
        let table = self.table(time);
        match write(table.clone()).await {
            Err(error) if error.code() == Some(TABLE_NOT_FOUND) => {
                tracing::debug!(table = table.name(), "first write of a period: the table is made");
                table.create_if_missing().await?;
                Ok(write(table).await?)
            }
            other => Ok(other?),
        }
    }

    /// The tables that are there and hold something of a span of time, its start included and its end not, in the
    /// order of time: one request for each 1,000.
    ///
    /// # Errors
    /// A request that failed.
    pub async fn tables(&self, span: Range<Timestamp>) -> Result<Vec<Table>> {
        Ok(self.list(span).await?.into_iter().map(|(_, table)| table).collect())
    }

    /// The entities of a query over the tables of a span of time, table after table in the order of time.
    ///
    /// A table that is dropped meanwhile is passed over.
    ///
    /// ```no_run
    /// # use larimar_client::{Account, DynamicEntity, Timestamp};
    /// # use larimar_patterns::{Period, period_tables::PeriodTables};
    /// # async fn run(logins: PeriodTables, from: Timestamp, to: Timestamp) -> Result<(), Box<dyn std::error::Error>> {
    /// use futures_util::TryStreamExt as _;
    /// let of_don = logins.stream(from..to, |table| table.query::<DynamicEntity>().partition("Don"));
    /// let mut of_don = std::pin::pin!(of_don);
    /// while let Some(login) = of_don.try_next().await? {
    ///     println!("{}", login.row_key);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn stream<T, Q>(&self, span: Range<Timestamp>, query: Q) -> impl Stream<Item = Result<T>> + Send + use<T, Q>
    where
        T: Send + 'static,
        Q: Fn(&Table) -> Query<T> + Send,
    {
        let tables = self.clone();
        let listed = futures_util::stream::once(async move { tables.tables(span).await });
        listed
            .map_ok(move |tables| {
                let queries: Vec<_> = tables.iter().map(&query).collect();
                futures_util::stream::iter(queries).flat_map(|query| {
                    query.stream().map_err(Error::from).filter_map(|item| async move {
                        match item {
                            Err(Error::Client(error)) if error.code() == Some(TABLE_NOT_FOUND) => None,
                            item => Some(item),
                        }
                    })
                })
            })
            .try_flatten()
    }

    /// Deletes the tables of the periods that ended at a time or before it: one request for each, besides the list. The
    /// names of those that were deleted come back.
    ///
    /// # Errors
    /// A request that failed. What was deleted stays deleted, and the next call continues.
    pub async fn drop_before(&self, time: Timestamp) -> Result<Vec<String>> {
        let mut dropped = Vec::new();
        for (start, table) in self.list(Timestamp::MIN..time).await? {
            // Another program may have been faster.
            if self.period.end(start) <= time && table.delete_table_if_exists().await? {
                tracing::info!(table = table.name(), "dropped the table of a period that is over");
                dropped.push(table.name().to_owned());
            }
        }
        Ok(dropped)
    }

    /// The tables of a span that are there, and when their periods start.
    async fn list(&self, span: Range<Timestamp>) -> Result<Vec<(Timestamp, Table)>> {
        if span.start >= span.end {
            return Ok(Vec::new());
        }
        let first = self.name(span.start);
        // The end itself is not part of the span, but the ticks before it are.
        let last = self.name(Timestamp::from_ticks(span.end.ticks() - 1));
        let filter = TABLE_NAME.ge(first) & TABLE_NAME.le(last);
        let listed: Vec<_> = self.account.tables().list(Some(filter)).try_collect().await?;
        let of_ours = |name: String| {
            let period = name.strip_prefix(&self.prefix)?;
            Some((self.period.parse(period)?, self.account.table(name)))
        };
        Ok(listed.into_iter().filter_map(|item| of_ours(item.name)).collect())
    }
}

fn invalid_prefix(prefix: &str) -> Error {
    Error::Invalid(format!(
        "expected a prefix of letters and digits that begins with a letter, does not end with a digit, and leaves room \
         for the period in a table's name of 63 characters, found '{prefix}'"
    ))
}

const TABLE_NAME: Column<String> = Column::named("TableName");
const TABLE_NAME_MAX: usize = 63;
const TABLE_NOT_FOUND: &str = "TableNotFound";
