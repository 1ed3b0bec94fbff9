//! Entities under other keys too, in other partitions or another table, kept equal in the end (T2).
//!
//! ```text
//!  PartitionKey   RowKey                       what is there
//!  Sales          000123                       the primary: Email = don@contoso.com, ...
//!  email_Sales    don@contoso.com!000123       a copy of it, found by its email
//! ```
//!
//! The row key of a copy is the value, and after a `!` the primary's row key: entities may share a value, and an
//! entity whose value changed does not stand in the way of another that takes it over. Where copies of several
//! partitions are in one ([`InterPartitionIndex::in_partition`]), the primary's partition stands in between.
//!
//! # What is guaranteed
//! What [`EventualTable`](crate::eventual_table::EventualTable) guarantees: copies follow their primaries in the end,
//! also where the value changes or the primary is deleted. A [`find`](InterPartitionIndex::find) returns copies, so it
//! may be late: an entity just written is not found yet, or found as it was before, or under its value of before. It is
//! no guard of uniqueness either. Read the primary before acting on what must not be old.
//!
//! Copies overwrite nothing but copies of the same primary and index. Where something else is in the place of one, its
//! intent goes to the poison queue and says so.
//!
//! # Cost in requests
//! A look-up: 1, as the copies are one range of one partition. A write: 4 in the writer; in the worker 4 and, for each
//! copy that it touches, 2.

use crate::eventual::slot::{self, INDEX, OF_PARTITION, OF_ROW, Slot, VERSION};
use crate::eventual_table::{Derived, DerivedData, Found, Touch, plain};
use crate::key_text;
use crate::{Error, Result};
use larimar_client::{BoxFuture, Continuation, DynamicEntity, Entity, Table, keys};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// An index over a value of entities, whose copies are in other partitions or another table. It is cheap to clone.
///
/// Give it to [`EventualTableBuilder::derive`](crate::eventual_table::EventualTableBuilder::derive), and look up here.
#[derive(Clone)]
pub struct InterPartitionIndex {
    inner: Arc<Inner>,
}

/// The value of an entity, if it has one.
type ValueOf = dyn Fn(&DynamicEntity) -> Option<String> + Send + Sync;
/// The partition of an entity's copy.
type PartitionOf = dyn Fn(&DynamicEntity) -> String + Send + Sync;

struct Inner {
    name: String,
    table: Table,
    value: Box<ValueOf>,
    partition: Option<Box<PartitionOf>>,
    only: Option<BTreeSet<String>>,
}

impl InterPartitionIndex {
    /// An index of this name over what `value` says of an entity, kept in this table: the one of the primaries or
    /// another. No other index in that table has the name. Entities without a value are not in the index.
    ///
    /// The value of an entity must depend on nothing but the entity.
    #[must_use]
    pub fn new(
        table: &Table,
        name: &str,
        value: impl Fn(&DynamicEntity) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let inner =
            Inner { name: name.to_owned(), table: table.clone(), value: Box::new(value), partition: None, only: None };
        Self { inner: Arc::new(inner) }
    }

    /// An index of this name over a property of text.
    #[must_use]
    pub fn on_property(table: &Table, name: &str, property: &str) -> Self {
        let property = property.to_owned();
        Self::new(table, name, move |entity| entity.get::<Option<String>>(&property).ok().flatten())
    }

    /// Keeps copies in the partitions that `partition` says, under the row key `don@contoso.com!Sales!000123`: those of
    /// several partitions may then be in one. By default the copies of the primaries in `Sales` are in `email_Sales`,
    /// if the index is called `email`.
    ///
    /// # Panics
    /// If the index was cloned before.
    #[must_use]
    pub fn in_partition(mut self, partition: impl Fn(&DynamicEntity) -> String + Send + Sync + 'static) -> Self {
        self.change().partition = Some(Box::new(partition));
        self
    }

    /// Copies only these properties.
    ///
    /// # Panics
    /// If the index was cloned before.
    #[must_use]
    pub fn copy_only<S: Into<String>>(mut self, properties: impl IntoIterator<Item = S>) -> Self {
        self.change().only = Some(properties.into_iter().map(Into::into).collect());
        self
    }

    fn change(&mut self) -> &mut Inner {
        Arc::get_mut(&mut self.inner).expect("an index is put together before it is shared")
    }

    /// The entities that have this value, with the keys of their primaries, as of the last time the index was brought
    /// along.
    ///
    /// # Errors
    /// A table that does not exist, or an entity that is not an `E`.
    pub async fn find<E: Entity>(&self, index_partition: &str, value: &str) -> Result<Vec<E>> {
        let mut prefix = key_text::escape(value);
        prefix.push(END);
        self.range(index_partition, &prefix).await
    }

    /// The entities whose value begins like this, in the order of values.
    ///
    /// # Errors
    /// A table that does not exist, or an entity that is not an `E`.
    pub async fn find_prefix<E: Entity>(&self, index_partition: &str, prefix: &str) -> Result<Vec<E>> {
        self.range(index_partition, &key_text::escape(prefix)).await
    }

