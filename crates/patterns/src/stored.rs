//! Entities as patterns store them: under another row key, with further properties, with only some, or with the version
//! that was read.
//!
//! They wrap the caller's type and keep what it says of encryption, so that patterns work with encrypted properties
//! too.

use crate::{Error, Result};
use larimar_client::{DynamicEntity, ETag, EncryptedProperty, Entity, EntityError, PropertyError, Value};
use std::borrow::Cow;
use std::marker::PhantomData;

/// An entity under another row key.
pub(crate) struct Renamed<'e, E> {
    entity: &'e E,
    row_key: String,
    /// The stored entity, whose properties are kept if `E` does not know them.
    keeping: Option<&'e DynamicEntity>,
    /// The properties to keep; all, if there is none.
    only: Option<&'e [Cow<'static, str>]>,
    added: Vec<(&'static str, Value)>,
}

impl<'e, E> Renamed<'e, E> {
    pub(crate) const fn new(entity: &'e E, row_key: String) -> Self {
        Self { entity, row_key, keeping: None, only: None, added: Vec::new() }
    }

    pub(crate) const fn keeping(mut self, stored: Option<&'e DynamicEntity>) -> Self {
        self.keeping = stored;
        self
    }

    pub(crate) const fn only(mut self, properties: Option<&'e [Cow<'static, str>]>) -> Self {
        self.only = properties;
        self
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.added.push((name, value.into()));
        self
    }
}

impl<E: Entity> Entity for Renamed<'_, E> {
    const ENCRYPTED: &'static [EncryptedProperty] = E::ENCRYPTED;

    fn to_dynamic(&self) -> Result<Cow<'_, DynamicEntity>, EntityError> {
        let mut entity = self.entity.to_dynamic()?.into_owned();
        entity.row_key.clone_from(&self.row_key);
        if let Some(stored) = self.keeping {
            entity.keep_unknown::<E>(stored.clone());
        }
        if let Some(only) = self.only {
            for (name, value) in entity.take_properties() {
                if only.iter().any(|kept| *kept == name) {
                    entity.set(name, value);
                }
            }
        }
        for (name, value) in &self.added {
            entity.set(*name, value.clone());
        }
        Ok(Cow::Owned(entity))
    }

    fn from_dynamic(_: DynamicEntity) -> Result<Self, EntityError> {
        let reason = PropertyError::invalid("this form of an entity is only ever written");
        Err(EntityError::new("RowKey", reason))
    }
}

/// An entity as it is stored, of which `E` says what is encrypted.
pub(crate) struct Raw<E>(pub(crate) DynamicEntity, PhantomData<fn() -> E>);

impl<E> Raw<E> {
    pub(crate) const fn new(entity: DynamicEntity) -> Self {
        Self(entity, PhantomData)
    }
}

impl<E: Entity> Entity for Raw<E> {
    const ENCRYPTED: &'static [EncryptedProperty] = E::ENCRYPTED;

    fn to_dynamic(&self) -> Result<Cow<'_, DynamicEntity>, EntityError> {
        Ok(Cow::Borrowed(&self.0))
    }

    fn from_dynamic(entity: DynamicEntity) -> Result<Self, EntityError> {
        Ok(Self::new(entity))
    }
}

/// An entity with the version that was read. Written again, it keeps the properties that `E` does not know.
#[derive(Clone, Debug)]
pub(crate) struct Versioned<E> {
    pub(crate) entity: E,
    pub(crate) etag: ETag,
    /// As it was read.
    pub(crate) stored: DynamicEntity,
}

impl<E: Entity> Entity for Versioned<E> {
    const ENCRYPTED: &'static [EncryptedProperty] = E::ENCRYPTED;

    fn to_dynamic(&self) -> Result<Cow<'_, DynamicEntity>, EntityError> {
        let mut entity = self.entity.to_dynamic()?.into_owned();
        entity.keep_unknown::<E>(self.stored.clone());
        Ok(Cow::Owned(entity))
    }

    fn from_dynamic(stored: DynamicEntity) -> Result<Self, EntityError> {
        let etag = stored.etag.clone().ok_or_else(|| EntityError::new("odata.etag", PropertyError::Missing))?;
        Ok(Self { entity: E::from_dynamic(stored.clone())?, etag, stored })
    }
}

/// Refuses to keep properties of a stored entity in other places than theirs if they are still encrypted: no reader
/// could decrypt them there.
pub(crate) fn check_opened(stored: &DynamicEntity) -> Result<()> {
    match stored.is_sealed() {
        true => Err(Error::Invalid("expected a table with the key for the entity's encrypted properties".to_owned())),
        false => Ok(()),
    }
}

/// Refuses an entity whose keys were changed.
pub(crate) fn check_keys<E: Entity>(entity: &E, partition_key: &str, row_key: &str) -> Result<()> {
    let entity = entity.to_dynamic()?;
    if entity.partition_key != partition_key || entity.row_key != row_key {
        let expected = "expected the keys to stay: to change them, insert the entity anew and delete the old one";
        return Err(Error::Invalid(expected.to_owned()));
    }
    Ok(())
}
