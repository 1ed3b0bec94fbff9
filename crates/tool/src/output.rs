//! What commands print: an aligned table for people, JSON lines or CSV for programs.
//!
//! Records are written as they come, so output has no limit and memory has: a table and a CSV file take their columns
//! from the first records only.

mod layout;
mod record;

pub use larimar_model::escape;
pub use record::{Field, Fields, Record};

use crate::{Error, Result};
use clap::{Args, ValueEnum};
use std::collections::BTreeSet;
use std::io::{BufWriter, IsTerminal as _, Write};

/// How records are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// An aligned table
    Table,
    /// A JSON object per line
    Json,
    /// Comma-separated values with a header
    Csv,
}

/// The flag that chooses the format.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct OutputArgs {
    /// How to print [default: table on a terminal, else json]
    #[arg(long, short, value_name = "FORMAT", help_heading = "Output")]
    output: Option<Format>,
}

impl OutputArgs {
    /// The format that was asked for, if any was.
    #[must_use]
    pub const fn format(&self) -> Option<Format> {
        self.output
    }

    /// Standard output, for records.
    #[must_use]
    pub fn open(&self) -> Output {
        let stdout = std::io::stdout();
        let is_terminal = stdout.is_terminal();
        let default = if is_terminal { Format::Table } else { Format::Json };
        let width = is_terminal.then(|| terminal_columns().unwrap_or(COLUMNS));
        Output::new(self.output.unwrap_or(default), width, is_terminal, Box::new(stdout))
    }
}

/// The width of the terminal that standard output is.
#[must_use]
pub fn terminal_columns() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0))
}

/// Prints records to standard output.
pub struct Output {
    format: Format,
    /// Columns of the terminal; tables have any width without it.
    width: Option<usize>,
    is_terminal: bool,
    out: BufWriter<Box<dyn Write + Send>>,
    /// Columns that were asked for; otherwise those of the first records.
    columns: Option<Vec<String>>,
    head: Head,
    /// Columns that came too late to be shown, or do not fit.
    hidden: BTreeSet<String>,
}

/// The beginning of a table or a CSV file.
enum Head {
    /// Records are held until the columns are known.
    Held { rows: Vec<Vec<(String, Field)>>, bytes: usize },
    /// The header is printed; a table has the widths of these columns.
    Printed { columns: Vec<String>, widths: Vec<usize> },
}

impl Output {
    /// Prints to this writer, which is a terminal of this width or not one.
    #[must_use]
    pub fn new(format: Format, width: Option<usize>, is_terminal: bool, out: Box<dyn Write + Send>) -> Self {
        Self {
            format,
            width,
            is_terminal,
            out: BufWriter::with_capacity(BUFFER_BYTES, out),
            columns: None,
            head: Head::Held { rows: Vec::new(), bytes: 0 },
            hidden: BTreeSet::new(),
        }
    }

    /// Prints these columns, in this order, whatever the records have.
    #[must_use]
    pub fn with_columns<I: IntoIterator<Item: Into<String>>>(mut self, columns: I) -> Self {
        self.columns = Some(columns.into_iter().map(Into::into).collect());
        self
    }

    /// Prints a record.
    ///
    /// # Errors
    /// Output that cannot be written; [`Error::OutputClosed`] if its reader is gone.
    pub fn write(&mut self, record: &impl Record) -> Result<()> {
        if self.format == Format::Json {
            let mut line = Vec::new();
            record.write_json(&mut line);
            line.push(b'\n');
            return self.out.write_all(&line).map_err(Error::output);
        }
        let fields = record.fields();
        match &mut self.head {
            Head::Held { rows, bytes } => {
                *bytes += fields.iter().map(|(name, field)| name.len() + field.text().len()).sum::<usize>();
                rows.push(fields);
                match rows.len() >= HELD_ROWS_MAX || *bytes >= HELD_BYTES_MAX {
                    true => self.print_head(),
                    false => Ok(()),
                }
            }
            Head::Printed { .. } => self.print_row(fields),
        }
    }

    /// The format.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Prints all records so far, though the columns of later ones may not be known yet.
    ///
    /// # Errors
    /// As for [`Output::write`].
    pub fn flush_held(&mut self) -> Result<()> {
        if self.format != Format::Json && matches!(self.head, Head::Held { .. }) {
            self.print_head()?;
        }
        self.flush()
    }

    /// Prints what is buffered, so that a reader sees it.
    ///
    /// # Errors
    /// As for [`Output::write`].
    pub fn flush(&mut self) -> Result<()> {
        self.out.flush().map_err(Error::output)
    }

