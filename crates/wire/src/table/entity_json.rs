//! The JSON of an entity becomes an [`Entity`]: names, types and limits all hold from here on.
//!
//! A member's type is given by `Name@odata.type`, before or after the member, or by its JSON form.

use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use base64::Engine as _;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use larimar_model::{
    BodyBuilder, BodyError, EdmType, Entity, EntityKey, Guid, KeyError, PartitionKey, PropertyError, RowKey, Timestamp,
    TimestampError, ValueRef, is_system_property, limits, utf16,
};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

/// Reads the entity of an insert: its keys are members of the JSON.
///
/// # Errors
/// The protocol's error for JSON, names, values and sizes that break a rule.
pub fn parse_new(json: &[u8]) -> Result<Entity, ErrorReply> {
    let members = Members::parse(json)?;
    let needed = || ErrorReply::new(ErrorCode::PropertiesNeedValue);
    let partition = members.key("PartitionKey")?.ok_or_else(needed)?;
    let row = members.key("RowKey")?.ok_or_else(needed)?;
    let key = EntityKey {
        partition: PartitionKey::new(partition.as_ref()).map_err(|e| key_error(e, "PartitionKey", &partition))?,
        row: RowKey::new(row.as_ref()).map_err(|e| key_error(e, "RowKey", &row))?,
    };
    members.into_entity(key)
}

/// Reads the entity of a replace or merge: its keys are those of the URL, and the JSON may repeat them.
///
/// # Errors
/// As [`parse_new`], and keys that contradict the URL.
pub fn parse_existing(json: &[u8], key: EntityKey) -> Result<Entity, ErrorReply> {
    let members = Members::parse(json)?;
    // A type that the body gives to a key does not matter: the key is that of the URL.
    let repeats = |name: &str, value: &str| match members.value(name)? {
        Some(raw) => read_string(raw).map(|given| given == value),
        None => Ok(true),
    };
    if !repeats("PartitionKey", key.partition.as_str())? || !repeats("RowKey", key.row.as_str())? {
        return Err(ErrorReply::new(ErrorCode::InvalidInput));
    }
    members.into_entity(key)
}

/// The protocol's error for a body that breaks a rule.
#[must_use]
pub fn body_error(error: &BodyError) -> ErrorReply {
    match error {
        BodyError::Property(PropertyError::NameTooLong) => ErrorReply::new(ErrorCode::PropertyNameTooLong),
        BodyError::Property(PropertyError::NameInvalid) => ErrorReply::new(ErrorCode::PropertyNameInvalid),
        BodyError::Property(PropertyError::ValueTooLarge) => ErrorReply::new(ErrorCode::PropertyValueTooLarge),
        BodyError::Property(PropertyError::OutOfRange { name, value }) => out_of_range(name, &value.to_american()),
        BodyError::TooManyProperties => ErrorReply::new(ErrorCode::TooManyProperties),
        BodyError::Duplicate(_) => ErrorReply::new(ErrorCode::DuplicatePropertiesSpecified),
        BodyError::TooLarge => ErrorReply::new(ErrorCode::EntityTooLarge),
        BodyError::Damaged => ErrorReply::new(ErrorCode::InternalError),
    }
}

/// The members of a JSON object in order, values not yet read.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    fn parse(json: &'a [u8]) -> Result<Self, ErrorReply> {
        let text = std::str::from_utf8(json).map_err(|_| malformed())?;
        serde_json::from_str(text).map_err(|_| malformed())
    }

    /// The text of a key, if it is there and not null.
    fn key(&self, name: &str) -> Result<Option<Cow<'a, str>>, ErrorReply> {
        let Some(raw) = self.value(name)? else { return Ok(None) };
        let not_text = |_| ErrorReply::new(ErrorCode::InvalidInput);
        match self.edm_type(name)? {
            None | Some(EdmType::String) => read_string(raw).map(Some).map_err(not_text),
            Some(_) => Err(ErrorReply::new(ErrorCode::InvalidInput)),
        }
    }

    /// The value of a key, if it is there and not null.
    fn value(&self, name: &str) -> Result<Option<&'a RawValue>, ErrorReply> {
        let mut given = self.0.iter().filter(|(member, _)| member == name);
        let Some((_, raw)) = given.next() else { return Ok(None) };
        if given.next().is_some() {
            return Err(ErrorReply::new(ErrorCode::DuplicatePropertiesSpecified));
        }
        Ok(Some(*raw).filter(|raw| raw.get() != "null"))
    }

    /// The type that an annotation gives to a member.
    fn edm_type(&self, name: &str) -> Result<Option<EdmType>, ErrorReply> {
        let annotation = self.0.iter().find(|(member, _)| member.strip_suffix(TYPE_SUFFIX) == Some(name));
        annotation.map(|(_, raw)| read_type(raw)).transpose()
    }

    fn into_entity(self, key: EntityKey) -> Result<Entity, ErrorReply> {
        // There may be any number of annotations; the first of several for one name counts.
        let mut types: HashMap<&str, &RawValue> = HashMap::new();
        for (name, raw) in &self.0 {
            if let Some(name) = name.strip_suffix(TYPE_SUFFIX) {
                types.entry(name).or_insert(raw);
            }
        }
        let mut body = BodyBuilder::new();
        let mut too_large = None;
        let mut size = 4 + 2 * (utf16::len(key.partition.as_str()) + utf16::len(key.row.as_str()));
        for (name, raw) in &self.0 {
            // Clients send back what they were sent: metadata and Timestamp are not theirs to set.
            if is_metadata(name) || is_system_property(name) || raw.get() == "null" {
                continue;
            }
            let edm_type = types.get(name.as_ref()).map(|raw| read_type(raw)).transpose()?;
            let value = Parsed::read(name, raw.get(), edm_type)?;
            size += 8 + 2 * utf16::len(name) + value.as_value().size();
            match body.push(name, value.as_value()) {
                Ok(()) => {}
                Err(error @ BodyError::Property(PropertyError::ValueTooLarge)) => too_large = Some(error),
                Err(error) => return Err(body_error(&error)),
            }
        }
        if let Some(error) = too_large {
            // The service looks at the size of the whole first.
            let is_whole = size > limits::ENTITY_BYTES_MAX;
            return Err(body_error(if is_whole { &BodyError::TooLarge } else { &error }));
        }
        Entity::new(key, body).map_err(|error| body_error(&error))
    }
}

