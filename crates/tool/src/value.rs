//! Values of properties as text and as JSON.
//!
//! JSON is what the service itself uses: a property whose type JSON does not show has it in a second member,
//! `"Name@odata.type": "Edm.Int64"`. So an entity that was printed can be stored again.

use crate::format::edm;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use larimar_client::{DynamicEntity, Value};
use larimar_model::EdmType;
use std::borrow::Cow;

/// The value as text, without its type.
#[must_use]
pub fn to_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Int32(number) => number.to_string().into(),
        Value::Int64(number) => number.to_string().into(),
        Value::Double(number) => double_to_text(*number).into(),
        Value::Boolean(truth) => Cow::Borrowed(if *truth { "true" } else { "false" }),
        Value::DateTime(time) => time.to_string().into(),
        Value::Guid(guid) => guid.to_string().into(),
        Value::Binary(bytes) => STANDARD.encode(bytes).into(),
    }
}

/// A value of the type with this name (`Edm.Int64`, or `int64` for short) from text.
///
/// # Errors
/// A type that does not exist, or text that is not of the type.
pub fn from_text(type_name: &str, text: &str) -> Result<Value, String> {
    let short = type_name.strip_prefix("Edm.").unwrap_or(type_name).to_ascii_lowercase();
    let edm = match short.as_str() {
        "int" => EdmType::Int32,
        "long" => EdmType::Int64,
        "bool" => EdmType::Boolean,
        _ => edm::named(&short).ok_or_else(|| {
            let names = EdmType::ALL.map(edm::short_name).join(", ").to_ascii_lowercase();
            format!("unknown type '{type_name}': expected one of {names}")
        })?,
    };
    edm::parse(edm, text).ok_or_else(|| format!("expected {}, found '{text}'", edm::expected(edm)))
}

/// Writes the entity as one JSON object.
pub fn write_json(entity: &DynamicEntity, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"PartitionKey\":");
    write_string(&entity.partition_key, out);
    out.extend_from_slice(b",\"RowKey\":");
    write_string(&entity.row_key, out);
    if let Some(time) = entity.timestamp {
        write_member("Timestamp", &Value::DateTime(time), out);
    }
    for (name, value) in entity.properties() {
        write_member(name, value, out);
    }
    out.push(b'}');
}

fn write_member(name: &str, value: &Value, out: &mut Vec<u8>) {
    out.push(b',');
    let is_shown = match value {
        Value::String(_) | Value::Int32(_) | Value::Boolean(_) => true,
        Value::Double(number) => number.is_finite(),
        Value::Int64(_) | Value::DateTime(_) | Value::Guid(_) | Value::Binary(_) => false,
    };
    if !is_shown {
        write_string(&format!("{name}@odata.type"), out);
        out.push(b':');
        write_string(value.type_name(), out);
        out.push(b',');
    }
    write_string(name, out);
    out.push(b':');
    match value {
        Value::Int32(_) | Value::Boolean(_) => out.extend_from_slice(to_text(value).as_bytes()),
        Value::Double(number) if number.is_finite() => out.extend_from_slice(double_to_text(*number).as_bytes()),
        _ => write_string(&to_text(value), out),
    }
}

