//! An entity as a bag of properties, for tables whose shape is not known when the program is written.

mod sorted;

use self::sorted::Sorted;
use crate::entity::{Entity, EntityError, is_unknown_to};
use crate::marks::{METADATA, Marks};
use crate::properties::{SYSTEM, system_property};
use crate::{ETag, Property, Timestamp, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// An entity as a bag of properties.
///
/// ```
/// use larimar_client::DynamicEntity;
/// let mut employee = DynamicEntity::new("Sales", "000123").with("FirstName", "Don").with("Age", 34);
/// employee.set("Age", 35);
/// assert_eq!(employee.get::<i32>("Age")?, 35);
/// assert_eq!(employee.get::<Option<String>>("Email")?, None);
/// assert!(employee.get::<String>("Age").is_err(), "it is a number");
/// # Ok::<(), larimar_client::EntityError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DynamicEntity {
    /// The partition.
    pub partition_key: String,
    /// The row within the partition.
    pub row_key: String,
    /// When the entity was last written; only the service sets it.
    pub timestamp: Option<Timestamp>,
    /// The version that was read.
    pub etag: Option<ETag>,
    properties: Sorted,
    pub(crate) marks: Marks,
}

impl DynamicEntity {
    /// An entity without further properties.
    #[must_use]
    pub fn new(partition_key: impl Into<String>, row_key: impl Into<String>) -> Self {
        Self { partition_key: partition_key.into(), row_key: row_key.into(), ..Self::default() }
    }

    /// This entity with one more property.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// Sets a property and returns the value it had. The keys and the time are no such properties but fields.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        self.properties.insert(name.into(), value.into())
    }

    /// Removes a property and returns the value it had. A merge does not remove it from the stored entity: only
    /// a replace does.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.properties.remove(name)
    }

    /// The value of a property, if it is there.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.properties.get(name)
    }

    /// The value of a property as a type; ask for an `Option` if the property may be absent.
    ///
    /// # Errors
    /// A property that is absent or of another type.
    pub fn get<T: Property>(&self, name: &str) -> Result<T, EntityError> {
        T::from_value(self.properties.get(name).cloned()).map_err(|error| error.of(name))
    }

    /// Takes a property out, as a type. This is what derived entities read themselves with.
    ///
    /// # Errors
    /// A property that is absent or of another type.
    pub fn take<T: Property>(&mut self, name: &str) -> Result<T, EntityError> {
        T::from_value(self.properties.remove(name)).map_err(|error| error.of(name))
    }

    /// Sets a property from a type; `None` leaves it out. This is what derived entities write themselves with.
    ///
    /// # Errors
    /// A value that the service does not store.
    pub fn put<T: Property>(&mut self, name: impl Into<String>, value: &T) -> Result<(), EntityError> {
        let name = name.into();
        if let Some(value) = value.to_value().map_err(|error| error.of(&name))? {
            self.properties.insert(name, value);
        }
        Ok(())
    }

    /// The properties besides the keys and the time, by name.
    pub fn properties(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.properties.iter()
    }

    /// All properties besides the keys and the time, taken out.
    pub fn take_properties(&mut self) -> BTreeMap<String, Value> {
        std::mem::take(&mut self.properties).into_iter().collect()
    }

    /// Takes over the properties of another entity that this one lacks and that `is_wanted` accepts by name. Properties
    /// that were encrypted where the other entity was read are encrypted again when this one is written.
    pub fn fill_from(&mut self, mut other: Self, is_wanted: impl Fn(&str) -> bool) {
        for (name, value) in other.take_properties() {
            if is_wanted(&name) && self.value(&name).is_none() {
                self.set(name, value);
            }
        }
        self.marks.extend(other.marks);
    }

    /// Takes over the properties of the stored entity that the type `E` does not know ([`Entity::columns`]). To replace
    /// the stored entity by this one, made of an `E`, then keeps them.
    ///
    /// ```
    /// # use larimar_client::{DynamicEntity, Entity};
    /// #[derive(Entity)]
    /// struct Employee {
    ///     #[entity(partition_key)]
    ///     department: String,
    ///     #[entity(row_key)]
    ///     id: String,
    ///     phone: Option<String>,
    /// }
    /// let stored = DynamicEntity::new("Sales", "1").with("Phone", "555-0100").with("Room", 12);
    /// let mut employee = Employee::from_dynamic(stored.clone())?;
    /// employee.phone = None;
    /// let mut changed = employee.to_dynamic()?.into_owned();
    /// changed.keep_unknown::<Employee>(stored);
    /// assert_eq!(changed, DynamicEntity::new("Sales", "1").with("Room", 12));
    /// # Ok::<(), larimar_client::EntityError>(())
    /// ```
    pub fn keep_unknown<E: Entity>(&mut self, stored: Self) {
        self.fill_from(stored, is_unknown_to::<E>());
    }

    /// Whether it has properties that are still encrypted, because it was read without a key for them. These can be
    /// decrypted only in the place that they were read from.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.value(METADATA).is_some()
    }

    /// Takes these properties, in any order, in place of those that are there; of those with one name the last counts.
    pub(crate) fn set_properties(&mut self, properties: Vec<(String, Value)>) {
        self.properties = properties.into();
    }

    pub(crate) fn value_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.properties.get_mut(name)
    }

    /// Bytes of the entity as the service counts them; 1 MiB is the most it takes.
    #[must_use]
    pub fn size(&self) -> usize {
        let text = |text: &str| 2 * text.encode_utf16().count();
        let properties = self.properties.iter().map(|(name, value)| 8 + text(name) + value.size());
        4 + text(&self.partition_key) + text(&self.row_key) + properties.sum::<usize>()
    }
}

impl Entity for DynamicEntity {
    fn to_dynamic(&self) -> Result<Cow<'_, DynamicEntity>, EntityError> {
        // Among the properties they would be sent a second time, and which of the two counts is anyone's guess.
        match SYSTEM.into_iter().find(|name| self.value(name).is_some()) {
            Some(name) => Err(system_property(name)),
            None => Ok(Cow::Borrowed(self)),
        }
    }

    fn from_dynamic(entity: DynamicEntity) -> Result<Self, EntityError> {
        Ok(entity)
    }
}
