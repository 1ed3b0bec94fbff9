//! Many writes in any partitions: grouped into transactions, which run in parallel. `groups.rs` decides what goes into
//! which group and when, `run.rs` carries it out.

mod groups;
mod report;
mod run;

pub use report::{BulkGroup, BulkReport};

use super::Table;
use super::write::{Write, WriteKind};
use crate::{DynamicEntity, Entity, IfMatch, Result};
use futures_util::stream::{self, Stream, StreamExt as _};

/// Writes many entities of any partitions in as few requests as it can.
///
/// Operations are grouped by partition into transactions of up to 100 operations and 4 MiB. Each takes place as a
/// whole or not at all, and is reported by itself: one that fails holds up no other. Transactions of different
/// partitions run in parallel; those of one partition one after the other, in the order of their operations, so that
/// several operations on one entity take effect in their order.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = larimar_embedded::Larimar::ephemeral().await?;
/// # let account = larimar_client::Account::connect(&server.connection_string())?;
/// # let table = account.table("Employees");
/// # table.create_if_missing().await?;
/// use larimar_client::{BulkOperation, DynamicEntity};
///
/// let mut operations = Vec::new();
/// for number in 0..250 {
///     let department = if number % 2 == 0 { "Sales" } else { "Marketing" };
///     operations.push(BulkOperation::insert(&DynamicEntity::new(department, format!("{number:06}")))?);
/// }
/// let report = table.bulk().concurrency(4).submit(operations).await;
/// assert!(report.is_success());
/// assert_eq!(report.groups().len(), 4, "100 and 25 for either department");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct BulkWriter {
    table: Table,
    concurrency: usize,
    held_max: usize,
}

/// One operation of a [`BulkWriter`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = larimar_embedded::Larimar::ephemeral().await?;
/// # let account = larimar_client::Account::connect(&server.connection_string())?;
/// # let table = account.table("Employees");
/// # table.create_if_missing().await?;
/// use larimar_client::{BulkOperation, DynamicEntity, IfMatch};
///
/// // Operations on one entity take effect in this order; those of different partitions in any.
/// let at = |department: &str| DynamicEntity::new(department, "000123").with("Name", "Don");
/// let operations = [
///     BulkOperation::insert_or_replace(&at("Sales"))?,
///     BulkOperation::insert(&at("Support"))?,
///     BulkOperation::delete("Sales", "000123", IfMatch::Any),
///     BulkOperation::insert(&at("Sales"))?,
///     BulkOperation::delete("Support", "000123", IfMatch::Any),
/// ];
/// table.bulk().submit(operations).await.into_result()?;
/// assert!(table.get::<DynamicEntity>("Sales", "000123").await?.is_some());
/// assert!(table.get::<DynamicEntity>("Support", "000123").await?.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct BulkOperation(Write);

impl Table {
    /// A writer of many entities to this table.
    #[must_use]
    pub fn bulk(&self) -> BulkWriter {
        BulkWriter { table: self.clone(), concurrency: CONCURRENCY, held_max: HELD_MAX }
    }
}

impl BulkWriter {
    /// How many transactions are under way at most, at least 1 (default: 8). They are of different partitions.
    #[must_use]
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency.max(1);
        self
    }

    /// How many operations of a stream are held at most, to be grouped or under way, at least 1 (default: 10 000).
    /// Where the operations on a partition are far apart, holding more makes fewer requests.
    #[must_use]
    pub fn held_max(mut self, held_max: usize) -> Self {
        self.held_max = held_max.max(1);
        self
    }

    /// Carries out these operations and says what became of each group of them, in the order of their first operations.
    pub async fn submit(&self, operations: impl IntoIterator<Item = BulkOperation>) -> BulkReport {
        let operations: Vec<_> = operations.into_iter().collect();
        // All of them are in memory already, and best grouped if all are looked at.
        let all_at_once = self.clone().held_max(operations.len());
        let mut groups: Vec<_> = all_at_once.run(stream::iter(operations)).collect().await;
        groups.sort_by_key(|group| group.operations.first().copied());
        BulkReport::new(groups)
    }

    /// Carries out the operations of a stream as they come, and gives what became of each group of them as soon as it
    /// is known.
    ///
    /// The stream is read only as far as there is room for more operations ([`BulkWriter::held_max`] of them, or 64
    /// MiB), and only while the groups are asked for. Dropping the groups ends it; transactions under way may or may
    /// not take place then.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = larimar_embedded::Larimar::ephemeral().await?;
    /// # let account = larimar_client::Account::connect(&server.connection_string())?;
    /// # let table = account.table("Employees");
    /// # table.create_if_missing().await?;
    /// use futures_util::{StreamExt as _, stream};
    /// use larimar_client::{BulkOperation, DynamicEntity};
    ///
    /// let lines = stream::iter(["Sales,1,Don", "Sales,2,Jun", "Support,1,Ken"]);
    /// let operations = lines.map(|line| {
    ///     let mut fields = line.split(',');
    ///     let mut next = || fields.next().unwrap_or_default();
    ///     let entity = DynamicEntity::new(next(), next()).with("Name", next());
    ///     BulkOperation::insert_or_replace(&entity).expect("a plain entity")
    /// });
    /// let mut groups = table.bulk().run(operations);
    /// while let Some(group) = groups.next().await {
    ///     println!("{}: {} operations", group.partition_key, group.operations.len());
    ///     group.outcome?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn run<S>(&self, operations: S) -> impl Stream<Item = BulkGroup> + Send + Unpin + use<S>
    where
        S: Stream<Item = BulkOperation> + Send + 'static,
    {
        run::run(&self.table, self.concurrency, self.held_max, operations.map(|operation| operation.0).boxed())
    }
}

impl BulkOperation {
    /// Inserts an entity, which must be new.
    ///
    /// # Errors
    /// A value that is not an entity.
    pub fn insert<E: Entity>(entity: &E) -> Result<Self> {
        Write::new(WriteKind::Insert, entity).map(Self)
    }

    /// Replaces an entity, all its properties.
    ///
    /// # Errors
    /// A value that is not an entity.
    pub fn replace<E: Entity>(entity: &E, condition: impl Into<IfMatch>) -> Result<Self> {
        Write::new(WriteKind::Replace(condition.into()), entity).map(Self)
    }

    /// Changes properties of an entity and leaves those alone that are not named.
    ///
    /// # Errors
    /// A value that is not an entity.
    pub fn merge<E: Entity>(entity: &E, condition: impl Into<IfMatch>) -> Result<Self> {
        Write::new(WriteKind::Merge(condition.into()), entity).map(Self)
    }

    /// Inserts an entity, or replaces the existing one.
    ///
    /// # Errors
    /// A value that is not an entity.
    pub fn insert_or_replace<E: Entity>(entity: &E) -> Result<Self> {
        Write::new(WriteKind::InsertOrReplace, entity).map(Self)
    }

    /// Inserts an entity, or changes the properties of the existing one.
    ///
    /// # Errors
    /// A value that is not an entity.
    pub fn insert_or_merge<E: Entity>(entity: &E) -> Result<Self> {
        Write::new(WriteKind::InsertOrMerge, entity).map(Self)
    }

    /// Deletes an entity.
    #[must_use]
    pub fn delete(partition_key: impl Into<String>, row_key: impl Into<String>, condition: impl Into<IfMatch>) -> Self {
        let entity = DynamicEntity::new(partition_key, row_key);
        Self(Write { kind: WriteKind::Delete(condition.into()), entity })
    }
}

const CONCURRENCY: usize = 8;
const HELD_MAX: usize = 10_000;
