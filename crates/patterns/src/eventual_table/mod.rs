//! A table whose derived data, in other partitions, tables and blobs, becomes consistent eventually (T2, T4, T11).
//!
//! Writes go to the *primary* entity at once, as a single conditional write. What is derived from
//! it follows by intents in a queue ([`eventual`](crate::eventual)): copies under other keys
//! ([`InterPartitionIndex`](crate::inter_partition_index::InterPartitionIndex)), lists of row keys
//! ([`KeyLists`](crate::index_entities::KeyLists)), blobs that are no longer needed
//! ([`LargeEntities`](crate::large_entity::LargeEntities)).
//!
//! ```text
//!  writer   read the primary   put the intent, hidden   write the primary, version n, if unchanged   show the intent
//!  worker   see that the primary has version n or more   read it   bring every touched place to what it says
//! ```
//!
//! # What is guaranteed
//! - A write that returns `Ok` is durable in the primary, and a read of it by its own keys sees it at once.
//! - What is derived follows as soon as a worker gets to it: usually in milliseconds, after the
//!   [grace](EventualTableBuilder::grace) if the writer crashed, and when workers run again if none does. Then it
//!   matches the primary, regardless of crashes and of how often and in which order intents were delivered.
//! - Until then a derived place may be older than the primary. It is never a mixture, and never returns to an older
//!   state.
//!
//! # Why
//! An intent does not say what to write. It says which entity changed and which places that may concern, those of
//! before and those of after. The worker reads the primary, so it can only ever write what the primary says, and each
//! place takes the highest version ([why it stays right](crate::eventual#why-it-stays-right)). A worker that gets to an
//! intent before the write it belongs to raises the primary's version, conditionally: a write that is still to come
//! then fails, and its writer tries again; one that has come is what the worker reads.
//!
//! # Requirements
//! The primaries are written by this type only. They have two more properties, `_version` and `_deleted`. A deleted
//! primary leaves a tombstone for an [hour](EventualTableBuilder::tombstones_for), which reads do not show.
//! [`EventualTable::repair`] finds entities that were written otherwise.

mod derived;
mod repair;
mod settle;

pub(crate) use derived::{Derived, Found, Touch};
pub use repair::Repaired;
pub use settle::TableIntent;

use crate::contention::Contention;
use crate::eventual::slot::{self, DEAD, Slot, VERSION, is_overtaken};
use crate::eventual::{Submitted, WorkQueue, Worker};
use crate::{Error, Result};
use futures_util::future::{self, Either};
use larimar_client::{Account, BoxFuture, DynamicEntity, ETag, Entity, Table};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// A table with derived data that follows eventually. It is cheap to clone.
///
/// ```no_run
/// use larimar_client::{Account, DynamicEntity};
/// use larimar_patterns::eventual_table::EventualTable;
/// use larimar_patterns::inter_partition_index::InterPartitionIndex;
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let account = Account::connect("UseDevelopmentStorage=true")?;
/// let by_email = InterPartitionIndex::on_property(&account.table("Employees"), "email", "Email");
/// let employees = EventualTable::builder(&account, "Employees", "employees-work").derive(&by_email).build();
/// employees.create_if_missing().await?;
/// employees.insert(&DynamicEntity::new("Sales", "000123").with("Email", "don@contoso.com")).await?;
/// employees.worker().drain().await?; // or `run`, in any number of processes
/// let found: Vec<DynamicEntity> = by_email.find("email_Sales", "don@contoso.com").await?;
/// assert_eq!(found[0].row_key, "000123");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct EventualTable {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    table: Table,
    queue: WorkQueue<TableIntent>,
    derived: Vec<Arc<dyn Derived>>,
    grace: Duration,
    tombstones_for: Duration,
}

/// Builds an [`EventualTable`].
#[derive(Debug)]
#[must_use]
pub struct EventualTableBuilder {
    inner: Inner,
}

impl EventualTableBuilder {
    /// Keeps this derived data: an [index](crate::inter_partition_index::InterPartitionIndex) or
    /// [lists](crate::index_entities::KeyLists). Several may be kept, under different names.
    pub fn derive(mut self, derived: impl Into<DerivedData>) -> Self {
        self.inner.derived.push(derived.into().0);
        self
    }

    /// How long a worker waits for the writer before it takes over an intent (default: 30 seconds).
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.inner.grace = grace;
        self
    }

    /// How long tombstones are kept (default: an hour; maximum: a week). It must be longer than a request can take,
    /// than a writer or a worker can pause between two requests (a machine that sleeps and wakes up continues where it
    /// stopped), and than the clocks of the machines differ.
    pub const fn tombstones_for(mut self, time: Duration) -> Self {
        self.inner.tombstones_for = time;
        self
    }

    /// The table.
    ///
    /// # Panics
    /// If two kinds of derived data have the same name.
    #[must_use]
    pub fn build(self) -> EventualTable {
        let derived = &self.inner.derived;
        for (number, one) in derived.iter().enumerate() {
            assert!(
                derived[..number].iter().all(|other| other.name() != one.name()),
                "two are called '{}'",
                one.name()
            );
        }
        EventualTable { inner: Arc::new(self.inner) }
    }
}

