//! What derived code calls. It is not part of the public interface and may change at any time.

use crate::column::is_same;
use crate::entity::{EncryptedProperty, Entity, EntityError};
use crate::property::{Property, PropertyError};
use crate::{DynamicEntity, Value};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

/// A type that is stored as text, which is what can be encrypted.
#[diagnostic::on_unimplemented(
    message = "only text is encrypted, and `{Self}` is not stored as text",
    note = "`#[entity(string)]` stores text by `Display` and `FromStr`, `#[entity(json)]` stores JSON by serde"
)]
pub trait Text {}

impl Text for String {}

/// Compiles only for what is stored as text.
pub const fn assert_text<T: Property<Scalar: Text>>() {}

/// A property's name after the prefix of the struct it is flattened from.
#[must_use]
pub fn prefixed<'a>(prefix: &str, name: &'a str) -> Cow<'a, str> {
    if prefix.is_empty() { Cow::Borrowed(name) } else { Cow::Owned(format!("{prefix}{name}")) }
}

/// Reads a key.
pub fn key<T: FromStr<Err: Display>>(name: &str, text: String) -> Result<T, EntityError> {
    text.parse().map_err(|error| PropertyError::invalid(error).of(name))
}

/// The time of the last write, as the type that a struct has for times.
pub fn time<From: Into<To>, To>(time: Option<From>) -> Option<To> {
    time.map(Into::into)
}

/// Sets a property, if there is one.
pub fn put(
    entity: &mut DynamicEntity,
    name: &str,
    value: Result<Option<Value>, PropertyError>,
) -> Result<(), EntityError> {
    value.map_err(|error| error.of(name))?.map_or(Ok(()), |value| set(entity, name, value))
}

/// Sets a property, which no other field may have set: one of the two values would be lost.
fn set(entity: &mut DynamicEntity, name: &str, value: impl Into<Value>) -> Result<(), EntityError> {
    match entity.set(name, value) {
        None => Ok(()),
        Some(_) => {
            Err(PropertyError::invalid("expected one field of this name, found another in what is flattened").of(name))
        }
    }
}

/// What was read from a property, with its name in the error.
pub fn take<T>(name: &str, value: Result<T, PropertyError>) -> Result<T, EntityError> {
    value.map_err(|error| error.of(name))
}

/// Writes a property as text.
pub fn put_text<T: Display>(entity: &mut DynamicEntity, name: &str, value: &T) -> Result<(), EntityError> {
    set(entity, name, value.to_string())
}

/// Writes a property as text, if there is one.
pub fn put_text_option<T: Display>(
    entity: &mut DynamicEntity,
    name: &str,
    value: &Option<T>,
) -> Result<(), EntityError> {
    value.as_ref().map_or(Ok(()), |value| put_text(entity, name, value))
}

/// Reads a property from text.
pub fn take_text<T: FromStr<Err: Display>>(entity: &mut DynamicEntity, name: &str) -> Result<T, EntityError> {
    key(name, entity.take(name)?)
}

/// Reads a property from text, if it is there.
pub fn take_text_option<T: FromStr<Err: Display>>(
    entity: &mut DynamicEntity,
    name: &str,
) -> Result<Option<T>, EntityError> {
    entity.take::<Option<String>>(name)?.map(|text| key(name, text)).transpose()
}

/// Writes a property as JSON.
pub fn put_json<T: Serialize>(entity: &mut DynamicEntity, name: &str, value: &T) -> Result<(), EntityError> {
    let text = serde_json::to_string(value).map_err(|error| PropertyError::invalid(error).of(name))?;
    set(entity, name, text)
}

/// Writes a property as JSON, if there is one.
pub fn put_json_option<T: Serialize>(
    entity: &mut DynamicEntity,
    name: &str,
    value: &Option<T>,
) -> Result<(), EntityError> {
    value.as_ref().map_or(Ok(()), |value| put_json(entity, name, value))
}

/// Reads a property from JSON.
pub fn take_json<T: DeserializeOwned>(entity: &mut DynamicEntity, name: &str) -> Result<T, EntityError> {
    from_json(name, &entity.take::<String>(name)?)
}

/// Reads a property from JSON, if it is there.
pub fn take_json_option<T: DeserializeOwned>(entity: &mut DynamicEntity, name: &str) -> Result<Option<T>, EntityError> {
    // A JSON null is none, too: others may have written it.
    entity.take::<Option<String>>(name)?.map_or(Ok(None), |text| from_json(name, &text))
}

fn from_json<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, EntityError> {
    serde_json::from_str(text).map_err(|error| PropertyError::invalid(error).of(name))
}

/// The text of an enum's variant, as filters compare it.
pub fn literal<T: Property>(value: &T) -> Value {
    let value = value.to_value().ok().flatten();
    value.expect("a derived enum has a text for every variant")
}

/// The error for a text that is not a variant's.
#[must_use]
pub fn unknown_text(expected: &str, found: &str) -> PropertyError {
    let found: String = found.chars().take(64).collect();
    PropertyError::Invalid(format!("expected {expected}, found '{found}'"))
}

/// Takes out the property `EntityType`, which must have this value.
pub fn check_type(entity: &mut DynamicEntity, expected: &str) -> Result<(), EntityError> {
    let found: String = entity.take("EntityType")?;
    if found == expected { Ok(()) } else { Err(unknown_text(&format!("'{expected}'"), &found).of("EntityType")) }
}

