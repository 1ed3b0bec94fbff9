//! Access tiers: archived blobs keep their properties and tags, and are not read or changed until they are rehydrated.
//!
//! A rehydration is stored with the time at which it ends; readers compare it with the engine's clock, as for leases.
//! Nothing has to run in the background.

use super::access::{Admit, BlobRef};
use super::bytes::ByteStore;
use super::change::{Change, Decision};
use super::codec::{Reader, put_bytes, put_time};
use super::reject::BlobReject;
use super::row::BlobRow;
use super::{Blobs, keys};
use crate::contract::Engine;
use crate::error::EngineError;
use larimar_model::Timestamp;
use larimar_model::blob::{AccessConditions, AccessTier, RehydratePriority, Rehydration, SnapshotTime};
use std::time::Duration;

/// What Set Blob Tier did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TierSet {
    /// The blob has the tier.
    Done,
    /// The blob is being rehydrated and will have it.
    Pending,
}

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Sets the tier of a blob or a snapshot. An archived one is rehydrated: it has the tier after
    /// [`Blobs::with_rehydration_time`]. The etag stays.
    ///
    /// # Errors
    /// [`BlobReject::BlobNotFound`], the condition on tags, the lease if one is named, a tier for other blobs,
    /// [`BlobReject::BeingRehydrated`].
    pub async fn set_tier(
        &self,
        at: BlobRef<'_>,
        snapshot: Option<SnapshotTime>,
        (tier, priority): (AccessTier, Option<RehydratePriority>),
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<TierSet, EngineError> {
        let now = self.now(now).await?;
        let until = now.after(self.rehydration_time);
        let decide = &|row: Option<BlobRow>| {
            let mut row = row.filter(|row| row.is_committed).ok_or(BlobReject::BlobNotFound)?;
            access.admit_tags(&row)?;
            row.lease.admit_read(access.lease, now)?;
            row.admit_content(snapshot)?;
            let set = row.set_tier(tier, priority, until, now)?;
            Ok::<_, BlobReject>((row, set))
        };
        let Some(snapshot) = snapshot else {
            let edit = |row| decide(row).map(|(row, set)| Decision::Commit(Change::put(row), set));
            return self.edit(at, now, edit).await;
        };
        self.change(at, now, |stored| async move {
            // Every change of a snapshot changes the version of the blob's row: listings rely on it.
            let blob = stored.row.ok_or(BlobReject::BlobNotFound)?;
            let name = keys::snapshot(snapshot);
            let (row, set) = decide(self.load(at, &name).await?.map(|(_, row)| row))?;
            Ok(Decision::Commit(Change::put(blob).with_puts([(name, row.encode())]), set))
        })
        .await
    }
}

impl BlobRow {
    /// The tier at a time, and when the blob got it.
    pub(crate) fn tier_at(&self, now: Timestamp) -> Option<(AccessTier, Timestamp)> {
        match self.rehydration {
            Some(Rehydration { to, until, .. }) if now >= until => Some((to, until)),
            _ => self.tier,
        }
    }

    /// The rehydration that is under way at a time.
    pub(crate) fn rehydration_at(&self, now: Timestamp) -> Option<Rehydration> {
        self.rehydration.filter(|rehydration| now < rehydration.until)
    }

    /// Whether the blob is in the archive at a time, also while it is being rehydrated.
    pub(crate) fn is_archived(&self, now: Timestamp) -> bool {
        self.is_committed && self.tier_at(now).is_some_and(|(tier, _)| tier == AccessTier::ARCHIVE)
    }

    /// Refuses to read, change or replace the content of an archived blob.
    pub(crate) fn admit_online(&self, now: Timestamp) -> Result<(), BlobReject> {
        if self.is_archived(now) { Err(BlobReject::Archived) } else { Ok(()) }
    }

