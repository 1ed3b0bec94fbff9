//! Runs a plan: reads its ranges in order, checks what remains of the filter, and ends the page in time.
//!
//! Work is counted in steps, not in rows: a step is a comparison, a property passed over, or some bytes. After
//! [`SLICE_STEPS`] other tasks get their turn; after [`PageLimits::steps_max`] the page ends, short or empty, with a
//! continuation.

use super::plan::Plan;
use crate::contract::{Budget, Engine, Flow, KeyRange, Position, RowRef, SpaceId};
use crate::error::ReadError;
use crate::snapshot::{Reads, Snapshot};
use larimar_model::EntityBody;
use larimar_model::filter::{Predicate, Row};
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
/// Rows that are looked up together at most.
const POINTS_MAX: usize = 256;
/// Rows read past a full page to see whether another one follows, before a continuation is given anyway.
const LOOK_AHEAD_ROWS: u64 = 1000;

/// Passes the rows of a page to `visit`, in key order. The visitor may end the page at a row, which is then
/// the first one of the next page. All rows are of one snapshot.
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
    if limits.entities_max == 0 || plan.ranges.is_empty() {
        return Ok(Page::default());
    }
    let points = plan.ranges.iter().map(KeyRange::as_point).collect::<Option<Vec<_>>>();
    let is_one_read = match &points {
        Some(points) => points.len() <= POINTS_MAX,
        // Without a filter it is known how many rows are needed.
        None => plan.ranges.len() == 1 && plan.residual.is_none(),
    };
    let reads = if is_one_read { Reads::One } else { Reads::Many };
    let snapshot = engine.snapshot(reads, limits.deadline).await?;
    let pager = Pager::new(plan, limits, visit);
    match points {
        Some(points) => query_points(snapshot, table, &points, pager).await,
        None => query_ranges(snapshot, reads, table, &plan.ranges, pager).await,
    }
}

/// Passes the rows of ranges to the page.
async fn query_ranges<V>(
    mut snapshot: impl Snapshot,
    reads: Reads,
    table: SpaceId,
    ranges: &[KeyRange],
    mut pager: Pager<'_, V>,
) -> Result<Page, ReadError>
where
    V: FnMut(&Row<'_>) -> Flow + Send,
{
    let mut slice = SLICE_ROWS_MIN;
    for range in ranges {
        let mut rest = range.clone();
        loop {
            let rows_max = match &pager.residual {
                Some(_) => slice,
                // A row after the last one means that there is another page.
                None => pager.limits.entities_max.saturating_sub(pager.page.rows_returned as usize).saturating_add(1),
            };
            slice = (slice * 2).min(SLICE_ROWS_MAX);
            let budget = Budget { rows_max, deadline: pager.limits.deadline };
            let mut is_stopped = false;
            let scan = snapshot.scan(table, &rest, budget, |row| {
                let flow = pager.step(row);
                is_stopped = flow == Flow::StopHere;
                flow
            });
            let Some(resume) = scan.await? else { break };
            if is_stopped || reads == Reads::One || pager.is_over() {
                return Ok(Page { next: Some(resume), ..pager.page });
            }
            rest.start = resume;
            tokio::task::yield_now().await;
            pager.rest();
        }
        if pager.is_over() && pager.page.rows_read > 0 {
            let next = rest.end.filter(|_| ranges.last() != Some(range));
            return Ok(Page { next, ..pager.page });
        }
        if pager.spend(SCAN_STEPS) == Flow::Pause {
            tokio::task::yield_now().await;
        }
    }
    Ok(pager.page)
}

/// Passes the rows of some keys to the page, in the order of the keys.
async fn query_points<V>(
    mut snapshot: impl Snapshot,
    table: SpaceId,
    keys: &[(&str, &str)],
    mut pager: Pager<'_, V>,
) -> Result<Page, ReadError>
where
    V: FnMut(&Row<'_>) -> Flow + Send,
{
    let mut rest = keys;
    while !rest.is_empty() {
        if pager.page.rows_read > 0 && pager.is_over() {
            break;
        }
        let keys = &rest[..rest.len().min(POINTS_MAX)];
        let budget = Budget { rows_max: usize::MAX, deadline: pager.limits.deadline };
        let resume = snapshot.get_many(table, keys, budget, |row| pager.step(row)).await?;
        rest = &rest[resume.unwrap_or(keys.len())..];
        // The page is full, or the engine has sent as much as a page may have.
        if resume.is_some() {
            break;
        }
    }
    let next = rest.first().map(|(partition, row)| Position::new(*partition, *row));
    Ok(Page { next, ..pager.page })
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
