//! Changes of entities with all their copies: one transaction, under the condition of the primary copy's version.

use super::{IndexedTable, PRIMARY_ROW_KEY};
use crate::contention::Contention;
use crate::stored::{Renamed, Versioned, check_keys, check_opened};
use crate::{Error, Result};
use larimar_client::{DynamicEntity, ETag, Entity, IfMatch, Transaction};
use std::collections::BTreeSet;

impl<E: Entity + Send + Sync + 'static> IndexedTable<E> {
    /// Inserts an entity with all its copies: one request. The ETag is that of the primary copy.
    ///
    /// # Errors
    /// [`Error::Duplicate`] if the primary key or a value of a unique index is taken, or a request that failed.
    pub async fn insert(&self, entity: &E) -> Result<ETag> {
        written(self.change(&Key::of(entity)?, None, Some(New::of(entity))).await?)
    }

    /// Replaces an entity with all its copies: two requests.
    ///
    /// With [`IfMatch::Any`] the last writer wins. An ETag must be that of the primary copy, which
    /// [`IndexedTable::get`] reads.
    ///
    /// # Errors
    /// [`Error::NotFound`] and [`Error::Changed`]; [`Error::Duplicate`] if a value of a unique index is taken; or a
    /// request that failed.
    pub async fn replace(&self, entity: &E, condition: impl Into<IfMatch>) -> Result<ETag> {
        let condition = condition.into();
        let key = Key::of(entity)?;
        let mut contention = Contention::default();
        loop {
            let Some(old) = self.read(&key.partition, &key.row).await? else { return Err(Error::NotFound) };
            if matches!(&condition, IfMatch::ETag(etag) if Some(etag) != old.etag.as_ref()) {
                return Err(Error::Changed);
            }
            match self.change(&key, Some(&Versioned::from_dynamic(old)?), Some(New::of(entity))).await {
                Err(Error::Changed) if condition == IfMatch::Any => contention.wait("the entity").await?,
                other => return written(other?),
            }
        }
    }

    /// Inserts an entity with all its copies, or replaces it: two requests.
    ///
    /// # Errors
    /// [`Error::Duplicate`] if a value of a unique index is taken, [`Error::Contended`] if other writers are always
    /// faster, or a request that failed.
    pub async fn insert_or_replace(&self, entity: &E) -> Result<ETag> {
        let key = Key::of(entity)?;
        let mut contention = Contention::default();
        loop {
            let old = self.read(&key.partition, &key.row).await?.map(Versioned::from_dynamic).transpose()?;
            match self.change(&key, old.as_ref(), Some(New::of(entity))).await {
                // Another writer was faster to insert, change or delete it.
                Err(Error::Duplicate { index }) if index == *self.primary => {}
                Err(Error::Changed | Error::NotFound) => {}
                other => return written(other?),
            }
            contention.wait("the entity").await?;
        }
    }

    /// Changes an entity by a function, with all its copies: two requests, and two more each time that another writer
    /// was faster. The function is then called again, on the entity as it is now. Properties that `E` does not know
    /// ([`Entity::columns`]) are kept in all copies.
    ///
    /// What was written comes back, or `None` if the entity is not there.
    ///
    /// # Errors
    /// [`Error::Duplicate`] if a value of a unique index is taken, [`Error::Contended`] if other writers are always
    /// faster, or a request that failed.
    pub async fn update(
        &self,
        partition_key: &str,
        row_key: &str,
        mut change: impl FnMut(&mut E) + Send,
    ) -> Result<Option<E>> {
        let mut contention = Contention::default();
        loop {
            let Some(read) = self.read(partition_key, row_key).await? else { return Ok(None) };
            check_opened(&read)?;
            let old = Versioned::from_dynamic(read.clone())?;
            let mut new = E::from_dynamic(read)?;
            change(&mut new);
            check_keys(&new, partition_key, row_key)?;
            let key = Key::of(&new)?;
            match self.change(&key, Some(&old), Some(New { entity: &new, keeping: Some(&old.stored) })).await {
                Err(Error::Changed | Error::NotFound) => contention.wait("the entity").await?,
                other => return other.map(|_| Some(new)),
            }
        }
    }

    /// Deletes an entity with all its copies: two requests. Returns whether it was there.
    ///
    /// # Errors
    /// [`Error::Contended`] if other writers are always faster, or a request that failed.
    pub async fn delete(&self, partition_key: &str, row_key: &str) -> Result<bool> {
        let key = Key { partition: partition_key.to_owned(), row: row_key.to_owned() };
        let mut contention = Contention::default();
        loop {
            let Some(old) = self.read(partition_key, row_key).await? else { return Ok(false) };
            match self.change(&key, Some(&Versioned::from_dynamic(old)?), None).await {
                Err(Error::Changed | Error::NotFound) => contention.wait("the entity").await?,
                other => return other.map(|_| true),
            }
        }
    }

    /// Takes the stored entity, if there is one, to the new one, whose ETag comes back, or away.
    async fn change(&self, key: &Key, old: Option<&Versioned<E>>, new: Option<New<'_, E>>) -> Result<Option<ETag>> {
        let mut missing = BTreeSet::new();
        loop {
            let (transaction, operations) = self.transaction(key, old, new, &missing)?;
            let error = match transaction.submit().await {
                Ok(etags) => return Ok(etags.into_iter().next().flatten()),
                Err(error) => error,
            };
            let operation = error.operation().and_then(|operation| operations.into_iter().nth(operation));
            return Err(match (operation, error.status()) {
                // A copy that is gone need not be deleted. It may be so after an index was added. Each is left out
                // once.
                (Some(Operation::Delete(row_key)), Some(404)) if missing.insert(row_key.clone()) => continue,
                (Some(Operation::Insert(index)), Some(409)) => Error::Duplicate { index },
                (Some(Operation::Primary), Some(412)) => Error::Changed,
                (Some(Operation::Primary), _) if error.is_entity_not_found() => Error::NotFound,
                _ => error.into(),
            });
        }
    }

    /// The operations of a change. That of the primary copy comes first, so that of two writers who meet the slower one
    /// learns that the entity changed and not what follows from it.
    fn transaction(
        &self,
        key: &Key,
        old: Option<&Versioned<E>>,
        new: Option<New<'_, E>>,
        missing: &BTreeSet<String>,
    ) -> Result<(Transaction, Vec<Operation>)> {
        let Key { partition, row } = key;
        let mut transaction = self.table.transaction();
        let mut operations = vec![Operation::Primary];
        let primary = self.primary_key(row)?;
        match (old, new) {
            (None, Some(new)) => {
                operations[0] = Operation::Insert(self.primary.to_string());
                transaction.insert(&new.renamed(primary)).map(drop)
            }
            (Some(old), Some(new)) => transaction.replace(&new.renamed(primary), &old.etag).map(drop),
            (Some(old), None) => transaction.delete(partition, &primary, &old.etag).map(drop),
            (None, None) => Ok(()),
        }
        .map_err(larimar_client::Error::from)?;
        for index in self.indexes.iter() {
            let copy_of = |entity: &E| index.row_key_of(entity, row);
            let before = old.map(|old| copy_of(&old.entity)).transpose()?.flatten();
            let after = new.map(|new| copy_of(new.entity)).transpose()?.flatten();
            if let Some(before) =
                before.clone().filter(|before| Some(before) != after.as_ref() && !missing.contains(before))
            {
                transaction.delete(partition, &before, IfMatch::Any).map_err(larimar_client::Error::from)?;
                operations.push(Operation::Delete(before));
            }
            if let (Some(after), Some(new)) = (after, new) {
                let is_same = before.as_ref() == Some(&after);
                let copy = new.renamed(after).only(index.properties()).with(PRIMARY_ROW_KEY, row.as_str());
                let added = if is_same { transaction.insert_or_replace(&copy) } else { transaction.insert(&copy) };
                added.map_err(larimar_client::Error::from)?;
                operations.push(Operation::Insert(index.name().to_owned()));
            }
        }
        Ok((transaction, operations))
    }
}