/// Writes a JSON string. Control characters are escaped, those beyond ASCII too: a terminal obeys them.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    use std::io::Write as _;
    let json = serde_json::to_string(text).expect("a string is JSON");
    if !json.chars().any(char::is_control) {
        return out.extend_from_slice(json.as_bytes());
    }
    for character in json.chars() {
        match character.is_control() {
            true => write!(out, "\\u{:04x}", u32::from(character)).expect("a vector takes every write"),
            false => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// The shortest text that is read back as the same number, and as a Double: it has a point or an exponent.
fn double_to_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    serde_json::to_string(&number).expect("a finite number is JSON")
}

/// An entity from one JSON object, as [`write_json`] writes it. `Timestamp` and members of metadata are ignored: the
/// service sets them.
///
/// # Errors
/// What is not an object, lacks a key, or has a value that is not of its type.
pub fn read_json(json: &str) -> Result<DynamicEntity, String> {
    let object: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(json).map_err(|error| format!("expected a JSON object: {error}"))?;
    let key = |name: &str| match object.get(name) {
        Some(serde_json::Value::String(key)) => Ok(key.clone()),
        Some(_) => Err(format!("'{name}': expected text")),
        None => Err(format!("'{name}' is missing")),
    };
    let mut entity = DynamicEntity::new(key("PartitionKey")?, key("RowKey")?);
    for (name, json) in &object {
        if ["PartitionKey", "RowKey", "Timestamp"].contains(&name.as_str())
            || name.starts_with("odata.")
            || name.contains("@odata.")
        {
            continue;
        }
        let type_name = object.get(&format!("{name}@odata.type")).and_then(serde_json::Value::as_str);
        if let Some(value) = from_json(json, type_name).map_err(|reason| format!("'{name}': {reason}"))? {
            entity.set(name.clone(), value);
        }
    }
    Ok(entity)
}

fn from_json(json: &serde_json::Value, type_name: Option<&str>) -> Result<Option<Value>, String> {
    let text = match json {
        serde_json::Value::Null => return Ok(None),
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Bool(_) | serde_json::Value::Number(_) => json.to_string(),
        serde_json::Value::Array(_) | serde_json::Value::Object(_) => {
            return Err("expected text, a number or a truth value; a property cannot hold lists or objects".to_owned());
        }
    };
    let type_name = type_name.unwrap_or(match json {
        serde_json::Value::Bool(_) => "Edm.Boolean",
        serde_json::Value::Number(number) if number.is_f64() => "Edm.Double",
        // As the service reads it: what does not fit needs its type.
        serde_json::Value::Number(_) => "Edm.Int32",
        _ => "Edm.String",
    });
    from_text(type_name, &text).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::samples::{any_value, debug};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_value_survives_text_and_json(value in any_value(), partition: String, row: String) {
            let read = from_text(value.type_name(), &to_text(&value)).expect("a value");
            prop_assert_eq!(debug(&read), debug(&value));
            let entity = DynamicEntity::new(partition, row).with("Property", value);
            let mut json = Vec::new();
            write_json(&entity, &mut json);
            let json = String::from_utf8(json).expect("text");
            prop_assert!(!json.chars().any(char::is_control), "{json:?}");
            prop_assert_eq!(format!("{:?}", read_json(&json)), format!("{:?}", Ok::<_, String>(entity)));
        }
    }

    #[test]
    fn json_without_types_is_read_as_the_service_reads_it() {
        let entity = read_json(r#"{"PartitionKey":"p","RowKey":"r","A":1,"B":1.5,"C":true,"D":"x","E":null,"F":1.0}"#);
        let expected = DynamicEntity::new("p", "r").with("A", 1).with("B", 1.5).with("C", true).with("D", "x");
        assert_eq!(entity, Ok(expected.with("F", 1.0)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (json, word) in [
            ("[]", "expected a JSON object"),
            (r#"{"RowKey":"r"}"#, "'PartitionKey' is missing"),
            (r#"{"PartitionKey":1,"RowKey":"r"}"#, "'PartitionKey': expected text"),
            (r#"{"PartitionKey":"p","RowKey":"r","A":[1]}"#, "'A': expected text"),
            (r#"{"PartitionKey":"p","RowKey":"r","A":3000000000}"#, "'A': expected a 32-bit integer"),
            (r#"{"PartitionKey":"p","RowKey":"r","A":"1","A@odata.type":"Edm.Byte"}"#, "unknown type 'Edm.Byte'"),
        ] {
            let error = read_json(json).expect_err("refused");
            assert!(error.contains(word), "{error}");
        }
    }
}
