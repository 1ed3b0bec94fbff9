//! Writes of several rows of a partition, all or none.
//!
//! A transaction has one statement for each kind of operation (`plan.rs`). Each statement ends in a guard that fails,
//! and with it the transaction, when a condition did not hold. `BEGIN`, the statements and `COMMIT` are sent together,
//! so a transaction takes one round trip and holds no lock over the network.

mod plan;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::gather::{Limits, RequestKind, Retry};
use crate::kept_connection::Keep;
use crate::key;
use crate::statements::transactions::{InsertAll, UpsertAll};
use crate::statements::{FromRow, Query};
use crate::written_rows::{self, WrittenRow};
use futures_util::future::{join_all, join3};
use larimar_engine::{Beside, Expect, SpaceId};
use larimar_model::Timestamp;
use plan::{Planned, plan};
use rustc_hash::FxHashMap;
use tokio_postgres::Row;

/// Transactions as a kind of request.
pub(crate) struct Transactions;

/// Operations on distinct rows of a partition.
#[derive(Debug)]
pub(crate) struct Transaction {
    pub(crate) space: i64,
    pub(crate) pk: Vec<u8>,
    pub(crate) steps: Vec<Step>,
    pub(crate) beside: SideRows,
    /// The version returned for a row that is not stored.
    pub(crate) now: Timestamp,
    /// Marks the rows that it stores.
    pub(crate) token: i64,
    /// Whether an earlier attempt met a row that another session has locked.
    pub(crate) met_lock: bool,
}

/// One operation.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) rk: Vec<u8>,
    pub(crate) expect: Expect,
    pub(crate) act: Act,
}

/// What an operation does.
#[derive(Debug)]
pub(crate) enum Act {
    Put(Vec<u8>),
    Delete,
    Check,
}

/// Rows of another partition that are written with a transaction, whatever is there. They are written after its own
/// rows are locked, so transactions that have some of them in common, which are on the same rows, queue up before.
#[derive(Debug, Default)]
pub(crate) struct SideRows {
    pk: Vec<u8>,
    puts: Vec<(Vec<u8>, Vec<u8>)>,
    deletes: Vec<Vec<u8>>,
}

impl SideRows {
    /// The rows as the database names them.
    pub(crate) fn of(space: SpaceId, rows: &[Beside<'_>]) -> Self {
        let Some(first) = rows.first() else { return Self::default() };
        let mut side = Self { pk: key::partition(space, first.partition), ..Self::default() };
        for row in rows {
            match row.body {
                Some(body) => side.puts.push((key::row(row.row), body.to_vec())),
                None => side.deletes.push(key::row(row.row)),
            }
        }
        side.puts.sort_unstable();
        side.deletes.sort_unstable();
        side
    }
}

fn is_put(step: &Step) -> bool {
    matches!(step.act, Act::Put(_))
}

impl RequestKind for Transactions {
    type Request = Transaction;
    type Answer = Vec<Timestamp>;

    /// Each transaction is sent alone, as soon as a worker is free.
    const LIMITS: Limits = Limits {
        name: "transactions",
        running_freely: usize::MAX,
        enough: 1,
        group_max: 1,
        group_bytes_max: usize::MAX,
        waiting_max: 1000,
        waiting_bytes_max: usize::MAX,
    };
    const KEEP: Keep = Keep::WhileIdle;

    fn writes(transaction: &Transaction) -> usize {
        transaction.steps.len().max(1)
    }

    fn met_lock(transaction: &Transaction) -> bool {
        transaction.met_lock
    }

    fn shares_group(_: &Transaction, _: &Transaction) -> bool {
        false
    }

    fn retry(failure: &Failure) -> Retry {
        match failure {
            Failure::Unknown(_) => Retry::Find,
            _ => Retry::No,
        }
    }

    async fn send(connection: &Connection, group: &[&Transaction]) -> Result<Vec<Vec<Timestamp>>, Failure> {
        let mut versions = Vec::with_capacity(group.len());
        for transaction in group {
            versions.push(carry_out(connection, transaction).await?);
        }
        Ok(versions)
    }

