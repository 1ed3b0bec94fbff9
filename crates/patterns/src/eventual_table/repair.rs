//! Repairs what has no intent: entities that were written otherwise, and places without an owner.

use super::settle::Places;
use super::{Derived, EventualTable, TableIntent};
use crate::Result;
use crate::eventual::slot::{self, Slot};
use futures_util::TryStreamExt as _;
use larimar_client::{DynamicEntity, Timestamp};

/// What [`EventualTable::repair`] found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repaired {
    /// Primaries that were looked at.
    pub primaries: u64,
    /// Derived places that were looked at.
    pub places: u64,
    /// Derived places that were wrong and are right now.
    pub corrected: u64,
}

impl EventualTable {
    /// Goes through all primaries and all derived data, and corrects what differs.
    ///
    /// It is not needed for what was written by this type: workers do that. It is for tables that get an index later,
    /// for entities that were written past this type, and to be sure: a second run corrects nothing. It may run while
    /// others write. It reads the whole table, and the primary of each derived place.
    ///
    /// # Errors
    /// What the service refuses. What was corrected stays so.
    pub async fn repair(&self) -> Result<Repaired> {
        let mut repaired = Repaired::default();
        let mut primaries = self.inner.table.query::<DynamicEntity>().stream();
        while let Some(entity) = primaries.try_next().await? {
            // Copies may be in the same table; tombstones have an intent of their own.
            if slot::is_derived(&entity) || slot::is_dead(&entity) {
                continue;
            }
            repaired.primaries += 1;
            let slot = Slot::of(entity)?;
            let version = if slot.version == 0 { slot::next_version(0) } else { slot.version };
            let (partition, row) = (&slot.entity.partition_key, &slot.entity.row_key);
            repaired.corrected += self.settle(&TableIntent::settle(partition, row, version, Places::new())).await?;
        }
        self.repair_places(&mut repaired).await?;
        Ok(repaired)
    }

    /// Corrects places whose primary does not have them.
    async fn repair_places(&self, repaired: &mut Repaired) -> Result<()> {
        for derived in &self.inner.derived {
            self.repair_places_of(&**derived, repaired).await?;
        }
        Ok(())
    }

    /// The same for what this derived data finds.
    pub(crate) async fn repair_derived(&self, derived: &dyn Derived) -> Result<Repaired> {
        let mut repaired = Repaired::default();
        self.repair_places_of(derived, &mut repaired).await?;
        Ok(repaired)
    }

    async fn repair_places_of(&self, derived: &dyn Derived, repaired: &mut Repaired) -> Result<()> {
        let kept_since = i64::try_from(Timestamp::now().before(self.inner.tombstones_for).ticks()).unwrap_or(i64::MAX);
        let mut from = None;
        loop {
            let (page, next) = derived.scan(from).await?;
            for found in page {
                repaired.places += 1;
                if found.is_dead && found.version > kept_since {
                    continue;
                }
                let touched = Places::from([(derived.name().to_owned(), [found.place].into())]);
                let intent = TableIntent::settle(&found.partition, &found.row, found.version, touched);
                match found.is_dead {
                    // Its intent got lost, or was never made.
                    true => self.forget(&intent).await?,
                    false => repaired.corrected += self.settle_stray(&intent).await?,
                }
            }
            from = next;
            if from.is_none() {
                return Ok(());
            }
        }
    }

    /// Settles a place unless its primary has it, in which case it was looked at already.
    async fn settle_stray(&self, intent: &TableIntent) -> Result<u64> {
        let primary = Slot::read(&self.inner.table, intent.partition(), intent.row()).await?;
        let current = self.touched([primary.as_ref().and_then(Slot::live), None])?;
        let is_owned = |(name, places): (&String, &std::collections::BTreeSet<String>)| {
            current.get(name).is_some_and(|current| places.is_subset(current))
        };
        match intent.touched().iter().all(is_owned) {
            true => Ok(0),
            false => self.settle(intent).await,
        }
    }
}
