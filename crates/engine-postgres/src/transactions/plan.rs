//! The statements of a transaction.

use super::{Act, SideRows, Step, Transaction};
use crate::statements::{DELETE_ALL, DELETE_ANY, GUARD_PRESENT, GUARD_SPACE, INSERT_ALL, LOCK, UPDATE_ALL, UPSERT_ALL};
use larimar_engine::Expect;
use tokio_postgres::types::ToSql;

/// A statement with its parameters.
pub(super) struct Planned<'a> {
    pub(super) sql: &'static str,
    pub(super) parameters: Vec<Box<dyn ToSql + Sync + Send + 'a>>,
    /// Whether it writes rows of the other partition, whose versions nobody asks for.
    pub(super) is_beside: bool,
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
pub(super) fn plan(transaction: &Transaction) -> Vec<Planned<'_>> {
    let Transaction { space, pk, steps, beside, token, .. } = transaction;
    let token = *token;
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

const NOTHING: &[u8] = &[];
