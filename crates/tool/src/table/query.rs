//! `larimar table query`: the entities that pass a filter.

use super::TableArgs;
use crate::Result;
use crate::endpoint::Context;
use crate::output::{Format, OutputArgs, escape};
use clap::Args;
use futures_util::TryStreamExt as _;
use larimar_client::{DynamicEntity, Filter};

#[derive(Args)]
pub(crate) struct Query {
    #[command(flatten)]
    table: TableArgs,
    /// Filter of the service, such as "PartitionKey eq 'Sales' and Age gt 30"
    #[arg(value_name = "FILTER")]
    filter: Option<String>,
    /// Only these properties, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    select: Vec<String>,
    /// At most this many entities
    #[arg(long, value_name = "COUNT")]
    top: Option<usize>,
    #[command(flatten)]
    output: OutputArgs,
}

impl Query {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let table = self.table.table(context).await?;
        let mut query = table.query::<DynamicEntity>();
        if let Some(filter) = self.filter {
            query = query.filter(Filter::raw(filter));
        }
        let mut output = self.output.open();
        if !self.select.is_empty() {
            query = query.select(&self.select);
            output = output.with_columns(&self.select);
        }
        if let Some(top) = self.top {
            query = query.limit(top);
        }
        let mut pages = query.pages();
        while let Some(page) = pages.try_next().await? {
            for entity in &page.entities {
                output.write(entity)?;
            }
            output.flush()?;
        }
        let hidden = output.finish()?;
        if !hidden.is_empty() {
            let format = self.output.format().map_or("", |format| if format == Format::Csv { "csv" } else { "" });
            let advice = if format == "csv" { "--select or `larimar export`" } else { "--select or --output json" };
            eprintln!("not shown: {}; use {advice}", escape(&hidden.join(", ")));
        }
        Ok(())
    }
}
