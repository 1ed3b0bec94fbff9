//! Transactions: several writes in one partition that take place together or not at all. `rules.rs` holds what is
//! refused before it is sent, `body.rs` how it is sent, `answer.rs` how the answer is read.

mod answer;
mod body;
mod error;
mod rules;

pub use error::{TransactionError, TransactionRefusal};

use super::Table;
use super::write::{Write, WriteKind};
use crate::pipeline::{Call, Failed};
use crate::{DynamicEntity, ETag, Entity, Error, IfMatch, Result};
use body::Body;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use http::Method;
use http::header::CONTENT_TYPE;
use larimar_model::limits;
use std::collections::HashSet;
use tokio::time::Instant;

/// Writes in one partition that take place together or not at all (an entity group transaction).
///
/// What the service would refuse by itself is refused when it is added, and then leaves the transaction as it was:
/// another partition, an entity that is in it already, more than 100 operations or 4 MiB, and an entity that breaks
/// a rule of names or sizes. Conflicts with what is stored are reported by [`Transaction::submit`], with
/// [the operation](crate::Error::operation) that failed.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = larimar_embedded::Larimar::ephemeral().await?;
/// # let account = larimar_client::Account::connect(&server.connection_string())?;
/// # let table = account.table("Employees");
/// # table.create_if_missing().await?;
/// use larimar_client::{DynamicEntity, IfMatch};
/// # table.insert(&DynamicEntity::new("Sales", "000123")).await?;
///
/// let mut transaction = table.transaction();
/// transaction.insert(&DynamicEntity::new("Sales", "email_don@example.com").with("Employee", "000123"))?;
/// transaction.merge(&DynamicEntity::new("Sales", "000123").with("Email", "don@example.com"), IfMatch::Any)?;
/// let etags = transaction.submit().await?;
/// assert_eq!(etags.len(), 2);
///
/// let again = table
///     .transaction()
///     .delete("Sales", "000123", IfMatch::Any)?
///     .insert(&DynamicEntity::new("Sales", "email_don@example.com"))?
///     .submit()
///     .await
///     .expect_err("the second one exists already");
/// assert!(again.is_conflict());
/// assert_eq!(again.operation(), Some(1));
/// assert!(table.get::<DynamicEntity>("Sales", "000123").await?.is_some(), "nothing was deleted");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Transaction {
    table: Table,
    writes: Vec<Write>,
    rows: HashSet<String>,
    /// As it is sent, if nothing of it is to be encrypted.
    body: Body,
}

impl Table {
    /// A transaction on this table, without operations yet.
    #[must_use]
    pub fn transaction(&self) -> Transaction {
        Transaction { table: self.clone(), writes: Vec::new(), rows: HashSet::new(), body: Body::new(self) }
    }
}

impl Transaction {
    /// Inserts an entity, which must be new.
    ///
    /// # Errors
    /// What no transaction takes. It is left as it was.
    pub fn insert<E: Entity>(&mut self, entity: &E) -> Result<&mut Self, TransactionError> {
        self.add(WriteKind::Insert, entity)
    }

    /// Replaces an entity, all its properties.
    ///
    /// # Errors
    /// What no transaction takes. It is left as it was.
    pub fn replace<E: Entity>(
        &mut self,
        entity: &E,
        condition: impl Into<IfMatch>,
    ) -> Result<&mut Self, TransactionError> {
        self.add(WriteKind::Replace(condition.into()), entity)
    }

    /// Changes properties of an entity and leaves those alone that are not named.
    ///
    /// # Errors
    /// What no transaction takes. It is left as it was.
    pub fn merge<E: Entity>(
        &mut self,
        entity: &E,
        condition: impl Into<IfMatch>,
    ) -> Result<&mut Self, TransactionError> {
        self.add(WriteKind::Merge(condition.into()), entity)
    }

    /// Inserts an entity, or replaces the existing one.
    ///
    /// # Errors
    /// What no transaction takes. It is left as it was.
    pub fn insert_or_replace<E: Entity>(&mut self, entity: &E) -> Result<&mut Self, TransactionError> {
        self.add(WriteKind::InsertOrReplace, entity)
    }

    /// Inserts an entity, or changes the properties of the existing one.
    ///
    /// # Errors
    /// What no transaction takes. It is left as it was.
    pub fn insert_or_merge<E: Entity>(&mut self, entity: &E) -> Result<&mut Self, TransactionError> {
        self.add(WriteKind::InsertOrMerge, entity)
    }

    /// Deletes an entity.
    ///
    /// # Errors
    /// What no transaction takes. It is left as it was.
    pub fn delete(
        &mut self,
        partition_key: &str,
        row_key: &str,
        condition: impl Into<IfMatch>,
    ) -> Result<&mut Self, TransactionError> {
        self.add(WriteKind::Delete(condition.into()), &DynamicEntity::new(partition_key, row_key))
    }

    /// How many operations there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether there are no operations.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// The partition of all operations; none before the first.
    #[must_use]
    pub fn partition_key(&self) -> Option<&str> {
        self.writes.first().map(|write| write.entity.partition_key.as_str())
    }

    /// Bytes of the request; 4 MiB is the most that the service takes. Encryption may add some.
    #[must_use]
    pub fn size(&self) -> usize {
        self.body.len()
    }