fn read_type(annotation: &RawValue) -> Result<EdmType, ErrorReply> {
    EdmType::from_name(&read_string(annotation)?).ok_or_else(malformed)
}

fn is_metadata(name: &str) -> bool {
    name.starts_with("odata.") || name.contains("@odata.")
}

/// A value that was read; text without escapes is still part of the request.
enum Parsed<'a> {
    Text(Cow<'a, str>),
    Bytes(Vec<u8>),
    Fixed(ValueRef<'static>),
}

impl<'a> Parsed<'a> {
    fn as_value(&self) -> ValueRef<'_> {
        match self {
            Self::Text(text) => ValueRef::String(text),
            Self::Bytes(bytes) => ValueRef::Binary(bytes),
            Self::Fixed(value) => *value,
        }
    }

    fn read(name: &str, json: &'a str, edm_type: Option<EdmType>) -> Result<Self, ErrorReply> {
        let fixed = match (json.as_bytes()[0], edm_type) {
            (b'"', _) => return Self::read_text(name, json, edm_type.unwrap_or(EdmType::String)),
            (b't' | b'f', None | Some(EdmType::Boolean)) => Some(ValueRef::Boolean(json == "true")),
            (b'-' | b'0'..=b'9', edm_type) => read_number(json, edm_type),
            _ => None,
        };
        fixed.map(Self::Fixed).ok_or_else(malformed)
    }

    /// Reads a value that the client wrote in quotes.
    fn read_text(name: &str, json: &'a str, edm_type: EdmType) -> Result<Self, ErrorReply> {
        let text: Text<'a> = serde_json::from_str(json).map_err(|_| malformed())?;
        let text = text.0;
        let fixed = match edm_type {
            EdmType::String => return Ok(Self::Text(text)),
            EdmType::Binary => return BASE64.decode(text.as_ref()).map(Self::Bytes).map_err(|_| malformed()),
            EdmType::DateTime => match Timestamp::parse(&text) {
                Ok(value) => Some(ValueRef::DateTime(value)),
                Err(TimestampError::OutOfRange(value)) => return Err(out_of_range(name, &value.to_american())),
                Err(TimestampError::Syntax) => None,
            },
            EdmType::Guid => Guid::parse(&text).map(ValueRef::Guid),
            EdmType::Boolean if text.eq_ignore_ascii_case("true") => Some(ValueRef::Boolean(true)),
            EdmType::Boolean if text.eq_ignore_ascii_case("false") => Some(ValueRef::Boolean(false)),
            EdmType::Boolean => None,
            EdmType::Int32 => text.parse().ok().map(ValueRef::Int32),
            EdmType::Int64 => text.parse().ok().map(ValueRef::Int64),
            EdmType::Double => read_double(&text).map(ValueRef::Double),
        };
        fixed.map(Self::Fixed).ok_or_else(malformed)
    }
}

fn read_number(json: &str, edm_type: Option<EdmType>) -> Option<ValueRef<'static>> {
    let is_whole = !json.contains(['.', 'e', 'E']);
    match edm_type {
        // A whole number outside of Int32 without a type is refused (table.md §14).
        None | Some(EdmType::Int32) if is_whole => json.parse().ok().map(ValueRef::Int32),
        Some(EdmType::Int64) if is_whole => json.parse().ok().map(ValueRef::Int64),
        None | Some(EdmType::Double) => read_double(json).filter(|value| value.is_finite()).map(ValueRef::Double),
        _ => None,
    }
}

fn read_double(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" | "INF" => Some(f64::INFINITY),
        "-Infinity" | "-INF" => Some(f64::NEG_INFINITY),
        _ if text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) => {
            // A literal too large for a double is an error, not infinity.
            text.parse().ok().filter(|value: &f64| value.is_finite())
        }
        _ => None,
    }
}

fn read_string<'a>(raw: &'a RawValue) -> Result<Cow<'a, str>, ErrorReply> {
    serde_json::from_str::<Text<'a>>(raw.get()).map(|text| text.0).map_err(|_| malformed())
}

fn malformed() -> ErrorReply {
    ErrorReply::with_message(ErrorCode::InvalidInput, "An error occurred while processing this request.")
}

fn out_of_range(name: &str, value: &str) -> ErrorReply {
    let message = format!("The '{name}' parameter of value '{value}' is out of range.");
    ErrorReply::with_message(ErrorCode::OutOfRangeInput, message)
}

fn key_error(error: KeyError, name: &str, value: &str) -> ErrorReply {
    match error {
        KeyError::TooLong => ErrorReply::new(ErrorCode::PropertyValueTooLarge),
        KeyError::Forbidden => out_of_range(name, value),
    }
}

/// A JSON string, borrowed where nothing in it is escaped.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::with_capacity(16);
                while let Some((name, value)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
                    members.push((name.0, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

const TYPE_SUFFIX: &str = "@odata.type";
/// Base64 as clients write it, with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[cfg(test)]
mod tests;
