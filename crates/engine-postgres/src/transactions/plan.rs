//! The statements of a transaction.

use super::{Act, SideRows, Step, Transaction, Versions};
use crate::failure::Failure;
use crate::statements::Statement;
use crate::statements::transactions::{
    DeleteAll, DeleteAny, GuardPresent, GuardSpace, InsertAll, LockRows, UpdateAll, UpsertAll,
};
use larimar_engine::Expect;
use tokio_postgres::Row;

/// A statement, and how versions are read from its answer.
pub(super) struct Planned<'a> {
    pub(super) statement: Box<dyn Statement + 'a>,
    pub(super) learn: fn(&mut Versions, Row) -> Result<(), Failure>,
}

impl<'a> Planned<'a> {
    fn new(statement: impl Statement + 'a, learn: fn(&mut Versions, Row) -> Result<(), Failure>) -> Self {
        Self { statement: Box::new(statement), learn }
    }

    /// A statement that stores no row whose version the caller gets.
    fn silent(statement: impl Statement + 'a) -> Self {
        Self::new(statement, |_, _| Ok(()))
    }
}

/// The statements of a transaction, in the order in which they run. A row that must be absent is stored and deleted
/// again: until the end of the transaction no other session can store it.
pub(super) fn plan(transaction: &Transaction) -> Vec<Planned<'_>> {
    let Transaction { space, pk, steps, beside, token, .. } = transaction;
    let (space, token, pk) = (*space, *token, pk.as_slice());
    let mut groups = Groups::default();
    for step in steps {
        groups.add(step);
    }
    // A statement that stores rows checks the space itself.
    let stores =
        ![&groups.absent, &groups.inserts, &groups.upserts, &groups.updates].iter().all(|rows| rows.is_empty());
    let mut planned = Vec::new();
    if !stores {
        planned.push(Planned::silent(GuardSpace { space }));
    }
    planned.extend(
        groups.absent.with(|Rows { rks, bodies, count, .. }| {
            Planned::silent(InsertAll { pk, token, rks, bodies, space, count })
        }),
    );
    planned.extend(groups.absent.with(|Rows { rks, .. }| Planned::silent(DeleteAny { pk, rks })));
    planned.extend(
        groups
            .present
            .with(|Rows { rks, expected, count, .. }| Planned::silent(GuardPresent { pk, rks, expected, count })),
    );
    planned.extend(groups.inserts.with(|Rows { rks, bodies, count, .. }| {
        Planned::new(InsertAll { pk, token, rks, bodies, space, count }, Versions::add_inserted)
    }));
    planned.extend(groups.upserts.with(|Rows { rks, bodies, count, .. }| {
        Planned::new(UpsertAll { pk, token, rks, bodies, space, count }, Versions::add_stored)
    }));
    planned.extend(groups.updates.with(|Rows { rks, bodies, count, expected }| {
        Planned::new(UpdateAll { pk, token, rks, bodies, space, count, expected }, Versions::add_stored)
    }));
    planned.extend(
        groups
            .deletes
            .with(|Rows { rks, expected, count, .. }| Planned::silent(DeleteAll { pk, rks, expected, count })),
    );
    planned.extend(groups.blind_deletes.with(|Rows { rks, .. }| Planned::silent(DeleteAny { pk, rks })));
    planned.extend(beside_statements(beside, space, token));
    if planned.len() > 1 {
        let mut rks: Vec<&[u8]> = steps.iter().map(|step| step.rk.as_slice()).collect();
        rks.sort_unstable();
        planned.insert(0, Planned::silent(LockRows { pk, rks }));
    }
    planned
}

/// The statements for rows of the other partition, whose versions no caller asks for.
fn beside_statements(beside: &SideRows, space: i64, token: i64) -> impl Iterator<Item = Planned<'_>> {
    let SideRows { pk, puts, deletes } = beside;
    let put = (!puts.is_empty()).then(|| {
        let rks = puts.iter().map(|(rk, _)| rk.as_slice()).collect();
        let bodies = puts.iter().map(|(_, body)| body.as_slice()).collect();
        Planned::silent(UpsertAll { pk, token, rks, bodies, space, count: puts.len() as i64 })
    });
    let delete = (!deletes.is_empty()).then(|| {
        let rks = deletes.iter().map(Vec::as_slice).collect();
        Planned::silent(DeleteAny { pk, rks })
    });
    put.into_iter().chain(delete)
}

/// Steps by the statement that carries them out.
#[derive(Default)]
struct Groups<'a> {
    inserts: Group<'a>,
    upserts: Group<'a>,
    updates: Group<'a>,
    deletes: Group<'a>,
    blind_deletes: Group<'a>,
    present: Group<'a>,
    absent: Group<'a>,
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
        group.0.push((&step.rk, body, expected));
    }
}

/// The rows of one statement: rk, body, and expected version or -1.
#[derive(Default)]
struct Group<'a>(Vec<(&'a [u8], &'a [u8], i64)>);

/// The same as columns, in the order of the rks.
struct Rows<'a> {
    rks: Vec<&'a [u8]>,
    bodies: Vec<&'a [u8]>,
    expected: Vec<i64>,
    count: i64,
}

impl<'a> Group<'a> {
    const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Makes a statement of the rows, if there are any.
    fn with(&self, statement: impl FnOnce(Rows<'a>) -> Planned<'a>) -> Option<Planned<'a>> {
        let mut rows = self.0.clone();
        rows.sort_unstable();
        let columns = Rows {
            rks: rows.iter().map(|(rk, _, _)| *rk).collect(),
            bodies: rows.iter().map(|(_, body, _)| *body).collect(),
            expected: rows.iter().map(|(_, _, expected)| *expected).collect(),
            count: rows.len() as i64,
        };
        (!rows.is_empty()).then(|| statement(columns))
    }
}

const NOTHING: &[u8] = &[];