/// What an entity becomes.
struct New<'e, E> {
    entity: &'e E,
    /// The stored entity, if its properties that `E` does not know are kept.
    keeping: Option<&'e DynamicEntity>,
}

impl<'e, E> New<'e, E> {
    const fn of(entity: &'e E) -> Self {
        Self { entity, keeping: None }
    }

    fn renamed(self, row_key: String) -> Renamed<'e, E> {
        Renamed::new(self.entity, row_key).keeping(self.keeping)
    }
}

impl<E> Clone for New<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for New<'_, E> {}

/// The ETag of what was written.
fn written(etag: Option<ETag>) -> Result<ETag> {
    etag.ok_or(Error::Answer("a transaction without an ETag"))
}

/// The keys of an entity.
struct Key {
    partition: String,
    row: String,
}

impl Key {
    fn of<E: Entity>(entity: &E) -> Result<Self> {
        let entity = entity.to_dynamic()?;
        if entity.value(PRIMARY_ROW_KEY).is_some() {
            let taken = format!("expected no property '{PRIMARY_ROW_KEY}': copies have one of that name");
            return Err(Error::Invalid(taken));
        }
        Ok(Self { partition: entity.partition_key.clone(), row: entity.row_key.clone() })
    }
}

/// What an operation of a transaction is for.
enum Operation {
    Primary,
    /// The copy of an index is written, by name.
    Insert(String),
    /// The copy under this row key is deleted.
    Delete(String),
}
