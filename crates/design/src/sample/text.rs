//! Sample entities from a text: CSV with a line of names, or JSON objects, one after the other or in an array.
//!
//! For texts that a person pastes. Files of any size, and Parquet, are read by the command line, which calls
//! [`Sample::see`] itself.

use super::Sample;
use crate::error::DesignError;
use crate::limits::PROPERTIES_MAX;
use crate::text::{check_size, line_at, short};
use csv_core::ReadRecordResult;
use larimar_model::column::{InferredType, parse_time, property_name};
use larimar_model::{EdmType, Guid, Value, is_system_property};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

impl Sample {
    /// The entities of a CSV text. Types follow from all values of a column.
    ///
    /// # Errors
    /// A text of more than [`TEXT_BYTES_MAX`](crate::limits::TEXT_BYTES_MAX), or one without a line of distinct names.
    pub fn from_csv(text: &str) -> Result<Self, DesignError> {
        check_size(text)?;
        let records = records(text)?;
        let Some((header, rows)) = records.split_first() else {
            return Err(refused(1, "expected a line with the names of the columns, found nothing"));
        };
        let names: Vec<String> = header.iter().map(|name| property_name(name)).collect();
        let is_again = |(index, name): &(usize, &String)| names[..*index].contains(name);
        if let Some((_, name)) = names.iter().enumerate().find(is_again) {
            return Err(refused(1, &format!("expected each column once, found '{name}' again")));
        }
        let mut types = vec![InferredType::default(); names.len()];
        // A row of another length says nothing about the columns.
        let rows = || rows.iter().filter(|row| row.len() == names.len());
        for row in rows() {
            types.iter_mut().zip(row).for_each(|(inferred, cell)| inferred.see(cell));
        }
        let types: Vec<EdmType> = types.into_iter().map(InferredType::edm_type).collect();
        let mut sample = Self::default();
        for row in rows() {
            if sample.is_full() {
                break;
            }
            let columns = names.iter().zip(&types).zip(row);
            let values: Vec<(&str, Value)> = columns
                .filter(|((name, _), cell)| !is_system_property(name) && !cell.is_empty())
                .filter_map(|((name, edm), cell)| Some((name.as_str(), value(*edm, cell)?)))
                .collect();
            sample.see(values.iter().map(|(name, value)| (*name, value.as_ref())))?;
        }
        Ok(sample)
    }

    /// The entities of a JSON text: objects on lines of their own, or in one array.
    ///
    /// # Errors
    /// A text of more than [`TEXT_BYTES_MAX`](crate::limits::TEXT_BYTES_MAX), or one that has anything but objects.
    pub fn from_json(text: &str) -> Result<Self, DesignError> {
        check_size(text)?;
        let trimmed = text.trim();
        let inner = trimmed.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
        let (mut rest, is_array) = (inner.unwrap_or(trimmed), inner.is_some());
        let end = text.trim_end().len() - usize::from(is_array);
        let mut sample = Self::default();
        while !rest.is_empty() && !sample.is_full() {
            let mut objects = serde_json::Deserializer::from_str(rest).into_iter::<Members>();
            let line = || line_at(text, end - rest.len());
            let members = match objects.next() {
                Some(Ok(Members(members))) => members,
                Some(Err(error)) => {
                    let message = error.to_string();
                    let reason = message.rsplit_once(" at line ").map_or(message.as_str(), |(reason, _)| reason);
                    return Err(refused(line() + error.line().saturating_sub(1), reason));
                }
                None => break,
            };
            let read = objects.byte_offset();
            let values: Vec<(String, Value)> = typed(members);
            sample.see(values.iter().map(|(name, value)| (name.as_str(), value.as_ref())))?;
            rest = rest[read..].trim_start();
            if is_array {
                rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
            }
        }
        Ok(sample)
    }
}

fn refused(line: usize, reason: &str) -> DesignError {
    DesignError::Syntax { line, reason: format!("sample: {}", short(reason)) }
}

