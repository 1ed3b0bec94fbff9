//! Changes of one entity that others may change too: read, change, write if it is unchanged, and again if it is not.

use super::Table;
use super::write::{Write, WriteKind};
use crate::entity::is_unknown_to;
use crate::marks::METADATA;
use crate::pipeline::Failed;
use crate::{DynamicEntity, ETag, Entity, Error, IfMatch, Result, random};
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// A change of one entity, made on its latest version.
///
/// The entity is read, changed by a function, and replaced if it did not change meanwhile. If it did, all of it is
/// done again after a short wait, up to [`Update::attempts_max`] times. So the function may be called several times,
/// and should do nothing but change the entity.
///
/// Properties that `E` does not know ([`Entity::columns`]) are kept as they are. To change an entity of any type, take
/// [`DynamicEntity`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = larimar_embedded::Larimar::ephemeral().await?;
/// # let account = larimar_client::Account::connect(&server.connection_string())?;
/// # let table = account.table("Departments");
/// # table.create_if_missing().await?;
/// use larimar_client::{DynamicEntity, Error};
/// table.insert(&DynamicEntity::new("Department", "Sales").with("EmployeeCount", 153)).await?;
///
/// let hired = table
///     .update_with_retry("Department", "Sales", |sales: &mut DynamicEntity| {
///         let count: i32 = sales.get("EmployeeCount").unwrap_or_default();
///         sales.set("EmployeeCount", count + 1);
///     })
///     .await?;
/// let (sales, _etag) = hired.expect("the department is there");
/// assert_eq!(sales.get::<i32>("EmployeeCount")?, 154);
///
/// // A function that may refuse. Its error is any that has room for the client's.
/// let refused = table
///     .update("Department", "Sales")
///     .attempts_max(3)
///     .try_run(|sales: &mut DynamicEntity| match sales.get::<i32>("EmployeeCount")? {
///         200.. => Ok(()),
///         _ => Err(Error::Invalid("too few to divide".to_owned())),
///     })
///     .await;
/// assert!(refused.is_err());
/// # Ok(())
/// # }
/// ```
#[must_use = "an update is made by `run` or `try_run`"]
pub struct Update<E> {
    table: Table,
    partition_key: String,
    row_key: String,
    attempts_max: u32,
    entity: PhantomData<fn() -> E>,
}

impl Table {
    /// Changes an entity, and repeats if another writer changed it meanwhile; see [`Update`]. Returns it as it was
    /// written, with its new ETag, or `None` if it is not there.
    ///
    /// # Errors
    /// The entity was changed by others every time ([`Error::is_changed`]), is not an `E`, or is refused by the
    /// service.
    pub async fn update_with_retry<E: Entity>(
        &self,
        partition_key: &str,
        row_key: &str,
        change: impl FnMut(&mut E),
    ) -> Result<Option<(E, ETag)>> {
        self.update(partition_key, row_key).run(change).await
    }

    /// A change of one entity, with a choice of how often it is tried.
    pub fn update<E: Entity>(&self, partition_key: &str, row_key: &str) -> Update<E> {
        Update {
            table: self.clone(),
            partition_key: partition_key.to_owned(),
            row_key: row_key.to_owned(),
            attempts_max: ATTEMPTS_MAX,
            entity: PhantomData,
        }
    }
}

impl<E: Entity> Update<E> {
    /// How often the entity is read and written at most, at least once (default: 10 times).
    pub fn attempts_max(mut self, attempts_max: u32) -> Self {
        self.attempts_max = attempts_max.max(1);
        self
    }

    /// Makes the change and returns the entity as it was written, with its new ETag, or `None` if it is not there.
    ///
    /// # Errors
    /// The entity was changed by others every time ([`Error::is_changed`]), is not an `E`, or is refused by the
    /// service. If an answer was lost and others changed the entity since, the change may have been made
    /// ([`Error::is_ambiguous`]): it is not made a second time.
    pub async fn run(self, mut change: impl FnMut(&mut E)) -> Result<Option<(E, ETag)>> {
        self.try_run(|entity| {
            change(entity);
            Ok(())
        })
        .await
    }

    /// Makes the change unless the function refuses, and returns the entity as it was written, with its new ETag, or
    /// `None` if it is not there.
    ///
    /// # Errors
    /// The error of the function; or the entity was changed by others every time ([`Error::is_changed`]), is not an
    /// `E`, or is refused by the service; see [`Update::run`].
    pub async fn try_run<X: From<Error>>(
        self,
        mut change: impl FnMut(&mut E) -> Result<(), X>,
    ) -> Result<Option<(E, ETag)>, X> {
        let mut attempts = 1;
        loop {
            let Some(stored) = self.table.fetch_latest(&self.partition_key, &self.row_key).await? else {
                return Ok(None);
            };
            let etag = stored.etag.clone().ok_or_else(|| Error::Answer("an entity came without an ETag".to_owned()))?;
            let mut entity: E = self.table.open(stored.clone(), None).await?;
            change(&mut entity)?;
            let write = self.write(&entity, stored, etag).await?;
            match self.table.write_once(&write).await {
                Ok(Some(etag)) => return Ok(Some((entity, etag))),
                Ok(None) => return Err(Error::Answer("a write was answered without an ETag".to_owned()).into()),
                // If an answer was lost, the change may have been made before another writer's: it is not made twice.
                Err(Failed { error, after_ambiguous: false }) if error.is_changed() && attempts < self.attempts_max => {
                }
                Err(Failed { error, .. }) if error.is_entity_not_found() => {
                    return Ok(None);
                }
                Err(failed) => return Err(failed.error.into()),
            }
            // Some time up to twice the last, so that those who met do not meet again.
            let longest = FIRST_WAIT.saturating_mul(1 << attempts.min(6));
            tokio::time::sleep(longest.mul_f64(random::fraction())).await;
            attempts += 1;
        }
    }

    /// The write of the changed entity, with what `E` does not know of the stored one.
    async fn write(&self, entity: &E, stored: DynamicEntity, etag: ETag) -> Result<Write> {
        let mut write = Write::new(WriteKind::Replace(IfMatch::ETag(etag)), entity)?;
        if (&write.entity.partition_key, &write.entity.row_key) != (&self.partition_key, &self.row_key) {
            return Err(Error::Invalid("the keys of an entity cannot be changed".to_owned()));
        }
        let is_unknown = is_unknown_to::<E>();
        if stored.properties().any(|(name, _)| name != METADATA && is_unknown(name)) {
            write.entity.keep_unknown::<E>(self.table.open(stored, None).await?);
        }
        self.table.seal(write).await
    }
}

impl<E> fmt::Debug for Update<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, partition_key, row_key, attempts_max, entity: _ } = self;
        f.debug_struct("Update")
            .field("table", &table.name())
            .field("partition_key", partition_key)
            .field("row_key", row_key)
            .field("attempts_max", attempts_max)
            .finish()
    }
}

const ATTEMPTS_MAX: u32 = 10;
const FIRST_WAIT: Duration = Duration::from_millis(10);