/// Data that an [`EventualTable`] can keep in step with its primaries: made from a reference to an
/// [index](crate::inter_partition_index::InterPartitionIndex) or to [lists](crate::index_entities::KeyLists).
#[derive(Clone, Debug)]
pub struct DerivedData(Arc<dyn Derived>);

impl DerivedData {
    pub(crate) fn new(derived: impl Derived + 'static) -> Self {
        Self(Arc::new(derived))
    }
}

/// What becomes of a primary.
pub(crate) enum Next {
    Write(DynamicEntity),
    Delete,
    /// It stays as it is.
    Keep,
}

impl EventualTable {
    /// The table of this name, with a queue of that name for its intents.
    pub fn builder(account: &Account, table: &str, queue: &str) -> EventualTableBuilder {
        let inner = Inner {
            table: account.table(table),
            queue: WorkQueue::new(account, queue),
            derived: Vec::new(),
            grace: Duration::from_secs(30),
            tombstones_for: Duration::from_secs(3600),
        };
        EventualTableBuilder { inner }
    }

    /// Creates the table, the queues, and what derived data is kept in, if they do not exist.
    ///
    /// # Errors
    /// A name that the service refuses.
    pub async fn create_if_missing(&self) -> Result<()> {
        self.inner.table.create_if_missing().await?;
        for derived in &self.inner.derived {
            derived.create_if_missing().await?;
        }
        self.inner.queue.create_if_missing().await
    }

    /// The queue of intents, to look after.
    #[must_use]
    pub fn queue(&self) -> &WorkQueue<TableIntent> {
        &self.inner.queue
    }

    /// A worker that brings the derived data along. Run it in any number of processes.
    #[must_use]
    pub fn worker(&self) -> Worker<Self> {
        Worker::new(self.inner.queue.clone(), self.clone())
    }

    /// The primary of these keys. It is never old.
    ///
    /// # Errors
    /// A table that does not exist, or an entity that is not an `E`.
    pub async fn get<E: Entity>(&self, partition_key: &str, row_key: &str) -> Result<Option<E>> {
        let slot = Slot::read(&self.inner.table, partition_key, row_key).await?;
        Ok(slot.filter(|slot| !slot.is_dead).map(|slot| E::from_dynamic(plain(slot.entity))).transpose()?)
    }

    /// Inserts an entity, which must be new.
    ///
    /// # Errors
    /// [`Error::Exists`] if it is not.
    pub async fn insert<E: Entity>(&self, entity: &E) -> Result<ETag> {
        let entity = dynamic(entity)?;
        let next = |found: Option<&DynamicEntity>| match found {
            Some(_) => Err(Error::Exists),
            None => Ok(Next::Write(entity.clone())),
        };
        self.write(&entity.partition_key, &entity.row_key, next).await
    }

