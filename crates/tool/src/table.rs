//! `larimar table`: tables and their entities.

mod count;
mod entity;
mod manage;
mod query;
mod remove;
mod stat;

use crate::Result;
use crate::endpoint::{Context, EndpointArgs, Service};
use clap::{Args, Subcommand};
use larimar_client::Table;

/// The commands of `larimar table`.
#[derive(Subcommand)]
pub(crate) enum TableCommand {
    /// List the tables of the account
    List(manage::List),
    /// Create a table
    Create(manage::Create),
    /// Delete a table with all its entities
    Delete(manage::Delete),
    /// Print the entities that pass a filter
    Query(query::Query),
    /// Print one entity
    Get(entity::Get),
    /// Store an entity
    Put(entity::Put),
    /// Delete one entity, or all that pass a filter
    Remove(remove::Remove),
    /// Count entities, reading key ranges in parallel
    Count(count::Count),
    /// Delete all entities and keep the table
    Clear(remove::Clear),
    /// Add up entities, bytes and partitions, and find the largest
    Stat(stat::Stat),
}

impl TableCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        match self {
            Self::List(command) => command.run(context).await,
            Self::Create(command) => command.run(context).await,
            Self::Delete(command) => command.run(context).await,
            Self::Query(command) => command.run(context).await,
            Self::Get(command) => command.run(context).await,
            Self::Put(command) => command.run(context).await,
            Self::Remove(command) => command.run(context).await,
            Self::Count(command) => command.run(context).await,
            Self::Clear(command) => command.run(context).await,
            Self::Stat(command) => command.run(context).await,
        }
    }
}

/// A table of an account.
#[derive(Clone, Args)]
pub(crate) struct TableArgs {
    /// Name of the table
    #[arg(value_name = "TABLE")]
    name: String,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

impl TableArgs {
    async fn table(&self, context: &Context) -> Result<Table> {
        Ok(self.endpoint.connect(context, Service::Table).await?.table(&self.name))
    }
}
