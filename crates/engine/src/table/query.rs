//! Runs a plan: reads its ranges in order, checks what remains of the filter, and ends the page in time.

use super::plan::Plan;
use crate::contract::{Budget, Engine, Flow, Key, KeyRange, Position, RowRef, SpaceId};
use crate::error::ReadError;
use futures_util::future::try_join_all;
use larimar_model::{EntityBody, Filter, Timestamp, filter};
use std::future::poll_fn;
use std::task::Poll;
use std::time::Instant;

/// When a page ends.
#[derive(Clone, Copy, Debug)]
pub struct PageLimits {
    /// Entities at most.
    pub entities_max: usize,
    /// When to stop reading.
    pub deadline: Instant,
}

/// What a page was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Where the next page starts, if there may be more.
    pub next: Option<Position>,
    /// Rows that were read.
    pub rows_read: u64,
    /// Rows that were returned.
    pub rows_returned: u64,
}

/// Rows read in one go before other requests get their turn, at first and at most, where it is not known how many of
/// them the filter admits. An engine may ask a database for all of them at once.
const SLICE_ROWS_MIN: usize = 256;
const SLICE_ROWS_MAX: usize = 4096;
/// Rows that are looked up together at most; each may be a megabyte.
const POINTS_MAX: usize = 32;
/// Rows read past a full page to see whether another one follows, before a continuation is given anyway.
const LOOK_AHEAD_ROWS: u64 = 1000;

/// Hands the rows of a page to `visit`, in key order. The visitor may end the page at a row, which is then
/// the first one of the next page.
///
/// # Errors
/// Faults of the engine, or that the table is gone.
pub async fn query<E: Engine>(
    engine: &E,
    table: SpaceId,
    plan: &Plan,
    limits: PageLimits,
    mut visit: impl FnMut(&filter::Row<'_>) -> Flow + Send,
) -> Result<Page, ReadError> {
    let mut page = Page::default();
    if limits.entities_max == 0 {
        return Ok(page);
    }
    let mut full_at = None;
    if E::IS_SHARED
        && plan.ranges.len() > 1
        && let Some(keys) = plan.ranges.iter().map(KeyRange::as_point).collect::<Option<Vec<_>>>()
    {
        return query_points(engine, table, &keys, plan.residual.as_ref(), limits, visit).await;
    }
    let mut slice = SLICE_ROWS_MIN;
    for range in &plan.ranges {
        let mut rest = range.clone();
        loop {
            let rows_max = match &plan.residual {
                Some(_) => slice,
                // The row after the last one tells that there is another page.
                None => limits.entities_max.saturating_sub(page.rows_returned as usize).saturating_add(1),
            };
            let budget = Budget { rows_max: rows_max.min(SLICE_ROWS_MAX), deadline: limits.deadline };
            slice = (slice * 2).min(SLICE_ROWS_MAX);
            let mut is_stopped = false;
            let resume = engine
                .scan(table, &rest, budget, |row| {
                    let flow = step(row, plan.residual.as_ref(), limits, &mut page, &mut full_at, &mut visit);
                    is_stopped = flow == Flow::StopHere;
                    flow
                })
                .await?;
            let Some(resume) = resume else { break };
            if is_stopped || Instant::now() >= limits.deadline {
                page.next = Some(resume);
                return Ok(page);
            }
            rest.start = resume;
            yield_now().await;
        }
        if Instant::now() >= limits.deadline && page.rows_read > 0 {
            page.next = rest.end.filter(|_| plan.ranges.last() != Some(range));
            return Ok(page);
        }
    }
    Ok(page)
}

/// Hands the rows of some keys to `visit`, in the order of the keys.
async fn query_points(
    engine: &impl Engine,
    table: SpaceId,
    keys: &[(&str, &str)],
    residual: Option<&Filter>,
    limits: PageLimits,
    mut visit: impl FnMut(&filter::Row<'_>) -> Flow + Send,
) -> Result<Page, ReadError> {
    let (mut page, mut full_at) = (Page::default(), None);
    for keys in keys.chunks(POINTS_MAX) {
        let is_late = page.rows_read > 0 && Instant::now() >= limits.deadline;
        if is_late {
            page.next = keys.first().map(|(partition, row)| Position::new(*partition, *row));
            return Ok(page);
        }
        for (partition, row, found) in look_up(engine, table, keys).await? {
            let Some((version, body)) = found else { continue };
            let found = RowRef { partition, row, version, body: &body };
            if step(found, residual, limits, &mut page, &mut full_at, &mut visit) == Flow::StopHere {
                page.next = Some(Position::new(partition, row));
                return Ok(page);
            }
        }
    }
    Ok(page)
}

/// Reads rows together, so that an engine far away is asked once.
async fn look_up<'a>(
    engine: &impl Engine,
    space: SpaceId,
    keys: &[(&'a str, &'a str)],
) -> Result<Vec<(&'a str, &'a str, Option<(Timestamp, Vec<u8>)>)>, ReadError> {
    let reads = keys.iter().map(async |&(partition, row)| {
        let copied =
            engine.get(Key { space, partition, row }, |found| found.map(|row| (row.version, row.body.to_vec())));
        Ok((partition, row, copied.await?))
    });
    try_join_all(reads).await
}

/// What the page does with one row.
fn step(
    row: RowRef<'_>,
    residual: Option<&Filter>,
    limits: PageLimits,
    page: &mut Page,
    full_at: &mut Option<u64>,
    visit: &mut impl FnMut(&filter::Row<'_>) -> Flow,
) -> Flow {
    page.rows_read += 1;
    if full_at.is_some_and(|at| page.rows_read - at > LOOK_AHEAD_ROWS) {
        return Flow::StopHere;
    }
    let row = filter::Row {
        partition: row.partition,
        row: row.row,
        version: row.version,
        body: EntityBody::from_trusted(row.body),
    };
    if residual.is_some_and(|filter| !filter.admits(&row)) {
        return Flow::Continue;
    }
    // A page that is full ends at the next row that belongs to the answer; if none follows, there is no
    // continuation (recorded: none after the last entity, even on a page of exactly `$top`).
    if full_at.is_some() || visit(&row) == Flow::StopHere {
        return Flow::StopHere;
    }
    page.rows_returned += 1;
    if page.rows_returned >= limits.entities_max as u64 {
        *full_at = Some(page.rows_read);
    }
    Flow::Continue
}

/// Lets other tasks of the runtime run.
async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if has_yielded {
            return Poll::Ready(());
        }
        has_yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
