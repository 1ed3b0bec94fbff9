//! The report of an account's insights: the stored rows of all servers and what this one has not stored yet, as JSON.

use super::Insights;
use super::account::AccountFigures;
use super::frequent::Tracked;
use super::key_ranges::KeyRanges;
use super::latencies::Latencies;
use super::rows::{self, Resolution, Slot};
use super::table::{
    EntitySizes, InsertOrder, OperationFigures, OperationKind, PartitionFigures, ShapeCounts, ShapeFigures,
    TableFigures,
};
use larimar_engine::{Engine, Fault};
use larimar_model::Timestamp;
use serde_json::{Value, json};
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
) -> Result<Value, Fault> {
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
    let tables: Vec<Value> = sum.tables.ranked().into_iter().map(|(_, table)| table_json(table, &heat)).collect();
    let until = resolution.slot(now).next();
    Ok(json!({
        "account": query.account,
        "since": time(first.start),
        "until": time(until.start),
        "resolution": resolution.name(),
        "tables": tables,
        "otherRequests": sum.other_requests,
    }))
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
        pending.add(&query.account, &figures, now);
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
            self.heat.entry(slot).or_default().merge(&tracked.value.ranges);
        }
        self.sum.merge(table);
    }
}

fn table_json(tracked: &Tracked<TableFigures>, heat: &BTreeMap<u64, KeyRanges>) -> Value {
    let table = &tracked.value;
    let operations = OperationKind::ALL.into_iter().zip(&table.operations);
    let operations: Vec<Value> = operations
        .filter(|(_, figures)| figures.outcomes.iter().any(|count| *count > 0))
        .map(|(kind, figures)| operation_json(kind, figures))
        .collect();
    let shapes: Vec<Value> = table.shapes.0.ranked().into_iter().map(|(_, shape)| shape_json(shape)).collect();
    let partitions: Vec<Value> =
        table.partitions.0.ranked().into_iter().map(|(_, partition)| partition_json(partition)).collect();
    let ranges: Vec<Value> = table
        .ranges
        .ranges()
        .iter()
        .map(|range| {
            let (start, heat) = (&range.start, range.heat);
            json!({ "partition": start.partition, "row": start.row, "reads": heat.reads, "writes": heat.writes })
        })
        .collect();
    let [gets, inserts, deletes] = table.followed;
    let mut json = json!({
        "table": tracked.key,
        "requests": table.requests(),
        "missedMax": tracked.missed_max,
        "operations": operations,
        "shapes": shapes,
        "otherShapes": counts_json(table.other_shapes),
        "partitions": partitions,
        "partitionsSeen": table.partitions_seen.estimate(),
        "ranges": ranges,
        "insertOrder": order_json(&table.inserts),
        "entities": entities_json(&table.entities),
        "transactionWrites": table.transaction_writes,
        "followed": { "gets": gets, "inserts": inserts, "deletes": deletes },
    });
    if !heat.is_empty() {
        json["heat"] = heat.iter().map(|(slot, ranges)| heat_json(*slot, ranges, &table.ranges)).collect();
    }
    json
}

fn operation_json(kind: OperationKind, figures: &OperationFigures) -> Value {
    let [done, missing, exists, changed, busy, refused, failed] = figures.outcomes;
    json!({
        "operation": kind.name(),
        "requests": figures.outcomes.iter().sum::<u64>(),
        "done": done,
        "missing": missing,
        "exists": exists,
        "changed": changed,
        "busy": busy,
        "refused": refused,
        "failed": failed,
        "p50Micros": p50(&figures.latencies),
        "p99Micros": p99(&figures.latencies),
    })
}

fn shape_json(Tracked { key, missed_max, value }: &Tracked<ShapeFigures>) -> Value {
    let mut json = counts_json(value.counts);
    json["shape"] = json!(key);
    json["plan"] = json!(value.plan);
    json["missedMax"] = json!(missed_max);
    json["p50Micros"] = json!(p50(&value.latencies));
    json["p99Micros"] = json!(p99(&value.latencies));
    json
}

fn counts_json(counts: ShapeCounts) -> Value {
    let ShapeCounts { queries, rows_read, rows_returned, wasteful } = counts;
    json!({ "queries": queries, "rowsRead": rows_read, "rowsReturned": rows_returned, "wasteful": wasteful })
}

fn partition_json(Tracked { key, missed_max, value }: &Tracked<PartitionFigures>) -> Value {
    json!({
        "partition": key,
        "reads": value.reads,
        "writes": value.writes,
        "missedMax": missed_max,
        "conflicts": value.conflicts,
        "throttled": value.throttled,
        "rowsSeen": value.rows_seen.estimate(),
        "insertOrder": order_json(&value.inserts),
    })
}

fn order_json(order: &InsertOrder) -> Value {
    json!({ "compared": order.compared, "above": order.above, "below": order.below })
}

fn entities_json(sizes: &EntitySizes) -> Value {
    let by_size = sizes.by_bits.iter().enumerate().filter(|(_, count)| **count > 0);
    let by_size: Vec<Value> =
        by_size.map(|(bits, count)| json!({ "bytesBelow": 1_u64 << bits, "entities": count })).collect();
    json!({ "bytesMax": sizes.bytes_max, "propertiesMax": sizes.properties_max, "bySize": by_size })
}

/// The heat of one slot, for each of the table's ranges.
fn heat_json(slot: u64, of_slot: &KeyRanges, of_table: &KeyRanges) -> Value {
    let heats = of_slot.heat_of(of_table.ranges());
    let (reads, writes): (Vec<u64>, Vec<u64>) = heats.into_iter().map(|heat| (heat.reads, heat.writes)).unzip();
    json!({ "time": time(slot), "reads": reads, "writes": writes })
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
const DAY: Duration = Duration::from_secs(24 * 3600);
