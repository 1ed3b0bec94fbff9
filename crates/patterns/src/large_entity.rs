//! Entities with values that are larger than a table takes: the values are blobs, the entity has their addresses (T11).
//!
//! ```text
//!  table  Employees   Sales  000123   FirstName = Don   Photo = Employees/Sales/000123/7f9c2ba4-...
//!  blob   Employees/Sales/000123/7f9c2ba4-...           the photo, of up to 256 MiB
//! ```
//!
//! Every value that is written gets a blob of its own, with a unique name: first an intent, then the blob, then
//! the entity, and at last the blob of before is removed, which is the worker's to do
//! ([`EventualTable`]).
//!
//! # What is guaranteed
//! - An entity and its values change together: a reader sees all of them from before, or all from after.
//! - No reader finds an address without a blob. A reader whose blob was replaced while it came for it reads the entity
//!   again.
//! - A process that crashes leaves at worst a blob without a reference. The worker removes it, and again an hour
//!   later, should it have come late. [`LargeEntities::sweep`] finds those without an intent.
//!
//! # Cost in requests
//! A write: 4 and one for each value (more for values above 8 MiB). A read: 1 and one for each value. The worker: 4 and
//! one for each blob that goes, and as much again an hour later.

use crate::contention::Contention;
use crate::eventual::Worker;
use crate::eventual::slot;
use crate::eventual_table::{
    Derived, DerivedData, EventualTable, EventualTableBuilder, Found, Next, Repaired, Touch, dynamic,
};
use crate::key_text;
use crate::{Error, Result};
use futures_util::StreamExt as _;
use larimar_client::{
    BlobCondition, BoxFuture, Container, DynamicEntity, ETag, Entity, Guid, ListOptions, Timestamp, UploadOptions,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Entities with large values in blobs. It is cheap to clone.
///
/// ```no_run
/// use larimar_client::{Account, DynamicEntity};
/// use larimar_patterns::eventual_table::EventualTable;
/// use larimar_patterns::large_entity::LargeEntities;
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let account = Account::connect("UseDevelopmentStorage=true")?;
/// let employees = EventualTable::builder(&account, "Employees", "employees-work");
/// let employees = LargeEntities::new(employees, &account.container("employees"), "Employees", ["Photo"]);
/// employees.create_if_missing().await?;
/// let don = DynamicEntity::new("Sales", "000123").with("FirstName", "Don");
/// employees.put(&don, [("Photo", Some(vec![0; 5_000_000]))]).await?;
/// let don = employees.get::<DynamicEntity>("Sales", "000123").await?.expect("it is there");
/// assert_eq!(don.values["Photo"].len(), 5_000_000);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LargeEntities {
    table: EventualTable,
    values: LargeValues,
}

/// An entity with its large values.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Large<E> {
    /// The entity. The properties of large values hold the names of their blobs.
    pub entity: E,
    /// The large values that the entity has, by property.
    pub values: BTreeMap<String, Vec<u8>>,
}

/// The blobs of a table's entities.
#[derive(Clone, Debug)]
struct LargeValues {
    container: Container,
    /// What the names of blobs begin with.
    prefix: Arc<str>,
    properties: Arc<BTreeSet<String>>,
    young_for: Duration,
}

impl LargeEntities {
    /// Entities whose `properties` are blobs of this container, under names that begin with `prefix`, which must be no
    /// other table's. Give the table's other derived data and settings to its builder before.
    ///
    /// # Panics
    /// If there is derived data called `large`.
    #[must_use]
    pub fn new<S: Into<String>>(
        table: EventualTableBuilder,
        container: &Container,
        prefix: &str,
        properties: impl IntoIterator<Item = S>,
    ) -> Self {
        let values = LargeValues {
            container: container.clone(),
            prefix: key_text::segment(prefix).into(),
            properties: Arc::new(properties.into_iter().map(Into::into).collect()),
            young_for: Duration::from_secs(3600),
        };
        Self { table: table.derive(DerivedData::new(values.clone())).build(), values }
    }

    /// Creates table, queues and container if they do not exist.
    ///
    /// # Errors
    /// A name that the service refuses.
    pub async fn create_if_missing(&self) -> Result<()> {
        self.table.create_if_missing().await
    }

    /// The table, for reads that need no large values, for deletes, and to look after its queue. Its writes do not know
    /// of large values: an entity that they replace loses them.
    #[must_use]
    pub const fn table(&self) -> &EventualTable {
        &self.table
    }

