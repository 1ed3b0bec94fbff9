//! Where entities pass through encryption, on their way out and on their way in.
//!
//! Every write becomes a [`Write`] by [`Write::new`], which marks what its type encrypts, and passes [`Table::seal`];
//! every entity that is read passes [`Table::open`]; every projection is spelled by [`Table::select`].

use super::Table;
use super::write::{Write, WriteKind};
#[cfg(feature = "encryption")]
use crate::encryption::Encryption;
use crate::encryption_error::EncryptionError;
use crate::marks::METADATA;
use crate::{DynamicEntity, Entity, Result};
use std::borrow::Cow;
#[cfg(feature = "encryption")]
use std::sync::Arc;

impl Write {
    /// A write of an entity, which passes [`Table::seal`] before it is sent.
    pub(crate) fn new<E: Entity>(kind: WriteKind, entity: &E) -> Result<Self> {
        let mut entity = entity.to_dynamic()?.into_owned();
        entity.marks.add(E::ENCRYPTED);
        Ok(Self { kind, entity })
    }
}

impl Table {
    /// The same table, whose entities are encrypted on their way out and decrypted on their way in.
    #[cfg(feature = "encryption")]
    #[must_use]
    pub fn encrypted(&self, encryption: Arc<Encryption>) -> Self {
        Self { encryption: Some(encryption), ..self.clone() }
    }

    /// Whether entities are changed on their way out.
    pub(super) const fn encrypts(&self) -> bool {
        #[cfg(feature = "encryption")]
        return self.encryption.is_some();
        #[cfg(not(feature = "encryption"))]
        false
    }

    /// Encrypts what is to be encrypted. Without a key for it the write is refused.
    pub(super) async fn seal(&self, write: Write) -> Result<Write> {
        #[cfg(feature = "encryption")]
        if let Some(encryption) = &self.encryption {
            return seal(encryption, &self.name, write).await;
        }
        write.entity.marks.check_plain()?;
        Ok(write)
    }

    /// Decrypts an entity and makes an `E` of it. `select` is what was asked for, if not everything was.
    pub(super) async fn open<E: Entity>(&self, entity: DynamicEntity, select: Option<&str>) -> Result<E> {
        #[cfg(feature = "encryption")]
        if let Some(encryption) = &self.encryption {
            let selected: Option<Vec<&str>> = select.map(|select| select.split(',').collect());
            let mut entity = entity;
            encryption.open(&self.name, &mut entity, E::ENCRYPTED, selected.as_deref()).await?;
            return Ok(E::from_dynamic(entity)?);
        }
        let _ = select;
        if let (Some(marked), Some(_)) = (E::ENCRYPTED.first(), entity.value(METADATA)) {
            return Err(EncryptionError::NotConfigured { property: marked.name.to_owned() }.into());
        }
        Ok(E::from_dynamic(entity)?)
    }

    /// The text of `$select` for these columns, with what decrypting them takes.
    pub(super) fn select(&self, columns: Vec<Cow<'static, str>>) -> String {
        #[cfg(feature = "encryption")]
        if self.encryption.is_some() {
            let mut columns = columns;
            Encryption::columns_with_metadata(&mut columns);
            return columns.join(",");
        }
        columns.join(",")
    }
}

#[cfg(feature = "encryption")]
async fn seal(encryption: &Encryption, table: &str, mut write: Write) -> Result<Write> {
    match write.kind {
        WriteKind::Delete(_) => {}
        WriteKind::Merge(_) | WriteKind::InsertOrMerge => return Err(EncryptionError::Merge.into()),
        WriteKind::Insert | WriteKind::Replace(_) | WriteKind::InsertOrReplace => {
            encryption.seal(table, &mut write.entity).await?;
        }
    }
    Ok(write)
}