/// The records of a CSV text, each with at most as many cells as an entity has properties, keys and time.
fn records(text: &str) -> Result<Vec<Vec<String>>, DesignError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut core = csv_core::Reader::new();
    let (mut input, mut records) = (text.as_bytes(), Vec::new());
    let (mut bytes, mut ends) = (vec![0; text.len() + 1], [0; CELLS_MAX]);
    let (mut written, mut ended) = (0, 0);
    loop {
        let (result, read, out, more) = core.read_record(input, &mut bytes[written..], &mut ends[ended..]);
        input = &input[read..];
        written += out;
        ended += more;
        match result {
            ReadRecordResult::InputEmpty => {}
            ReadRecordResult::Record => {
                let mut start = 0;
                let cell = |end: &usize| {
                    // Cells end where the text has ASCII characters, so they are texts.
                    String::from_utf8_lossy(&bytes[std::mem::replace(&mut start, *end)..*end]).into_owned()
                };
                records.push(ends[..ended].iter().map(cell).collect());
                (written, ended) = (0, 0);
            }
            ReadRecordResult::End => return Ok(records),
            ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                let (what, max) = ("columns", PROPERTIES_MAX);
                return Err(DesignError::TooMany { what, max, found: ended });
            }
        }
    }
}

/// A value of this type from its text.
fn value(edm: EdmType, text: &str) -> Option<Value> {
    Some(match edm {
        EdmType::String | EdmType::Binary => Value::String(text.to_owned()),
        EdmType::Int32 => Value::Int32(text.parse().ok()?),
        EdmType::Int64 => Value::Int64(text.parse().ok()?),
        EdmType::Double => Value::Double(text.parse().ok()?),
        EdmType::Boolean => Value::Boolean(text.eq_ignore_ascii_case("true")),
        EdmType::DateTime => Value::DateTime(parse_time(text)?),
        EdmType::Guid => Value::Guid(Guid::parse(text)?),
    })
}

/// The properties of an object, with the types that `Name@odata.type` gives and otherwise those that JSON shows.
fn typed(members: Vec<(String, Value)>) -> Vec<(String, Value)> {
    let type_of = |name: &str| {
        let of = |member: &str| member.strip_suffix("@odata.type").is_some_and(|property| property == name);
        members.iter().find_map(|(member, value)| match value {
            Value::String(edm) if of(member) => EdmType::from_name(edm),
            _ => None,
        })
    };
    let is_property = |name: &str| !name.contains('@') && !name.starts_with("odata.") && !is_system_property(name);
    let typed_value = |(name, shown): &(String, Value)| {
        let typed = match (type_of(name), shown) {
            (Some(edm), Value::String(text)) => value(edm, text),
            (Some(EdmType::Double), Value::Int32(number)) => Some(Value::Double((*number).into())),
            (Some(EdmType::Int64), Value::Int32(number)) => Some(Value::Int64((*number).into())),
            _ => None,
        };
        (property_name(name), typed.unwrap_or_else(|| shown.clone()))
    };
    members.iter().filter(|(name, _)| is_property(name)).map(typed_value).collect()
}

/// The members of an object that are neither null nor lists nor objects.
struct Members(Vec<(String, Value)>);