    /// Prints the rest. Returns the columns that were not printed.
    ///
    /// # Errors
    /// As for [`Output::write`].
    pub fn finish(mut self) -> Result<Vec<String>> {
        self.flush_held()?;
        Ok(self.hidden.into_iter().collect())
    }

    /// Prints the header and the records that were held.
    fn print_head(&mut self) -> Result<()> {
        let Head::Held { rows, .. } = &mut self.head else { return Ok(()) };
        let rows = std::mem::take(rows);
        let mut columns = self.columns.clone().unwrap_or_else(|| union(&rows));
        let mut widths = Vec::new();
        if self.format == Format::Table {
            let natural = |column: &String| {
                let cells = rows.iter().map(|row| layout::width(&text_of(row, column)));
                cells.chain([layout::width(&escape(column))]).max().unwrap_or(0)
            };
            widths = layout::fit(columns.iter().map(natural).collect(), self.width);
            self.hidden.extend(columns.drain(widths.len()..));
        }
        // A table without rows needs no header; a CSV file does.
        let has_header = self.format == Format::Csv || !rows.is_empty();
        if has_header && !columns.is_empty() {
            self.print_cells(&columns, &widths, &vec![false; columns.len()])?;
        }
        self.head = Head::Printed { columns, widths };
        rows.into_iter().try_for_each(|row| self.print_row(row))
    }

    fn print_row(&mut self, fields: Vec<(String, Field)>) -> Result<()> {
        let Head::Printed { columns, widths } = &self.head else { unreachable!("the header is printed") };
        let (columns, widths) = (columns.clone(), widths.clone());
        let find = |column: &String| fields.iter().find(|(name, _)| name == column).map(|(_, field)| field);
        let cells: Vec<String> =
            columns.iter().map(|column| find(column).map(Field::text).unwrap_or_default().to_owned()).collect();
        let numbers: Vec<bool> = columns.iter().map(|column| matches!(find(column), Some(Field::Number(_)))).collect();
        if self.columns.is_none() && fields.len() > cells.len() {
            let hidden = fields.iter().map(|(name, _)| name).filter(|name| !columns.contains(name));
            let room = HIDDEN_MAX.saturating_sub(self.hidden.len());
            let new: Vec<String> = hidden.filter(|name| !self.hidden.contains(*name)).take(room).cloned().collect();
            self.hidden.extend(new);
        }
        self.print_cells(&cells, &widths, &numbers)
    }

    fn print_cells(&mut self, cells: &[String], widths: &[usize], numbers: &[bool]) -> Result<()> {
        let line = match self.format {
            Format::Table => layout::line(cells, widths, numbers),
            _ => self.csv_line(cells),
        };
        self.out.write_all(line.as_bytes()).map_err(Error::output)
    }

    fn csv_line(&self, cells: &[String]) -> String {
        let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
        // A terminal obeys control characters; a file keeps them.
        let shown = cells.iter().map(|cell| if self.is_terminal { escape(cell) } else { cell.clone() });
        writer.write_record(shown).expect("a vector takes every write");
        String::from_utf8(writer.into_inner().expect("a vector takes every write")).expect("texts are UTF-8")
    }
}

/// The columns of these records: in the order in which they come first.
fn union(rows: &[Vec<(String, Field)>]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut columns: Vec<String> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if seen.insert(name.clone()) {
            columns.push(name.clone());
        }
    }
    // The time takes much room and is wanted least.
    if let Some(place) = columns.iter().position(|column| column == "Timestamp") {
        let time = columns.remove(place);
        columns.push(time);
    }
    columns
}

fn text_of(row: &[(String, Field)], column: &str) -> String {
    row.iter().find(|(name, _)| name == column).map(|(_, field)| escape(field.text())).unwrap_or_default()
}

/// Prints a line to standard output; a reader that is gone is not a failure.
///
/// # Errors
/// Output that cannot be written; [`Error::OutputClosed`] if its reader is gone.
pub fn print_line(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(Error::output)
}

/// A number of things, such as `1 entity` or `2 entities`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The width of a terminal that does not say how wide it is.
const COLUMNS: usize = 80;
/// How many records determine the columns.
const HELD_ROWS_MAX: usize = 1000;
const HELD_BYTES_MAX: usize = 4 << 20;
/// How many hidden columns are remembered.
const HIDDEN_MAX: usize = 1000;
const BUFFER_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests;
