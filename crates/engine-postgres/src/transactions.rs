//! Writes of several rows of a partition, all or none.
//!
//! The operations are grouped by kind, one statement each. Each ends in a guard that fails, and all with it, when a
//! condition did not hold. `BEGIN`, the statements and `COMMIT` are sent together, so it takes one round trip and no lock
//! is held over the network. Rows that exist are locked in their order first, so transactions that meet queue up.

use crate::connection::{Connection, column};
use crate::core::{Core, Line, token};
use crate::failure::Failure;
use crate::key;
use crate::statements::{DELETE_ALL, DELETE_ANY, GUARD_PRESENT, GUARD_SPACE, INSERT_ALL, LOCK, UPDATE_ALL, UPSERT_ALL};
use futures_util::future::{join_all, join3};
use larimar_engine::{Beside, Expect, Fault, SpaceId};
use larimar_model::Timestamp;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{Notify, oneshot};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// Operations on distinct rows of a partition.
#[derive(Debug)]
pub(crate) struct Transaction {
    pub(crate) space: i64,
    pub(crate) pk: Vec<u8>,
    pub(crate) steps: Vec<Step>,
    pub(crate) beside: SideRows,
    /// What to call the version of a row that is not stored.
    pub(crate) now: Timestamp,
    /// Whether an earlier attempt met a row that another session holds.
    pub(crate) was_locked: bool,
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

/// Rows of another partition that are written with a transaction, whatever is there. They are written after its own rows
/// are locked, so transactions that have some of them in common, which are on the same rows, queue up before.
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

/// The transactions that wait, and whom to wake.
pub(crate) struct Transactions {
    core: Arc<Core>,
    queue: Mutex<Queue>,
    wake: Notify,
    /// Connections that may carry out transactions that met a lock before. The others stay free for the rest.
    locked_max: usize,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// Transactions under way that met a lock before.
    locked: usize,
}

impl Queue {
    /// Where the first transaction is that may be carried out now.
    fn next(&self, locked_max: usize) -> Option<usize> {
        self.waiting.iter().position(|waiting| !waiting.transaction.was_locked || self.locked < locked_max)
    }
}

struct Waiting {
    transaction: Transaction,
    since: Instant,
    reply: oneshot::Sender<Result<Vec<Timestamp>, Failure>>,
}

impl Transactions {
    pub(crate) fn new(core: Arc<Core>, connections: usize) -> Arc<Self> {
        let locked_max = (connections / 2).max(1);
        Arc::new(Self { core, queue: Mutex::default(), wake: Notify::new(), locked_max })
    }

    /// Carries a transaction out; it goes on even if the caller goes away. Returns a version for each step.
    pub(crate) async fn run(&self, transaction: Transaction) -> Result<Vec<Timestamp>, Failure> {
        let refused = |text: String| Failure::Refused(text);
        let (reply, outcome) = oneshot::channel();
        {
            let waiting = &mut self.queue.lock().waiting;
            self.core.health.check().map_err(|fault| refused(fault.to_string()))?;
            if waiting.len() >= WAITING_MAX {
                return Err(refused("too many transactions wait for the database".to_owned()));
            }
            waiting.push_back(Waiting { transaction, since: Instant::now(), reply });
        }
        self.wake.notify_one();
        outcome.await.unwrap_or_else(|_| Err(refused("the engine is closed".to_owned())))
    }

    /// Carries transactions out on a connection of its own, for ever.
    pub(crate) async fn serve(self: Arc<Self>) {
        let mut line = Line::new(Arc::clone(&self.core));
        loop {
            while self.queue.lock().next(self.locked_max).is_none() {
                line.rest(&self.wake, None).await;
            }
            let connection = line.connection(&self.wake, |fault| self.refuse(fault)).await;
            let Some(Waiting { transaction, since, reply }) = self.take() else { continue };
            if since.elapsed() > self.core.target.timeout {
                self.queue.lock().locked -= usize::from(transaction.was_locked);
                let _ = reply.send(Err(Failure::Refused("the database is too slow".to_owned())));
                continue;
            }
            let token = token();
            let started = Instant::now();
            let result = carry_out(connection, &transaction, token).await;
            self.core.committed(transaction.steps.len(), started);
            let result = match result {
                Err(Failure::Broken(reason)) => confirm(&mut line, &transaction, token, reason).await,
                Err(failure) if failure.ends_connection() => {
                    line.give_up();
                    Err(failure)
                }
                other => other,
            };
            if transaction.was_locked {
                self.queue.lock().locked -= 1;
                self.wake.notify_one();
            }
            // Nobody may be waiting any more; what was committed stands all the same.
            let _ = reply.send(result);
            line.share();
        }
    }

    fn take(&self) -> Option<Waiting> {
        let mut queue = self.queue.lock();
        let next = queue.next(self.locked_max)?;
        let taken = queue.waiting.remove(next)?;
        queue.locked += usize::from(taken.transaction.was_locked);
        if queue.next(self.locked_max).is_some() {
            self.wake.notify_one();
        }
        Some(taken)
    }

