//! Designs for people: a table with a column for each design, then the keys and reasons of each.

use super::Measured;
use crate::output::terminal_columns;
use larimar_design::{Access, Consistency, Description, Design, WriteCost};
use std::fmt::Write as _;

/// All designs, side by side and one after the other.
pub(super) fn designs(description: &Description, designs: &[Design]) -> String {
    let mut text = format!("{}: {}\n", description.entity, counted(designs.len() as f64, "design", "designs"));
    let rows = rows(designs);
    let width = terminal_columns().unwrap_or(COLUMNS).max(60);
    let label = rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0).min(LABEL_MAX);
    let cell = rows.iter().flat_map(|(_, cells)| cells).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let at_once = ((width - label) / (cell + 2)).clamp(1, designs.len().max(1));
    for first in (0..designs.len()).step_by(at_once) {
        let shown = first..(first + at_once).min(designs.len());
        let numbers: Vec<String> = shown.clone().map(|index| format!("design {}", index + 1)).collect();
        text.push('\n');
        write_row(&mut text, label, cell, "", &numbers);
        for (name, cells) in &rows {
            write_row(&mut text, label, cell, name, &cells[shown.clone()]);
        }
    }
    for (index, design) in designs.iter().enumerate() {
        write_design(&mut text, index + 1, design);
    }
    text.push_str(
        "\n? is one query, ! one write; docs/designer.md explains the costs. T, Q and R are numbers of the design guide.",
    );
    text
}

/// The rows of the comparison: a name, and a cell for each design.
fn rows(designs: &[Design]) -> Vec<(String, Vec<String>)> {
    let row = |name: &str, cell: &dyn Fn(&Design) -> String| (name.to_owned(), designs.iter().map(cell).collect());
    let patterns = |design: &Design| design.patterns.iter().map(|it| format!("{it:?}")).collect::<Vec<_>>().join(" ");
    let mut rows = vec![
        row("best at", &|it| it.best_at.first().copied().unwrap_or_default().to_owned()),
        row("patterns", &patterns),
        row("cost (requests/s)", &|it| number(it.cost)),
        row("storage", &|it| bytes(it.bytes)),
        row("partitions", &|it| {
            format!("{} of {}", number(it.partitions), counted(it.rows_per_partition.max(1.0), "row", "rows"))
        }),
        row("busiest partition", &|it| format!("{} entities/s", number(it.partition_entities_per_second))),
    ];
    let Some(first) = designs.first() else { return rows };
    for (index, query) in first.queries.iter().enumerate() {
        rows.push(row(&format!("? {}", query.name), &|it| access(&it.queries[index].access)));
    }
    for (index, write) in first.writes.iter().enumerate() {
        rows.push(row(&format!("! {}", write.name), &|it| write_cost(&it.writes[index])));
    }
    rows
}

fn write_row(text: &mut String, label: usize, cell: usize, name: &str, cells: &[String]) {
    let name: String = name.chars().take(label).collect();
    let mut line = format!("{name:<label$}");
    for value in cells {
        write!(line, "  {value:<cell$}").expect("a string takes every write");
    }
    writeln!(text, "{}", line.trim_end()).expect("a string takes every write");
}

fn write_design(text: &mut String, number: usize, design: &Design) {
    let mut line = |line: String| writeln!(text, "{line}").expect("a string takes every write");
    let best = if design.best_at.is_empty() { String::new() } else { format!(": {}", design.best_at.join(", ")) };
    line(format!("\nDesign {number}{best}"));
    for structure in &design.structures {
        line(format!("  {}, {}", structure.table, structure.is));
        line(format!("    PartitionKey  {:<34} {}", structure.partition_key, structure.example_partition_key));
        line(format!("    RowKey        {:<34} {}", structure.row_key, structure.example_row_key));
        if let Some(stores) = &structure.stores {
            let stores = if stores.is_empty() { "nothing else".to_owned() } else { stores.join(", ") };
            line(format!("    has           {stores}"));
        }
    }
    design.reasons.iter().for_each(|reason| line(format!("  + {reason}")));
    design.warnings.iter().for_each(|warning| line(format!("  - {warning}")));
}

fn access(access: &Access) -> String {
    let rows = counted(access.rows, "row", "rows");
    format!("{}, {rows}, {}", access.label(), counted(access.requests, "request", "requests"))
}

fn write_cost(write: &WriteCost) -> String {
    let consistency = match write.consistency {
        Consistency::Single => "",
        Consistency::Transaction => ", transaction",
        Consistency::Eventual => ", eventual",
    };
    let rows = counted(write.rows, "row", "rows");
    format!("{}, {rows}{consistency}", counted(write.requests, "request", "requests"))
}

/// What a trial found, beside what was predicted.
pub(super) fn measured(entities: usize, all: &[Measured]) -> String {
    let mut text = format!("{entities} sample entities\n\n");
    let label = all.iter().map(|it| it.name.chars().count()).max().unwrap_or(0).min(LABEL_MAX);
    write_row(&mut text, label, MEASURED_CELL, "", &["predicted".to_owned(), "measured".to_owned()]);
    for it in all {
        let cells = match (&it.predicted, it.reason) {
            (Some(predicted), _) => {
                let plans: Vec<&str> = it.plans.iter().map(String::as_str).collect();
                let rows = counted(it.rows as f64, "row", "rows");
                let requests = counted(it.requests as f64, "request", "requests");
                [access(predicted), format!("{}, {rows}, {requests}", plans.join(" and "))]
            }
            (None, reason) => ["not tried".to_owned(), reason.unwrap_or_default().to_owned()],
        };
        write_row(&mut text, label, MEASURED_CELL, &it.name, &cells);
    }
    text.truncate(text.trim_end().len());
    text
}

fn counted(count: f64, one: &str, many: &str) -> String {
    format!("{} {}", number(count), if count == 1.0 { one } else { many })
}

/// A number with three digits that count, or with its thousands apart.
fn number(value: f64) -> String {
    if value >= 1e9 {
        return format!("{value:.1e}");
    }
    if value < 100.0 {
        let text = if value >= 1.0 { format!("{value:.1}") } else { format!("{value:.3}") };
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn bytes(value: f64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = ((value.max(1.0).log2() / 10.0) as usize).min(units.len() - 1);
    format!("{} {}", number(value / 1024_f64.powi(power as i32)), units[power])
}

/// The width of output that is not a terminal.
const COLUMNS: usize = 120;
const LABEL_MAX: usize = 36;
const MEASURED_CELL: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, text) in
            [(0.0, "0"), (1.0, "1"), (0.0123, "0.012"), (12.34, "12.3"), (2500.0, "2,500"), (1234567.0, "1,234,567")]
        {
            assert_eq!(number(value), text);
        }
        assert_eq!(bytes(1536.0), "1.5 KiB");
        assert_eq!(bytes(0.0), "0 bytes");
    }
}
