//! Entities as JSON: written for requests, read from answers with minimal metadata.

mod scan;

use self::scan::{Scalar, Scanner};
use crate::timestamp::TimestampError;
use crate::{DynamicEntity, ETag, Error, Value};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::borrow::Cow;
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
    read(json, entity)
}

/// Reads the entities of a page.
pub(crate) fn read_page(json: &[u8]) -> Result<Vec<DynamicEntity>, Error> {
    let page = read(json, |scanner| {
        let mut page = None;
        scanner.object(|scanner, name| {
            if name != "value" {
                return scanner.skip();
            }
            let entities = page.insert(Vec::new());
            scanner.array(|scanner| {
                entities.push(entity(scanner)?);
                Ok(())
            })
        })?;
        Ok(page)
    })?;
    page.ok_or_else(|| Error::Answer("expected a page of entities".to_owned()))
}

fn read<'a, T>(json: &'a [u8], part: impl FnOnce(&mut Scanner<'a>) -> Result<T, String>) -> Result<T, Error> {
    // Looked through at once and not again text by text.
    let text = std::str::from_utf8(json).map_err(|error| Error::Answer(error.to_string()))?;
    let mut scanner = Scanner::new(text);
    part(&mut scanner).and_then(|read| scanner.end().map(|()| read)).map_err(Error::Answer)
}

pub(crate) fn not_understood(error: serde_json::Error) -> Error {
    Error::Answer(error.to_string())
}

fn entity(scanner: &mut Scanner<'_>) -> Result<DynamicEntity, String> {
    let mut entity = DynamicEntity::default();
    let mut properties: Vec<(String, Value)> = Vec::with_capacity(12);
    // The type of a property stands right before it, in every service we know. What stands elsewhere waits for the end.
    let mut types: Vec<(Cow<'_, str>, Cow<'_, str>)> = Vec::new();
    scanner.object(|scanner, name| {
        if let Some(property) = without_suffix(&name, "@odata.type") {
            types.push((property, scanner.text()?));
            return Ok(());
        }
        let scalar = scanner.scalar()?;
        let edm = types.pop_if(|(property, _)| *property == name).map(|(_, edm)| edm);
        match (&*name, scalar) {
            ("PartitionKey", Scalar::Text(text)) => entity.partition_key = text.into_owned(),
            ("RowKey", Scalar::Text(text)) => entity.row_key = text.into_owned(),
            ("Timestamp", Scalar::Text(text)) => {
                entity.timestamp = Some(text.parse().map_err(|error: TimestampError| error.to_string())?);
            }
            ("odata.etag", Scalar::Text(text)) => entity.etag = Some(ETag::new(text)),
            // Metadata, and what a projection asked for and the entity does not have.
            _ if name.starts_with("odata.") || name.as_bytes().contains(&b'@') => {}
            (_, Scalar::Null) => {}
            (_, scalar) => {
                let value = match edm {
                    Some(edm) => typed(scalar, &edm).ok_or_else(|| mistyped(&name, &edm))?,
                    None => untyped(scalar).ok_or_else(|| mistyped(&name, "property"))?,
                };
                properties.push((name.into_owned(), value));
            }
        }
        Ok(())
    })?;
    entity.set_properties(properties);
    for (name, edm) in types {
        if let Some(value) = entity.value_mut(&name) {
            retype(value, &edm).ok_or_else(|| mistyped(&name, &edm))?;
        }
    }
    Ok(entity)
}

fn mistyped(name: &str, edm: &str) -> String {
    format!("'{name}' is no {edm}")
}

fn without_suffix<'a>(name: &Cow<'a, str>, suffix: &str) -> Option<Cow<'a, str>> {
    match name {
        Cow::Borrowed(name) => name.strip_suffix(suffix).map(Cow::Borrowed),
        Cow::Owned(name) => name.strip_suffix(suffix).map(|rest| Cow::Owned(rest.to_owned())),
    }
}

/// The value that follows from the JSON alone.
fn untyped(scalar: Scalar<'_>) -> Option<Value> {
    Some(match scalar {
        Scalar::Text(text) => Value::String(text.into_owned()),
        Scalar::Integer(number) => i32::try_from(number).map_or(Value::Int64(number), Value::Int32),
        Scalar::Number(number) => Value::Double(number),
        Scalar::Boolean(truth) => Value::Boolean(truth),
        Scalar::Null => return None,
    })
}