    /// Inserts an entity, or replaces the existing one: the last writer wins.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn insert_or_replace<E: Entity>(&self, entity: &E) -> Result<ETag> {
        let entity = dynamic(entity)?;
        self.write(&entity.partition_key, &entity.row_key, |_| Ok(Next::Write(entity.clone()))).await
    }

    /// Replaces an entity that is unchanged since it had this ETag.
    ///
    /// # Errors
    /// [`Error::NotFound`] and [`Error::Changed`].
    pub async fn replace<E: Entity>(&self, entity: &E, etag: &ETag) -> Result<ETag> {
        let entity = dynamic(entity)?;
        let next = |found: Option<&DynamicEntity>| match found {
            None => Err(Error::NotFound),
            Some(found) if found.etag.as_ref() != Some(etag) => Err(Error::Changed),
            Some(_) => Ok(Next::Write(entity.clone())),
        };
        self.write(&entity.partition_key, &entity.row_key, next).await
    }

    /// Changes an entity, and repeats until no other writer changed it meanwhile. Properties that `E` does not know
    /// ([`Entity::columns`]) are kept.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Contended`] if others keep changing it.
    pub async fn update<E: Entity>(
        &self,
        partition_key: &str,
        row_key: &str,
        mut change: impl FnMut(&mut E),
    ) -> Result<ETag> {
        let next = |found: Option<&DynamicEntity>| {
            let found = plain(found.ok_or(Error::NotFound)?.clone());
            let mut entity = E::from_dynamic(found.clone())?;
            change(&mut entity);
            let mut entity = dynamic(&entity)?;
            entity.keep_unknown::<E>(found);
            match (entity.partition_key.as_str(), entity.row_key.as_str()) == (partition_key, row_key) {
                true => Ok(Next::Write(entity)),
                false => Err(Error::Invalid("an update leaves the keys as they are".to_owned())),
            }
        };
        self.write(partition_key, row_key, next).await
    }

    /// Deletes an entity; returns whether it was there.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn delete(&self, partition_key: &str, row_key: &str) -> Result<bool> {
        let next = |found: Option<&DynamicEntity>| Ok(found.map_or(Next::Keep, |_| Next::Delete));
        Ok(self.change(partition_key, row_key, next, |_| Box::pin(async { Ok(()) })).await?.is_some())
    }

    async fn write(
        &self,
        partition_key: &str,
        row_key: &str,
        next: impl FnMut(Option<&DynamicEntity>) -> Result<Next>,
    ) -> Result<ETag> {
        let written = self.change(partition_key, row_key, next, |_| Box::pin(async { Ok(()) })).await?;
        written.ok_or(Error::NotFound)
    }

    /// Changes a primary to what `next` makes of it. `prepare` runs between the intent and the write, and makes what
    /// the new entity refers to; if the write does not take place, the worker cleans up after it.
    pub(crate) async fn change<'p>(
        &self,
        partition_key: &str,
        row_key: &str,
        mut next: impl FnMut(Option<&DynamicEntity>) -> Result<Next>,
        prepare: impl Fn(&DynamicEntity) -> BoxFuture<'p, Result<()>>,
    ) -> Result<Option<ETag>> {
        let Inner { table, queue, grace, .. } = &*self.inner;
        let mut contention = Contention::default();
        loop {
            let found = Slot::read(table, partition_key, row_key).await?;
            let live = found.as_ref().and_then(Slot::live);
            let next = match next(live)? {
                Next::Keep => return Ok(None),
                Next::Write(entity) => Some(plain(entity)),
                Next::Delete => None,
            };
            let version = slot::next_version(found.as_ref().map_or(0, |found| found.version));
            let touched = self.touched([live, next.as_ref()])?;
            let intent = TableIntent::settle(partition_key, row_key, version, touched);
            let mut submitted = queue.submit_hidden(&intent, *grace).await?;
            let entity = match next {
                Some(entity) => {
                    self.keep_hidden(&mut submitted, prepare(&entity)).await?;
                    entity.with(VERSION, version)
                }
                None => slot::tombstone(partition_key, row_key, version),
            };
            let written = match &found {
                None => table.insert(&entity).await,
                Some(found) => table.replace(&entity, &found.etag).await,
            };
            let etag = written.as_ref().ok().cloned();
            if !is_overtaken(written)? {
                // Best effort: it becomes visible by itself.
                let _ = queue.reveal(&mut submitted).await;
                return Ok(etag);
            }
            // Best effort: a worker that gets it finds everything as it should be. What was prepared is its to remove.
            if !self.inner.derived.iter().any(|derived| derived.is_prepared()) {
                let _ = queue.withdraw(&submitted).await;
            }
            contention.wait("the entity").await?;
        }
    }
}

impl EventualTable {
    /// Prepares what a write refers to, however long that takes: workers leave the intent alone meanwhile.
    async fn keep_hidden<'p>(
        &self,
        submitted: &mut Submitted,
        mut preparation: BoxFuture<'p, Result<()>>,
    ) -> Result<()> {
        let Inner { queue, grace, .. } = &*self.inner;
        if grace.is_zero() {
            return preparation.await;
        }
        loop {
            let sleep = pin!(tokio::time::sleep(*grace / 3));
            if let Either::Left((prepared, _)) = future::select(&mut preparation, sleep).await {
                return prepared;
            }
            // Best effort: a worker that gets it makes the write fail, and it is tried again. One that is under way is
            // waited for, as the receipt changes with it.
            let hide = pin!(queue.hide(submitted, *grace));
            if let Either::Left((prepared, hide)) = future::select(&mut preparation, hide).await {
                let _ = hide.await;
                return prepared;
            }
        }
    }
}

/// An entity as the caller knows it.
pub(crate) fn plain(mut entity: DynamicEntity) -> DynamicEntity {
    entity.remove(VERSION);
    entity.remove(DEAD);
    entity
}

/// An entity as it is stored.
pub(crate) fn dynamic<E: Entity>(entity: &E) -> Result<DynamicEntity> {
    if !E::ENCRYPTED.is_empty() {
        // Workers would have to read and copy what only the key's owner can.
        return Err(Error::Invalid("an entity with encrypted properties has no derived data".to_owned()));
    }
    Ok(entity.to_dynamic()?.into_owned())
}
