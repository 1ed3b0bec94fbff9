//! The list of tables; creating and deleting one.

use super::TableArgs;
use crate::confirm::ConfirmArgs;
use crate::endpoint::{Context, EndpointArgs, Service};
use crate::output::{Fields, OutputArgs};
use crate::{Error, Result};
use clap::Args;
use futures_util::TryStreamExt as _;
use larimar_client::Column;

#[derive(Args)]
pub(crate) struct List {
    /// Only tables whose names begin with this
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

impl List {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let account = self.endpoint.connect(context, Service::Table).await?;
        let name: Column<String> = Column::named("TableName");
        let mut tables = account.tables().list(self.prefix.map(|prefix| name.starts_with(prefix)));
        let mut output = self.output.open().with_columns(["name"]);
        while let Some(table) = tables.try_next().await? {
            output.write(&Fields::new().with("name", table.name))?;
        }
        output.finish().map(drop)
    }
}

#[derive(Args)]
pub(crate) struct Create {
    /// Succeed if the table exists already
    #[arg(long)]
    if_missing: bool,
    #[command(flatten)]
    table: TableArgs,
}

impl Create {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let table = self.table.table(context).await?;
        match table.create().await {
            Err(error) if self.if_missing && error.code() == Some("TableAlreadyExists") => Ok(()),
            Err(error) if error.code() == Some("TableAlreadyExists") => {
                Err(Error::Failed(format!("table '{}' exists already", table.name())))
            }
            other => Ok(other?),
        }
    }
}

#[derive(Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    table: TableArgs,
}

impl Delete {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let table = self.table.table(context).await?;
        self.confirm.ask(&format!("Delete table {} with all its entities", table.url()))?;
        Ok(table.delete_table().await?)
    }
}
