//! `larimar design`: key designs for a described entity, side by side, and a trial of one of them on a server.
//!
//! The search is the crate `larimar-design`; this module reads descriptions and samples and prints.

mod file;
mod measure;
mod sample;
mod show;

pub use measure::{Measured, measure};

use crate::endpoint::{Context, EndpointArgs, Service};
use crate::output::print_line;
use crate::{Error, Result};
use clap::{Args, Subcommand};
use larimar_design::{Description, Proposal, examples, propose};
use std::path::PathBuf;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct DesignCommand {
    #[command(subcommand)]
    attempt: Option<Attempt>,
    #[command(flatten)]
    source: Source,
    /// Print a commented description to start from; `list` prints the names
    #[arg(long, value_name = "NAME", conflicts_with_all = ["file", "sample", "json"])]
    example: Option<String>,
    /// Print the designs as JSON
    #[arg(long)]
    json: bool,
}

/// What is described.
#[derive(Args)]
struct Source {
    /// The description: TOML, or JSON if the name ends in .json
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// A file of entities (CSV, JSON lines or Parquet) to take types and numbers of values from
    #[arg(long, value_name = "FILE")]
    sample: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Attempt {
    /// Write sample entities in a design to scratch tables, run the queries, and compare rows read with the prediction
    Try(Try),
}

#[derive(Args)]
struct Try {
    #[command(flatten)]
    source: Source,
    /// Which of the designs that `larimar design FILE` prints
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    design: usize,
    /// How many entities to write
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    entities: usize,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

impl DesignCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        if let Some(Attempt::Try(attempt)) = self.attempt {
            return attempt.run(context).await;
        }
        if let Some(name) = self.example {
            return print_example(&name);
        }
        let (description, proposal) = self.source.proposal()?;
        match self.json {
            true => {
                let text = serde_json::to_string_pretty(&proposal).map_err(|error| Error::Failed(error.to_string()))?;
                print_line(&text)
            }
            false => print_line(&show::designs(&description, &proposal.designs)),
        }
    }
}

impl Source {
    /// The description, and the designs for it.
    fn proposal(&self) -> Result<(Description, Proposal)> {
        let Some(path) = &self.file else {
            return Err(Error::Usage("expected a description: see `larimar design --example employees`".to_owned()));
        };
        let text = file::read(path)?;
        let mut description = file::parse(path, &text)?;
        if let Some(sample) = &self.sample {
            sample::add(&mut description, sample)?;
        }
        let proposal = propose(&description).map_err(|error| file::refused(path, &text, &error))?;
        Ok((description, proposal))
    }
}

impl Try {
    async fn run(self, context: &Context) -> Result<()> {
        let (description, Proposal { designs, .. }) = self.source.proposal()?;
        let Some(design) = self.design.checked_sub(1).and_then(|index| designs.get(index)) else {
            let count = designs.len();
            return Err(Error::Usage(format!("expected --design to be from 1 to {count}, found {}", self.design)));
        };
        let account = self.endpoint.connect(context, Service::Table).await?;
        let measured = measure(&account, &description, &design.layout, self.entities).await?;
        print_line(&show::measured(self.entities, &measured))
    }
}

fn print_example(name: &str) -> Result<()> {
    if name == "list" {
        let lines: Vec<String> = examples::ALL.iter().map(|it| format!("{:<18} {}", it.name, it.about())).collect();
        return print_line(&lines.join("\n"));
    }
    match examples::find(name) {
        Some(example) => print_line(example.text.trim_end()),
        None => {
            let names: Vec<&str> = examples::ALL.iter().map(|example| example.name).collect();
            Err(Error::Usage(format!("unknown example '{name}': expected one of {}", names.join(", "))))
        }
    }
}
