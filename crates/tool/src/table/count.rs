//! `larimar table count`: how many entities there are, over key ranges in parallel.

use super::TableArgs;
use crate::Result;
use crate::endpoint::Context;
use crate::output::{Fields, Format, OutputArgs, print_line};
use crate::progress::Progress;
use crate::ranges::Scan;
use clap::Args;
use futures_util::TryStreamExt as _;
use larimar_client::{Filter, Table};

#[derive(Args)]
pub(crate) struct Count {
    #[command(flatten)]
    table: TableArgs,
    /// Only entities that pass this filter
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    #[command(flatten)]
    parallel: ParallelArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// How many requests are under way at once.
#[derive(Clone, Copy, Args)]
pub(crate) struct ParallelArgs {
    /// How many requests are under way at once
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    parallel: u16,
}

impl ParallelArgs {
    pub(crate) fn count(self) -> usize {
        usize::from(self.parallel)
    }

    /// A scan of the table by so many workers.
    pub(crate) fn scan(self, table: Table, filter: Option<String>) -> Scan {
        let scan = Scan::new(table).parallel(self.count());
        match filter {
            Some(filter) => scan.filter(Filter::raw(filter)),
            None => scan,
        }
    }
}

impl Count {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let table = self.table.table(context).await?;
        // The keys are needed, to know how far each range is.
        let mut pages = self.parallel.scan(table, self.filter).select(["RowKey"]).pages();
        let progress = Progress::new("entities", None);
        while let Some(page) = pages.try_next().await? {
            progress.add(page.len() as u64);
        }
        let count = progress.count();
        drop(progress);
        match self.output.format() {
            Some(Format::Json | Format::Csv) => {
                let mut output = self.output.open();
                output.write(&Fields::new().with("count", count))?;
                output.finish().map(drop)
            }
            Some(Format::Table) | None => print_line(&count.to_string()),
        }
    }
}
