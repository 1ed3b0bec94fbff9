//! T1, secondary index within a partition: copies of an entity under other row keys, kept equal by one transaction.
//!
//! A table finds entities by PartitionKey and RowKey and by nothing else. To find an employee by e-mail address as
//! quickly as by id, store it twice, under `empid_000123` and under `email_donh@contoso.com`. Both lie in one
//! partition, so one transaction writes both.
//!
//! ```text
//! PartitionKey  RowKey                      FirstName  LastName  …
//! Sales         email_donh@contoso.com      Don        Hall      PrimaryRowKey = 000123
//! Sales         empid_000123                Don        Hall
//! Sales         lastname_Hall!000123        Don        Hall      PrimaryRowKey = 000123
//! ```
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = larimar_embedded::Larimar::ephemeral().await?;
//! # let account = larimar_client::Account::connect(&server.connection_string())?;
//! # account.table("Employees").create_if_missing().await?;
//! use larimar_client::Entity;
//! use larimar_patterns::secondary_index::{Index, IndexedTable};
//!
//! #[derive(Entity)]
//! struct Employee {
//!     #[entity(partition_key)]
//!     department: String,
//!     #[entity(row_key)]
//!     id: String,
//!     last_name: String,
//!     email: String,
//! }
//!
//! let employees = IndexedTable::new(account.table("Employees"), "empid")?
//!     .index(Index::unique("email", |employee: &Employee| Some(employee.email.clone())))?
//!     .index(Index::many("lastname", |employee: &Employee| Some(employee.last_name.clone())))?;
//!
//! let (department, id) = ("Sales".to_owned(), "000123".to_owned());
//! let (last_name, email) = ("Hall".to_owned(), "donh@contoso.com".to_owned());
//! employees.insert(&Employee { department, id, last_name, email }).await?;
//! let don = employees.get_by("Sales", "email", "donh@contoso.com").await?.expect("it is there");
//! assert_eq!(don.id, "000123");
//! employees.update("Sales", "000123", |don| don.email = "don@contoso.com".to_owned()).await?;
//! assert!(employees.get_by("Sales", "email", "donh@contoso.com").await?.is_none());
//! # Ok(()) }
//! ```
//!
//! **Guarantees.** Every change is one transaction that takes the primary copy's ETag as its condition: readers see all
//! copies of a change or none, and writers that meet cannot leave a copy that is unequal, left over or missing. The
//! values of a unique index are unique in their partition. This holds while all who write the entities do so through
//! an `IndexedTable` with the same indexes. After adding an index, [`IndexedTable::update`] each entity once, before
//! anyone relies on it.
//!
//! **Cost.** `insert`, `get` and `get_by` are one request, `replace`, `update` and `delete` two (a read for the old
//! values of the indexes, and the transaction), ranges one for each page. Every copy takes the space of the entity,
//! or of the properties that [`Index::only`] names.

mod index;
mod write;

pub use index::{Index, IndexRange};

use crate::key_text::{self, escape};
use crate::stored::Raw;
use crate::{Error, Result};
use larimar_client::{DynamicEntity, Entity, EntityError, Query, Table};
use std::sync::Arc;

/// A table whose entities have copies under further row keys.
///
/// An entity's own row key is the value of its primary key, without prefix. Clones share their indexes.
pub struct IndexedTable<E> {
    table: Table,
    primary: Arc<str>,
    indexes: Arc<Vec<Index<E>>>,
}