    /// Carries out all operations, or none of them, and returns the new ETags in their order; a delete has none.
    ///
    /// A transaction without operations succeeds without a request.
    ///
    /// # Errors
    /// The first operation that the service refuses, which is [`Error::operation`].
    pub async fn submit(&self) -> Result<Vec<Option<ETag>>> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        if !self.table.encrypts() {
            return self.table.send_transaction(&self.writes, &self.body).await;
        }
        let writes = self.table.seal_all(self.writes.clone()).await?;
        let mut body = Body::new(&self.table);
        for (operation, write) in writes.iter().enumerate() {
            // Encrypted, it may have grown past what is taken.
            let added = rules::check(write).and_then(|()| body.push(write, self.table.name()));
            added.map_err(|reason| TransactionError { operation, reason })?;
        }
        self.table.send_transaction(&writes, &body).await
    }

    fn add<E: Entity>(&mut self, kind: WriteKind, entity: &E) -> Result<&mut Self, TransactionError> {
        let write = Write::new(kind, entity).map_err(TransactionRefusal::from);
        match write.and_then(|write| self.push(write).map_err(|refused| refused.reason)) {
            Ok(()) => Ok(self),
            Err(reason) => Err(TransactionError { operation: self.writes.len(), reason }),
        }
    }

    /// Adds a write, or leaves all as it was and gives the write back.
    pub(super) fn push(&mut self, write: Write) -> Result<(), Box<Refused>> {
        if let Err(reason) = self.admit(&write) {
            return Err(Box::new(Refused { reason, write }));
        }
        self.rows.insert(write.entity.row_key.clone());
        self.writes.push(write);
        Ok(())
    }

    /// Adds a write to the body, if it may be added.
    fn admit(&mut self, write: &Write) -> Result<(), TransactionRefusal> {
        let entity = &write.entity;
        if let Some(partition) = self.partition_key()
            && partition != entity.partition_key
        {
            let (expected, found) = (partition.to_owned(), entity.partition_key.clone());
            return Err(TransactionRefusal::OtherPartition { expected, found });
        }
        if self.rows.contains(&entity.row_key) {
            return Err(TransactionRefusal::EntityTwice { row_key: entity.row_key.clone() });
        }
        if self.writes.len() == limits::TRANSACTION_OPERATIONS_MAX {
            return Err(TransactionRefusal::TooManyOperations);
        }
        self.table.admit(write)?;
        rules::check(write)?;
        self.body.push(write, self.table.name())
    }
}

/// A write that was not added.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) reason: TransactionRefusal,
    pub(super) write: Write,
}

impl Transaction {
    /// The first operations, and the rest of them, as transactions of their own.
    pub(super) fn split(&self, first: usize) -> Option<[Self; 2]> {
        let mut halves = [self.table.transaction(), self.table.transaction()];
        for (index, write) in self.writes.iter().enumerate() {
            halves[usize::from(index >= first)].push(write.clone()).ok()?;
        }
        Some(halves)
    }
}

impl Table {
    /// Sends a transaction. If the answer to an earlier attempt was lost and a later one is refused, what is stored
    /// shows whether the transaction took place.
    async fn send_transaction(&self, writes: &[Write], body: &Body) -> Result<Vec<Option<ETag>>> {
        let call = Call::new("Transaction", Method::POST, "/$batch")
            .body("multipart/mixed", body.bytes())
            .header_text(CONTENT_TYPE, &body.content_type())?
            .refused_by(answer::refusal);
        let started = Instant::now();
        match self.send(call).await {
            Ok(reply) => answer::etags(&reply, writes.len()),
            Err(Failed { error, after_ambiguous: true }) if matches!(error.status(), Some(404 | 409 | 412)) => {
                let etags = self.look_up_since(started, self.etags_if_done(writes)).await?;
                etags.ok_or_else(|| with_operation(error, writes.len()))
            }
            Err(failed) => Err(with_operation(failed.error, writes.len())),
        }
    }

    /// The ETags of entities that are stored as these writes would have left them; none if one of them is not.
    async fn etags_if_done(&self, writes: &[Write]) -> Result<Option<Vec<Option<ETag>>>> {
        let stored = stream::iter(writes).map(|write| async move {
            let stored = self.fetch_latest(&write.entity.partition_key, &write.entity.row_key).await?;
            Ok::<_, Error>(write.is_done(stored.as_ref()).then_some(stored.and_then(|stored| stored.etag)))
        });
        let mut stored = stored.buffered(READ_BACK_CONCURRENCY).boxed();
        let mut etags = Vec::with_capacity(writes.len());
        while let Some(etag) = stored.try_next().await? {
            let Some(etag) = etag else { return Ok(None) };
            etags.push(etag);
        }
        Ok(Some(etags))
    }
}

/// The error with the operation that it is of.
fn with_operation(error: Error, operations: usize) -> Error {
    match error {
        Error::Service(refusal) => {
            let mut refusal = refusal.with_operation();
            // A transaction of one operation is sometimes refused without its index.
            if operations == 1 && matches!(refusal.status, 404 | 409 | 412) {
                refusal.operation = Some(0);
            }
            refusal.into()
        }
        other => other,
    }
}

const READ_BACK_CONCURRENCY: usize = 8;
