//! Lists that follow in the end, in blobs or in other partitions.

use super::ValueOf;
use super::list::List;
use super::store::{Address, Store};
use crate::contention::Contention;
use crate::eventual_table::{Derived, DerivedData, EventualTable, Found, Touch};
use crate::{Error, Result};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use larimar_client::{BoxFuture, Container, DynamicEntity, Entity, Table};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Lists of row keys by a value, in blobs or in entities of other partitions, which follow in the end. It is cheap to
/// clone.
///
/// Give it to [`EventualTableBuilder::derive`](crate::eventual_table::EventualTableBuilder::derive), and look up here.
/// There is a list for every value and every partition of primaries:
///
/// ```text
///  in a table   PartitionKey lastname_Sales   RowKey Jones!0000   { "000123": [version, 1], "000456": ... }
///  in a blob    lastname/Sales/Jones.json                         the same
/// ```
///
/// # What is guaranteed
/// What [`EventualTable`] guarantees: an entity is in the list of its value and in no other, in the end. A change of
/// the value touches the old list and the new one; until both are done, the entity may be in both.
/// [`find`](Self::find) reads the primaries too, so all that it returns has the value now; what is missing is late.
///
/// # Limits
/// A list in a table has `buckets` parts of about 900 KiB (some 25,000 keys of 10 characters each), a list in blobs has
/// 8 MiB. An entity whose list is full is written, but its intent ends in the poison queue with
/// [`Error::ListFull`]; make more buckets for a new index, and bring it along by
/// [`EventualTable::repair`].
///
/// # Cost in requests
/// The keys of a value: 1. The entities: 1 more for each. A write: 4 in the writer; in the worker 4 and, for each list
/// that it touches, 2.
#[derive(Clone)]
pub struct KeyLists {
    name: Arc<str>,
    store: Store,
    value: Arc<ValueOf>,
}

impl KeyLists {
    /// Lists of this name over what `value` says of an entity, in entities of this table: the one of the primaries or
    /// another. No other index in that table has the name.
    #[must_use]
    pub fn in_table(
        table: &Table,
        name: &str,
        value: impl Fn(&DynamicEntity) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), store: Store::Entities { table: table.clone(), buckets: 1 }, value: Arc::new(value) }
    }

    /// Lists of this name over what `value` says of an entity, in blobs of this container. No other lists in it have
    /// the name.
    #[must_use]
    pub fn in_blobs(
        container: &Container,
        name: &str,
        value: impl Fn(&DynamicEntity) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), store: Store::Blobs(container.clone()), value: Arc::new(value) }
    }

    /// Spreads every list over this many entities, from 1 to 1,000, for lists that grow large or change often. It
    /// cannot be changed later. Lists in blobs have one part.
    #[must_use]
    pub fn buckets(mut self, count: u32) -> Self {
        if let Store::Entities { buckets, .. } = &mut self.store {
            *buckets = count.clamp(1, 1000);
        }
        self
    }

    /// The row keys of the primaries in a partition that have this value, in their order, as of the last time the list
    /// was brought along.
    ///
    /// # Errors
    /// A table or container that does not exist.
    pub async fn keys(&self, partition: &str, value: &str) -> Result<Vec<String>> {
        let lists = self.store.read_all(self.address(partition, value)).await?;
        let mut keys = lists.iter().flat_map(List::keys).map(str::to_owned).collect::<Vec<_>>();
        keys.sort();
        Ok(keys)
    }

    /// The primaries in a partition that are listed under this value and still have it.
    ///
    /// # Errors
    /// A table or container that does not exist, or an entity that is not an `E`.
    pub async fn find<E: Entity + Send>(
        &self,
        primaries: &EventualTable,
        partition: &str,
        value: &str,
    ) -> Result<Vec<E>> {
        let keys = self.keys(partition, value).await?;
        let read = stream::iter(keys).map(|key| async move { primaries.get::<DynamicEntity>(partition, &key).await });
        let found = read.buffered(READS_AT_A_TIME).try_collect::<Vec<_>>().await?;
        let current = found.into_iter().flatten().filter(|entity| (self.value)(entity).as_deref() == Some(value));
        current.map(|entity| Ok(E::from_dynamic(entity)?)).collect()
    }

    fn address<'a>(&'a self, partition: &'a str, value: &'a str) -> Address<'a> {
        Address { index: &self.name, partition, value }
    }

    /// Changes the part of a list that a key is in; returns whether that was needed.
    async fn change(&self, touch: &Touch<'_>, change: impl Fn(&mut List) -> bool) -> Result<bool> {
        let (partition, value) = parts(touch.place)?;
        let address = self.address(partition, value);
        let mut contention = Contention::default();
        loop {
            let found = self.store.read(address, touch.row).await?;
            let (mut list, etag) = found.map_or_else(Default::default, |(list, etag)| (list, Some(etag)));
            if !change(&mut list) {
                return Ok(false);
            }
            if self.store.write(address, touch.row, &list, etag.as_ref()).await? {
                return Ok(true);
            }
            contention.wait("a list").await?;
        }
    }
}

impl Derived for KeyLists {
    fn name(&self) -> &str {
        &self.name
    }

    fn create_if_missing(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            match &self.store {
                Store::Blobs(container) => container.create_if_missing().await?,
                Store::Entities { table, .. } => table.create_if_missing().await?,
            };
            Ok(())
        })
    }

    fn places(&self, primary: &DynamicEntity) -> Result<BTreeSet<String>> {
        let Some(value) = (self.value)(primary) else { return Ok(BTreeSet::new()) };
        self.address(&primary.partition_key, &value).check(&self.store)?;
        Ok([format!("{}{BETWEEN}{value}", primary.partition_key)].into())
    }

    fn bring<'a>(&'a self, touch: Touch<'a>) -> BoxFuture<'a, Result<bool>> {
        let is_in = touch.primary.is_some();
        Box::pin(async move { self.change(&touch, |list| list.set(touch.row, touch.version, is_in)).await })
    }

    fn forget<'a>(&'a self, touch: Touch<'a>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { self.change(&touch, |list| list.forget(touch.row, touch.version)).await.map(drop) })
    }

    fn scan<'a>(&'a self, from: Option<String>) -> BoxFuture<'a, Result<(Vec<Found>, Option<String>)>> {
        Box::pin(async move {
            let (lists, next) = self.store.scan(&self.name, from).await?;
            let mut found = Vec::new();
            for stored in lists {
                let place = format!("{}{BETWEEN}{}", stored.partition, stored.value);
                found.extend(stored.list.members().map(|(row, version, is_in)| Found {
                    partition: stored.partition.clone(),
                    row: row.to_owned(),
                    version,
                    is_dead: !is_in,
                    place: place.clone(),
                }));
            }
            Ok((found, next))
        })
    }
}

impl From<&KeyLists> for DerivedData {
    fn from(derived: &KeyLists) -> Self {
        Self::new(derived.clone())
    }
}

impl fmt::Debug for KeyLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyLists").field("name", &self.name).field("store", &self.store).finish_non_exhaustive()
    }
}

/// The partition of the primaries, and the value.
fn parts(place: &str) -> Result<(&str, &str)> {
    place.split_once(BETWEEN).ok_or_else(|| Error::Invalid(format!("'{place}' is not a place of a list")))
}

/// Between the parts of a place; keys have none, so the first ends the partition.
const BETWEEN: char = '\n';
const READS_AT_A_TIME: usize = 16;
