//! Lists in the partition of their entities, changed with them in one transaction.

use super::ValueOf;
use crate::contention::Contention;
use crate::eventual::slot::is_overtaken;
use crate::eventual_table::dynamic;
use crate::key_text;
use crate::{Error, Result};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use larimar_client::{DynamicEntity, ETag, Entity, Table, Transaction, keys};
use std::fmt;
use std::sync::Arc;

/// A table with lists of row keys by a value, each in the partition of its entities. It is cheap to clone.
///
/// ```text
///  PartitionKey   RowKey                what is there
///  Sales          000123                the entity: LastName = Jones, ...
///  Sales          lastname!Jones!0000   Keys = ["000123","000456", ...]
///  Sales          lastname!Jones!0001   more of them, as the first is full
/// ```
///
/// # What is guaranteed
/// An entity and its lists change together or not at all, by one transaction with the ETags of all of them; when others
/// change the same list at the same time, it is tried again. So at every moment, an entity is in the list of its value,
/// once, and in no other.
///
/// # Cost in requests
/// An insert or a delete: 3. A change: 4 if the value changes, 2 if not. The keys of a value: 1, and 1 more for each
/// entity.
///
/// # Limits
/// Every change of a list changes the same entity, so a value that is written many times a second is the wrong one
/// for this. A full chunk is followed by another: the length of a list is bound only by what one likes to read.
/// Rows of entities must not begin with the name of the lists and `!`.
#[derive(Clone)]
pub struct ListedTable {
    table: Table,
    name: Arc<str>,
    value: Arc<ValueOf>,
    chunk_units_max: usize,
}

/// A part of a list.
struct Chunk {
    number: u32,
    etag: ETag,
    keys: Vec<String>,
}

impl ListedTable {
    /// Lists of this name over what `value` says of an entity. Entities without a value are in no list.
    #[must_use]
    pub fn new(
        table: &Table,
        name: &str,
        value: impl Fn(&DynamicEntity) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self { table: table.clone(), name: name.into(), value: Arc::new(value), chunk_units_max: CHUNK_UNITS_MAX }
    }

    /// How many characters of row keys an entity of a list holds (default and maximum: 30,000).
    #[must_use]
    pub fn chunk_characters(mut self, characters: usize) -> Self {
        self.chunk_units_max = characters.clamp(1, CHUNK_UNITS_MAX);
        self
    }

    /// The table.
    #[must_use]
    pub const fn table(&self) -> &Table {
        &self.table
    }

    /// Inserts an entity, which must be new.
    ///
    /// # Errors
    /// [`Error::Exists`] if it is not.
    pub async fn insert<E: Entity>(&self, entity: &E) -> Result<()> {
        let entity = dynamic(entity)?;
        let next = |found: Option<&DynamicEntity>| match found {
            Some(_) => Err(Error::Exists),
            None => Ok(Some(entity.clone())),
        };
        self.change(&entity.partition_key, &entity.row_key, next).await
    }

