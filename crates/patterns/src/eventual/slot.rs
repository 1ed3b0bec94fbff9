//! Places that carry a version: registers that only ever go up.
//!
//! Every write here is conditional on what was read, and leaves a higher version than it found. See "Why it stays
//! right" in `eventual/mod.rs`.

use crate::contention::Contention;
use crate::{Error, Result};
use larimar_client::{DynamicEntity, ETag, Table, Timestamp, Value};

/// Where an entity is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Place {
    /// The table.
    pub table: String,
    /// The partition in it.
    pub partition: String,
    /// The row in that.
    pub row: String,
}

impl Place {
    /// The place with these keys.
    #[must_use]
    pub fn new(table: impl Into<String>, partition: impl Into<String>, row: impl Into<String>) -> Self {
        Self { table: table.into(), partition: partition.into(), row: row.into() }
    }
}

/// What is at a place.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    /// As it is stored, with the properties of this module.
    pub(crate) entity: DynamicEntity,
    pub(crate) etag: ETag,
    /// 0 for an entity that was written without one.
    pub(crate) version: i64,
    /// Whether it is a tombstone.
    pub(crate) is_dead: bool,
}

impl Slot {
    pub(crate) async fn read(table: &Table, partition: &str, row: &str) -> Result<Option<Self>> {
        table.get::<DynamicEntity>(partition, row).await?.map(Self::of).transpose()
    }

    pub(crate) fn of(entity: DynamicEntity) -> Result<Self> {
        let etag = entity.etag.clone().ok_or(Error::Answer("an entity without an ETag"))?;
        let version = entity.get::<Option<i64>>(VERSION)?.unwrap_or(0);
        let is_dead = is_dead(&entity);
        Ok(Self { entity, etag, version, is_dead })
    }

    /// The entity, unless it is a tombstone.
    pub(crate) const fn live(&self) -> Option<&DynamicEntity> {
        match self.is_dead {
            true => None,
            false => Some(&self.entity),
        }
    }
}

/// Whether an entity is a tombstone: deleted, and kept for a while so that nothing late brings it back.
pub(crate) fn is_dead(entity: &DynamicEntity) -> bool {
    matches!(entity.get::<Option<bool>>(DEAD), Ok(Some(true)))
}

/// Whether an entity is derived from another, whose keys it names.
pub(crate) fn is_derived(entity: &DynamicEntity) -> bool {
    entity.value(OF_ROW).is_some()
}

/// The version after this one. The clock makes versions grow over places that were forgotten, too.
pub(crate) fn next_version(last: i64) -> i64 {
    i64::try_from(Timestamp::now().ticks()).unwrap_or(i64::MAX).max(last.saturating_add(1))
}

/// A tombstone.
pub(crate) fn tombstone(partition: &str, row: &str, version: i64) -> DynamicEntity {
    DynamicEntity::new(partition, row).with(VERSION, version).with(DEAD, true)
}

/// Brings a place to `entity`, which carries its version, unless it has got at least there already; returns whether it
/// wrote. An entity of the same version that differs is written again: there, the derived data was defined anew.
pub(crate) async fn raise(table: &Table, entity: &DynamicEntity) -> Result<bool> {
    let version = entity.get::<i64>(VERSION)?;
    let mut contention = Contention::default();
    loop {
        let written = match Slot::read(table, &entity.partition_key, &entity.row_key).await? {
            None => table.insert(entity).await,
            Some(slot) if owner(&slot.entity) != owner(entity) => {
                let DynamicEntity { partition_key, row_key, .. } = entity;
                return Err(Error::Invalid(format!(
                    "the place '{partition_key}', '{row_key}' is taken by another entity"
                )));
            }
            Some(slot) if slot.version > version => return Ok(false),
            Some(slot) if slot.version == version && is_same(&slot.entity, entity) => return Ok(false),
            Some(slot) => table.replace(entity, &slot.etag).await,
        };
        if !is_overtaken(written)? {
            return Ok(true);
        }
        contention.wait("a place").await?;
    }
}

/// Of what, and for which index, an entity is derived; of nothing if it is a primary or none of ours.
fn owner(entity: &DynamicEntity) -> [Option<&Value>; 3] {
    [OF_PARTITION, OF_ROW, INDEX].map(|name| entity.value(name))
}

/// Whether two entities have the same properties. Not a number is the same as itself here.
fn is_same(left: &DynamicEntity, right: &DynamicEntity) -> bool {
    let is_nan = |value: &Value| matches!(value, Value::Double(number) if number.is_nan());
    let mut both = left.properties().zip(right.properties());
    left.properties().len() == right.properties().len()
        && both.all(|(left, right)| left == right || left.0 == right.0 && is_nan(left.1) && is_nan(right.1))
}

/// Removes a tombstone of this very version.
pub(crate) async fn forget(table: &Table, partition: &str, row: &str, version: i64) -> Result<()> {
    match Slot::read(table, partition, row).await? {
        Some(slot) if slot.is_dead && slot.version == version => {
            // Another worker was faster and has removed or restored it: both are fine.
            is_overtaken(table.delete(partition, row, &slot.etag).await).map(drop)
        }
        _ => Ok(()),
    }
}

/// Whether a conditional write came too late; other failures stay failures.
pub(crate) fn is_overtaken<T>(written: larimar_client::Result<T>) -> Result<bool> {
    match written {
        Ok(_) => Ok(false),
        Err(error) if error.is_conflict() => Ok(true),
        // The table or container itself may be missing, which no other try cures.
        Err(error) if error.is_entity_not_found() && error.code() != Some("ContainerNotFound") => Ok(true),
        Err(error) => Err(error.into()),
    }
}

pub(crate) const VERSION: &str = "_version";
pub(crate) const DEAD: &str = "_deleted";
/// The keys of the entity that another is derived from.
pub(crate) const OF_PARTITION: &str = "_of_partition";
pub(crate) const OF_ROW: &str = "_of_row";
/// The index that a copy is of.
pub(crate) const INDEX: &str = "_index";
/// How often a write is tried that others keep overtaking.
pub(crate) const TRIES_MAX: usize = 32;