    fn set_tier(
        &mut self,
        tier: AccessTier,
        priority: Option<RehydratePriority>,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<TierSet, BlobReject> {
        if !tier.is_of(self.kind) {
            return Err(BlobReject::InvalidBlobTier);
        }
        if let Some(pending) = self.rehydration_at(now) {
            // Its target cannot be changed; its priority can be raised.
            if pending.to != tier {
                return Err(BlobReject::BeingRehydrated);
            }
            let priority = priority.map_or(pending.priority, |priority| priority.max(pending.priority));
            self.rehydration = Some(Rehydration { priority, ..pending });
            return Ok(TierSet::Pending);
        }
        if self.is_archived(now) && tier != AccessTier::ARCHIVE {
            let priority = priority.unwrap_or_default();
            self.rehydration = Some(Rehydration { to: tier, priority, until, is_copy: false });
            return Ok(TierSet::Pending);
        }
        (self.tier, self.rehydration) = (Some((tier, now)), None);
        Ok(TierSet::Done)
    }
}

/// Appends the stored form of a rehydration.
pub(crate) fn put_rehydration(out: &mut Vec<u8>, rehydration: &Rehydration) {
    put_bytes(out, rehydration.to.as_str().as_bytes());
    let priority = u8::from(rehydration.priority == RehydratePriority::High);
    out.push(priority | if rehydration.is_copy { COPY } else { 0 });
    put_time(out, rehydration.until);
}

/// Reads the stored form of a rehydration.
pub(crate) fn take_rehydration(reader: &mut Reader<'_>) -> Option<Rehydration> {
    let to = reader.text()?.parse().ok()?;
    let flags = reader.byte()?;
    let priority = match flags & !COPY {
        0 => RehydratePriority::Standard,
        1 => RehydratePriority::High,
        _ => return None,
    };
    Some(Rehydration { to, priority, is_copy: flags & COPY != 0, until: reader.time()? })
}

/// Set beside the priority of a rehydration that is a copy.
const COPY: u8 = 2;

/// How long a rehydration takes by default: short, so that tests need not wait for hours.
pub(crate) const REHYDRATION_TIME: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ticks: u64) -> Timestamp {
        Timestamp::from_ticks(ticks)
    }

    fn blob() -> BlobRow {
        BlobRow { is_committed: true, ..BlobRow::uncommitted(at(1)) }
    }

    #[test]
    fn a_rehydration_ends_by_the_clock() {
        let mut row = blob();
        let cool: AccessTier = "Cool".parse().expect("a tier");
        assert_eq!(row.set_tier(AccessTier::ARCHIVE, None, at(20), at(10)), Ok(TierSet::Done));
        assert_eq!(row.admit_online(at(10)), Err(BlobReject::Archived));
        assert_eq!(row.set_tier(cool, None, at(30), at(20)), Ok(TierSet::Pending));
        assert_eq!(row.tier_at(at(29)), Some((AccessTier::ARCHIVE, at(10))));
        assert!(row.is_archived(at(29)) && row.rehydration_at(at(29)).is_some());
        assert_eq!(row.tier_at(at(30)), Some((cool, at(30))));
        assert!(!row.is_archived(at(30)) && row.rehydration_at(at(30)).is_none());
        // What is set after the end counts, and is not undone by the old rehydration.
        assert_eq!(row.set_tier(AccessTier::ARCHIVE, None, at(50), at(40)), Ok(TierSet::Done));
        assert!(row.is_archived(at(100)));
    }

    #[test]
    fn a_rehydration_becomes_more_urgent_and_nothing_else() {
        let mut row = blob();
        row.set_tier(AccessTier::ARCHIVE, None, at(20), at(10)).expect("it is set");
        let high = Some(RehydratePriority::High);
        row.set_tier(AccessTier::HOT, None, at(30), at(20)).expect("it is rehydrated");
        assert_eq!(row.set_tier(AccessTier::ARCHIVE, None, at(40), at(21)), Err(BlobReject::BeingRehydrated));
        assert_eq!(row.set_tier(AccessTier::HOT, high, at(40), at(21)), Ok(TierSet::Pending));
        row.set_tier(AccessTier::HOT, None, at(40), at(22)).expect("it is as it was");
        let rehydration = row.rehydration_at(at(22)).expect("it is under way");
        assert_eq!((rehydration.priority, rehydration.until), (RehydratePriority::High, at(30)));
    }
}
