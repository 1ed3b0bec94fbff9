//! Tables and their entities.

mod acl;
mod address;
mod bulk;
mod encrypted;
mod entities;
mod explain;
mod json;
mod pages;
mod parallel;
mod query;
mod service;
mod transaction;
mod update;
mod write;

pub use bulk::{BulkGroup, BulkOperation, BulkReport, BulkWriter};
pub use explain::Explanation;
pub use pages::{Continuation, ContinuationError, Page};
pub use parallel::ParallelQuery;
pub use query::Query;
pub use service::{TableItem, TableService};
pub use transaction::{Transaction, TransactionError, TransactionRefusal};
pub use update::Update;

use crate::Result;
#[cfg(feature = "encryption")]
use crate::encryption::Encryption;
use crate::pipeline::{Call, Failed, Pipeline, Reply};
use std::sync::Arc;
use std::time::Duration;

/// A table. It is cheap to clone.
#[derive(Clone, Debug)]
pub struct Table {
    pipeline: Arc<Pipeline>,
    name: Arc<str>,
    timeout: Option<Duration>,
    #[cfg(feature = "encryption")]
    encryption: Option<Arc<Encryption>>,
}

impl Table {
    pub(crate) fn new(pipeline: Arc<Pipeline>, name: String) -> Self {
        Self {
            pipeline,
            name: name.into(),
            timeout: None,
            #[cfg(feature = "encryption")]
            encryption: None,
        }
    }

    /// The table's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address of the table.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}{}", self.pipeline.primary.url(), address::table_path(&self.name))
    }

    /// The same table, with another limit of how long a call may take with all its retries.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self.clone() }
    }

    /// Creates the table.
    ///
    /// # Errors
    /// A table that exists already ([`Error::is_conflict`](crate::Error::is_conflict)), or a name that the service
    /// refuses.
    pub async fn create(&self) -> Result<()> {
        match self.tables().create(&self.name, self.timeout).await {
            // An attempt whose answer was lost may have made it.
            Err(failed) if failed.after_ambiguous && failed.error.code() == Some("TableAlreadyExists") => Ok(()),
            other => Ok(other?),
        }
    }

    /// Creates the table if missing; returns whether it was created.
    ///
    /// # Errors
    /// A name that the service refuses.
    pub async fn create_if_missing(&self) -> Result<bool> {
        match self.create().await {
            Ok(()) => Ok(true),
            Err(error) if error.code() == Some("TableAlreadyExists") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes the table with all its entities.
    ///
    /// # Errors
    /// A table that does not exist.
    pub async fn delete_table(&self) -> Result<()> {
        match self.tables().delete(&self.name, self.timeout).await {
            Err(failed) if failed.after_ambiguous && failed.error.is_not_found() => Ok(()),
            other => Ok(other?),
        }
    }

    /// Deletes the table if it exists; returns whether it did.
    ///
    /// # Errors
    /// Any other refusal of the service.
    pub async fn delete_table_if_exists(&self) -> Result<bool> {
        match self.delete_table().await {
            Ok(()) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn tables(&self) -> TableService {
        TableService::new(Arc::clone(&self.pipeline))
    }

    /// Sends a call on this table.
    async fn send(&self, call: Call) -> Result<Reply, Failed> {
        self.pipeline.send(call.timeout(self.timeout)).await
    }
}