    /// Lets all go who wait; nothing of theirs was sent.
    pub(crate) fn refuse(&self, fault: &Fault) {
        for waiting in self.queue.lock().waiting.drain(..) {
            let _ = waiting.reply.send(Err(Failure::Refused(fault.to_string())));
        }
    }
}

/// A statement with its parameters.
struct Planned<'a> {
    sql: &'static str,
    parameters: Vec<Box<dyn ToSql + Sync + Send + 'a>>,
    /// Whether it writes rows of the other partition, whose versions nobody asks for.
    is_beside: bool,
}

impl<'a> Planned<'a> {
    fn new(sql: &'static str, parameters: Vec<Box<dyn ToSql + Sync + Send + 'a>>) -> Self {
        Self { sql, parameters, is_beside: false }
    }

    /// The statements for rows beside a transaction.
    fn beside(rows: &'a SideRows, space: i64, token: i64) -> impl Iterator<Item = Self> {
        let SideRows { pk, puts, deletes } = rows;
        let pk = pk.as_slice();
        let put = (!puts.is_empty()).then(|| {
            let rks: Vec<&[u8]> = puts.iter().map(|(rk, _)| rk.as_slice()).collect();
            let bodies: Vec<&[u8]> = puts.iter().map(|(_, body)| body.as_slice()).collect();
            let count = puts.len() as i64;
            Self::new(
                UPSERT_ALL,
                vec![Box::new(pk), Box::new(token), Box::new(rks), Box::new(bodies), Box::new(space), Box::new(count)],
            )
        });
        let delete = (!deletes.is_empty()).then(|| {
            let rks: Vec<&[u8]> = deletes.iter().map(Vec::as_slice).collect();
            Self::new(DELETE_ANY, vec![Box::new(pk), Box::new(rks)])
        });
        put.into_iter().chain(delete).map(|planned| Self { is_beside: true, ..planned })
    }
}

/// The statements of a transaction, in the order in which they run.
fn plan(transaction: &Transaction, token: i64) -> Vec<Planned<'_>> {
    let Transaction { space, pk, steps, beside, .. } = transaction;
    let mut groups = Groups::default();
    for step in steps {
        groups.add(step);
    }
    let pk = pk.as_slice();
    let mut planned: Vec<Planned<'_>> = Vec::new();
    for (sql, group) in groups.all() {
        let count = group.rks.len() as i64;
        if count == 0 {
            continue;
        }
        let Group { rks, bodies, expected } = group;
        planned.push(match sql {
            INSERT_ALL | UPSERT_ALL => Planned::new(
                sql,
                vec![Box::new(pk), Box::new(token), Box::new(rks), Box::new(bodies), Box::new(*space), Box::new(count)],
            ),
            UPDATE_ALL => Planned::new(
                sql,
                vec![
                    Box::new(pk),
                    Box::new(token),
                    Box::new(rks),
                    Box::new(bodies),
                    Box::new(*space),
                    Box::new(count),
                    Box::new(expected),
                ],
            ),
            DELETE_ALL | GUARD_PRESENT => {
                Planned::new(sql, vec![Box::new(pk), Box::new(rks), Box::new(expected), Box::new(count)])
            }
            _ => Planned::new(sql, vec![Box::new(pk), Box::new(rks)]),
        });
    }
    // A statement that stores rows asks for the space itself.
    if !planned.iter().any(|statement| matches!(statement.sql, INSERT_ALL | UPSERT_ALL | UPDATE_ALL)) {
        planned.insert(0, Planned::new(GUARD_SPACE, vec![Box::new(*space)]));
    }
    planned.extend(Planned::beside(beside, *space, token));
    if planned.len() > 1 {
        let mut rks: Vec<&[u8]> = steps.iter().map(|step| step.rk.as_slice()).collect();
        rks.sort_unstable();
        planned.insert(0, Planned::new(LOCK, vec![Box::new(pk), Box::new(rks)]));
    }
    planned
}

/// Steps by the statement that carries them out.
#[derive(Default)]
struct Groups<'a> {
    inserts: Vec<(&'a [u8], &'a [u8], i64)>,
    upserts: Vec<(&'a [u8], &'a [u8], i64)>,
    updates: Vec<(&'a [u8], &'a [u8], i64)>,
    deletes: Vec<(&'a [u8], &'a [u8], i64)>,
    blind_deletes: Vec<(&'a [u8], &'a [u8], i64)>,
    present: Vec<(&'a [u8], &'a [u8], i64)>,
    absent: Vec<(&'a [u8], &'a [u8], i64)>,
}

struct Group<'a> {
    rks: Vec<&'a [u8]>,
    bodies: Vec<&'a [u8]>,
    expected: Vec<i64>,
}