    /// Inserts an entity, or replaces the existing one: the last writer wins.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn insert_or_replace<E: Entity>(&self, entity: &E) -> Result<()> {
        let entity = dynamic(entity)?;
        self.change(&entity.partition_key, &entity.row_key, |_| Ok(Some(entity.clone()))).await
    }

    /// Replaces an entity that is unchanged since it had this ETag.
    ///
    /// # Errors
    /// [`Error::NotFound`] and [`Error::Changed`].
    pub async fn replace<E: Entity>(&self, entity: &E, etag: &ETag) -> Result<()> {
        let entity = dynamic(entity)?;
        let next = |found: Option<&DynamicEntity>| match found {
            None => Err(Error::NotFound),
            Some(found) if found.etag.as_ref() != Some(etag) => Err(Error::Changed),
            Some(_) => Ok(Some(entity.clone())),
        };
        self.change(&entity.partition_key, &entity.row_key, next).await
    }

    /// Deletes an entity.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it is not there.
    pub async fn delete(&self, partition_key: &str, row_key: &str) -> Result<()> {
        self.change(partition_key, row_key, |found| found.ok_or(Error::NotFound).map(|_| None)).await
    }

    /// The row keys of the entities that have this value.
    ///
    /// # Errors
    /// A table that does not exist.
    pub async fn keys(&self, partition_key: &str, value: &str) -> Result<Vec<String>> {
        let chunks = self.chunks(partition_key, value).await?;
        let mut keys = chunks.into_iter().flat_map(|chunk| chunk.keys).collect::<Vec<_>>();
        keys.sort();
        Ok(keys)
    }

    /// The entities that have this value.
    ///
    /// They are read after the list: what changed its value in between is left out.
    ///
    /// # Errors
    /// A table that does not exist, or an entity that is not an `E`.
    pub async fn find<E: Entity>(&self, partition_key: &str, value: &str) -> Result<Vec<E>> {
        let keys = self.keys(partition_key, value).await?;
        let read = stream::iter(keys).map(|key| async move { self.table.get(partition_key, &key).await });
        let found: Vec<Option<DynamicEntity>> = read.buffered(READS_AT_A_TIME).try_collect().await?;
        let current = found.into_iter().flatten().filter(|entity| (self.value)(entity).as_deref() == Some(value));
        current.map(|entity| Ok(E::from_dynamic(entity)?)).collect()
    }

    async fn change(
        &self,
        partition: &str,
        row: &str,
        mut next: impl FnMut(Option<&DynamicEntity>) -> Result<Option<DynamicEntity>>,
    ) -> Result<()> {
        if row.strip_prefix(&*self.name).is_some_and(|rest| rest.starts_with('!')) {
            return Err(Error::Invalid(format!("the row key '{row}' is one of a list")));
        }
        let mut contention = Contention::default();
        loop {
            let found = self.table.get::<DynamicEntity>(partition, row).await?;
            let next = next(found.as_ref())?;
            let mut transaction = self.table.transaction();
            let value = |entity: Option<&DynamicEntity>| entity.and_then(|entity| (self.value)(entity));
            let (before, after) = (value(found.as_ref()), value(next.as_ref()));
            if before != after {
                if let Some(before) = before {
                    self.take_out(&mut transaction, partition, &before, row).await?;
                }
                if let Some(after) = after {
                    self.put_in(&mut transaction, partition, &after, row).await?;
                }
            }
            let etag = found.and_then(|found| found.etag);
            match (&etag, &next) {
                (None, None) => return Ok(()),
                (None, Some(entity)) => transaction.insert(entity)?,
                (Some(etag), Some(entity)) => transaction.replace(entity, etag)?,
                (Some(etag), None) => transaction.delete(partition, row, etag)?,
            };
            if !is_overtaken(transaction.submit().await)? {
                return Ok(());
            }
            contention.wait("an entity or its list").await?;
        }
    }

    async fn take_out(&self, transaction: &mut Transaction, partition: &str, value: &str, key: &str) -> Result<()> {
        for mut chunk in self.chunks(partition, value).await? {
            let before = chunk.keys.len();
            chunk.keys.retain(|found| found != key);
            if chunk.keys.len() == before {
                continue;
            }
            let entity = self.entity(partition, value, chunk.number, &chunk.keys)?;
            match chunk.keys.is_empty() {
                true => transaction.delete(partition, &entity.row_key, &chunk.etag)?,
                false => transaction.replace(&entity, &chunk.etag)?,
            };
        }
        Ok(())
    }

    async fn put_in(&self, transaction: &mut Transaction, partition: &str, value: &str, key: &str) -> Result<()> {
        let mut chunks = self.chunks(partition, value).await?;
        let units = |keys: &[String]| json(keys).encode_utf16().count();
        let has_room = |chunk: &&mut Chunk| units(&chunk.keys) + units(&[key.to_owned()]) <= self.chunk_units_max;
        if let Some(chunk) = chunks.iter_mut().find(has_room) {
            chunk.keys.push(key.to_owned());
            chunk.keys.sort();
            chunk.keys.dedup();
            transaction.replace(&self.entity(partition, value, chunk.number, &chunk.keys)?, &chunk.etag)?;
            return Ok(());
        }
        let is_free = |number: &u32| chunks.iter().all(|chunk| chunk.number != *number);
        let number = (0..CHUNKS_MAX).find(is_free).ok_or_else(|| Error::ListFull {
            value: value.to_owned(),
            bytes: chunks.iter().map(|chunk| 2 * units(&chunk.keys)).sum(),
            bytes_max: 2 * self.chunk_units_max * CHUNKS_MAX as usize,
        })?;
        transaction.insert(&self.entity(partition, value, number, &[key.to_owned()])?)?;
        Ok(())
    }

    async fn chunks(&self, partition: &str, value: &str) -> Result<Vec<Chunk>> {
        let prefix = self.prefix(value);
        let query = self.table.query::<DynamicEntity>().partition(partition);
        let found = query.filter(keys::row_key().starts_with(&prefix)).all().await?;
        let read = |mut entity: DynamicEntity| {
            let number = entity.row_key.strip_prefix(&prefix).and_then(|number| number.parse().ok());
            let keys = serde_json::from_str(&entity.take::<String>(KEYS)?).ok();
            let (Some(number), Some(keys), Some(etag)) = (number, keys, entity.etag) else {
                return Err(Error::Answer("a list that is none"));
            };
            Ok(Chunk { number, etag, keys })
        };
        found.into_iter().map(read).collect()
    }

    fn prefix(&self, value: &str) -> String {
        format!("{}!{}!", self.name, key_text::escape(value))
    }

    fn entity(&self, partition: &str, value: &str, number: u32, keys: &[String]) -> Result<DynamicEntity> {
        let row = format!("{}{number:04}", self.prefix(value));
        key_text::check(&row)?;
        Ok(DynamicEntity::new(partition, row).with(KEYS, json(keys)))
    }
}

fn json(keys: &[String]) -> String {
    serde_json::to_string(keys).expect("texts are JSON")
}

impl fmt::Debug for ListedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListedTable")
            .field("table", &self.table.name())
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

const KEYS: &str = "Keys";
/// A property of text holds 32 Ki UTF-16 code units.
const CHUNK_UNITS_MAX: usize = 30_000;
const CHUNKS_MAX: u32 = 10_000;
const READS_AT_A_TIME: usize = 16;
