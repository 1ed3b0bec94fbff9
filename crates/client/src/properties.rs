//! Parts of entities: structs that others flatten, and maps that take what nothing else does.

use crate::entity::EntityError;
use crate::property::PropertyError;
use crate::{DynamicEntity, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;

/// A type whose values are some properties of an entity, for `#[entity(flatten)]`.
///
/// `#[derive(Properties)]` implements it for structs. A `BTreeMap<String, Value>` or `HashMap<String, Value>` takes
/// every property that no other field does; it refuses those that were encrypted, which it would write back as plain
/// text. An `Option` is `None` if none of its properties is there.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be flattened into an entity",
    note = "structs derive `larimar_client::Properties`; maps are from `String` to `larimar_client::Value`"
)]
pub trait Properties: Sized {
    /// Whether this takes all remaining properties, and is therefore read last.
    const TAKES_REST: bool = false;

    /// Sets the properties in an entity, their names after a prefix.
    ///
    /// # Errors
    /// A value that the service does not store.
    fn write_to(&self, entity: &mut DynamicEntity, prefix: &str) -> Result<(), EntityError>;

    /// Takes the properties out of an entity.
    ///
    /// # Errors
    /// An entity that lacks a property or has one of another type.
    fn read_from(entity: &mut DynamicEntity, prefix: &str) -> Result<Self, EntityError>;

    /// The properties that this type reads; `None` is for types that read all properties.
    #[must_use]
    fn columns(prefix: &str) -> Option<Vec<Cow<'static, str>>>;
}

impl<T: Properties> Properties for Option<T> {
    const TAKES_REST: bool = T::TAKES_REST;

    fn write_to(&self, entity: &mut DynamicEntity, prefix: &str) -> Result<(), EntityError> {
        self.as_ref().map_or(Ok(()), |part| part.write_to(entity, prefix))
    }

    fn read_from(entity: &mut DynamicEntity, prefix: &str) -> Result<Self, EntityError> {
        let is_there = match T::columns(prefix) {
            Some(columns) => columns.iter().any(|name| entity.value(name).is_some()),
            None => entity.properties().any(|(name, _)| name.starts_with(prefix)),
        };
        is_there.then(|| T::read_from(entity, prefix)).transpose()
    }

    fn columns(prefix: &str) -> Option<Vec<Cow<'static, str>>> {
        T::columns(prefix)
    }
}

macro_rules! map {
    ($($map:ty $(where $hasher:ident)?),+) => {$(
        impl$(<$hasher: BuildHasher + Default>)? Properties for $map {
            const TAKES_REST: bool = true;

            fn write_to(&self, entity: &mut DynamicEntity, prefix: &str) -> Result<(), EntityError> {
                self.iter().try_for_each(|(name, value)| write(entity, prefix, name, value))
            }

            fn read_from(entity: &mut DynamicEntity, prefix: &str) -> Result<Self, EntityError> {
                Ok(take_rest(entity, prefix)?.collect())
            }

            fn columns(_prefix: &str) -> Option<Vec<Cow<'static, str>>> {
                None
            }
        }
    )+};
}

map!(BTreeMap<String, Value>, HashMap<String, Value, S> where S);

fn write(entity: &mut DynamicEntity, prefix: &str, name: &str, value: &Value) -> Result<(), EntityError> {
    let name = format!("{prefix}{name}");
    if SYSTEM.contains(&name.as_str()) {
        return Err(system_property(&name));
    }
    // What a field has set is the field's.
    if entity.value(&name).is_none() {
        entity.set(name, value.clone());
    }
    Ok(())
}

/// The properties whose names start with the prefix, which is taken off them.
///
/// # Errors
/// A decrypted property: once it is in a map, nothing shows that it must be encrypted again.
fn take_rest(
    entity: &mut DynamicEntity,
    prefix: &str,
) -> Result<impl Iterator<Item = (String, Value)> + use<>, EntityError> {
    let (taken, kept): (BTreeMap<_, _>, BTreeMap<_, _>) =
        entity.take_properties().into_iter().partition(|(name, _)| name.starts_with(prefix));
    if let Some(mark) = entity.marks.0.iter().find(|mark| taken.contains_key(&mark.name)) {
        let reason =
            "expected a field with #[entity(encrypt)]: a map would write back as plain text what was decrypted";
        return Err(EntityError::new(&mark.name, PropertyError::invalid(reason)));
    }
    for (name, value) in kept {
        entity.set(name, value);
    }
    let prefix_bytes = prefix.len();
    Ok(taken.into_iter().map(move |(mut name, value)| (name.split_off(prefix_bytes), value)))
}

/// The properties that every entity has; no other may be called so.
pub(crate) const SYSTEM: [&str; 3] = ["PartitionKey", "RowKey", "Timestamp"];

pub(crate) fn system_property(name: &str) -> EntityError {
    let reason = "expected another name: this is a property of the service's own";
    EntityError::new(name, PropertyError::invalid(reason))
}