impl<'a> Groups<'a> {
    fn add(&mut self, step: &'a Step) {
        let expected = match step.expect {
            Expect::Version(version) => version.ticks().cast_signed(),
            _ => -1,
        };
        let (group, body) = match (&step.act, step.expect) {
            (Act::Put(body), Expect::Absent) => (&mut self.inserts, body.as_slice()),
            (Act::Put(body), Expect::Any) => (&mut self.upserts, body.as_slice()),
            (Act::Put(body), Expect::Present | Expect::Version(_)) => (&mut self.updates, body.as_slice()),
            (Act::Delete, Expect::Any) => (&mut self.blind_deletes, NOTHING),
            (Act::Delete, Expect::Present | Expect::Version(_)) => (&mut self.deletes, NOTHING),
            (Act::Check, Expect::Present | Expect::Version(_)) => (&mut self.present, NOTHING),
            (Act::Check | Act::Delete, Expect::Absent) => (&mut self.absent, NOTHING),
            (Act::Check, Expect::Any) => return,
        };
        group.push((&step.rk, body, expected));
    }

    /// The groups in the order in which their statements run, their rows in order. A row that must be absent is stored
    /// and removed again: until the end nobody else can store it.
    fn all(self) -> [(&'static str, Group<'a>); 8] {
        let absent = self.absent.clone();
        [
            (INSERT_ALL, self.absent),
            (DELETE_ANY, absent),
            (GUARD_PRESENT, self.present),
            (INSERT_ALL, self.inserts),
            (UPSERT_ALL, self.upserts),
            (UPDATE_ALL, self.updates),
            (DELETE_ALL, self.deletes),
            (DELETE_ANY, self.blind_deletes),
        ]
        .map(|(sql, mut rows)| {
            rows.sort_unstable();
            let group = Group {
                rks: rows.iter().map(|(rk, _, _)| *rk).collect(),
                bodies: rows.iter().map(|(_, body, _)| *body).collect(),
                expected: rows.iter().map(|(_, _, expected)| *expected).collect(),
            };
            (sql, group)
        })
    }
}

async fn carry_out(connection: &Connection, transaction: &Transaction, token: i64) -> Result<Vec<Timestamp>, Failure> {
    let planned = plan(transaction, token);
    let mut statements = Vec::with_capacity(planned.len());
    for one in &planned {
        statements.push(connection.prepared(one.sql).await?);
    }
    let client = connection.client();
    let queries = planned.iter().zip(&statements).map(async |(one, statement)| {
        let parameters: Vec<&(dyn ToSql + Sync)> = one.parameters.iter().map(|p| &**p as &(dyn ToSql + Sync)).collect();
        client.query(statement, &parameters).await
    });
    let queries = join_all(queries);
    let answers: Vec<Result<Vec<Row>, tokio_postgres::Error>> = if planned.len() == 1 {
        connection.within(async { Ok(queries.await) }).await?
    } else {
        let all = async {
            // Polled in order, so sent in order. That a commit says so proves nothing: after a statement that
            // failed it rolls back and calls that a success.
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
    for (index, answer) in answers.into_iter().enumerate() {
        let rows = answer.map_err(|error| Failure::of(&error))?;
        if planned.get(index).is_some_and(|statement| statement.is_beside) {
            continue;
        }
        for row in rows {
            versions.add(&row)?;
        }
    }
    connection.check_commit()?;
    Ok(transaction.steps.iter().map(|step| versions.of(step).unwrap_or(transaction.now)).collect())
}

/// The versions that the statements gave.
#[derive(Default)]
struct Versions {
    /// Of all rows that were inserted.
    inserted: Option<Timestamp>,
    by_row: FxHashMap<Vec<u8>, Timestamp>,
}

impl Versions {
    /// Takes an answer in: of inserts it has two columns, of upserts and updates three, of others one.
    fn add(&mut self, row: &Row) -> Result<(), Failure> {
        let version = |ticks: i64| Timestamp::from_ticks(ticks.cast_unsigned());
        match row.len() {
            2 => self.inserted = column::<Option<i64>>(row, 0)?.map(version),
            3 => {
                let rks: Vec<Vec<u8>> = column(row, 0)?;
                let given: Vec<i64> = column(row, 1)?;
                self.by_row.extend(rks.into_iter().zip(given.into_iter().map(version)));
            }
            _ => {}
        }
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

/// After the connection broke: rows with our token prove that all took effect; without them nobody knows.
async fn confirm(
    line: &mut Line,
    transaction: &Transaction,
    token: i64,
    reason: String,
) -> Result<Vec<Timestamp>, Failure> {
    let puts = transaction.steps.iter().filter(|step| matches!(step.act, Act::Put(_)));
    let puts: Vec<_> = puts.map(|step| (&*transaction.pk, &*step.rk, token)).collect();
    let found: Option<Vec<Timestamp>> = line.confirm(&puts).await.into_iter().collect();
    // A row that was written over meanwhile had a version that nobody can tell any more.
    let Some(found) = found.filter(|found| !found.is_empty()) else { return Err(Failure::Broken(reason)) };
    let mut found = found.into_iter();
    let version = |step: &Step| match step.act {
        Act::Put(_) => found.next().unwrap_or(transaction.now),
        Act::Delete | Act::Check => transaction.now,
    };
    Ok(transaction.steps.iter().map(version).collect())
}

const NOTHING: &[u8] = &[];
const WAITING_MAX: usize = 1000;
