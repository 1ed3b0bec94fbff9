//! What a type must do to be stored in a table. `#[derive(Entity)]` writes it.

use crate::property::PropertyError;
use crate::{Column, DynamicEntity, Filter};
use std::borrow::Cow;

/// A type whose values are entities.
///
/// `#[derive(Entity)]` implements it for structs and `#[derive(EntityEnum)]` for enums of such structs; see
/// [`crate::entities`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an entity",
    note = "structs derive `larimar_client::Entity`, enums of entities derive `larimar_client::EntityEnum`"
)]
pub trait Entity: Sized {
    /// The value of the property `EntityType` in entities of this type (`#[entity(entity_type = "...")]`).
    const ENTITY_TYPE: Option<&'static str> = None;

    /// The properties that are encrypted before they leave this machine (`#[entity(encrypt)]`).
    const ENCRYPTED: &'static [EncryptedProperty] = &[];

    /// The filter that entities of this type pass, among entities of several: that of [`Entity::ENTITY_TYPE`]. Of a
    /// type that has none it is [`Filter::everything`].
    ///
    /// ```
    /// # use larimar_client::Entity;
    /// #[derive(Entity)]
    /// #[entity(entity_type = "Department", row_key = "department")]
    /// struct Department {
    ///     #[entity(partition_key)]
    ///     name: String,
    /// }
    /// assert_eq!(Department::type_filter().as_str(), "EntityType eq 'Department'");
    /// ```
    #[must_use]
    fn type_filter() -> Filter {
        let column: Column<String> = Column::named("EntityType");
        Self::ENTITY_TYPE.map_or_else(Filter::everything, |name| column.eq(name))
    }

    /// The entity as keys and properties.
    ///
    /// # Errors
    /// A value that the service does not store.
    fn to_dynamic(&self) -> Result<Cow<'_, DynamicEntity>, EntityError>;

    /// Makes a value from an entity of the service.
    ///
    /// # Errors
    /// An entity that lacks a property or has one of another type.
    fn from_dynamic(entity: DynamicEntity) -> Result<Self, EntityError>;

    /// The properties that this type reads, the keys and `Timestamp` among them if it reads those, for queries that
    /// project into it. `None` is for types that read all properties.
    #[must_use]
    fn columns() -> Option<Vec<Cow<'static, str>>> {
        None
    }
}

impl<T: Entity> Entity for Box<T> {
    const ENTITY_TYPE: Option<&'static str> = T::ENTITY_TYPE;
    const ENCRYPTED: &'static [EncryptedProperty] = T::ENCRYPTED;

    fn type_filter() -> Filter {
        T::type_filter()
    }

    fn to_dynamic(&self) -> Result<Cow<'_, DynamicEntity>, EntityError> {
        T::to_dynamic(self)
    }

    fn from_dynamic(entity: DynamicEntity) -> Result<Self, EntityError> {
        T::from_dynamic(entity).map(Self::new)
    }

    fn columns() -> Option<Vec<Cow<'static, str>>> {
        T::columns()
    }
}

/// Returns the properties that a type does not know. A type that reads all properties knows all.
pub(crate) fn is_unknown_to<E: Entity>() -> impl Fn(&str) -> bool {
    let known = E::columns();
    move |name| known.as_ref().is_some_and(|known| known.iter().all(|column| column != name))
}

/// A property that is encrypted before it leaves this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EncryptedProperty {
    /// The property's name.
    pub name: &'static str,
    /// The companion property that holds a keyed hash of the value, for look-ups by equality.
    pub hashed_as: Option<&'static str>,
    /// Whether only some of the type's values have the property encrypted: it is an enum, and this is of a variant.
    pub(crate) is_of_variant: bool,
}

impl EncryptedProperty {
    /// An encrypted property; derived code makes these.
    #[must_use]
    pub const fn new(name: &'static str, hashed_as: Option<&'static str>) -> Self {
        Self { name, hashed_as, is_of_variant: false }
    }

    pub(crate) const fn of_variant(self) -> Self {
        Self { is_of_variant: true, ..self }
    }
}

/// Why a value cannot be converted to an entity, or an entity to a value.
#[derive(Debug, thiserror::Error)]
#[error("property '{property}': {reason}")]
pub struct EntityError {
    property: String,
    reason: PropertyError,
}

impl EntityError {
    /// An error of the property of this name.
    #[must_use]
    pub fn new(property: impl Into<String>, reason: PropertyError) -> Self {
        Self { property: property.into(), reason }
    }

    /// The property's name.
    #[must_use]
    pub fn property(&self) -> &str {
        &self.property
    }

    /// What is wrong with it.
    #[must_use]
    pub const fn reason(&self) -> &PropertyError {
        &self.reason
    }
}