    /// A worker that removes blobs which are no longer needed. Run it in any number of processes.
    #[must_use]
    pub fn worker(&self) -> Worker<EventualTable> {
        self.table.worker()
    }

    /// Inserts or replaces an entity. Values that are given are written, those given as `None` are removed, and those
    /// that are not named stay as they are.
    ///
    /// # Errors
    /// A value that is none of the properties of [`new`](Self::new), or has more than 256 MiB; what the service
    /// refuses.
    pub async fn put<N, V>(
        &self,
        entity: &impl Entity,
        values: impl IntoIterator<Item = (N, Option<V>)>,
    ) -> Result<ETag>
    where
        N: Into<String>,
        V: Into<Vec<u8>>,
    {
        let entity = dynamic(entity)?;
        let mut given = BTreeMap::new();
        for (name, value) in values {
            let name = name.into();
            if !self.values.properties.contains(&name) {
                return Err(Error::Invalid(format!("'{name}' is none of the large values")));
            }
            let value: Option<Vec<u8>> = value.map(Into::into);
            if let Some(bytes) = value.as_ref().map(Vec::len).filter(|bytes| *bytes > VALUE_BYTES_MAX) {
                let most = VALUE_BYTES_MAX >> 20;
                return Err(Error::Invalid(format!("'{name}' has {bytes} bytes, and {most} MiB is the most")));
            }
            given.insert(name, value.map(Arc::new));
        }
        let next = |found: Option<&DynamicEntity>| Ok(Next::Write(self.values.next(entity.clone(), found, &given)?));
        let prepare = |entity: &DynamicEntity| self.values.upload(entity, &given);
        let written = self.table.change(&entity.partition_key, &entity.row_key, next, prepare).await?;
        written.ok_or(Error::NotFound)
    }

    /// Inserts or replaces an entity, and leaves its large values as they are.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn put_entity(&self, entity: &impl Entity) -> Result<ETag> {
        self.put(entity, std::iter::empty::<(String, Option<Vec<u8>>)>()).await
    }

    /// An entity with its large values.
    ///
    /// # Errors
    /// A table that does not exist, or an entity that is not an `E`; [`Error::Contended`] if others keep replacing its
    /// values, or have removed a blob that the entity still refers to.
    pub async fn get<E: Entity>(&self, partition_key: &str, row_key: &str) -> Result<Option<Large<E>>> {
        let mut contention = Contention::of_reader();
        loop {
            let Some(entity) = self.table.get::<DynamicEntity>(partition_key, row_key).await? else { return Ok(None) };
            // A blob that is gone was replaced: the entity says by what.
            if let Some(values) = self.values.download(&entity).await? {
                return Ok(Some(Large { entity: E::from_dynamic(entity)?, values }));
            }
            contention.wait("a large value").await?;
        }
    }

    /// Deletes an entity with its values; returns whether it was there.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn delete(&self, partition_key: &str, row_key: &str) -> Result<bool> {
        self.table.delete(partition_key, row_key).await
    }

    /// Removes blobs that no entity refers to and that are older than this, an hour or more if others write at the same
    /// time; says what it found.
    ///
    /// Workers do that for all that was written here. This is for blobs that came by other ways, or whose queue got
    /// lost. It lists all blobs and reads the entity of each.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn sweep(&self, older_than: Duration) -> Result<Repaired> {
        let values = LargeValues { young_for: older_than, ..self.values.clone() };
        self.table.repair_derived(&values).await
    }
}

impl LargeValues {
    /// The entity with the addresses of its values: new ones, and those of before.
    fn next(
        &self,
        mut entity: DynamicEntity,
        found: Option<&DynamicEntity>,
        given: &BTreeMap<String, Option<Arc<Vec<u8>>>>,
    ) -> Result<DynamicEntity> {
        for name in &*self.properties {
            // What stands there is the address of some earlier time at best.
            entity.remove(name);
            let address = match given.get(name) {
                Some(None) => None,
                Some(Some(_)) => Some(self.address(&entity)?),
                None => found.and_then(|found| found.get::<Option<String>>(name).ok().flatten()),
            };
            if let Some(address) = address {
                entity.set(name.as_str(), address);
            }
        }
        Ok(entity)
    }

