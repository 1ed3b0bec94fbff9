//! Moving a whole table to the current key.

use super::{Encryption, METADATA};
use crate::{Column, DynamicEntity, Error, Result, Table};
use futures_util::stream::{StreamExt as _, TryStreamExt as _};

/// What [`Table::rewrap_all`] found and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rewrapped {
    /// Entities that were moved to the current key.
    pub moved: u64,
    /// Encrypted entities that had the current key already, or were deleted meanwhile.
    pub unchanged: u64,
}

impl Table {
    /// Moves all entities of a table [with encryption](Table::encrypted) to the current key of its ring, so that older
    /// keys can be thrown away. Properties are neither read nor written: only content keys are wrapped anew.
    ///
    /// Others may read and write meanwhile. What ends early, by an error or because it is dropped, has done a part
    /// of its work; run again, it does the rest. Writers that still have an older key as their current one go on using
    /// it: they have to be gone before the last run.
    ///
    /// # Errors
    /// A table without encryption, metadata that is not genuine, or what the service refuses.
    pub async fn rewrap_all(&self) -> Result<Rewrapped> {
        let Some((encryption, stored)) = self.without_encryption() else {
            return Err(Error::Invalid("expected a table with encryption".to_owned()));
        };
        // A comparison is false where the property is absent.
        let is_encrypted = Column::<String>::named(METADATA).ge("");
        let entities = stored.query::<DynamicEntity>().filter(is_encrypted).select([METADATA]).stream();
        let moves = entities.map(|entity| {
            let (encryption, stored) = (&encryption, &stored);
            async move { move_one(encryption, stored, entity?).await }
        });
        let mut moves = moves.buffer_unordered(MOVES_AT_ONCE).boxed();
        let mut count = Rewrapped::default();
        while let Some(is_moved) = moves.try_next().await? {
            count.moved += u64::from(is_moved);
            count.unchanged += u64::from(!is_moved);
        }
        Ok(count)
    }
}

/// Moves an entity as it is stored; returns whether it had to.
async fn move_one(encryption: &Encryption, stored: &Table, mut entity: DynamicEntity) -> Result<bool> {
    let mut attempts = 1;
    loop {
        let Some(patch) = encryption.rewrap(stored.name(), &entity).await? else { return Ok(false) };
        let etag = patch.etag.clone().ok_or_else(|| Error::Answer("an entity came without an ETag".to_owned()))?;
        match stored.merge(&patch, etag).await {
            Ok(_) => return Ok(true),
            Err(error) if error.is_not_found() => return Ok(false),
            Err(error) if error.is_changed() && attempts < ATTEMPTS_MAX => attempts += 1,
            Err(error) => return Err(error),
        }
        match stored.get(&patch.partition_key, &patch.row_key).await? {
            Some(changed) => entity = changed,
            None => return Ok(false),
        }
    }
}

/// Entities that are moved at once.
const MOVES_AT_ONCE: usize = 16;
/// An entity that changes more often while it is moved is left to the next run.
const ATTEMPTS_MAX: u32 = 10;
