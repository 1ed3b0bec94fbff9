//! T10, wide entities: one logical entity with more than 252 properties, or more than 1 MiB, over several physical
//! ones.
//!
//! The parts lie side by side in one partition, so one transaction writes all of them and one range query reads them.
//!
//! ```text
//! PartitionKey  RowKey     WideVersion  WideParts
//! Sales         000123!00  8c9e…        3          Property000 … Property239
//! Sales         000123!01  8c9e…        3          Property240 … Property479
//! Sales         000123!02  8c9e…        3          Property480 …
//! ```
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = larimar_embedded::Larimar::ephemeral().await?;
//! # let account = larimar_client::Account::connect(&server.connection_string())?;
//! # account.table("Employees").create_if_missing().await?;
//! use larimar_client::DynamicEntity;
//! use larimar_patterns::wide_entity::WideTable;
//!
//! let employees = WideTable::new(account.table("Employees"));
//! let mut don = DynamicEntity::new("Sales", "000123");
//! for question in 0..1000 {
//!     don.set(format!("Answer{question}"), question);
//! }
//! employees.insert(&don).await?;
//! let read = employees.get::<DynamicEntity>("Sales", "000123").await?.expect("it is there");
//! assert_eq!(read.entity.get::<i32>("Answer999")?, 999);
//! # Ok(()) }
//! ```
//!
//! **Guarantees.** A write is one transaction: all parts change or none, and parts that are no longer needed go in the
//! same moment. Every write takes the first part's ETag as its condition, so writers that meet cannot mix their parts.
//! Each part has the version of the write that made it; a read that met a write between two pages finds parts of
//! different versions and is done again. An entity has up to 100 parts and 4 MiB as the transaction spells it, where
//! binary values take a third more.
//!
//! **Cost.** [`WideTable::insert`] and [`WideTable::replace`] are one request, [`WideTable::get`] one for each page (a
//! page has up to 4 MiB), the others read first and are two.

mod part;

use crate::contention::Contention;
use crate::stored::{check_keys, check_opened};
use crate::{Error, Result};
use larimar_client::{DynamicEntity, ETag, Entity, IfMatch, Table};
use part::{Head, Part, Parts};

/// A table of wide entities, each of them over several physical ones.
#[derive(Clone, Debug)]
pub struct WideTable {
    table: Table,
}

/// A wide entity as it was read.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Wide<E> {
    /// The entity.
    pub entity: E,
    /// Its version, for [`WideTable::replace`].
    pub version: WideVersion,
}

/// The version of a wide entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WideVersion {
    etag: ETag,
    parts: usize,
}

impl WideVersion {
    /// The ETag of the first part, which changes with every write.
    #[must_use]
    pub const fn etag(&self) -> &ETag {
        &self.etag
    }

    /// How many physical entities there are.
    #[must_use]
    pub const fn parts(&self) -> usize {
        self.parts
    }
}

impl WideTable {
    /// The wide entities of a table, which must be there.
    #[must_use]
    pub const fn new(table: Table) -> Self {
        Self { table }
    }

    /// The table.
    #[must_use]
    pub const fn table(&self) -> &Table {
        &self.table
    }