    async fn range<E: Entity>(&self, partition: &str, prefix: &str) -> Result<Vec<E>> {
        let query = self.inner.table.query::<DynamicEntity>().partition(partition);
        let copies = query.filter(keys::row_key().starts_with(prefix)).all().await?;
        let live = copies.into_iter().filter(|copy| slot::is_derived(copy) && !slot::is_dead(copy));
        live.map(|copy| Ok(E::from_dynamic(original(copy)?)?)).collect()
    }

    /// Where the copy of a primary is, if it has one.
    fn place(&self, primary: &DynamicEntity) -> Result<Option<(String, String)>> {
        let Inner { name, value, partition, .. } = &*self.inner;
        let Some(value) = value(primary) else { return Ok(None) };
        let mut row = key_text::escape(&value);
        row.push(END);
        let partition = match partition {
            Some(partition) => {
                // Primaries of several partitions may meet here, and row keys are unique within one partition only.
                key_text::escape_into(&mut row, &primary.partition_key);
                row.push(END);
                partition(primary)
            }
            None => format!("{name}_{}", primary.partition_key),
        };
        row.push_str(&primary.row_key);
        key_text::check(&partition)?;
        key_text::check(&row)?;
        Ok(Some((partition, row)))
    }
}

impl Derived for InterPartitionIndex {
    fn name(&self) -> &str {
        &self.inner.name
    }

    fn create_if_missing(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(self.inner.table.create_if_missing().await.map(drop)?) })
    }

    fn places(&self, primary: &DynamicEntity) -> Result<BTreeSet<String>> {
        let place = self.place(primary)?;
        Ok(place.map(|(partition, row)| format!("{partition}{BETWEEN}{row}")).into_iter().collect())
    }

    fn bring<'a>(&'a self, touch: Touch<'a>) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let (partition, row) = parts(touch.place)?;
            let copy = match touch.primary {
                None => slot::tombstone(partition, row, touch.version),
                Some(primary) => {
                    let mut copy = DynamicEntity::new(partition, row).with(VERSION, touch.version);
                    let only = self.inner.only.as_ref();
                    for (name, value) in plain(primary.clone()).take_properties() {
                        if only.is_none_or(|only| only.contains(&name)) {
                            copy.set(name, value);
                        }
                    }
                    copy
                }
            };
            let copy = copy.with(OF_PARTITION, touch.partition).with(OF_ROW, touch.row);
            let copy = copy.with(INDEX, self.inner.name.as_str());
            slot::raise(&self.inner.table, &copy).await
        })
    }

    fn forget<'a>(&'a self, touch: Touch<'a>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let (partition, row) = parts(touch.place)?;
            slot::forget(&self.inner.table, partition, row, touch.version).await
        })
    }

    fn scan<'a>(&'a self, from: Option<String>) -> BoxFuture<'a, Result<(Vec<Found>, Option<String>)>> {
        Box::pin(async move {
            let mut query = self.inner.table.query::<DynamicEntity>();
            if let Some(from) = from {
                let from: Continuation = serde_json::from_str(&from).map_err(Error::Intent)?;
                query = query.start_at(from);
            }
            let page = query.page().await?;
            let next = page.continuation.as_ref().map(serde_json::to_string).transpose().map_err(Error::Intent)?;
            let mut found = Vec::new();
            for copy in page.entities.into_iter().filter(slot::is_derived) {
                found.extend(self.found(copy)?);
            }
            Ok((found, next))
        })
    }
}

impl InterPartitionIndex {
    /// A copy that is this index's own: others may be in the same table.
    fn found(&self, copy: DynamicEntity) -> Result<Option<Found>> {
        let place = format!("{}{BETWEEN}{}", copy.partition_key, copy.row_key);
        if copy.get::<Option<String>>(INDEX)?.as_deref() != Some(&self.inner.name) {
            return Ok(None);
        }
        let slot = Slot::of(copy)?;
        let (partition, row) = (slot.entity.get::<String>(OF_PARTITION)?, slot.entity.get::<String>(OF_ROW)?);
        Ok(Some(Found { partition, row, version: slot.version, is_dead: slot.is_dead, place }))
    }
}

impl From<&InterPartitionIndex> for DerivedData {
    fn from(derived: &InterPartitionIndex) -> Self {
        Self::new(derived.clone())
    }
}

impl fmt::Debug for InterPartitionIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { name, table, .. } = &*self.inner;
        f.debug_struct("InterPartitionIndex").field("name", name).field("table", &table.name()).finish_non_exhaustive()
    }
}

/// A copy with the keys of its primary. Its ETag is not an ETag of the primary.
fn original(copy: DynamicEntity) -> Result<DynamicEntity> {
    let mut entity = plain(copy);
    entity.partition_key = entity.take(OF_PARTITION)?;
    entity.row_key = entity.take(OF_ROW)?;
    entity.remove(INDEX);
    entity.etag = None;
    Ok(entity)
}

/// The keys of a copy.
fn parts(place: &str) -> Result<(&str, &str)> {
    place.split_once(BETWEEN).ok_or_else(|| Error::Invalid(format!("'{place}' is not a place of an index")))
}

/// Ends the value; escaped text has none.
const END: char = '!';
/// Between the keys of a place; keys have none.
const BETWEEN: char = '\n';
