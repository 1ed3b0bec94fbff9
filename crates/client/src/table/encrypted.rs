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
use crate::{DynamicEntity, EncryptedProperty, Entity, Result};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
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

    /// The encryption and the same table without it, whose entities are as they are stored.
    #[cfg(feature = "encryption")]
    pub(crate) fn without_encryption(&self) -> Option<(Arc<Encryption>, Self)> {
        let encryption = self.encryption.clone()?;
        Some((encryption, Self { encryption: None, ..self.clone() }))
    }

    /// Whether entities are changed on their way out.
    pub(super) const fn encrypts(&self) -> bool {
        #[cfg(feature = "encryption")]
        return self.encryption.is_some();
        #[cfg(not(feature = "encryption"))]
        false
    }

    /// Refuses what cannot be encrypted: merges, and what is to be encrypted where there is no key for it.
    pub(super) fn admit(&self, write: &Write) -> Result<(), EncryptionError> {
        let is_merge = matches!(write.kind, WriteKind::Merge(_) | WriteKind::InsertOrMerge);
        match self.encrypts() {
            true if is_merge => Err(EncryptionError::Merge),
            true => Ok(()),
            false => write.entity.marks.check_plain(),
        }
    }

    /// Encrypts what is to be encrypted. Without a key for it the write is refused.
    pub(super) async fn seal(&self, write: Write) -> Result<Write> {
        self.admit(&write)?;
        #[cfg(feature = "encryption")]
        if let (Some(encryption), false) = (&self.encryption, matches!(write.kind, WriteKind::Delete(_))) {
            let mut write = write;
            encryption.seal(&self.name, &mut write.entity).await?;
            return Ok(write);
        }
        Ok(write)
    }

    /// Encrypts what is to be encrypted of several writes, several at a time, since keys may be wrapped elsewhere.
    pub(super) async fn seal_all(&self, writes: Vec<Write>) -> Result<Vec<Write>> {
        let sealed = writes.into_iter().map(|write| self.seal(write));
        stream::iter(sealed).buffered(KEYS_AT_ONCE).try_collect().await
    }

    /// Decrypts an entity and makes an `E` of it. `select` is what was asked for, if not everything was.
    pub(super) async fn open<E: Entity>(&self, entity: DynamicEntity, select: Option<&str>) -> Result<E> {
        Ok(E::from_dynamic(self.decrypt(entity, E::ENCRYPTED, select).await?)?)
    }

    /// Opens the entities of a page, several at a time, since their keys may be unwrapped elsewhere.
    pub(super) async fn open_all<E: Entity>(
        &self,
        entities: Vec<DynamicEntity>,
        select: Option<&str>,
    ) -> Result<Vec<E>> {
        if !self.encrypts() {
            let mut values = Vec::with_capacity(entities.len());
            for entity in entities {
                values.push(self.open(entity, select).await?);
            }
            return Ok(values);
        }
        let opened = entities.into_iter().map(|entity| self.decrypt(entity, E::ENCRYPTED, select));
        let opened: Vec<DynamicEntity> = stream::iter(opened).buffered(KEYS_AT_ONCE).try_collect().await?;
        Ok(opened.into_iter().map(E::from_dynamic).collect::<Result<_, _>>()?)
    }

    async fn decrypt(
        &self,
        entity: DynamicEntity,
        marked: &[EncryptedProperty],
        select: Option<&str>,
    ) -> Result<DynamicEntity> {
        #[cfg(feature = "encryption")]
        if let Some(encryption) = &self.encryption {
            let selected: Option<Vec<&str>> = select.map(|select| select.split(',').collect());
            let mut entity = entity;
            encryption.open(&self.name, &mut entity, marked, selected.as_deref()).await?;
            return Ok(entity);
        }
        let _ = select;
        match (marked.first(), entity.value(METADATA)) {
            (Some(marked), Some(_)) => Err(EncryptionError::NotConfigured { property: marked.name.to_owned() }.into()),
            _ => Ok(entity),
        }
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

/// Keys of the entities of one page or transaction that are wrapped or unwrapped at once.
const KEYS_AT_ONCE: usize = 16;
