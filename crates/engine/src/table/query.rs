//! Runs a plan: reads its ranges in order, checks what remains of the filter, and ends the page in time.
//!
//! Work is counted in steps, not in rows: a step is a comparison, a property passed over, or some bytes. After
//! [`SLICE_STEPS`] other tasks get their turn; after [`PageLimits::steps_max`] the page ends, short or empty, with a
//! continuation.

use super::plan::Plan;
use crate::contract::{Budget, Engine, Flow, Key, KeyRange, Position, RowRef, SpaceId};
use crate::error::ReadError;
use futures_util::future::try_join_all;
use larimar_model::filter::{Predicate, Row};
use larimar_model::{EntityBody, Timestamp};
use std::time::Instant;

/// When a page ends.
#[derive(Clone, Copy, Debug)]
pub struct PageLimits {
    /// Entities at most.
    pub entities_max: usize,
    /// When to stop reading.
    pub deadline: Instant,
    /// Steps of work after which the page ends.
    pub steps_max: u64,
}

impl PageLimits {
    /// Steps of work for one page, about half a second of them.
    pub const STEPS_MAX: u64 = 50_000_000;
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
    /// Steps of work: comparisons, properties passed over, and bytes.
    pub steps: u64,
    /// The most steps that were done before other tasks got their turn.
    pub slice_steps_max: u64,
}

/// Steps after which other tasks get their turn: well below a millisecond. A single row may go beyond.
pub const SLICE_STEPS: u64 = 50_000;

/// Steps of starting a scan.
const SCAN_STEPS: u64 = 32;
/// Bytes of a row that is handed on, which cost a step.
const VISITED_BYTES: u64 = 8;
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
    visit: impl FnMut(&Row<'_>) -> Flow + Send,
) -> Result<Page, ReadError> {
    let mut pager = Pager::new(plan, limits, visit);
    if limits.entities_max == 0 {
        return Ok(pager.page);
    }
    if E::IS_SHARED
        && plan.ranges.len() > 1
        && let Some(keys) = plan.ranges.iter().map(KeyRange::as_point).collect::<Option<Vec<_>>>()
    {
        return query_points(engine, table, &keys, pager).await;
    }
    let mut slice = SLICE_ROWS_MIN;
    for range in &plan.ranges {
        let mut rest = range.clone();
        loop {
            let rows_max = match &plan.residual {
                Some(_) => slice,
                // The row after the last one tells that there is another page.
                None => limits.entities_max.saturating_sub(pager.page.rows_returned as usize).saturating_add(1),
            };
            let budget = Budget { rows_max: rows_max.min(SLICE_ROWS_MAX), deadline: limits.deadline };
            slice = (slice * 2).min(SLICE_ROWS_MAX);
            let mut is_stopped = false;
            let resume = engine
                .scan(table, &rest, budget, |row| {
                    let flow = pager.step(row);
                    is_stopped = flow == Flow::StopHere;
                    flow
                })
                .await?;
            let Some(resume) = resume else { break };
            if is_stopped || pager.is_over() {
                return Ok(Page { next: Some(resume), ..pager.page });
            }
            rest.start = resume;
            tokio::task::yield_now().await;
            pager.rest();
        }
        if pager.is_over() && pager.page.rows_read > 0 {
            let next = rest.end.filter(|_| plan.ranges.last() != Some(range));
            return Ok(Page { next, ..pager.page });
        }
        if pager.spend(SCAN_STEPS) == Flow::Pause {
            tokio::task::yield_now().await;
        }
    }
    Ok(pager.page)
}

/// Hands the rows of some keys to the page, in the order of the keys.
async fn query_points<V>(
    engine: &impl Engine,
    table: SpaceId,
    keys: &[(&str, &str)],
    mut pager: Pager<'_, V>,
) -> Result<Page, ReadError>
where
    V: FnMut(&Row<'_>) -> Flow + Send,
{
    for keys in keys.chunks(POINTS_MAX) {
        if pager.page.rows_read > 0 && pager.is_over() {
            let next = keys.first().map(|(partition, row)| Position::new(*partition, *row));
            return Ok(Page { next, ..pager.page });
        }
        for (partition, row, found) in look_up(engine, table, keys).await? {
            let Some((version, body)) = found else { continue };
            match pager.step(RowRef { partition, row, version, body: &body }) {
                Flow::Continue => {}
                Flow::Pause => tokio::task::yield_now().await,
                Flow::StopHere => return Ok(Page { next: Some(Position::new(partition, row)), ..pager.page }),
            }
        }
    }
    Ok(pager.page)
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

/// A page under way.
struct Pager<'p, V> {
    residual: Option<Predicate<'p>>,
    limits: PageLimits,
    page: Page,
    /// How many rows had been read when the page was full.
    full_at: Option<u64>,
    /// Steps since other tasks had their turn.
    slice: u64,
    visit: V,
}

impl<'p, V: FnMut(&Row<'_>) -> Flow> Pager<'p, V> {
    fn new(plan: &'p Plan, limits: PageLimits, visit: V) -> Self {
        let residual = plan.residual.as_ref().map(Predicate::new);
        Self { residual, limits, page: Page::default(), full_at: None, slice: 0, visit }
    }

    /// Whether the page has to end, whatever is left.
    fn is_over(&self) -> bool {
        self.page.steps >= self.limits.steps_max || Instant::now() >= self.limits.deadline
    }

    /// What the page does with one row.
    fn step(&mut self, row: RowRef<'_>) -> Flow {
        if self.page.steps >= self.limits.steps_max && self.page.rows_read > 0 {
            return Flow::StopHere;
        }
        self.page.rows_read += 1;
        if self.full_at.is_some_and(|at| self.page.rows_read - at > LOOK_AHEAD_ROWS) {
            return Flow::StopHere;
        }
        let (mut steps, bytes) = (1, row.body.len() as u64);
        let row = Row {
            partition: row.partition,
            row: row.row,
            version: row.version,
            body: EntityBody::from_trusted(row.body),
        };
        let is_admitted = self.residual.as_ref().is_none_or(|residual| residual.admits(&row, &mut steps));
        if is_admitted {
            // A page that is full ends at the next row that belongs to the answer; if none follows, there is no
            // continuation (recorded: none after the last entity, even on a page of exactly `$top`).
            if self.full_at.is_some() || (self.visit)(&row) == Flow::StopHere {
                return Flow::StopHere;
            }
            steps += bytes / VISITED_BYTES;
            self.page.rows_returned += 1;
            if self.page.rows_returned >= self.limits.entities_max as u64 {
                self.full_at = Some(self.page.rows_read);
            }
        }
        self.spend(steps)
    }

    /// Counts work; `Pause` when other tasks should have their turn.
    fn spend(&mut self, steps: u64) -> Flow {
        self.page.steps += steps;
        self.slice += steps;
        self.page.slice_steps_max = self.page.slice_steps_max.max(self.slice);
        if self.slice < SLICE_STEPS {
            return Flow::Continue;
        }
        self.rest();
        Flow::Pause
    }

    /// Other tasks have had their turn.
    const fn rest(&mut self) {
        self.slice = 0;
    }
}
