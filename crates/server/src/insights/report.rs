//! The report of an account's insights: the stored rows of all servers and what this one has not stored yet, as JSON.

use super::Insights;
use super::account::AccountFigures;
use super::frequent::Tracked;
use super::key_ranges::{Heat, HeatRange, KeyRanges, Place};
use super::latencies::Latencies;
use super::peaks::{Peak, Peaks};
use super::rows::{self, Resolution, Slot};
use super::table::{
    EntitySizes, InsertOrder, OperationFigures, OperationKind, PartitionFigures, ShapeCounts, ShapeFigures,
    TableFigures,
};
use larimar_advisor::report::{
    CountsReport, EntitiesReport, FollowedReport, HeatReport, OperationReport, OrderReport, PartitionReport,
    PeakReport, RangeReport, Report, ShapeReport, SizeReport, TableReport,
};
use larimar_engine::{Engine, Fault};
use larimar_model::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// Which insights to report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReportQuery {
    pub(crate) account: String,
    /// Only this table, with its heat over time.
    pub(crate) table: Option<String>,
    /// From the slot of this time on. Without, of the last day.
    pub(crate) since: Option<Timestamp>,
}

/// Collects the figures and writes them.
pub(crate) async fn report(
    insights: &Insights,
    engine: &impl Engine,
    query: &ReportQuery,
    now: Timestamp,
) -> Result<Report, Fault> {
    let _alone = insights.reports.lock().await;
    let since = query.since.unwrap_or_else(|| now.before(DAY)).min(now);
    let resolution = match since.after(Resolution::Minute.retention()) >= now {
        true => Resolution::Minute,
        false => Resolution::Hour,
    };
    let first = resolution.slot(since.max(now.before(resolution.retention())));
    let mut attempts = 1..=ATTEMPTS_MAX;
    let Collected { sum, heat, .. } = loop {
        let is_last = attempts.next() == Some(ATTEMPTS_MAX);
        if let Some(collected) = collect(insights, engine, query, (first, now), is_last).await? {
            break collected;
        }
    };
    Ok(Report {
        account: query.account.clone(),
        since: time(first.start),
        until: time(resolution.slot(now).next().start),
        resolution: resolution.name().to_owned(),
        tables: sum.tables.ranked().into_iter().map(|(_, table)| table_report(table, &heat, &sum.peaks)).collect(),
        other_requests: sum.other_requests,
    })
}

/// Reads the rows from a slot on, then adds what this server has not stored. `None` if figures moved to the store
/// meanwhile, which may be missing, unless this `is_last`.
async fn collect<'a>(
    insights: &Insights,
    engine: &impl Engine,
    query: &'a ReportQuery,
    (first, now): (Slot, Timestamp),
    is_last: bool,
) -> Result<Option<Collected<'a>>, Fault> {
    let mut collected =
        Collected { table: query.table.as_deref(), sum: AccountFigures::default(), heat: BTreeMap::new() };
    let moves = insights.pending.lock().await.moves;
    let mut slot = first;
    while slot <= first.resolution.slot(now) {
        rows::read(engine, &query.account, slot, |figures| collected.add(slot.start, figures)).await?;
        slot = slot.next();
    }
    let mut pending = insights.pending.lock().await;
    if pending.moves != moves && !is_last {
        return Ok(None);
    }
    if let Some(figures) = insights.take_of(&query.account) {
        pending.add(&query.account, figures, now);
    }
    for (slot, figures) in pending.of(&query.account, first) {
        if let Some(figures) = AccountFigures::decode(figures) {
            collected.add(slot.start, figures);
        }
    }
    Ok(Some(collected))
}

/// What is read for a report.
struct Collected<'a> {
    table: Option<&'a str>,
    sum: AccountFigures,
    /// Of the one table, by slots.
    heat: BTreeMap<u64, KeyRanges>,
}

impl Collected<'_> {
    fn add(&mut self, slot: u64, figures: AccountFigures) {
        let Some(name) = self.table else { return self.sum.merge(figures) };
        let Some(table) = figures.only(name) else { return };
        for (_, tracked) in table.tables.ranked() {
            self.heat.entry(slot).or_default().merge(tracked.value.ranges.clone());
        }
        self.sum.merge(table);
    }
}