/// Whether the property that names the type has this value.
#[must_use]
pub fn has_type(entity: &DynamicEntity, tag: &str, expected: &str) -> bool {
    matches!(entity.value(tag), Some(Value::String(found)) if found == expected)
}

/// Removes the property that names the type, unless the type reads it.
#[must_use]
pub fn without_type<T: Entity>(mut entity: DynamicEntity, tag: &str) -> DynamicEntity {
    if T::ENTITY_TYPE.is_none() && T::columns().is_none() {
        entity.remove(tag);
    }
    entity
}

/// Sets the property that names the type. If the entity has that property itself, it must be the same: one of the two
/// would be lost.
pub fn with_type<'a>(
    entity: Cow<'a, DynamicEntity>,
    tag: &str,
    name: &str,
) -> Result<Cow<'a, DynamicEntity>, EntityError> {
    let mut entity = entity.into_owned();
    match entity.set(tag, name) {
        None => Ok(Cow::Owned(entity)),
        Some(Value::String(own)) if own == name => Ok(Cow::Owned(entity)),
        Some(Value::String(own)) => Err(unknown_text(&format!("'{name}'"), &own).of(tag)),
        Some(other) => Err(PropertyError::unexpected("Edm.String", Some(&other)).of(tag)),
    }
}

/// Refuses a row key by which the entity would be read as something else: one without the prefix of its variant, or
/// with a longer one of another.
pub fn with_row_key_prefix<'a>(
    entity: Cow<'a, DynamicEntity>,
    prefix: &str,
    longer: &[&str],
) -> Result<Cow<'a, DynamicEntity>, EntityError> {
    let key = &entity.row_key;
    let reason = match longer.iter().find(|other| key.starts_with(**other)) {
        Some(other) => format!("expected a key that does not start with '{other}' as another variant's, found '{key}'"),
        None if key.starts_with(prefix) => return Ok(entity),
        None => format!("expected a key that starts with '{prefix}', found '{key}'"),
    };
    Err(PropertyError::Invalid(reason).of("RowKey"))
}

/// Refuses variants that could not be distinguished.
///
/// # Panics
/// When the program is built, if two types are the same.
pub const fn assert_types_differ(types: &[&str]) {
    let mut first = 0;
    while first < types.len() {
        let mut second = first + 1;
        while second < types.len() {
            assert!(!is_same(types[first], types[second]), "two variants have the same `EntityType`");
            second += 1;
        }
        first += 1;
    }
}

/// The error for an entity that is none of an enum's.
#[must_use]
pub fn unknown_entity(entity: &DynamicEntity, tag: &str, expected: &[&str]) -> EntityError {
    let expected = expected.join(", ");
    let reason = match entity.value(tag) {
        Some(Value::String(found)) => unknown_text(&format!("one of {expected}"), found),
        Some(other) => PropertyError::unexpected("Edm.String", Some(other)),
        None => PropertyError::Invalid(format!("expected one of {expected}, found none; RowKey '{}'", entity.row_key)),
    };
    reason.of(tag)
}

/// The type of a variant: that of what it holds, if it has one, else what is given, else the variant's name.
///
/// # Panics
/// When the program is built, if two are given and differ.
#[must_use]
pub const fn variant_type(
    given: Option<&'static str>,
    own: Option<&'static str>,
    variant: &'static str,
) -> &'static str {
    match (given, own) {
        (Some(given), Some(own)) => {
            assert!(is_same(given, own), "`type` differs from the `entity_type` of what the variant holds");
            own
        }
        (Some(name), None) | (None, Some(name)) => name,
        (None, None) => variant,
    }
}

/// How many properties some types encrypt, each counted once.
#[must_use]
pub const fn encrypted_count(lists: &[&[EncryptedProperty]]) -> usize {
    collect::<0>(lists).1
}

/// The properties that some types encrypt, each once.
#[must_use]
pub const fn encrypted<const N: usize>(lists: &[&[EncryptedProperty]]) -> [EncryptedProperty; N] {
    collect(lists).0
}

/// The first `N` properties of the lists without repetition, and how many there are.
const fn collect<const N: usize>(lists: &[&[EncryptedProperty]]) -> ([EncryptedProperty; N], usize) {
    let mut found = [EncryptedProperty::new("", None); N];
    let (mut count, mut list) = (0, 0);
    while list < lists.len() {
        let mut at = 0;
        while at < lists[list].len() {
            let property = lists[list][at];
            if !is_listed(property.name, lists, list, at) {
                if count < N {
                    found[count] = property.of_variant();
                }
                count += 1;
            }
            at += 1;
        }
        list += 1;
    }
    (found, count)
}

/// Whether a property of this name comes before this place.
const fn is_listed(name: &str, lists: &[&[EncryptedProperty]], end_list: usize, end_at: usize) -> bool {
    let mut list = 0;
    while list <= end_list {
        let end = if list == end_list { end_at } else { lists[list].len() };
        let mut at = 0;
        while at < end {
            if is_same(lists[list][at].name, name) {
                return true;
            }
            at += 1;
        }
        list += 1;
    }
    false
}
