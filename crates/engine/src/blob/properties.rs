//! Changes of a blob that keep its bytes: metadata, content headers, tags, lease.

use super::Blobs;
use super::access::{Admit, BlobRef, Written};
use super::bytes::ByteStore;
use super::change::{Change, Decision};
use super::conditions::{Purpose, check};
use super::lease::Leased;
use super::reject::BlobReject;
use super::row::BlobRow;
use crate::contract::Engine;
use crate::error::EngineError;
use larimar_model::blob::{AccessConditions, ContentHeaders, LeaseAction, LeaseId, Tags};
use larimar_model::{Metadata, Timestamp};

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Replaces a blob's metadata.
    ///
    /// # Errors
    /// [`BlobReject::BlobNotFound`], conditions, the lease.
    pub async fn set_metadata(
        &self,
        at: BlobRef<'_>,
        metadata: &Metadata,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<Written, EngineError> {
        self.set(at, access, now, |row| row.metadata = metadata.clone()).await
    }

    /// Replaces a blob's content headers.
    ///
    /// # Errors
    /// [`BlobReject::BlobNotFound`], conditions, the lease.
    pub async fn set_content(
        &self,
        at: BlobRef<'_>,
        content: &ContentHeaders,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<Written, EngineError> {
        self.set(at, access, now, |row| row.content = content.clone()).await
    }

    /// Replaces a blob's tags. Its etag stays.
    ///
    /// # Errors
    /// [`BlobReject::BlobNotFound`], conditions, the lease.
    pub async fn set_tags(
        &self,
        at: BlobRef<'_>,
        tags: &Tags,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        let now = self.now(now).await?;
        self.edit(at, now, |row| {
            let row = access.admit_change(row, now)?;
            Ok(Decision::Commit(Change::put(BlobRow { tags: tags.clone(), ..row }), ()))
        })
        .await
    }

    /// Carries out a lease operation; the lease id of `access` is ignored. `fresh` is the id of a new lease if none is
    /// proposed. The etag stays.
    ///
    /// # Errors
    /// [`BlobReject::BlobNotFound`], conditions, and what the lease's state does not allow.
    pub async fn lease_blob(
        &self,
        at: BlobRef<'_>,
        (action, fresh): (LeaseAction, LeaseId),
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<(Written, Leased), EngineError> {
        let now = self.engine.now(now).await?;
        self.edit(at, now.earliest, |row| {
            // A blob with only uncommitted blocks can be leased too, and has the earliest possible time (recorded).
            let row = row.filter(|row| !row.is_vacant()).ok_or(BlobReject::BlobNotFound)?;
            let changed = if row.is_committed { row.changed } else { Timestamp::EDM_MIN };
            check(&access.conditions, Some(changed), Purpose::Write)?;
            access.admit_tags(&row)?;
            let (lease, leased) = row.lease.act(action, fresh, now)?;
            let written = Written { last_modified: changed };
            Ok(Decision::Commit(Change::put(BlobRow { lease, ..row }), (written, leased)))
        })
        .await
    }

    /// Changes a blob's row and its etag.
    async fn set(
        &self,
        at: BlobRef<'_>,
        access: &AccessConditions,
        now: Timestamp,
        set: impl Fn(&mut BlobRow) + Send + Sync,
    ) -> Result<Written, EngineError> {
        let now = self.now(now).await?;
        self.edit(at, now, |row| {
            let mut row = access.admit_change(row, now)?;
            row.admit_online(now)?;
            set(&mut row);
            (row.changed, row.lease) = (row.next_change(now), row.lease.after_write(now));
            let written = Written { last_modified: row.changed };
            Ok(Decision::Commit(Change::put(row), written))
        })
        .await
    }
}
