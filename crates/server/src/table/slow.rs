//! The log of slow and of wasteful queries: with the shape of the filter, and without any of its literals.
//!
//! A query that runs again and again is logged once a minute, and all queries together a bounded number of times, so that
//! clients cannot fill the disk. All of them are counted in `larimar_slow_queries_total`.

use crate::call::Call;
use crate::fault_log::Limits;
use crate::settings::Settings;
use larimar_engine::Engine;
use larimar_engine::table::QueryKind;
use larimar_model::Filter;
use parking_lot::Mutex;
use std::time::Duration;

/// A query that was answered.
#[derive(Debug)]
pub(super) struct AnsweredQuery<'a> {
    pub(super) table: &'a str,
    pub(super) filter: Option<&'a Filter>,
    pub(super) kind: QueryKind,
    pub(super) rows_read: u64,
    pub(super) rows_returned: u64,
    pub(super) elapsed: Duration,
}

impl AnsweredQuery<'_> {
    /// Counts and perhaps logs the query, if it is over a threshold.
    pub(super) fn report<E: Engine>(&self, call: &Call<'_, E>) {
        let Some(reason) = self.reason(&call.storage.settings) else { return };
        call.storage.metrics.slow_query(reason != Reason::Rows, reason != Reason::Time);
        let (account, table, plan) = (call.account(), self.table, self.kind.name());
        let filter = self.filter.map(Filter::shape).unwrap_or_default();
        let Some(left_out) = LIMITS.lock().admit(&format!("{account} {table} {filter}")) else { return };
        let (rows_read, rows_returned, id) = (self.rows_read, self.rows_returned, call.request_id);
        let ms = u64::try_from(self.elapsed.as_millis()).unwrap_or(u64::MAX);
        let reason = reason.as_str();
        tracing::warn!(id, account, table, plan, filter, rows_read, rows_returned, ms, reason, left_out, "slow query");
    }

    fn reason(&self, settings: &Settings) -> Option<Reason> {
        let Settings { slow_query_time, slow_query_ratio, .. } = settings;
        let is_slow = !slow_query_time.is_zero() && self.elapsed >= *slow_query_time;
        let rows_max = slow_query_ratio.saturating_mul(self.rows_returned.max(1)).max(ROWS_READ_MIN);
        let is_wasteful = *slow_query_ratio > 0 && self.rows_read >= rows_max;
        match (is_slow, is_wasteful) {
            (true, true) => Some(Reason::Both),
            (true, false) => Some(Reason::Time),
            (false, true) => Some(Reason::Rows),
            (false, false) => None,
        }
    }
}

/// Which threshold a query is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Time,
    Rows,
    Both,
}

impl Reason {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Rows => "rows",
            Self::Both => "time and rows",
        }
    }
}

/// A query that reads fewer rows is never wasteful, whatever it returns.
const ROWS_READ_MIN: u64 = 1000;

/// Different queries, by account, table and shape, that have a line of their own each minute.
const QUERIES_MAX: usize = 16;

static LIMITS: Mutex<Limits> = Mutex::new(Limits::new(QUERIES_MAX));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_of_time_and_of_rows_read_for_a_row_returned() {
        let reason = |settings: &Settings, rows_read, rows_returned, ms| {
            let elapsed = Duration::from_millis(ms);
            let kind = QueryKind::TableScan;
            AnsweredQuery { table: "people", filter: None, kind, rows_read, rows_returned, elapsed }.reason(settings)
        };
        let defaults = Settings::default();
        for (rows_read, rows_returned, ms, expected) in [
            (1, 1, 999, None),
            (1, 1, 1000, Some(Reason::Time)),
            (999, 0, 1, None),
            (1000, 0, 1, Some(Reason::Rows)),
            (1000, 1, 1, Some(Reason::Rows)),
            (1000, 2, 1, None),
            (100_000, 1000, 1, None),
            (1_000_000, 1000, 1, Some(Reason::Rows)),
            (5000, 5, 2000, Some(Reason::Both)),
        ] {
            assert_eq!(reason(&defaults, rows_read, rows_returned, ms), expected, "{rows_read} {rows_returned} {ms}");
        }
        let off = Settings { slow_query_time: Duration::ZERO, slow_query_ratio: 0, ..Settings::default() };
        assert_eq!(reason(&off, u64::MAX, 0, u64::MAX), None);
        let strict = Settings { slow_query_ratio: 1, ..Settings::default() };
        assert_eq!(reason(&strict, 999, 1, 1), None, "a small scan");
        assert_eq!(reason(&strict, 1000, 999, 1), Some(Reason::Rows));
        let most = Settings { slow_query_ratio: u64::MAX, ..Settings::default() };
        assert_eq!(reason(&most, u64::MAX - 1, 2, 1), None);
    }
}
