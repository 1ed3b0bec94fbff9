//! The address of a blob, the result of a write, and the check of a request's conditions against a row.

use super::conditions::{Purpose, check, check_tags};
use super::lease::Lease;
use super::reject::BlobReject;
use super::row::BlobRow;
use crate::contract::SpaceId;
use larimar_model::Timestamp;
use larimar_model::blob::{AccessConditions, BlobETag, BlobName, Conditions};

/// A blob's address within the store.
#[derive(Clone, Copy, Debug)]
pub struct BlobRef<'a> {
    /// The container, as [`super::Blobs::find_container`] gave it.
    pub container: SpaceId,
    /// The blob's name.
    pub name: &'a BlobName,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// When it was changed, to the tick; [`Written::etag`] is another spelling of it.
    pub last_modified: Timestamp,
}

impl Written {
    /// The etag.
    #[must_use]
    pub const fn etag(self) -> BlobETag {
        BlobETag(self.last_modified)
    }
}

/// Checks an [`AccessConditions`] against the row of a blob.
pub(crate) trait Admit {
    /// Admits a write of a blob that may be missing. The row need not be committed.
    fn admit_create(&self, row: Option<&BlobRow>, now: Timestamp) -> Result<(), BlobReject>;

    /// As [`Admit::admit_create`], also for the destination of incremental copies.
    fn admit_replace(&self, row: Option<&BlobRow>, now: Timestamp) -> Result<(), BlobReject>;

    /// Admits a change of a blob, which must exist; returns its row.
    fn admit_change(&self, row: Option<BlobRow>, now: Timestamp) -> Result<BlobRow, BlobReject>;

    /// As [`Admit::admit_change`], also for the destination of incremental copies.
    fn admit_delete(&self, row: Option<BlobRow>, now: Timestamp) -> Result<BlobRow, BlobReject>;

    /// Admits a read.
    fn admit_read(&self, row: &BlobRow, now: Timestamp) -> Result<(), BlobReject>;

    /// Checks the conditions on when the tier was set; one that was not is as old as the blob.
    fn admit_tier(&self, row: &BlobRow) -> Result<(), BlobReject>;

    /// Checks the condition on tags.
    fn admit_tags(&self, row: &BlobRow) -> Result<(), BlobReject>;
}

impl Admit for AccessConditions {
    fn admit_create(&self, row: Option<&BlobRow>, now: Timestamp) -> Result<(), BlobReject> {
        self.admit_replace(row, now)?;
        row.map_or(Ok(()), BlobRow::admit_ordinary)
    }

    fn admit_replace(&self, row: Option<&BlobRow>, now: Timestamp) -> Result<(), BlobReject> {
        let there = row.filter(|row| row.is_committed);
        check(&self.conditions, there.map(|row| row.changed), Purpose::Create)?;
        if let Some(row) = there {
            self.admit_tags(row)?;
        }
        if let Some(row) = row.filter(|row| !row.is_committed && !row.is_vacant()) {
            // Blocks that are not committed have a time, though they are no blob yet: a later one fails.
            let since = Conditions { if_modified_since: self.conditions.if_modified_since, ..Conditions::NONE };
            check(&since, Some(row.changed), Purpose::Create)?;
        }
        let lease = row.map_or(Lease::None, |row| row.lease);
        lease.admit_write(self.lease, now)?;
        there.map_or(Ok(()), |row| row.admit_online(now))
    }

    fn admit_change(&self, row: Option<BlobRow>, now: Timestamp) -> Result<BlobRow, BlobReject> {
        let row = self.admit_delete(row, now)?;
        row.admit_ordinary()?;
        Ok(row)
    }

    fn admit_delete(&self, row: Option<BlobRow>, now: Timestamp) -> Result<BlobRow, BlobReject> {
        let row = row.filter(|row| row.is_committed).ok_or(BlobReject::BlobNotFound)?;
        check(&self.conditions, Some(row.changed), Purpose::Write)?;
        self.admit_tags(&row)?;
        self.admit_tier(&row)?;
        row.lease.admit_write(self.lease, now)?;
        Ok(row)
    }

    fn admit_read(&self, row: &BlobRow, now: Timestamp) -> Result<(), BlobReject> {
        check(&self.conditions, Some(row.changed), Purpose::Read)?;
        self.admit_tags(row)?;
        Ok(row.lease.admit_read(self.lease, now)?)
    }

    fn admit_tier(&self, row: &BlobRow) -> Result<(), BlobReject> {
        check(&self.tier, Some(row.tier.map_or(row.created, |(_, since)| since)), Purpose::Write)
    }

    fn admit_tags(&self, row: &BlobRow) -> Result<(), BlobReject> {
        check_tags(self.if_tags.as_ref(), &row.tags)
    }
}