/// The value of a type that the service names.
fn typed(scalar: Scalar<'_>, edm: &str) -> Option<Value> {
    Some(match (scalar, edm) {
        (Scalar::Text(text), "Edm.String") => Value::String(text.into_owned()),
        (Scalar::Text(text), "Edm.Int64") => Value::Int64(text.parse().ok()?),
        (Scalar::Text(text), "Edm.Double") => Value::Double(text.parse().ok()?),
        (Scalar::Text(text), "Edm.DateTime") => Value::DateTime(text.parse().ok()?),
        (Scalar::Text(text), "Edm.Guid") => Value::Guid(text.parse().ok()?),
        (Scalar::Text(text), "Edm.Binary") => Value::Binary(STANDARD.decode(&*text).ok()?),
        (Scalar::Integer(number), "Edm.Int32") => Value::Int32(i32::try_from(number).ok()?),
        (Scalar::Integer(number), "Edm.Int64") => Value::Int64(number),
        #[expect(clippy::cast_precision_loss, reason = "the service says that the number is a Double")]
        (Scalar::Integer(number), "Edm.Double") => Value::Double(number as f64),
        (Scalar::Number(number), "Edm.Double") => Value::Double(number),
        (Scalar::Boolean(truth), "Edm.Boolean") => Value::Boolean(truth),
        _ => return None,
    })
}

/// Converts a value that was read from the JSON alone to a type that is named elsewhere.
fn retype(value: &mut Value, edm: &str) -> Option<()> {
    let scalar = match value {
        Value::String(text) => Scalar::Text(Cow::Borrowed(text)),
        Value::Int32(number) => Scalar::Integer((*number).into()),
        Value::Int64(number) => Scalar::Integer(*number),
        Value::Double(number) => Scalar::Number(*number),
        Value::Boolean(truth) => Scalar::Boolean(*truth),
        // Its type is known already.
        Value::DateTime(_) | Value::Guid(_) | Value::Binary(_) => return Some(()),
    };
    *value = typed(scalar, edm)?;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::samples::any_value;
    use proptest::prelude::*;

    fn comparable_value() -> impl Strategy<Value = Value> {
        any_value().prop_filter("NaN does not equal itself", |value| *value == value.clone())
    }

    proptest! {
        #[test]
        fn every_entity_survives_the_wire(
            partition in any::<String>(),
            row in any::<String>(),
            properties in prop::collection::btree_map("[A-Za-z_][A-Za-z0-9_]{0,9}", comparable_value(), 0..12),
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
        fn types_count_wherever_they_stand(
            properties in prop::collection::btree_map("[a-zA-Zé\"\\\\]{1,3}", comparable_value(), 0..8)
                .prop_flat_map(|properties| {
                    let mut members = vec!["\"odata.metadata\":\"x\"".to_owned(), "\"gone\" : null".to_owned()];
                    for (name, value) in &properties {
                        let json = |text: &str| serde_json::to_string(text).expect("JSON");
                        let mut text = Vec::new();
                        write_value(&mut text, value);
                        members.push(format!("{} :{}", json(name), String::from_utf8(text).expect("JSON")));
                        members.push(format!("{}: {}", json(&format!("{name}@odata.type")), json(value.type_name())));
                    }
                    (Just(properties), Just(members).prop_shuffle())
                }),
        ) {
            let (properties, members) = properties;
            let json = format!("{{{}}}", members.join(" ,\n"));
            let mut entity = read_entity(json.as_bytes()).expect("an entity");
            prop_assert_eq!(entity.take_properties(), properties.clone());
            let page = read_page(format!(r#"{{"a":[{{}}],"value":[{json},{json}],"b":1}}"#).as_bytes()).expect("a page");
            prop_assert!(page.into_iter().map(|mut entity| entity.take_properties()).eq([properties.clone(), properties]));
            // A truncated text is not an entity.
            prop_assert!(json.char_indices().all(|(end, _)| read_entity(&json.as_bytes()[..end]).is_err()));
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

    #[test]
    fn what_is_no_entity_is_refused() {
        for json in [
            "",
            "[]",
            "{} {}",
            r#"{"A":1,}"#,
            r#"{"A":[1]}"#,
            r#"{"A":{"B":1}}"#,
            r#"{"A":01}"#,
            r#"{"A":1e999}"#,
            r#"{"A":"\q"}"#,
            "{\"A\":\"\n\"}",
            r#"{"Timestamp":"yesterday"}"#,
            r#"{"A@odata.type":"Edm.Int64","A":"x"}"#,
            r#"{"A":"x","A@odata.type":"Edm.Int64"}"#,
            r#"{"A@odata.type":"Edm.Int32","A":2147483648}"#,
            r#"{"A@odata.type":"Edm.Other","A":1}"#,
        ] {
            assert!(matches!(read_entity(json.as_bytes()), Err(Error::Answer(_))), "{json}");
        }
        assert!(read_page(b"{\"values\":[]}").is_err());
    }

    #[test]
    fn doubles_that_are_no_numbers_are_texts() {
        let read = |text: &str| {
            let json = format!(r#"{{"A@odata.type":"Edm.Double","A":"{text}"}}"#);
            read_entity(json.as_bytes()).expect("an entity").get::<f64>("A").expect("a Double")
        };
        assert!(read("NaN").is_nan());
        assert_eq!((read("Infinity"), read("-Infinity"), read("1.5")), (f64::INFINITY, f64::NEG_INFINITY, 1.5));
    }
}
