//! The suite is worth something only if it fails where an engine does: each defect here is caught by the promise
//! that names it, and the same engine without the defect keeps all of them.

use larimar_engine::queue::{Message, MessageError, MessageHandle, Messages as _};
use larimar_engine::{
    Act, Beside, Budget, Expect, Fault, Flow, Key, KeyRange, MemoryEngine, MemorySnapshot, Op, Position, ReadError,
    Reads, RowRef, Rows as _, Snapshot, SpaceId, WriteError,
};
use larimar_model::Timestamp;
use larimar_testkit::engine::layer::{Layer, Layered};
use larimar_testkit::engine::{concurrency, conditions, messages, order, pages, scans, spaces, versions};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    None,
    /// Writes operations one by one.
    NotAtomic,
    /// Takes every condition for met.
    NoConditions,
    /// Edits what was read before the write.
    LostUpdate,
    /// Gives the version that the clock says.
    ClockVersions,
    /// Reads a range row by row, each at its own moment.
    NoSnapshot,
    /// Reads each range of a snapshot at its own moment.
    TornSnapshot,
    /// Resumes after the row that a scan stopped at.
    SkipsStopRow,
    /// Visits one row more than the budget.
    IgnoresBudget,
    /// Takes writes to spaces that are gone.
    WritesToDropped,
    /// Puts the end of a range inside.
    ClosedRanges,
    /// Gives messages to every consumer, and hides none.
    SharesMessages,
    /// Hides messages a tick too long.
    HidesTooLong,
    /// Deletes by any receipt.
    AnyReceipt,
}

struct Broken {
    inner: Arc<MemoryEngine>,
    defect: Defect,
    /// The number of writes so far.
    writes: Arc<AtomicU64>,
}

impl Broken {
    fn new(defect: Defect) -> Arc<Layered<Self>> {
        Arc::new(Layered(Self { inner: Arc::new(MemoryEngine::new()), defect, writes: Arc::default() }))
    }

    async fn lose_update(
        &self,
        space: SpaceId,
        partition: &str,
        op: &Op<'_>,
        now: Timestamp,
    ) -> Result<Vec<Timestamp>, WriteError> {
        let Act::Edit(edit) = op.act else { return self.inner.apply(space, partition, &[*op], now).await };
        let old = self.inner.get(Key { space, partition, row: op.row }, |row| row.map(|row| row.body.to_vec())).await?;
        tokio::task::yield_now().await;
        std::thread::yield_now();
        let new = edit(old.as_deref()).map_err(|reason| WriteError::Refused { op: 0, reason })?;
        self.inner.apply(space, partition, &[Op { act: Act::Put(&new), ..*op }], now).await
    }
}

/// A snapshot, or one that is another at every read.
struct BrokenSnapshot {
    engine: Arc<MemoryEngine>,
    whole: Option<MemorySnapshot>,
    writes: Arc<AtomicU64>,
}

/// How long a torn snapshot waits for a write between two of its reads.
const WRITE_WAIT_MAX: Duration = Duration::from_millis(300);

