//! `larimar import --dry-run`: what an import would write, without a server.

use super::input::Input;
use crate::format::json_lines::write_line;
use crate::format::{Position, Shape};
use crate::output::print_line;
use crate::{Error, Result};
use std::collections::HashSet;

/// Prints the types of columns, the first rows as they would be stored, and the first problems.
pub(super) fn show(inputs: &[Input], shape: &Shape) -> Result<()> {
    let mut problems = 0;
    for input in inputs {
        problems += show_one(input, shape)?;
    }
    match problems {
        0 => Ok(()),
        rows => Err(Error::Refused(format!("rows that would be refused: {rows}"))),
    }
}

/// Shows one input; returns how many of its rows would be refused.
fn show_one(input: &Input, shape: &Shape) -> Result<u64> {
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
    let (mut rows, mut problems, mut partitions) = (0_u64, 0_u64, HashSet::new());
    while let Some(record) = opened.reader.next_record().map_err(|error| Error::Failed(error.to_string()))? {
        rows += 1;
        match record.entity {
            Ok(entity) => {
                if rows - problems <= ROWS_SHOWN {
                    if rows - problems == 1 {
                        print_line("First rows:")?;
                    }
                    let mut line = Vec::new();
                    write_line(&mut line, &entity);
                    print_line(&format!("  {}", String::from_utf8_lossy(&line).trim_end()))?;
                }
                if partitions.len() < PARTITIONS_MAX {
                    partitions.insert(entity.partition_key);
                }
            }
            Err(refused) => {
                problems += 1;
                if problems <= PROBLEMS_SHOWN {
                    print_line(&format!("line {}: {}", record.line, refused.reason))?;
                }
            }
        }
    }
    let more = if partitions.len() == PARTITIONS_MAX { "at least " } else { "" };
    print_line(&format!("{rows} rows in {more}{} partitions, {problems} would be refused", partitions.len()))?;
    Ok(problems)
}

const ROWS_SHOWN: u64 = 5;
const PROBLEMS_SHOWN: u64 = 20;
const PARTITIONS_MAX: usize = 100_000;