impl<E: Entity + Send + Sync + 'static> IndexedTable<E> {
    /// A table without further indexes, whose primary copies have row keys that begin with `{prefix}_`.
    ///
    /// # Errors
    /// A prefix with other signs than letters, digits and hyphens, or without any.
    pub fn new(table: Table, prefix: impl AsRef<str>) -> Result<Self> {
        index::check_prefix(prefix.as_ref())?;
        Ok(Self { table, primary: prefix.as_ref().into(), indexes: Arc::default() })
    }

    /// Adds an index.
    ///
    /// # Errors
    /// A name that another index has, or one that is not a prefix; more indexes than one transaction can change, which
    /// are 49.
    pub fn index(mut self, index: Index<E>) -> Result<Self> {
        index::check_prefix(index.name())?;
        if *index.name() == *self.primary || self.indexes.iter().any(|other| other.name() == index.name()) {
            return Err(Error::Invalid(format!("expected each prefix once, found '{}' again", index.name())));
        }
        if self.indexes.len() == INDEXES_MAX {
            return Err(Error::Invalid(format!("expected at most {INDEXES_MAX} indexes")));
        }
        let mut indexes = self.indexes.to_vec();
        indexes.push(index);
        self.indexes = Arc::new(indexes);
        Ok(self)
    }

    /// The table.
    #[must_use]
    pub const fn table(&self) -> &Table {
        &self.table
    }

    /// The entity of a primary key: one request.
    ///
    /// # Errors
    /// A request that failed, or an entity that is not an `E`.
    pub async fn get(&self, partition_key: &str, row_key: &str) -> Result<Option<E>> {
        Ok(self.read(partition_key, row_key).await?.map(E::from_dynamic).transpose()?)
    }

    /// The entity of a value in a unique index: one request, or two if the index has only some properties.
    ///
    /// # Errors
    /// An index that does not exist or not unique, a request that failed, or an entity that is not an `E`.
    pub async fn get_by(&self, partition_key: &str, index: &str, value: &str) -> Result<Option<E>> {
        if !self.unique(index)?.is_partial() {
            return self.get_by_as(partition_key, index, value).await;
        }
        match self.get_by_as::<PrimaryRowKey>(partition_key, index, value).await? {
            Some(PrimaryRowKey(row_key)) => self.get(partition_key, &row_key).await,
            None => Ok(None),
        }
    }

    /// The copy of a value in a unique index as another type, such as one with only the properties that the copy has:
    /// one request.
    ///
    /// # Errors
    /// An index that does not exist or not unique, a request that failed, or an entity that is not a `P`.
    pub async fn get_by_as<P: Entity>(&self, partition_key: &str, index: &str, value: &str) -> Result<Option<P>> {
        let row_key = self.unique(index)?.row_key(value, "")?;
        let copy = self.table.get::<Raw<P>>(partition_key, &row_key).await?;
        Ok(copy.map(|copy| read_copy(copy.0, None)).transpose()?)
    }

    /// All entities of a value in an index, by primary key: one request for each page.
    ///
    /// # Errors
    /// An index that does not exist or has only some properties, a request that failed, or an entity that is not an
    /// `E`.
    pub async fn find(&self, partition_key: &str, index: &str, value: &str) -> Result<Vec<E>> {
        Ok(self.query(partition_key, index, IndexRange::Equal(value.to_owned()))?.all().await?)
    }

    /// The copies of an index in the order of its values, or a range of them, as a query to narrow and to stream: one
    /// request for each page. The primary key is an index too, by its prefix.
    ///
    /// Take `E` as the type, or a smaller one for an index that has only some properties.
    ///
    /// # Errors
    /// An index that does not exist.
    pub fn query<P: Entity + Send + 'static>(
        &self,
        partition_key: &str,
        index: &str,
        range: IndexRange,
    ) -> Result<Query<P>> {
        let is_primary = *index == *self.primary;
        let filter = if is_primary { range.filter(index, true) } else { self.find_index(index)?.filter(range) };
        let prefix = is_primary.then(|| format!("{index}_"));
        let rows = self.table.query::<Raw<P>>().partition(partition_key).filter(filter);
        Ok(rows.try_map(move |copy| read_copy(copy.0, prefix.as_deref())))
    }

    /// The primary copy, under the entity's own row key.
    async fn read(&self, partition_key: &str, row_key: &str) -> Result<Option<DynamicEntity>> {
        let copy = self.table.get::<Raw<E>>(partition_key, &self.primary_key(row_key)?).await?;
        Ok(copy.map(|Raw { 0: mut copy, .. }| {
            row_key.clone_into(&mut copy.row_key);
            copy
        }))
    }

    fn primary_key(&self, row_key: &str) -> Result<String> {
        let key = format!("{}_{row_key}", self.primary);
        key_text::check(&key)?;
        Ok(key)
    }

    fn unique(&self, index: &str) -> Result<&Index<E>> {
        let found = self.find_index(index)?;
        match found.is_unique() {
            true => Ok(found),
            false => Err(Error::Invalid(format!("the index '{index}' is not unique"))),
        }
    }

    fn find_index(&self, name: &str) -> Result<&Index<E>> {
        let found = self.indexes.iter().find(|index| index.name() == name);
        found.ok_or_else(|| Error::Invalid(format!("there is no index '{name}'")))
    }
}

impl<E> Clone for IndexedTable<E> {
    fn clone(&self) -> Self {
        let Self { table, primary, indexes } = self;
        Self { table: table.clone(), primary: Arc::clone(primary), indexes: Arc::clone(indexes) }
    }
}

impl<E> std::fmt::Debug for IndexedTable<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { table, primary, indexes } = self;
        f.debug_struct("IndexedTable")
            .field("table", table)
            .field("primary", primary)
            .field("indexes", indexes)
            .finish()
    }
}

/// What a copy says of the primary one, when that is all there is to know.
struct PrimaryRowKey(String);

impl Entity for PrimaryRowKey {
    fn to_dynamic(&self) -> Result<std::borrow::Cow<'_, DynamicEntity>, EntityError> {
        Ok(std::borrow::Cow::Owned(DynamicEntity::new("", escape(&self.0))))
    }

    fn from_dynamic(entity: DynamicEntity) -> Result<Self, EntityError> {
        Ok(Self(entity.row_key))
    }
}

/// Reads a copy as the entity it is a copy of. The version of a copy is none of the entity's.
fn read_copy<P: Entity>(mut copy: DynamicEntity, primary_prefix: Option<&str>) -> Result<P, EntityError> {
    match primary_prefix {
        Some(prefix) => copy.row_key = copy.row_key.strip_prefix(prefix).unwrap_or(&copy.row_key).to_owned(),
        None => {
            copy.row_key = copy.take(PRIMARY_ROW_KEY)?;
            copy.etag = None;
        }
    }
    P::from_dynamic(copy)
}

/// The property of a copy that has the row key of its entity.
const PRIMARY_ROW_KEY: &str = "PrimaryRowKey";

/// The primary copy is one operation of 100, an index that changes two.
const INDEXES_MAX: usize = 49;
