//! A report of insights as text.

use larimar_tool::output::escape;
use serde_json::Value;
use std::fmt::Write as _;

/// The text for a report in JSON; `None` if it is not one.
pub(super) fn report(json: &str) -> Option<String> {
    let report: Value = serde_json::from_str(json).ok()?;
    let mut out = String::new();
    let (account, resolution) = (text(&report, "account")?, text(&report, "resolution")?);
    let (since, until) = (text(&report, "since")?, text(&report, "until")?);
    line(&mut out, 0, &format!("{account}, {since} to {until}, by {resolution}"));
    let tables = list(&report, "tables")?;
    if tables.is_empty() {
        line(&mut out, 0, "no requests to tables");
    }
    for table in tables {
        write_table(&mut out, table)?;
    }
    match number(&report, "otherRequests")? {
        0 => {}
        others => line(&mut out, 0, &format!("\n{} requests to other tables", grouped(others))),
    }
    Some(out)
}

fn write_table(out: &mut String, table: &Value) -> Option<()> {
    let name = escape(text(table, "table")?);
    line(out, 0, &format!("\n{name}: {} requests", grouped(number(table, "requests")?)));
    write_operations(out, table)?;
    write_shapes(out, table)?;
    write_partitions(out, table)?;
    write_writes(out, table)?;
    write_heat(out, table)
}

