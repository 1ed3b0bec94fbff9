//! Entities as JSON: written for requests, read from answers with minimal metadata.

use crate::{DynamicEntity, ETag, Error, Timestamp, Value};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::io::Write as _;

/// Appends an entity as a request has it: keys, then properties, each with its type where JSON does not tell.
pub(crate) fn write_entity(out: &mut Vec<u8>, entity: &DynamicEntity) {
    out.extend_from_slice(b"{\"PartitionKey\":");
    write_text(out, &entity.partition_key);
    out.extend_from_slice(b",\"RowKey\":");
    write_text(out, &entity.row_key);
    for (name, value) in entity.properties() {
        out.push(b',');
        if !matches!(value, Value::String(_) | Value::Int32(_) | Value::Boolean(_)) {
            write_text(out, &format!("{name}@odata.type"));
            out.push(b':');
            write_text(out, value.type_name());
            out.push(b',');
        }
        write_text(out, name);
        out.push(b':');
        write_value(out, value);
    }
    out.push(b'}');
}

fn write_value(out: &mut Vec<u8>, value: &Value) {
    let written = match value {
        Value::String(text) => return write_text(out, text),
        Value::Int32(number) => write!(out, "{number}"),
        Value::Int64(number) => write!(out, "\"{number}\""),
        Value::Double(number) if number.is_nan() => write!(out, "\"NaN\""),
        Value::Double(number) if number.is_infinite() => {
            write!(out, "\"{}Infinity\"", if *number < 0.0 { "-" } else { "" })
        }
        // `{:?}` keeps a fraction or an exponent, so that the number is read as Double again.
        Value::Double(number) => write!(out, "{number:?}"),
        Value::Boolean(truth) => write!(out, "{truth}"),
        Value::DateTime(time) => write!(out, "\"{time}\""),
        Value::Guid(guid) => write!(out, "\"{guid}\""),
        Value::Binary(bytes) => write!(out, "\"{}\"", STANDARD.encode(bytes)),
    };
    written.expect("a vector takes all bytes");
}

pub(crate) fn write_text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("a text is JSON, and a vector takes all bytes");
}

/// Reads one entity.
pub(crate) fn read_entity(json: &[u8]) -> Result<DynamicEntity, Error> {
    serde_json::from_str::<Read>(text(json)?).map(|read| read.0).map_err(not_understood)
}

/// Reads the entities of a page.
pub(crate) fn read_page(json: &[u8]) -> Result<Vec<DynamicEntity>, Error> {
    #[derive(Deserialize)]
    struct Page {
        value: Vec<Read>,
    }
    let page: Page = serde_json::from_str(text(json)?).map_err(not_understood)?;
    Ok(page.value.into_iter().map(|read| read.0).collect())
}

/// An answer as text, looked through at once and not again string by string.
fn text(json: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(json).map_err(|error| Error::Answer(error.to_string()))
}

pub(crate) fn not_understood(error: serde_json::Error) -> Error {
    Error::Answer(error.to_string())
}

/// An entity as serde reads it.
struct Read(DynamicEntity);

/// A text of the answer, in its place there if it has no escapes: `Cow` itself is always read as a copy.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// What JSON tells of a value before its type is known.
enum Raw<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    Number(f64),
    Text(Cow<'a, str>),
}

impl<'de> Deserialize<'de> for Raw<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value of a property")
    }

    fn visit_unit<E>(self) -> Result<Raw<'de>, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Raw<'de>, E> {
        Ok(Raw::Boolean(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Raw<'de>, E> {
        Ok(Raw::Integer(number))
    }

    #[expect(clippy::cast_precision_loss, reason = "only a Double can be as large")]
    fn visit_u64<E>(self, number: u64) -> Result<Raw<'de>, E> {
        Ok(i64::try_from(number).map_or(Raw::Number(number as f64), Raw::Integer))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Raw<'de>, E> {
        Ok(Raw::Number(number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Raw<'de>, E> {
        Ok(Raw::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw<'de>, E> {
        Ok(Raw::Text(Cow::Owned(text.to_owned())))
    }
}

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntityVisitor)
    }
}

struct EntityVisitor;

impl<'de> Visitor<'de> for EntityVisitor {
    type Value = Read;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entity")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Read, A::Error> {
        let mut entity = DynamicEntity::default();
        // The type of a property stands right before it, in every service we know. What has none there waits for the end,
        // in case the type comes later.
        let mut types: Vec<(Cow<'de, str>, Cow<'de, str>)> = Vec::with_capacity(8);
        let mut pending: Vec<(Cow<'de, str>, Raw<'de>)> = Vec::with_capacity(16);
        while let Some(Text(name)) = map.next_key()? {
            if let Some(property) = without_suffix(&name, "@odata.type") {
                types.push((property, map.next_value::<Text<'de>>()?.0));
                continue;
            }
            let raw: Raw<'de> = map.next_value()?;
            match (&*name, raw) {
                ("PartitionKey", Raw::Text(text)) => entity.partition_key = text.into_owned(),
                ("RowKey", Raw::Text(text)) => entity.row_key = text.into_owned(),
                ("Timestamp", Raw::Text(text)) => {
                    entity.timestamp = Some(text.parse().map_err(serde::de::Error::custom)?);
                }
                ("odata.etag", Raw::Text(text)) => entity.etag = Some(ETag::new(text)),
                // Metadata, and what a projection asked for and the entity does not have.
                _ if name.starts_with("odata.") || name.contains('@') => {}
                (_, Raw::Null) => {}
                (_, raw) => match types.pop_if(|(property, _)| *property == name) {
                    Some((_, edm)) => {
                        let value = value_of(&name, raw, Some(&edm))?;
                        entity.set(name, value);
                    }
                    None => pending.push((name, raw)),
                },
            }
        }
        for (name, raw) in pending {
            let edm = types.iter().find(|(property, _)| *property == name).map(|(_, edm)| &**edm);
            let value = value_of(&name, raw, edm)?;
            entity.set(name, value);
        }
        Ok(Read(entity))
    }
}

fn without_suffix<'a>(name: &Cow<'a, str>, suffix: &str) -> Option<Cow<'a, str>> {
    match name {
        Cow::Borrowed(name) => name.strip_suffix(suffix).map(Cow::Borrowed),
        Cow::Owned(name) => name.strip_suffix(suffix).map(|rest| Cow::Owned(rest.to_owned())),
    }
}

