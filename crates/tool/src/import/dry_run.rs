//! `larimar import --dry-run`: what an import would write, without a server.

use super::Mode;
use super::input::Input;
use crate::format::json_lines::write_line;
use crate::format::{Position, Shape};
use crate::output::{counted, print_line};
use crate::{Error, Result};
use larimar_client::{Account, DynamicEntity, Table};
use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

/// Prints the types of columns, the first rows as they would be stored, and the first problems.
pub(super) fn show(inputs: &[Input], shape: &Shape, mode: Mode) -> Result<()> {
    let account = Account::builder().connection_string("UseDevelopmentStorage=true").build()?;
    let (table, mut keys) = (account.table("DryRun"), SeenKeys::default());
    let mut refused = 0;
    for input in inputs {
        refused += show_one(input, shape, mode, &table, &mut keys)?;
    }
    match refused {
        0 => Ok(()),
        rows => Err(Error::Refused(format!("rows that would be refused: {}{rows}", keys.at_least()))),
    }
}

/// The rows of an input.
#[derive(Default)]
struct Counts {
    rows: u64,
    /// Rows that are no entities.
    problems: u64,
    /// Rows with the keys of an earlier row.
    repeated: u64,
    partitions: HashSet<String>,
}

/// Shows one input; returns how many of its rows would be refused.
fn show_one(input: &Input, shape: &Shape, mode: Mode, table: &Table, keys: &mut SeenKeys) -> Result<u64> {
    let mut opened = input.open(shape, Position::default())?;
    print_line(&format!("{}:", input.name()))?;
    let columns = opened.reader.columns();
    if !columns.is_empty() {
        print_line(if opened.is_inferred { "Columns, types inferred where the file has none:" } else { "Columns:" })?;
    }
    for (name, edm) in columns {
        print_line(&format!("  {name}: {}", edm.map_or("as each row says", larimar_model::EdmType::name)))?;
    }
    if opened.reader.has_timestamp() {
        print_line("  Timestamp: not stored, since the service sets it; rename the column to keep it")?;
    }
    let mut counts = Counts::default();
    while let Some(record) =
        opened.reader.next_record().map_err(|error| Error::Failed(format!("{}: {error}", input.name())))?
    {
        counts.rows += 1;
        match record.entity {
            // A transaction refuses what the service would, and this one is never sent.
            Ok(entity) => match table.transaction().insert(&entity) {
                Ok(_) => counts.add(record.line, entity, keys)?,
                Err(error) => counts.refuse(record.line, &error.reason.to_string())?,
            },
            Err(refused) => counts.refuse(record.line, &refused.reason)?,
        }
    }
    counts.finish(mode, keys)
}

impl Counts {
    fn add(&mut self, line: u64, entity: DynamicEntity, keys: &mut SeenKeys) -> Result<()> {
        let shown = self.rows - self.problems;
        if shown <= ROWS_SHOWN {
            if shown == 1 {
                print_line("First rows:")?;
            }
            let mut line = Vec::new();
            write_line(&mut line, &entity);
            let text = String::from_utf8_lossy(&line);
            let shown = text.trim_end().char_indices().nth(CHARS_SHOWN);
            print_line(&shown.map_or(format!("  {}", text.trim_end()), |(end, _)| format!("  {}…", &text[..end])))?;
        }
        if keys.has_seen(&entity) {
            self.repeated += 1;
            self.show_problem(
                line,
                &format!("an earlier row has the keys '{}' and '{}'", entity.partition_key, entity.row_key),
            )?;
        }
        if self.partitions.len() < PARTITIONS_MAX {
            self.partitions.insert(entity.partition_key);
        }
        Ok(())
    }

    fn refuse(&mut self, line: u64, reason: &str) -> Result<()> {
        self.problems += 1;
        self.show_problem(line, reason)
    }

    fn show_problem(&self, line: u64, reason: &str) -> Result<()> {
        match self.problems + self.repeated <= PROBLEMS_SHOWN {
            true => print_line(&format!("line {line}: {reason}")),
            false => Ok(()),
        }
    }

    /// Prints the counts; returns how many rows would be refused.
    fn finish(self, mode: Mode, keys: &SeenKeys) -> Result<u64> {
        let Self { rows, problems, repeated, partitions } = self;
        let at_least = keys.at_least();
        if repeated > 0 {
            let outcome = match mode {
                Mode::Insert => "would be refused; --mode replace or merge writes them",
                Mode::Replace => "would replace the earlier row",
                Mode::Merge => "would be merged into the earlier row",
            };
            let repeated = counted(repeated, "row", "rows");
            print_line(&format!("{at_least}{repeated} with the keys of an earlier row {outcome}"))?;
        }
        let refused = problems + if mode == Mode::Insert { repeated } else { 0 };
        let more = if partitions.len() == PARTITIONS_MAX { "at least " } else { "" };
        let partitions = counted(partitions.len() as u64, "partition", "partitions");
        print_line(&format!(
            "{} in {more}{partitions}, {at_least}{refused} would be refused",
            counted(rows, "row", "rows")
        ))?;
        Ok(refused)
    }
}

/// The keys of the first rows, as hashes: 9 to 18 bytes for each. Two different keys have the same hash by chance in one
/// of a million files of this many rows.
#[derive(Default)]
struct SeenKeys {
    hashes: HashSet<u64>,
    hasher: RandomState,
    /// Whether rows came that are not remembered.
    is_full: bool,
}

impl SeenKeys {
    /// Whether an earlier row had the keys of this one.
    fn has_seen(&mut self, entity: &DynamicEntity) -> bool {
        let hash = self.hasher.hash_one((&entity.partition_key, &entity.row_key));
        if self.hashes.len() < KEYS_MAX {
            return !self.hashes.insert(hash);
        }
        let is_known = self.hashes.contains(&hash);
        self.is_full |= !is_known;
        is_known
    }

    /// What precedes a number of rows with the keys of earlier ones.
    const fn at_least(&self) -> &'static str {
        if self.is_full { "at least " } else { "" }
    }
}

const ROWS_SHOWN: u64 = 5;
const PROBLEMS_SHOWN: u64 = 20;
/// Of a row.
const CHARS_SHOWN: usize = 500;
const PARTITIONS_MAX: usize = 100_000;
/// As many hashes as fit into 75 MiB.
const KEYS_MAX: usize = 7_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart_by_both_parts() {
        let mut keys = SeenKeys::default();
        for (partition, row, is_known) in
            [("a", "bc", false), ("ab", "c", false), ("", "abc", false), ("a", "bc", true), ("A", "bc", false)]
        {
            assert_eq!(keys.has_seen(&DynamicEntity::new(partition, row)), is_known, "{partition} {row}");
        }
        assert_eq!(keys.at_least(), "");
    }
}