    /// Inserts an entity, which must be new: one request.
    ///
    /// # Errors
    /// [`Error::Exists`], an entity that is too large, or a request that failed.
    pub async fn insert<E: Entity + Send + Sync + 'static>(&self, entity: &E) -> Result<WideVersion> {
        self.write::<E>(entity.to_dynamic()?.into_owned(), None).await
    }

    /// The entity with these keys, if it exists: one request for each page.
    ///
    /// # Errors
    /// [`Error::Contended`] if writers change it each time that it is read, an entity that is not an `E`, or a request that
    /// failed.
    pub async fn get<E: Entity + Send + 'static>(&self, partition_key: &str, row_key: &str) -> Result<Option<Wide<E>>> {
        let Some((version, stored)) = self.read::<E>(partition_key, row_key).await? else { return Ok(None) };
        Ok(Some(Wide { entity: E::from_dynamic(stored)?, version }))
    }

    /// Replaces an entity, all its properties, if it has not changed since it had this version: one request.
    ///
    /// # Errors
    /// [`Error::Changed`], [`Error::NotFound`], an entity that is too large, or a request that failed.
    pub async fn replace<E: Entity + Send + Sync + 'static>(
        &self,
        entity: &E,
        version: &WideVersion,
    ) -> Result<WideVersion> {
        self.write::<E>(entity.to_dynamic()?.into_owned(), Some(version)).await
    }

    /// Inserts an entity, or replaces the existing one: two requests.
    ///
    /// # Errors
    /// [`Error::Contended`] if other writers are always faster, an entity that is too large, or a request that failed.
    pub async fn insert_or_replace<E: Entity + Send + Sync + 'static>(&self, entity: &E) -> Result<WideVersion> {
        let entity = entity.to_dynamic()?.into_owned();
        let mut contention = Contention::default();
        loop {
            let stored = self.version(&entity.partition_key, &entity.row_key).await?;
            match self.write::<E>(entity.clone(), stored.as_ref()).await {
                Err(Error::Changed | Error::NotFound | Error::Exists) => contention.wait("the entity").await?,
                other => return other,
            }
        }
    }

    /// Changes an entity by a function: two requests, and two more each time that another writer was faster. The
    /// function is then called again, on the entity as it is now. Properties that `E` does not know
    /// ([`Entity::columns`]) are kept.
    ///
    /// What was written comes back, or `None` if the entity is not there.
    ///
    /// # Errors
    /// [`Error::Contended`] if other writers are always faster, an entity that is too large, or a request that failed.
    pub async fn update<E: Entity + Send + Sync + 'static>(
        &self,
        partition_key: &str,
        row_key: &str,
        mut change: impl FnMut(&mut E) + Send,
    ) -> Result<Option<Wide<E>>> {
        let mut contention = Contention::default();
        loop {
            let Some((version, stored)) = self.read::<E>(partition_key, row_key).await? else { return Ok(None) };
            check_opened(&stored)?;
            let mut entity = E::from_dynamic(stored.clone())?;
            change(&mut entity);
            check_keys(&entity, partition_key, row_key)?;
            let mut new = entity.to_dynamic()?.into_owned();
            new.keep_unknown::<E>(stored);
            match self.write::<E>(new, Some(&version)).await {
                Err(Error::Changed | Error::NotFound) => contention.wait("the entity").await?,
                other => return other.map(|version| Some(Wide { entity, version })),
            }
        }
    }

    /// Deletes an entity: two requests. Returns whether it was there.
    ///
    /// # Errors
    /// [`Error::Contended`] if other writers are always faster, or a request that failed.
    pub async fn delete(&self, partition_key: &str, row_key: &str) -> Result<bool> {
        let mut contention = Contention::default();
        loop {
            let Some(stored) = self.version(partition_key, row_key).await? else { return Ok(false) };
            let mut transaction = self.table.transaction();
            for number in 0..stored.parts {
                let condition = if number == 0 { IfMatch::from(&stored.etag) } else { IfMatch::Any };
                let row = part::row_key(row_key, number)?;
                transaction.delete(partition_key, &row, condition).map_err(larimar_client::Error::from)?;
            }
            match transaction.submit().await.map_err(refused) {
                Err(Error::Changed | Error::NotFound) => contention.wait("the entity").await?,
                other => return other.map(|_| true),
            }
        }
    }

    /// All parts of an entity put together, of which `E` says what is encrypted.
    async fn read<E: Entity + Send + 'static>(
        &self,
        partition_key: &str,
        row_key: &str,
    ) -> Result<Option<(WideVersion, DynamicEntity)>> {
        let mut contention = Contention::of_reader();
        loop {
            let parts = self.table.query::<Part<E>>().partition(partition_key).filter(part::all_of(row_key));
            match part::assemble(parts.all().await?, row_key)? {
                Parts::None => return Ok(None),
                Parts::Whole(version, entity) => return Ok(Some((version, *entity))),
                Parts::Torn => contention.wait("the parts of an entity").await?,
            }
        }
    }

    /// The stored version, from the first part.
    async fn version(&self, partition_key: &str, row_key: &str) -> Result<Option<WideVersion>> {
        let first = self.table.get_projection::<Head>(partition_key, &part::row_key(row_key, 0)?).await?;
        Ok(first.map(|Head(version)| version))
    }

    /// Writes all parts and deletes those that are left over, if the first part is as `stored` says.
    async fn write<E: Entity + Send + Sync + 'static>(
        &self,
        entity: DynamicEntity,
        stored: Option<&WideVersion>,
    ) -> Result<WideVersion> {
        let (partition_key, row_key) = (entity.partition_key.clone(), entity.row_key.clone());
        let parts = part::split::<E>(entity)?;
        let mut transaction = self.table.transaction();
        for (number, part) in parts.iter().enumerate() {
            match (number, stored) {
                (0, None) => transaction.insert(part),
                (0, Some(stored)) => transaction.replace(part, &stored.etag),
                _ => transaction.insert_or_replace(part),
            }
            .map_err(larimar_client::Error::from)?;
        }
        for left_over in parts.len()..stored.map_or(0, |stored| stored.parts) {
            let row = part::row_key(&row_key, left_over)?;
            transaction.delete(&partition_key, &row, IfMatch::Any).map_err(larimar_client::Error::from)?;
        }
        let etags = transaction.submit().await.map_err(refused)?;
        let etag = etags.into_iter().next().flatten().ok_or(Error::Answer("a transaction without an ETag"))?;
        Ok(WideVersion { etag, parts: parts.len() })
    }
}

/// What the refusal of a transaction says of the entity: the condition is on its first part.
fn refused(error: larimar_client::Error) -> Error {
    match (error.operation(), error.status()) {
        (Some(0), Some(409)) => Error::Exists,
        (Some(0), Some(412)) => Error::Changed,
        (Some(0), _) if error.is_entity_not_found() => Error::NotFound,
        _ => error.into(),
    }
}