fn value_of<E: serde::de::Error>(name: &str, raw: Raw<'_>, edm: Option<&str>) -> Result<Value, E> {
    typed(raw, edm).ok_or_else(|| E::custom(format_args!("'{name}' is no {}", edm.unwrap_or("property"))))
}

fn typed(raw: Raw<'_>, edm: Option<&str>) -> Option<Value> {
    Some(match (edm, raw) {
        (None | Some("Edm.String"), Raw::Text(text)) => Value::String(text.into_owned()),
        (None | Some("Edm.Boolean"), Raw::Boolean(truth)) => Value::Boolean(truth),
        (None | Some("Edm.Int32"), Raw::Integer(number)) if i32::try_from(number).is_ok() => {
            Value::Int32(i32::try_from(number).ok()?)
        }
        (None | Some("Edm.Int64"), Raw::Integer(number)) => Value::Int64(number),
        (Some("Edm.Int64"), Raw::Text(text)) => Value::Int64(text.parse().ok()?),
        (None | Some("Edm.Double"), Raw::Number(number)) => Value::Double(number),
        #[expect(clippy::cast_precision_loss, reason = "the service says that the number is a Double")]
        (Some("Edm.Double"), Raw::Integer(number)) => Value::Double(number as f64),
        (Some("Edm.Double"), Raw::Text(text)) => Value::Double(text.parse().ok()?),
        (Some("Edm.DateTime"), Raw::Text(text)) => Value::DateTime(text.parse::<Timestamp>().ok()?),
        (Some("Edm.Guid"), Raw::Text(text)) => Value::Guid(text.parse().ok()?),
        (Some("Edm.Binary"), Raw::Text(text)) => Value::Binary(STANDARD.decode(&*text).ok()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Guid;
    use proptest::prelude::*;

    fn any_value() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<String>().prop_map(Value::String),
            any::<i32>().prop_map(Value::Int32),
            any::<i64>().prop_map(Value::Int64),
            any::<f64>().prop_filter("NaN equals nothing", |number| !number.is_nan()).prop_map(Value::Double),
            any::<bool>().prop_map(Value::Boolean),
            (Timestamp::MIN.ticks()..=Timestamp::MAX.ticks())
                .prop_map(|ticks| Value::DateTime(Timestamp::from_ticks(ticks))),
            any::<[u8; 16]>().prop_map(|bytes| Value::Guid(Guid::from_bytes(bytes))),
            any::<Vec<u8>>().prop_map(Value::Binary),
        ]
    }

    proptest! {
        #[test]
        fn every_entity_survives_the_wire(
            partition in any::<String>(),
            row in any::<String>(),
            properties in prop::collection::btree_map("[A-Za-z_][A-Za-z0-9_]{0,9}", any_value(), 0..12),
        ) {
            let mut entity = DynamicEntity::new(partition, row);
            for (name, value) in properties {
                if !matches!(name.as_str(), "PartitionKey" | "RowKey" | "Timestamp") {
                    entity.set(name, value);
                }
            }
            let mut json = Vec::new();
            write_entity(&mut json, &entity);
            prop_assert_eq!(read_entity(&json).expect("what was written is read"), entity.clone());
            // The server reads the same, if the keys and sizes are ones that it takes.
            if let Ok(stored) = larimar_wire::table::entity_json::parse_new(&json) {
                prop_assert_eq!(stored.body().properties().count(), entity.properties().len());
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = read_page(&bytes);
            let _ = read_entity(&bytes);
        }
    }

    #[test]
    fn metadata_and_types_are_understood_wherever_they_stand() {
        let json = br#"{"odata.metadata":"x","odata.etag":"W/\"1\"","PartitionKey":"p","RowKey":"r",
            "Timestamp@odata.type":"Edm.DateTime","Timestamp":"2024-01-02T03:04:05Z","Count":"7","Count@odata.type":"Edm.Int64",
            "Gone":null,"Half":1.5,"Whole@odata.type":"Edm.Double","Whole":2}"#;
        let entity = read_entity(json).expect("an entity");
        assert_eq!(entity.etag, Some(ETag::new("W/\"1\"")));
        assert_eq!(entity.value("Count"), Some(&Value::Int64(7)));
        assert_eq!(entity.value("Whole"), Some(&Value::Double(2.0)));
        assert_eq!(entity.value("Half"), Some(&Value::Double(1.5)));
        assert_eq!(entity.properties().len(), 3);
    }
}