/// A member; none if it is not a value of a property.
struct Scalar(Option<Value>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an entity: {…}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some((name, Scalar(value))) = map.next_entry::<String, Scalar>()? {
                    if members.len() >= CELLS_MAX {
                        return Err(serde::de::Error::custom(format!("expected at most {CELLS_MAX} members")));
                    }
                    members.extend(value.map(|value| (name, value)));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_bool<E>(self, truth: bool) -> Result<Scalar, E> {
                Ok(Scalar(Some(Value::Boolean(truth))))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
                Ok(Scalar(Some(i32::try_from(number).map_or(Value::Int64(number), Value::Int32))))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Scalar, E> {
                match i64::try_from(number) {
                    Ok(number) => self.visit_i64(number),
                    Err(_) => self.visit_f64(number as f64),
                }
            }

            fn visit_f64<E>(self, number: f64) -> Result<Scalar, E> {
                Ok(Scalar(Some(Value::Double(number))))
            }

            fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar(Some(Value::String(text.to_owned()))))
            }

            fn visit_unit<E>(self) -> Result<Scalar, E> {
                Ok(Scalar(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Scalar, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Scalar(None))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Scalar, A::Error> {
                while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Scalar(None))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// The properties of a description with their types, keys, time and metadata.
const CELLS_MAX: usize = 4 * PROPERTIES_MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::{Description, Property};
    use crate::limits::TEXT_BYTES_MAX;
    use crate::propose;

    fn derived(sample: Result<Sample, DesignError>) -> Description {
        let mut description = Description::from_toml("entity = 'Person'\n[volume]").expect("TOML");
        sample.and_then(|sample| sample.add_to(&mut description)).expect("a sample");
        description
    }

    fn find(description: &Description, name: &str) -> Property {
        description.properties.iter().find(|it| it.name == name).unwrap_or_else(|| panic!("no {name}")).clone()
    }

    fn csv() -> String {
        let row = |number: usize| {
            format!("P{number:04},{},\"a, \"\"b\"\"\",{},2026-01-{:02}\r\n", number % 4, number / 3, number / 10 + 1)
        };
        format!("\u{feff}Id,Team,Full Name,Chief,Joined\r\n{}broken,row\r\n", (0..100).map(row).collect::<String>())
    }

    #[test]
    fn types_and_numbers_of_values_come_from_csv() {
        let description = derived(Sample::from_csv(&csv()));
        assert_eq!(description.volume.entities, 100);
        let id = find(&description, "Id");
        assert!(id.unique && id.bytes == Some(10) && id.kind == EdmType::String, "{id:?}");
        let team = find(&description, "Team");
        assert_eq!((team.kind, team.distinct, team.unique), (EdmType::Int32, Some(4), false));
        assert_eq!(find(&description, "Full_Name").bytes, Some(12), "quotes are no part of a value");
        let joined = find(&description, "Joined");
        assert!(joined.growing && joined.kind == EdmType::DateTime, "{joined:?}");
        assert!(propose(&description).is_ok());
    }

    #[test]
    fn types_and_numbers_of_values_come_from_json() {
        let row = |number: usize| {
            format!(
                "{{\"PartitionKey\":\"p\",\"Id\":\"P{number:04}\",\"Team\":{},\"Seen@odata.type\":\"Edm.DateTime\",\
                 \"Seen\":\"2026-01-01T00:{:02}:00Z\",\"Big@odata.type\":\"Edm.Int64\",\"Big\":\"7\",\"None\":null,\
                 \"List\":[1,[2]],\"Map\":{{\"a\":[]}},\"Ratio\":0.5}}",
                number % 4,
                number / 2
            )
        };
        let rows: Vec<String> = (0..100).map(row).collect();
        for text in [rows.join("\n"), rows.join(" "), format!("[\n{}\n]", rows.join(",\n"))] {
            let description = derived(Sample::from_json(&text));
            let names: Vec<&str> = description.properties.iter().map(|it| it.name.as_str()).collect();
            assert_eq!(names, ["Id", "Team", "Seen", "Big", "Ratio"]);
            let kinds: Vec<EdmType> = description.properties.iter().map(|it| it.kind).collect();
            let expected = [EdmType::String, EdmType::Int32, EdmType::DateTime, EdmType::Int64, EdmType::Double];
            assert_eq!(kinds, expected);
            assert!(find(&description, "Id").unique && find(&description, "Seen").growing);
            assert_eq!(description.volume.entities, 100);
        }
    }

    #[test]
    fn hostile_samples_are_refused() {
        for (text, words) in [
            ("x".repeat(TEXT_BYTES_MAX + 1), "1 MiB"),
            (String::new(), "names of the columns"),
            (vec!["c"; 1_000_000 / 2].join(","), "columns"),
            ("a,a\n1,2".to_owned(), "once"),
            ("a b,a_b\n1,2".to_owned(), "once"),
        ] {
            let error = Sample::from_csv(&text).expect_err("a refusal").to_string();
            assert!(error.contains(words) && error.len() < 600, "{error}");
        }
        let error = Sample::from_csv("a,b\n").and_then(|it| it.add_to(&mut derived(Sample::from_csv("a\n1"))));
        assert!(error.expect_err("no rows").to_string().contains("at least one"));
        let wide: String = (0..200).map(|number| format!("\"p{number}\":1,")).collect();
        let members: String = (0..9_999).map(|number| format!("\"p{number}\":null,\"q{number}\":1,")).collect();
        for (text, words) in [
            ("[".repeat(TEXT_BYTES_MAX), "entity"),
            (format!("{{\"a\":{}", "[".repeat(100_000)), "EOF"),
            (format!("{{{wide}\"x\":1}}"), "properties"),
            (format!("{{{members}\"x\":1}}"), "members"),
            ("{\"a\":1}\n{\"a\":".to_owned(), "EOF"),
            ("3".to_owned(), "entity"),
            ("{\"a\":1} x".to_owned(), "expected"),
        ] {
            let error = Sample::from_json(&text).expect_err("a refusal").to_string();
            assert!(error.contains(words) && error.len() < 600, "{error}");
        }
        let broken = Sample::from_json("{\"a\":1}\n{\"a\":2}\n{\"a\":\n}").expect_err("a refusal");
        assert_eq!(broken.line(""), Some(4), "{broken}");
    }
}
