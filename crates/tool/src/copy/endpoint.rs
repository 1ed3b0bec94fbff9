//! The two sides of a copy, as the command line names them.

use super::plan::Kind;
use crate::endpoint::{check_running, of_local, secret};
use crate::{Context, Error, Result};
use larimar_client::{Account, AccountBuilder, RetryPolicy};
use std::ffi::OsStr;
use std::path::Path;

/// One side of a copy.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub(super) account: Account,
    /// The same without retries, for requests that must not be carried out twice.
    pub(super) once: Account,
}

impl Side {
    /// The account of a reference: `local`, a connection string, `@FILE`, or the name of a variable that holds one.
    pub(super) fn find(reference: &str, ca_file: Option<&Path>, context: &Context) -> Result<Self> {
        let mut builder = Account::builder().user_agent(concat!("larimar/", env!("CARGO_PKG_VERSION")));
        if let Some(path) = ca_file {
            builder = builder.root_certificates(std::fs::read(path).map_err(|error| Error::io(path.display(), error))?);
        }
        let builder = match reference {
            "local" => of_local(builder, context)?,
            text if text.starts_with('@') => builder.connection_string(secret(text)?),
            text if text.contains('=') => builder.connection_string(text),
            name => of_variable(builder, name, context)?,
        };
        let once = builder.clone().retry(RetryPolicy::none()).build()?;
        Ok(Self { account: builder.build()?, once })
    }

    /// Whether the account has things of this kind. Cosmos DB has only tables, though addresses of the other services
    /// follow from the account's name.
    pub(super) fn has(&self, kind: Kind) -> bool {
        let tables = self.account.table_url();
        let is_cosmos = tables.as_ref().is_some_and(|url| url.contains(".table.cosmos"));
        match kind {
            Kind::Tables => tables.is_some(),
            Kind::Queues => !is_cosmos && self.account.queue_url().is_some(),
            Kind::Blobs => !is_cosmos && self.account.blob_url().is_some(),
        }
    }

    /// The addresses of the services that are copied. They name the account and open nothing.
    pub(super) fn addresses(&self, kinds: &[Kind]) -> Vec<String> {
        let address = |kind: &Kind| match kind {
            Kind::Tables => self.account.table_url(),
            Kind::Queues => self.account.queue_url(),
            Kind::Blobs => self.account.blob_url(),
        };
        kinds.iter().filter_map(address).collect()
    }

    /// Fails if the account is of this machine and one of its services does not run.
    pub(super) async fn check_running(&self, kinds: &[Kind]) -> Result<()> {
        for address in self.addresses(kinds) {
            check_running(&address, "as FROM or TO").await?;
        }
        Ok(())
    }
}

fn of_variable(builder: AccountBuilder, name: &str, context: &Context) -> Result<AccountBuilder> {
    let value = context.environment.get(OsStr::new(name)).and_then(|value| value.to_str());
    match value.filter(|value| !value.is_empty()) {
        Some(text) => Ok(builder.connection_string(text)),
        None => Err(Error::Usage(format!(
            "'{}' is not an account: expected `local`, a connection string, @FILE, or the name of an environment \
             variable that holds a connection string",
            name.chars().take(64).collect::<String>()
        ))),
    }
}