fn write_operations(out: &mut String, table: &Value) -> Option<()> {
    let heads = ["operation", "requests", "p50", "p99", "404", "409", "412", "503", "4xx", "5xx"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for operation in list(table, "operations")? {
        let mut row = vec![text(operation, "operation")?.to_owned(), grouped(number(operation, "requests")?)];
        row.extend([duration(number(operation, "p50Micros")?), duration(number(operation, "p99Micros")?)]);
        for name in ["missing", "exists", "changed", "busy", "refused", "failed"] {
            row.push(grouped(number(operation, name)?));
        }
        rows.push(row);
    }
    write_rows(out, &rows, &[0]);
    Some(())
}

fn write_shapes(out: &mut String, table: &Value) -> Option<()> {
    let shapes = list(table, "shapes")?;
    if shapes.is_empty() {
        return Some(());
    }
    let heads = ["queries", "rows read", "returned", "wasteful", "p50", "p99", "plan", "filter"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for shape in shapes {
        let mut row = Vec::new();
        for name in ["queries", "rowsRead", "rowsReturned", "wasteful"] {
            row.push(grouped(number(shape, name)?));
        }
        row.extend([duration(number(shape, "p50Micros")?), duration(number(shape, "p99Micros")?)]);
        row.push(text(shape, "plan")?.to_owned());
        row.push(match text(shape, "shape")? {
            "" => "(none)".to_owned(),
            filter => escape(filter),
        });
        rows.push(row);
    }
    line(out, 0, "");
    write_rows(out, &rows, &[6, 7]);
    match number(table.get("otherShapes")?, "queries")? {
        0 => {}
        others => line(out, 1, &format!("{} queries with other filters", grouped(others))),
    }
    Some(())
}

fn write_partitions(out: &mut String, table: &Value) -> Option<()> {
    let partitions = list(table, "partitions")?;
    if partitions.is_empty() {
        return Some(());
    }
    let heads = ["reads", "writes", "missed", "conflicts", "503", "about rows", "in order", "partition"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for partition in partitions.iter().take(SHOWN_PARTITIONS_MAX) {
        let mut row = Vec::new();
        for name in ["reads", "writes", "missedMax", "conflicts", "throttled", "rowsSeen"] {
            row.push(grouped(number(partition, name)?));
        }
        row.push(order(partition.get("insertOrder")?)?);
        row.push(key(text(partition, "partition")?));
        rows.push(row);
    }
    let seen = grouped(number(table, "partitionsSeen")?);
    line(out, 1, &format!("\n  busiest partitions, of about {seen}:"));
    write_rows(out, &rows, &[7]);
    Some(())
}

fn write_writes(out: &mut String, table: &Value) -> Option<()> {
    let inserts = table.get("insertOrder")?;
    if number(inserts, "compared")? > 0 {
        line(out, 1, &format!("inserts in key order: {}", order(inserts)?));
    }
    let entities = table.get("entities")?;
    let (bytes, properties) = (number(entities, "bytesMax")?, number(entities, "propertiesMax")?);
    if bytes > 0 {
        line(out, 1, &format!("largest entity: {} bytes; most properties: {properties}", grouped(bytes)));
    }
    let in_transactions = number(table, "transactionWrites")?;
    if in_transactions > 0 {
        line(out, 1, &format!("entities written in transactions: {}", grouped(in_transactions)));
    }
    let followed = table.get("followed")?;
    for (name, what) in [("gets", "gets"), ("inserts", "single inserts"), ("deletes", "single deletes")] {
        let count = number(followed, name)?;
        if count > 0 {
            line(out, 1, &format!("{what} in the partition of the one before: {}", grouped(count)));
        }
    }
    Some(())
}

/// A row for each slot of time and a column for each range of keys; the darkest has the most requests.
fn write_heat(out: &mut String, table: &Value) -> Option<()> {
    let Some(slots) = table.get("heat").and_then(Value::as_array) else { return Some(()) };
    let counts = |slot: &Value| -> Option<Vec<u64>> {
        let (reads, writes) = (list(slot, "reads")?, list(slot, "writes")?);
        reads.iter().zip(writes).map(|(reads, writes)| Some(reads.as_u64()? + writes.as_u64()?)).collect()
    };
    let rows: Vec<(&str, Vec<u64>)> =
        slots.iter().map(|slot| Some((text(slot, "time")?, counts(slot)?))).collect::<Option<_>>()?;
    let most = rows.iter().flat_map(|(_, counts)| counts).copied().max().unwrap_or_default();
    if most == 0 {
        return Some(());
    }
    line(out, 1, &format!("\n  heat by key, '@' is {} requests:", grouped(most)));
    for (time, counts) in rows {
        let shades: String = counts.into_iter().map(|count| shade(count, most)).collect();
        line(out, 1, &format!("{time} |{shades}|"));
    }
    for (number, range) in list(table, "ranges")?.iter().enumerate() {
        let place = format!("{}/{}", key(text(range, "partition")?), key(text(range, "row")?));
        line(out, 1, &format!("column {}: from {place}", number + 1));
    }
    Some(())
}

/// None is a space, and one request at least a dot.
fn shade(count: u64, most: u64) -> char {
    let shades = SHADES.len() as u64 - 1;
    let shade = count.saturating_mul(shades).div_ceil(most.max(1)).min(shades);
    char::from(SHADES[shade as usize])
}

fn order(order: &Value) -> Option<String> {
    let (compared, above, below) = (number(order, "compared")?, number(order, "above")?, number(order, "below")?);
    Some(match compared {
        0 => "-".to_owned(),
        _ if above >= below => format!("{} % ascending", above * 100 / compared),
        _ => format!("{} % descending", below * 100 / compared),
    })
}

/// Columns as wide as their widest cell; those of texts begin at the left.
fn write_rows(out: &mut String, rows: &[Vec<String>], texts: &[usize]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match texts.contains(&column) {
            true => format!("{cell:<width$}"),
            false => format!("{cell:>width$}"),
        });
        line(out, 1, cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}

fn line(out: &mut String, indent: usize, text: &str) {
    let indent = if text.starts_with('\n') || text.is_empty() { 0 } else { 2 * indent };
    writeln!(out, "{:indent$}{text}", "").expect("a string takes every write");
}

fn key(text: &str) -> String {
    format!("'{}'", escape(text))
}

fn duration(micros: u64) -> String {
    match micros {
        0..1000 => format!("{micros} µs"),
        1000..1_000_000 => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
        _ => format!("{}.{} s", micros / 1_000_000, micros % 1_000_000 / 100_000),
    }
}

/// A number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

fn number(value: &Value, name: &str) -> Option<u64> {
    value.get(name)?.as_u64()
}

fn list<'a>(value: &'a Value, name: &str) -> Option<&'a [Value]> {
    value.get(name)?.as_array().map(Vec::as_slice)
}

const SHADES: &[u8] = b" .:-=+*#%@";
/// The JSON has all that are stored.
const SHOWN_PARTITIONS_MAX: usize = 10;

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn a_report_shows_operations_queries_partitions_and_heat() {
        let order = json!({ "compared": 200, "above": 150, "below": 1 });
        let table = json!({
            "table": "orders", "requests": 1234,
            "operations": [{ "operation": "get", "requests": 1234, "p50Micros": 120, "p99Micros": 4500, "missing": 3,
                "exists": 0, "changed": 0, "busy": 0, "refused": 0, "failed": 0 }],
            "shapes": [{ "shape": "Age gt ?", "plan": "table-scan", "queries": 2, "rowsRead": 2000, "rowsReturned": 1,
                "wasteful": 2, "p50Micros": 1_500_000, "p99Micros": 2_000_000 }],
            "otherShapes": { "queries": 7 },
            "partitions": [{ "partition": "a\u{1b}", "reads": 5, "writes": 6, "missedMax": 0, "conflicts": 1,
                "throttled": 0, "rowsSeen": 9, "insertOrder": order }],
            "partitionsSeen": 1, "insertOrder": order,
            "entities": { "bytesMax": 70_000, "propertiesMax": 12 },
            "transactionWrites": 0, "followed": { "gets": 1000, "inserts": 0, "deletes": 0 },
            "ranges": [{ "partition": "", "row": "" }, { "partition": "m", "row": "1" }],
            "heat": [{ "time": "2026-11-16T06:00:00Z", "reads": [1, 90], "writes": [0, 10] }],
        });
        let report = json!({ "account": "one", "since": "2026-11-16T06:00:00Z", "until": "2026-11-16T07:00:00Z",
            "resolution": "hour", "tables": [table], "otherRequests": 1_000_000 });
        let expected = "\
one, 2026-11-16T06:00:00Z to 2026-11-16T07:00:00Z, by hour

orders: 1,234 requests
  operation  requests     p50     p99  404  409  412  503  4xx  5xx
  get           1,234  120 µs  4.5 ms    3    0    0    0    0    0

  queries  rows read  returned  wasteful    p50    p99  plan        filter
        2      2,000         1         2  1.5 s  2.0 s  table-scan  Age gt ?
  7 queries with other filters

  busiest partitions, of about 1:
  reads  writes  missed  conflicts  503  about rows        in order  partition
      5       6       0          1    0           9  75 % ascending  'a\\u{1b}'
  inserts in key order: 75 % ascending
  largest entity: 70,000 bytes; most properties: 12
  gets in the partition of the one before: 1,000

  heat by key, '@' is 100 requests:
  2026-11-16T06:00:00Z |.@|
  column 1: from ''/''
  column 2: from 'm'/'1'

1,000,000 requests to other tables
";
        assert_eq!(super::report(&report.to_string()).as_deref(), Some(expected));
        assert_eq!(super::report("{}"), None);
        assert_eq!(super::report("no JSON"), None);
    }
}
