//! `larimar import`: rows of CSV, JSON lines or Parquet files into a table.
//!
//! `import/input.rs` finds the files and their types, `import/dry_run.rs` shows what would happen, `import/run.rs` writes,
//! `import/state.rs` remembers how far it is, and `import/refused.rs` keeps the rows that were not written.

mod dry_run;
mod input;
mod refused;
mod run;
mod schema;
mod state;
mod tracker;

use crate::endpoint::{Context, EndpointArgs, Service};
use crate::format::keys::{Keys, Template};
use crate::format::{Format, Shape};
use crate::{Error, Result};
use clap::{Args, ValueEnum};
use input::Input;
use larimar_client::Table;
use state::State;
use std::path::{Path, PathBuf};

/// The flags of `larimar import`.
#[derive(Args)]
pub(crate) struct Import {
    /// Name of the table; it is created if it is missing
    #[arg(value_name = "TABLE")]
    table: String,
    /// Files, a manifest of AzCopy, or - for standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Format of the files [default: from their names; csv for standard input]
    #[arg(long, short, value_name = "FORMAT")]
    format: Option<Format>,
    /// PartitionKey from columns, such as '{country}' [default: the column PartitionKey]
    #[arg(long, value_name = "TEMPLATE")]
    partition_key: Option<Template>,
    /// RowKey from columns, such as '{id:08}'; {#} is the number of the row [default: the column RowKey]
    #[arg(long, value_name = "TEMPLATE")]
    row_key: Option<Template>,
    /// Types of columns in JSON: {"zip": "String", "age": "Int32", "junk": null}; null leaves a column out
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// What to do with a row whose keys exist
    #[arg(long, value_name = "MODE", default_value = "insert")]
    mode: Mode,
    /// Show types, first rows and problems, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// File for rows that are not written [default: FILE.refused.jsonl]
    #[arg(long, value_name = "FILE")]
    refused: Option<PathBuf>,
    /// File that remembers how far the import is [default: FILE.import-state]
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// CSV: remove the apostrophes of an export with --formula-safe
    #[arg(long)]
    formula_safe: bool,
    /// How many transactions are under way at once
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    parallel: u16,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

/// What to do with a row whose keys exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Refuse it
    Insert,
    /// Replace the entity; of rows with the same keys the last one stays
    Replace,
    /// Change the properties that the row has
    Merge,
}

impl Import {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let shape = self.shape()?;
        let inputs = input::find(&self.files, self.format)?;
        if self.dry_run {
            return dry_run::show(&inputs, &shape, self.mode);
        }
        let table = self.endpoint.connect(context, Service::Table).await?.table(&self.table);
        let first =
            inputs.first().and_then(Input::path).map_or("larimar-import".into(), |path| path.display().to_string());
        let refused_path = self.refused.clone().unwrap_or_else(|| format!("{first}.refused.jsonl").into());
        let state = if inputs.iter().all(|input| input.path().is_some()) {
            let path = self.state.clone().unwrap_or_else(|| format!("{first}.import-state").into());
            let options = format!("{:?} {:?} {:?} {}", self.mode, shape.keys, shape.types, shape.is_formula_safe);
            State::open(path, &table.url(), &options, &inputs)?
        } else {
            if self.state.is_some() {
                return Err(Error::Usage("--state needs files: standard input cannot be read again".to_owned()));
            }
            eprintln!("standard input cannot be read again, so this import cannot be resumed");
            State::none()
        };
        let parallel = usize::from(self.parallel);
        let run = run::Run { table, mode: self.mode, parallel, shape, is_all_or_nothing: false };
        run.all(&inputs, state, refused_path).await
    }

    fn shape(&self) -> Result<Shape> {
        let default = Keys::default();
        let keys = Keys {
            partition: self.partition_key.clone().unwrap_or(default.partition),
            row: self.row_key.clone().unwrap_or(default.row),
        };
        let types = self.schema.as_deref().map(schema::read).transpose()?.unwrap_or_default();
        Ok(Shape { keys, types, is_formula_safe: self.formula_safe, ..Shape::default() })
    }
}

/// Writes all rows of a file to a table, which is created, and logs how far it is. A row that cannot be written is an error.
pub(crate) async fn import_whole(table: Table, path: &Path, format: Format) -> Result<u64> {
    let input = Input::File { path: path.to_owned(), format };
    let run =
        run::Run { table, mode: Mode::Insert, parallel: PARALLEL, shape: Shape::default(), is_all_or_nothing: true };
    run.whole(&input).await
}

/// Transactions under way at once.
const PARALLEL: usize = 8;