    /// What the names of an entity's blobs begin with.
    fn folder(&self, entity: &DynamicEntity) -> String {
        let (partition, row) = (key_text::segment(&entity.partition_key), key_text::segment(&entity.row_key));
        format!("{}/{partition}/{row}/", self.prefix)
    }

    /// A name that no blob has had.
    fn address(&self, entity: &DynamicEntity) -> Result<String> {
        let address = format!("{}{}", self.folder(entity), Guid::random());
        match address.encode_utf16().count() > BLOB_NAME_MAX {
            true => Err(Error::Invalid("the keys of the entity are too long for the name of a blob".to_owned())),
            false => Ok(address),
        }
    }

    fn upload(
        &self,
        entity: &DynamicEntity,
        given: &BTreeMap<String, Option<Arc<Vec<u8>>>>,
    ) -> BoxFuture<'static, Result<()>> {
        let address = |name: &String| entity.get::<String>(name);
        let uploads = given.iter().filter_map(|(name, value)| Some((address(name), Arc::clone(value.as_ref()?))));
        let (uploads, container) = (uploads.collect::<Vec<_>>(), self.container.clone());
        Box::pin(async move {
            for (address, value) in uploads {
                let options = UploadOptions::default().condition(BlobCondition::Missing);
                container.blob(address?).upload(value.to_vec(), options).await?;
            }
            Ok(())
        })
    }

    /// All values of an entity; nothing if one of them is gone.
    async fn download(&self, entity: &DynamicEntity) -> Result<Option<BTreeMap<String, Vec<u8>>>> {
        let mut values = BTreeMap::new();
        for name in &*self.properties {
            let Some(address) = entity.get::<Option<String>>(name)? else { continue };
            let found = match self.container.blob(address).download().await {
                // It went when a part of it was read already.
                Err(error) if error.code() == Some("BlobNotFound") => None,
                other => other?,
            };
            let Some(found) = found else { return Ok(None) };
            values.insert(name.clone(), found.bytes.to_vec());
        }
        Ok(Some(values))
    }

    async fn remove(&self, address: &str) -> Result<bool> {
        Ok(self.container.blob(address).delete_if_exists().await?)
    }
}

impl Derived for LargeValues {
    fn name(&self) -> &str {
        "large"
    }

    fn create_if_missing(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(self.container.create_if_missing().await.map(drop)?) })
    }

    fn places(&self, primary: &DynamicEntity) -> Result<BTreeSet<String>> {
        // What stands there may have been written by others: only an entity's own blobs are ever removed with it.
        let folder = self.folder(primary);
        let address = |name: &String| primary.get::<Option<String>>(name).ok().flatten();
        Ok(self.properties.iter().filter_map(address).filter(|address| address.starts_with(&folder)).collect())
    }

    /// A name is used once, so a blob that an entity does not have any more will never be had again, and a blob that it
    /// does not have yet belongs to a write that the raised version makes fail.
    fn bring<'a>(&'a self, touch: Touch<'a>) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            match touch.primary {
                Some(_) => Ok(false),
                None => self.remove(touch.place).await,
            }
        })
    }

    /// Once more, for uploads that came late.
    fn forget<'a>(&'a self, touch: Touch<'a>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { self.remove(touch.place).await.map(drop) })
    }

    fn is_prepared(&self) -> bool {
        true
    }

    fn scan<'a>(&'a self, from: Option<String>) -> BoxFuture<'a, Result<(Vec<Found>, Option<String>)>> {
        Box::pin(async move {
            let mut options = ListOptions::default().prefix(format!("{}/", self.prefix));
            if let Some(marker) = from {
                options = options.start_at(marker);
            }
            let mut pages = Box::pin(self.container.list_pages(options));
            let page = pages.next().await.transpose()?.unwrap_or_default();
            let before = Timestamp::now().before(self.young_for);
            let old = page.blobs.into_iter().filter(|blob| blob.last_modified <= before);
            let found = old.filter_map(|blob| {
                let mut parts = blob.name.split('/').skip(1).map(key_text::from_segment);
                let (partition, row) = (parts.next()??, parts.next()??);
                // The version of now: a write that is under way with this blob has to fail.
                Some(Found { partition, row, version: slot::next_version(0), is_dead: false, place: blob.name.clone() })
            });
            Ok((found.collect(), page.marker))
        })
    }
}

const BLOB_NAME_MAX: usize = 1024;
/// The client's default limit of a download.
const VALUE_BYTES_MAX: usize = 256 << 20;
