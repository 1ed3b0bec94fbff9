//! `larimar export`: tables as CSV, JSON lines or Parquet.
//!
//! Ranges of keys are read in parallel (`ranges.rs`), so rows come in any order unless `--parallel 1` is given. JSON lines
//! are written as they come. CSV and Parquet need all names of properties first: `export/spool.rs` and
//! `format/parquet.rs` keep the rows in a temporary file until then.

mod spool;
mod write;

use crate::endpoint::{Context, EndpointArgs, Service};
use crate::format::Format;
use crate::location::Location;
use crate::output::counted;
use crate::progress::Progress;
use crate::ranges::Scan;
use crate::{Error, Result};
use clap::Args;
use futures_util::TryStreamExt as _;
use larimar_client::{Filter, Table};

/// The flags of `larimar export`.
#[derive(Args)]
pub(crate) struct Export {
    /// Name of the table
    #[arg(value_name = "TABLE", required_unless_present = "all", conflicts_with = "all")]
    table: Option<String>,
    /// Export every table, each to a file of its name
    #[arg(long, requires = "to")]
    all: bool,
    /// File, directory for --all, s3://, az:// or gs:// address, or - [default: standard output]
    #[arg(long, short, value_name = "PLACE")]
    to: Option<String>,
    /// Format of the file [default: from its name; jsonl for standard output]
    #[arg(long, short, value_name = "FORMAT")]
    format: Option<Format>,
    /// Only entities that pass this filter of the service
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    /// Only these properties, separated by commas; keys and time are always there
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    select: Vec<String>,
    #[command(flatten)]
    csv: CsvArgs,
    /// How many requests are under way at once; with 1 the rows are in the order of their keys
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    parallel: u16,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

/// The flags of CSV.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct CsvArgs {
    /// CSV: no columns with types; they are inferred when the file is imported
    #[arg(long)]
    no_types: bool,
    /// CSV: an apostrophe before texts that a spreadsheet would take for formulas; import removes it with the same flag
    #[arg(long)]
    formula_safe: bool,
}

impl Export {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let to = Location::parse(self.to.as_deref().unwrap_or("-"), context)?;
        let format = self.format_of(&to)?;
        let account = self.endpoint.connect(context, Service::Table).await?;
        let Some(table) = &self.table else { return self.export_all(&account, &to, format).await };
        let rows = self.export(account.table(table), &to, format).await?;
        // Standard output has the rows themselves.
        if !matches!(to, Location::Stdout) {
            eprintln!("{table}: {} in {to}", counted(rows, "row", "rows"));
        }
        Ok(())
    }

    async fn export_all(&self, account: &larimar_client::Account, to: &Location, format: Format) -> Result<()> {
        if let Location::File(directory) = to {
            std::fs::create_dir_all(directory).map_err(|error| Error::io(directory.display(), error))?;
        }
        let tables: Vec<_> = account.tables().list(None).try_collect().await?;
        for item in tables {
            let file = to.join(&format!("{}.{}", item.name, format.extension()));
            let rows = self.export(account.table(&item.name), &file, format).await?;
            eprintln!("{}: {} in {file}", item.name, counted(rows, "row", "rows"));
        }
        Ok(())
    }

    fn format_of(&self, to: &Location) -> Result<Format> {
        let format = match (self.format, to) {
            (Some(format), _) => format,
            (None, Location::Stdout) => Format::JsonLines,
            (None, _) if self.all => Format::JsonLines,
            (None, place) => Format::from_name(&place.to_string()).ok_or_else(|| {
                Error::Usage(format!("expected --format, or a name that ends with .csv, .jsonl or .parquet: '{place}'"))
            })?,
        };
        if self.all && matches!(to, Location::Stdout) {
            return Err(Error::Usage("--all needs a directory, or an address of a store, in --to".to_owned()));
        }
        if format == Format::Parquet {
            // Before anything is read, if the build has no Parquet.
            crate::format::parquet::Spool::new().map_err(|error| Error::Usage(error.to_string()))?;
        }
        let is_csv_only = self.csv.no_types || self.csv.formula_safe;
        if is_csv_only && format != Format::Csv {
            return Err(Error::Usage("--no-types and --formula-safe are for --format csv".to_owned()));
        }
        Ok(format)
    }

    async fn export(&self, table: Table, to: &Location, format: Format) -> Result<u64> {
        let mut scan = Scan::new(table).parallel(usize::from(self.parallel));
        if let Some(filter) = &self.filter {
            scan = scan.filter(Filter::raw(filter));
        }
        if !self.select.is_empty() {
            let system = ["PartitionKey", "RowKey", "Timestamp"].map(str::to_owned);
            scan = scan.select(self.select.iter().cloned().chain(system));
        }
        let progress = Progress::new("rows", None);
        let mut output = to.create().await?;
        let pages = write::Pages::new(scan.pages(), progress);
        let workers = if self.parallel == 1 { 1 } else { WORKERS };
        let written = match format {
            Format::JsonLines => write::json_lines(&pages, &mut output).await,
            Format::Csv => write::csv(&pages, self.csv, &mut output).await,
            Format::Parquet => write::parquet(&pages, workers, &mut output).await,
        };
        match written {
            Ok(()) => output.finish().await?,
            Err(error) => {
                output.abort().await;
                return Err(error);
            }
        }
        Ok(pages.rows())
    }
}

/// Tasks that encode Parquet.
const WORKERS: usize = 2;
