//! `larimar table query`: the entities that pass a filter.

use super::TableArgs;
use crate::Result;
use crate::endpoint::Context;
use crate::output::{Format, OutputArgs, counted, escape};
use clap::{Args, ValueEnum};
use futures_util::TryStreamExt as _;
use larimar_client::{DynamicEntity, Explanation, Filter};

#[derive(Args)]
pub(crate) struct Query {
    #[command(flatten)]
    table: TableArgs,
    /// Filter of the service, such as "PartitionKey eq 'Sales' and Age gt 30"
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    /// Only these properties, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    select: Vec<String>,
    /// At most this many entities
    #[arg(long, value_name = "COUNT")]
    top: Option<usize>,
    /// Print plan, rows read and time on standard error, as Larimar reports them; --explain=plan does not run the query
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "run")]
    explain: Option<Explain>,
    #[command(flatten)]
    output: OutputArgs,
}

/// How a query is explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Explain {
    /// Runs the query and explains it
    Run,
    /// Plans the query and does not run it
    Plan,
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
        match self.explain {
            None => {}
            Some(Explain::Plan) => return print_explanation(query.plan().await?, 0),
            Some(Explain::Run) => query = query.explain(),
        }
        let (mut explanation, mut explained) = (None, 0);
        let mut pages = query.pages();
        while let Some(page) = pages.try_next().await? {
            explained += u64::from(page.explanation.is_some());
            explanation = added(explanation, page.explanation);
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
        match self.explain {
            Some(_) => print_explanation(explanation, explained),
            None => Ok(()),
        }
    }
}

/// The explanation of two pages: the plan of the first, and the sums of both.
fn added(first: Option<Explanation>, second: Option<Explanation>) -> Option<Explanation> {
    let (Some(mut sum), Some(page)) = (first.clone(), &second) else { return first.or(second) };
    sum.rows_read += page.rows_read;
    sum.rows_returned += page.rows_returned;
    sum.time += page.time;
    Some(sum)
}

/// Prints how the server answered; nothing but the plan if no page was read.
fn print_explanation(explanation: Option<Explanation>, pages: u64) -> Result<()> {
    let Some(explanation) = explanation else {
        eprintln!("this server does not explain queries: only Larimar does, unless it is strict");
        return Ok(());
    };
    eprintln!("plan    {}", escape(&explanation.plan));
    if let Some(filter) = &explanation.filter {
        eprintln!("filter  {}", escape(filter));
    }
    if pages > 0 {
        let Explanation { rows_read, rows_returned, time, .. } = explanation;
        eprintln!("rows    {rows_read} read, {rows_returned} returned, in {}", counted(pages, "page", "pages"));
        eprintln!("time    {:.1} ms on the server", time.as_secs_f64() * 1000.0);
    }
    Ok(())
}
