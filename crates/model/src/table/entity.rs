//! An entity: two keys and a body of properties.

use crate::{BodyBuilder, BodyError, EntityBody, EntityKey, Value};

/// An entity whose names, types and sizes follow the service's rules.
///
/// Its Timestamp is not here: the service sets it, as the version of the stored row.
#[derive(Clone, Debug, PartialEq)]
pub struct Entity {
    /// PartitionKey and RowKey.
    pub key: EntityKey,
    body: Vec<u8>,
}

impl Entity {
    /// An entity of this key and body.
    ///
    /// # Errors
    /// Refuses an entity of more than 1 MiB.
    pub fn new(key: EntityKey, body: BodyBuilder) -> Result<Self, BodyError> {
        let entity = Self { key, body: body.into_bytes() };
        entity.body().check_size(&entity.key)?;
        Ok(entity)
    }

    /// An entity of these properties.
    ///
    /// # Errors
    /// Refuses what breaks a rule of names, values or sizes.
    pub fn from_properties<'a>(
        key: EntityKey,
        properties: impl IntoIterator<Item = (&'a str, Value)>,
    ) -> Result<Self, BodyError> {
        let mut body = BodyBuilder::new();
        for (name, value) in properties {
            body.push(name, value.as_ref())?;
        }
        Self::new(key, body)
    }

    /// The properties.
    #[must_use]
    pub fn body(&self) -> EntityBody<'_> {
        EntityBody::from_trusted(&self.body)
    }
}
