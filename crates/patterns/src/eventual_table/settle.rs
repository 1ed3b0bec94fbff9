//! The worker's side: bringing derived data to what the primary says.

use super::{EventualTable, Inner, Touch};
use crate::eventual::slot::{self, Slot, TRIES_MAX, VERSION, is_overtaken};
use crate::eventual::{Work, WorkError};
use crate::{Error, Result};
use larimar_client::DynamicEntity;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What an [`EventualTable`] writes down before it writes an entity.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TableIntent {
    partition: String,
    row: String,
    version: i64,
    /// By the name of the derived data.
    touched: Places,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    /// Bring what is touched to what the primary says.
    Settle,
    /// Remove the tombstones of this version.
    Forget,
}

/// Places by the name of their derived data.
pub(super) type Places = BTreeMap<String, BTreeSet<String>>;

impl TableIntent {
    pub(super) fn settle(partition: &str, row: &str, version: i64, touched: Places) -> Self {
        Self { partition: partition.to_owned(), row: row.to_owned(), version, touched, kind: Kind::Settle }
    }

    pub(super) fn partition(&self) -> &str {
        &self.partition
    }

    pub(super) fn row(&self) -> &str {
        &self.row
    }

    pub(super) const fn touched(&self) -> &Places {
        &self.touched
    }
}

impl Work for EventualTable {
    type Intent = TableIntent;

    async fn perform(&self, intent: &TableIntent, _step: usize) -> Result<(), WorkError> {
        match intent.kind {
            Kind::Settle => self.settle(intent).await.map(drop)?,
            Kind::Forget => self.forget(intent).await?,
        }
        Ok(())
    }
}

impl EventualTable {
    /// All places of these entities.
    pub(super) fn touched(&self, entities: [Option<&DynamicEntity>; 2]) -> Result<Places> {
        let mut touched = Places::new();
        for derived in &self.inner.derived {
            let places = touched.entry(derived.name().to_owned()).or_default();
            for entity in entities.into_iter().flatten() {
                places.extend(derived.places(entity)?);
            }
        }
        Ok(touched)
    }

    /// Brings everything that an intent touches to what the primary says; says how many places it changed.
    pub(super) async fn settle(&self, intent: &TableIntent) -> Result<u64> {
        let TableIntent { partition, row, .. } = intent;
        let primary = self.at_least(partition, row, intent.version).await?;
        let current = self.touched([primary.live(), None])?;
        let mut gone = intent.touched.clone();
        for (name, places) in &mut gone {
            places.retain(|place| !current.get(name).is_some_and(|current| current.contains(place)));
        }
        gone.retain(|_, places| !places.is_empty());
        if primary.is_dead || !gone.is_empty() {
            // Before there are tombstones there is an intent to remove them.
            let forget =
                TableIntent { version: primary.version, touched: gone.clone(), kind: Kind::Forget, ..intent.clone() };
            self.inner.queue.submit_hidden(&forget, self.inner.tombstones_for).await?;
        }
        // Additions first, then removals: a reader in between finds too much, not too little.
        let changed = self.bring(&current, &primary, primary.live()).await?;
        Ok(changed + self.bring(&gone, &primary, None).await?)
    }

    async fn bring(&self, places: &Places, slot: &Slot, primary: Option<&DynamicEntity>) -> Result<u64> {
        let mut changed = 0;
        let (partition, row, version) = (&slot.entity.partition_key, &slot.entity.row_key, slot.version);
        for derived in &self.inner.derived {
            for place in places.get(derived.name()).into_iter().flatten() {
                changed += u64::from(derived.bring(Touch { partition, row, version, place, primary }).await?);
            }
        }
        Ok(changed)
    }

    /// The primary, of this version at least. If it has not got there, then the write of this version is not there yet,
    /// and will never be: the raised version makes it fail.
    async fn at_least(&self, partition: &str, row: &str, version: i64) -> Result<Slot> {
        let Inner { table, .. } = &*self.inner;
        for _ in 0..TRIES_MAX {
            let written = match Slot::read(table, partition, row).await? {
                Some(slot) if slot.version >= version => return Ok(slot),
                Some(slot) => {
                    let raised = DynamicEntity::new(partition, row).with(VERSION, version);
                    table.merge(&raised, &slot.etag).await
                }
                None => table.insert(&slot::tombstone(partition, row, version)).await,
            };
            is_overtaken(written)?;
        }
        Err(Error::Contended)
    }

    pub(super) async fn forget(&self, intent: &TableIntent) -> Result<()> {
        let TableIntent { partition, row, version, touched, .. } = intent;
        for derived in &self.inner.derived {
            for place in touched.get(derived.name()).into_iter().flatten() {
                derived.forget(Touch { partition, row, version: *version, place, primary: None }).await?;
            }
        }
        slot::forget(&self.inner.table, partition, row, *version).await
    }
}