fn table_report(tracked: &Tracked<TableFigures>, heat: &BTreeMap<u64, KeyRanges>, peaks: &Peaks) -> TableReport {
    let table = &tracked.value;
    let operations = OperationKind::ALL.into_iter().zip(&table.operations);
    let operations = operations.filter(|(_, figures)| figures.outcomes.iter().any(|count| *count > 0));
    let partitions = table.partitions.0.ranked().into_iter();
    let [gets, inserts, deletes] = table.followed;
    TableReport {
        table: tracked.key.clone(),
        requests: table.requests(),
        missed_max: tracked.missed_max,
        operations: operations.map(|(kind, figures)| operation_report(kind, figures)).collect(),
        shapes: table.shapes.0.ranked().into_iter().map(|(_, shape)| shape_report(shape)).collect(),
        other_shapes: counts_report(table.other_shapes),
        partitions: partitions.take(PARTITIONS_SHOWN).map(|(_, partition)| partition_report(partition)).collect(),
        partitions_seen: table.partitions_seen.estimate(),
        peaks: peaks.of(&tracked.key).into_iter().map(peak_report).collect(),
        ranges: table.ranges.ranges().iter().map(range_report).collect(),
        insert_order: order_report(&table.inserts),
        entities: entities_report(&table.entities),
        transaction_writes: table.transaction_writes,
        followed: FollowedReport { gets, inserts, deletes },
        heat: heat.iter().map(|(slot, ranges)| heat_report(*slot, ranges, &table.ranges)).collect(),
    }
}

fn operation_report(kind: OperationKind, figures: &OperationFigures) -> OperationReport {
    let [done, missing, exists, changed, busy, refused, failed] = figures.outcomes;
    OperationReport {
        operation: kind.name().to_owned(),
        requests: figures.outcomes.iter().sum(),
        done,
        missing,
        exists,
        changed,
        busy,
        refused,
        failed,
        p50_micros: p50(&figures.latencies),
        p99_micros: p99(&figures.latencies),
    }
}

fn shape_report(Tracked { key, missed_max, value }: &Tracked<ShapeFigures>) -> ShapeReport {
    ShapeReport {
        shape: key.clone(),
        plan: value.plan.clone(),
        counts: counts_report(value.counts),
        missed_max: *missed_max,
        p50_micros: p50(&value.latencies),
        p99_micros: p99(&value.latencies),
    }
}

const fn counts_report(counts: ShapeCounts) -> CountsReport {
    let ShapeCounts { queries, rows_read, rows_returned, wasteful } = counts;
    CountsReport { queries, rows_read, rows_returned, wasteful }
}

fn partition_report(Tracked { key, missed_max, value }: &Tracked<PartitionFigures>) -> PartitionReport {
    PartitionReport {
        partition: key.clone(),
        reads: value.reads,
        writes: value.writes,
        missed_max: *missed_max,
        conflicts: value.conflicts,
        throttled: value.throttled,
        rows_seen: value.rows_seen.estimate(),
        insert_order: order_report(&value.inserts),
    }
}

fn peak_report(peak: &Peak) -> PeakReport {
    PeakReport { partition: peak.partition.clone(), time: time(peak.minute), entities: peak.entities }
}

fn range_report(range: &HeatRange) -> RangeReport {
    let (Place { partition, row }, Heat { reads, writes }) = (range.start.clone(), range.heat);
    RangeReport { partition, row, reads, writes }
}

const fn order_report(order: &InsertOrder) -> OrderReport {
    OrderReport { compared: order.compared, above: order.above, below: order.below }
}

fn entities_report(sizes: &EntitySizes) -> EntitiesReport {
    let by_size = sizes.by_bits.iter().enumerate().filter(|(_, count)| **count > 0);
    let by_size = by_size.map(|(bits, count)| SizeReport { bytes_below: 1_u64 << bits, entities: *count }).collect();
    EntitiesReport { bytes_max: sizes.bytes_max, properties_max: sizes.properties_max, by_size }
}

/// The heat of one slot, for each of the table's ranges.
fn heat_report(slot: u64, of_slot: &KeyRanges, of_table: &KeyRanges) -> HeatReport {
    let heats = of_slot.heat_of(of_table.ranges());
    let (reads, writes) = heats.into_iter().map(|heat| (heat.reads, heat.writes)).unzip();
    HeatReport { time: time(slot), reads, writes }
}

fn p50(latencies: &Latencies) -> u64 {
    latencies.quantile(0.5)
}

fn p99(latencies: &Latencies) -> u64 {
    latencies.quantile(0.99)
}

fn time(unix_seconds: u64) -> String {
    let mut text = Vec::new();
    Timestamp::from_unix(Duration::from_secs(unix_seconds)).write_trimmed(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Figures move to the store once a minute, so that the second attempt succeeds.
const ATTEMPTS_MAX: u32 = 3;
/// Partitions of a table in a report. More are tracked, so that these are right.
const PARTITIONS_SHOWN: usize = 64;
const DAY: Duration = Duration::from_secs(24 * 3600);