impl BrokenSnapshot {
    async fn now(&self, budget: Budget) -> Result<MemorySnapshot, Fault> {
        match &self.whole {
            Some(whole) => Ok(whole.clone()),
            None => {
                // A busy machine may not run the writer for a while. The first write that is counted from now on may
                // have been applied before; the second was not.
                let (before, until) = (self.writes.load(Ordering::SeqCst), Instant::now() + WRITE_WAIT_MAX);
                while self.writes.load(Ordering::SeqCst) < before + 2 && Instant::now() < until {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                self.engine.snapshot(Reads::One, budget.deadline).await
            }
        }
    }
}

impl Snapshot for BrokenSnapshot {
    async fn scan(
        &mut self,
        space: SpaceId,
        range: &KeyRange,
        budget: Budget,
        visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<Position>, ReadError> {
        self.now(budget).await?.scan(space, range, budget, visit).await
    }

    async fn get_many(
        &mut self,
        space: SpaceId,
        keys: &[(&str, &str)],
        budget: Budget,
        mut visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<usize>, ReadError> {
        if let Some(whole) = &mut self.whole {
            return whole.get_many(space, keys, budget, visit).await;
        }
        for (index, key) in keys.iter().enumerate() {
            if self.now(budget).await?.get_many(space, &[*key], budget, &mut visit).await?.is_some() {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }
}

impl Layer for Broken {
    type Below = MemoryEngine;
    type Snapshot = BrokenSnapshot;

    fn below(&self) -> &MemoryEngine {
        &self.inner
    }

    async fn snapshot(&self, reads: Reads, deadline: Instant) -> Result<BrokenSnapshot, Fault> {
        let whole = match self.defect {
            Defect::TornSnapshot => None,
            _ => Some(self.inner.snapshot(reads, deadline).await?),
        };
        Ok(BrokenSnapshot { engine: Arc::clone(&self.inner), whole, writes: Arc::clone(&self.writes) })
    }

    async fn scan(
        &self,
        space: SpaceId,
        range: &KeyRange,
        budget: Budget,
        mut visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<Position>, ReadError> {
        let mut range = range.clone();
        let mut budget = budget;
        match self.defect {
            Defect::ClosedRanges => {
                if let Some(end) = &mut range.end {
                    end.row.push('\0');
                }
            }
            Defect::IgnoresBudget => budget.rows_max = budget.rows_max.saturating_add(1),
            Defect::NoSnapshot => {
                for _ in 0..budget.rows_max.max(1) {
                    let one = Budget { rows_max: 1, ..budget };
                    let next = self.inner.scan(space, &range, one, &mut visit).await?;
                    let Some(next) = next else { return Ok(None) };
                    range.start = next;
                    std::thread::yield_now();
                }
                return Ok(Some(range.start));
            }
            _ => {}
        }
        let resume = self.inner.scan(space, &range, budget, visit).await?;
        Ok(resume.map(|mut place| {
            if self.defect == Defect::SkipsStopRow {
                place.row.push('\0');
            }
            place
        }))
    }

    async fn apply_with(
        &self,
        space: SpaceId,
        partition: &str,
        ops: &[Op<'_>],
        beside: &[Beside<'_>],
        now: Timestamp,
    ) -> Result<Vec<Timestamp>, WriteError> {
        let outcome = match self.defect {
            Defect::NotAtomic => {
                let mut versions = Vec::new();
                for (index, op) in ops.iter().enumerate() {
                    let done = self.inner.apply(space, partition, &[*op], now).await;
                    versions.extend(done.map_err(|error| match error {
                        WriteError::Condition { found, .. } => WriteError::Condition { op: index, found },
                        WriteError::Refused { reason, .. } => WriteError::Refused { op: index, reason },
                        other => other,
                    })?);
                    std::thread::yield_now();
                }
                Ok(versions)
            }
            Defect::NoConditions => {
                let ops: Vec<Op<'_>> = ops.iter().map(|op| Op { expect: Expect::Any, ..*op }).collect();
                self.inner.apply_with(space, partition, &ops, beside, now).await
            }
            Defect::LostUpdate if ops.len() == 1 => self.lose_update(space, partition, &ops[0], now).await,
            Defect::ClockVersions => {
                self.inner.apply_with(space, partition, ops, beside, now).await.map(|all| vec![now; all.len()])
            }
            Defect::WritesToDropped => match self.inner.apply_with(space, partition, ops, beside, now).await {
                Err(WriteError::SpaceGone) => Ok(vec![now; ops.len()]),
                other => other,
            },
            _ => self.inner.apply_with(space, partition, ops, beside, now).await,
        };
        self.writes.fetch_add(1, Ordering::SeqCst);
        outcome
    }

    async fn claim(
        &self,
        queue: SpaceId,
        max: usize,
        hidden_for: Duration,
        now: Timestamp,
    ) -> Result<Vec<Message>, WriteError> {
        match self.defect {
            Defect::SharesMessages => Ok(self.inner.peek(queue, max, now).await?),
            Defect::HidesTooLong => self.inner.claim(queue, max, hidden_for + Duration::from_nanos(100), now).await,
            _ => self.inner.claim(queue, max, hidden_for, now).await,
        }
    }

    async fn delete_message(&self, queue: SpaceId, handle: MessageHandle, now: Timestamp) -> Result<(), MessageError> {
        match self.inner.delete_message(queue, handle, now).await {
            Err(MessageError::ReceiptMismatch) if self.defect == Defect::AnyReceipt => Ok(()),
            other => other,
        }
    }
}

/// Whether a promise fails on an engine with this defect.
macro_rules! catches {
    ($defect:expr, $($promise:path),+) => {
        $({
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            let runtime = runtime.expect("a runtime starts");
            let engine = Broken::new($defect);
            let kept = catch_unwind(AssertUnwindSafe(|| runtime.block_on($promise(&*engine))));
            assert!(kept.is_err(), "{} does not catch {:?}", stringify!($promise), $defect);
        })+
    };
}

#[test]
fn a_batch_written_piece_by_piece_is_caught() {
    catches!(
        Defect::NotAtomic,
        conditions::a_failed_condition_leaves_nothing_of_the_batch,
        conditions::a_refused_edit_names_its_reason_and_leaves_nothing,
        conditions::rows_beside_a_batch_are_written_with_it_or_not_at_all
    );
}

#[test]
fn ignored_conditions_are_caught() {
    catches!(
        Defect::NoConditions,
        conditions::rows_beside_a_batch_are_written_with_it_or_not_at_all,
        conditions::absent_admits_only_a_missing_row,
        conditions::present_admits_only_an_existing_row,
        conditions::a_version_admits_only_that_version,
        conditions::the_first_failing_condition_is_named,
        concurrency::one_of_many_concurrent_inserts_wins
    );
}

#[test]
fn lost_updates_are_caught() {
    catches!(Defect::LostUpdate, concurrency::concurrent_edits_of_one_row_lose_no_update);
}

#[test]
fn versions_by_the_clock_alone_are_caught() {
    catches!(
        Defect::ClockVersions,
        versions::versions_increase_when_the_clock_stands_still,
        versions::versions_increase_when_the_clock_jumps_back,
        versions::versions_increase_over_delete_and_insert
    );
}

#[test]
fn a_scan_over_several_moments_is_caught() {
    catches!(Defect::NoSnapshot, concurrency::a_scan_is_one_snapshot);
}

#[test]
fn a_page_over_several_moments_is_caught() {
    catches!(
        Defect::TornSnapshot,
        pages::a_page_over_several_ranges_is_one_moment,
        pages::a_page_that_filters_many_rows_is_one_moment,
        pages::a_page_of_points_is_one_moment,
        pages::a_snapshot_that_is_read_in_pieces_is_one_moment,
        pages::a_snapshot_shows_what_was_acknowledged_before_and_nothing_later,
        pages::pages_of_random_filters_are_one_moment
    );
}

#[test]
fn wrong_places_to_resume_are_caught() {
    catches!(
        Defect::SkipsStopRow,
        scans::a_scan_that_stops_resumes_at_the_row_it_stopped_at,
        scans::a_row_budget_is_kept_and_resumed_without_gap_or_repeat
    );
    catches!(Defect::IgnoresBudget, scans::a_row_budget_is_kept_and_resumed_without_gap_or_repeat);
}

#[test]
fn writes_to_dropped_spaces_are_caught() {
    catches!(
        Defect::WritesToDropped,
        spaces::writes_to_a_dropped_space_are_refused,
        concurrency::no_write_succeeds_after_a_drop_is_acknowledged
    );
}

#[test]
fn ranges_that_hold_their_end_are_caught() {
    catches!(Defect::ClosedRanges, order::ranges_hold_their_start_but_not_their_end);
}

#[test]
fn messages_that_are_shared_hidden_too_long_or_deleted_by_any_receipt_are_caught() {
    catches!(
        Defect::SharesMessages,
        messages::a_claimed_message_is_visible_again_exactly_when_its_time_is_over,
        messages::many_consumers_get_every_message_once,
        messages::the_dequeue_count_counts_claims_only
    );
    catches!(Defect::HidesTooLong, messages::a_claimed_message_is_visible_again_exactly_when_its_time_is_over);
    catches!(
        Defect::AnyReceipt,
        messages::a_receipt_dies_when_the_message_is_claimed_again,
        messages::a_stale_receipt_is_told_from_a_missing_message
    );
}

/// The wrapper alone breaks nothing: a wrapped engine is an engine.
mod wrapped {
    use super::{Broken, Defect};
    larimar_testkit::engine_conformance!(Broken::new(Defect::None));
}