    fn is_findable(transaction: &Transaction) -> bool {
        transaction.steps.iter().any(is_put)
    }

    /// Rows with the token of a transaction show that all of it took effect. A row that was overwritten since had a
    /// version that is not known any more.
    async fn find(connection: &Connection, group: &[&Transaction]) -> Result<Vec<Option<Vec<Timestamp>>>, Failure> {
        let mut versions = Vec::with_capacity(group.len());
        for transaction in group {
            let Transaction { pk, token, .. } = transaction;
            let puts = transaction.steps.iter().filter(|step| is_put(step));
            let puts: Vec<_> = puts.map(|step| Some(WrittenRow { pk, rk: &step.rk, token: *token })).collect();
            let found: Option<Vec<Timestamp>> = written_rows::find(connection, &puts).await?.into_iter().collect();
            versions.push(found.filter(|found| !found.is_empty()).map(|found| {
                let mut found = found.into_iter();
                let version = |step: &Step| if is_put(step) { found.next() } else { None }.unwrap_or(transaction.now);
                transaction.steps.iter().map(version).collect()
            }));
        }
        Ok(versions)
    }
}

async fn carry_out(connection: &Connection, transaction: &Transaction) -> Result<Vec<Timestamp>, Failure> {
    let planned = plan(transaction);
    let mut prepared = Vec::with_capacity(planned.len());
    for one in &planned {
        prepared.push(connection.prepare(&*one.statement).await?);
    }
    let queries = planned.iter().zip(&prepared);
    let queries = join_all(queries.map(|(one, prepared)| connection.query_prepared(prepared, &*one.statement)));
    let answers: Vec<Result<Vec<Row>, tokio_postgres::Error>> = if planned.len() == 1 {
        connection.within(async { Ok(queries.await) }).await?
    } else {
        let client = connection.client();
        let all = async {
            // Polled in order, so sent in order. The answer to a commit proves nothing: after a statement that failed,
            // the commit rolls back and reports success.
            let (begin, answers, commit) =
                join3(client.batch_execute("BEGIN"), queries, client.batch_execute("COMMIT")).await;
            begin?;
            let mut answers = answers;
            answers.extend(commit.err().map(Err));
            Ok(answers)
        };
        connection.within(all).await?
    };
    let mut versions = Versions::default();
    for (index, rows) in answers.into_iter().enumerate() {
        let rows = rows.map_err(|error| connection.failure(&error))?;
        let Some(Planned { learn, .. }) = planned.get(index) else { continue };
        for row in rows {
            learn(&mut versions, row)?;
        }
    }
    Ok(transaction.steps.iter().map(|step| versions.of(step).unwrap_or(transaction.now)).collect())
}

/// The versions that the statements returned.
#[derive(Default)]
struct Versions {
    /// Of all rows that were inserted.
    inserted: Option<Timestamp>,
    by_row: FxHashMap<Vec<u8>, Timestamp>,
}

impl Versions {
    fn add_inserted(&mut self, row: Row) -> Result<(), Failure> {
        let (version,) = <InsertAll<'_> as Query>::Row::from_row(row)?;
        self.inserted = version.map(version_of);
        Ok(())
    }

    /// Of rows that were inserted or replaced.
    fn add_stored(&mut self, row: Row) -> Result<(), Failure> {
        let (rks, versions) = <UpsertAll<'_> as Query>::Row::from_row(row)?;
        self.by_row.extend(rks.into_iter().zip(versions.into_iter().map(version_of)));
        Ok(())
    }

    fn of(&self, step: &Step) -> Option<Timestamp> {
        match (&step.act, step.expect) {
            (Act::Put(_), Expect::Absent) => self.inserted,
            (Act::Put(_), _) => self.by_row.get(&step.rk).copied(),
            (Act::Delete | Act::Check, _) => None,
        }
    }
}

const fn version_of(ticks: i64) -> Timestamp {
    Timestamp::from_ticks(ticks.cast_unsigned())
}
