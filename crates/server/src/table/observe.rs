//! What the handlers of entities report to the insights (`insights/mod.rs`) when a request is done.
//!
//! The pipeline may run a request more than once: it counts once. A run that failed because the table was gone, and is
//! repeated, has no outcome (`Call::outcome`); of a read that is repeated because its answer found no room, the first run
//! counts.

use crate::call::Call;
use crate::error::{Failure, Result};
use crate::insights::{HashKey, OperationKind, Outcome, QueryFigures, TableFigures, WriteFigures};
use larimar_engine::Engine;
use larimar_engine::table::{Page, Plan, QueryKind, Table};
use larimar_model::table::Write;
use larimar_model::{EntityKey, Filter};
use larimar_wire::error_body::ErrorReply;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

impl<E: Engine> Call<'_, E> {
    /// How a run of a request ended; `None` if the pipeline runs it again.
    pub(super) fn outcome<T>(&self, result: &Result<T>) -> Option<Outcome> {
        match result {
            Ok(_) => Some(Outcome::Done),
            Err(failure) if self.lookups.is_outdated(failure.code(self.service)) => None,
            Err(Failure::Reply(error)) => Some(Outcome::of_status(error.status)),
            Err(Failure::SpaceGone) => Some(Outcome::Missing),
        }
    }

    /// Reports a read by both keys.
    pub(super) fn observe_get(&self, table: &Table, key: &EntityKey, outcome: Option<Outcome>, started: Instant) {
        let Some(outcome) = outcome else { return };
        self.observe(table, |figures, hash_key| {
            figures.operation(OperationKind::Get, outcome, started.elapsed());
            figures.get(hash_key, key.partition.as_str(), key.row.as_str(), outcome);
        });
    }

    /// Reports a write of one entity.
    pub(super) fn observe_write(&self, table: &Table, write: &Write, outcome: Option<Outcome>, started: Instant) {
        let Some(outcome) = outcome else { return };
        self.observe(table, |figures, hash_key| {
            let write = write_figures(write, outcome);
            figures.operation(write.kind, outcome, started.elapsed());
            figures.write(hash_key, &write, true);
        });
    }

    /// Reports a transaction: of one that failed, the write that it failed at.
    pub(super) fn observe_transaction<T>(
        &self,
        table: &Table,
        writes: &[Write],
        done: &std::result::Result<T, (usize, ErrorReply)>,
        started: Instant,
    ) {
        let (outcome, writes) = match done {
            Ok(_) => (Outcome::Done, writes),
            Err((_, error)) if self.lookups.is_outdated(error.code) => return,
            Err((index, error)) => (Outcome::of_status(error.status), writes.get(*index..=*index).unwrap_or_default()),
        };
        self.observe(table, |figures, hash_key| {
            figures.operation(OperationKind::Transaction, outcome, started.elapsed());
            for write in writes {
                figures.write(hash_key, &write_figures(write, outcome), false);
            }
        });
    }

    /// Reports a page of a query.
    pub(super) fn observe_query(
        &self,
        table: &Table,
        filter: Option<&Filter>,
        plan: &Plan,
        page: &Page,
        started: Instant,
    ) {
        if self.storage.insights.is_none() {
            return;
        }
        let shape = filter.map(Filter::shape).unwrap_or_default();
        let first = plan.ranges.first().map(|range| (&*range.start.partition, &*range.start.row));
        let is_in_partition = |(partition, _): (&str, &str)| {
            plan.kind != QueryKind::TableScan && plan.ranges.iter().all(|range| range.start.partition == partition)
        };
        let query = QueryFigures {
            plan: plan.kind,
            shape: &shape,
            // A scan of the table is not heat at its beginning.
            start: first.filter(|first| plan.kind != QueryKind::TableScan || *first != ("", "")),
            is_in_partition: first.is_some_and(is_in_partition),
            rows_read: page.rows_read,
            rows_returned: page.rows_returned,
            elapsed: started.elapsed(),
        };
        self.observe(table, |figures, hash_key| {
            figures.operation(OperationKind::Query, Outcome::Done, query.elapsed);
            figures.query(hash_key, &query);
        });
    }

    /// Reports a query that was refused or failed.
    pub(super) fn observe_failed_query(&self, table: &Table, outcome: Option<Outcome>, started: Instant) {
        let Some(outcome) = outcome else { return };
        self.observe(table, |figures, _| figures.operation(OperationKind::Query, outcome, started.elapsed()));
    }

    fn observe(&self, table: &Table, observe: impl FnOnce(&mut TableFigures, HashKey)) {
        if let Some(insights) = &self.storage.insights
            && !self.runs.is_observed.swap(true, Relaxed)
        {
            insights.observe(self.account(), &table.name, observe);
        }
    }
}

fn write_figures(write: &Write, outcome: Outcome) -> WriteFigures<'_> {
    let (kind, body) = match write {
        Write::Insert(entity) => (OperationKind::Insert, Some(entity.body())),
        Write::Replace(entity, _) => (OperationKind::Replace, Some(entity.body())),
        // What is stored is known to the engine only.
        Write::Merge(..) => (OperationKind::Merge, None),
        Write::Delete(..) => (OperationKind::Delete, None),
    };
    let EntityKey { partition, row } = write.key();
    WriteFigures { kind, partition: partition.as_str(), row: row.as_str(), body, outcome }
}
