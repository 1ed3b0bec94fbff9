//! Properties of a description from a file of entities: types, numbers of values and lengths.

use crate::format::{Format, FormatError, Position, Reader, Shape, csv, keys::Keys};
use crate::{Error, Result};
use larimar_client::Value;
use larimar_design::limits::SAMPLE_ROWS_MAX;
use larimar_design::{Description, Sample};
use larimar_model::{Guid, Timestamp, ValueRef};
use std::fs::File;
use std::path::Path;

/// Adds the properties that the description does not have. Those that it has stay as they are.
pub(super) fn add(description: &mut Description, path: &Path) -> Result<()> {
    let refused = |error: FormatError| match error {
        FormatError::Io(source) => Error::io(path.display(), source),
        other => Error::Usage(format!("{}: {other}", path.display())),
    };
    let sample = sample(path).map_err(refused)?;
    sample.add_to(description).map_err(|error| Error::Usage(format!("{}: {error}", path.display())))
}

/// The first rows of a file.
fn sample(path: &Path) -> Result<Sample, FormatError> {
    let name = path.to_string_lossy();
    let Some(format) = Format::from_name(&name) else {
        return Err(FormatError::File("expected a file whose name ends in .csv, .jsonl, .json or .parquet".to_owned()));
    };
    // The rows need no keys: their numbers do.
    let number = || "{#}".parse().expect("a template");
    let mut shape = Shape { keys: Keys { partition: number(), row: number() }, ..Shape::default() };
    if format == Format::Csv {
        shape.inferred = csv::infer(File::open(path)?, SAMPLE_ROWS_MAX)?.types;
    }
    let mut reader = Reader::open(format, File::open(path)?, shape, Position::default())?;
    let mut sample = Sample::default();
    while !sample.is_full() {
        let Some(record) = reader.next_record()? else { break };
        let Ok(entity) = record.entity else { continue };
        let properties = entity.properties().map(|(name, value)| (name, borrowed(value)));
        sample.see(properties).map_err(|error| FormatError::File(error.to_string()))?;
    }
    Ok(sample)
}

/// The value in the model's types.
fn borrowed(value: &Value) -> ValueRef<'_> {
    match value {
        Value::String(text) => ValueRef::String(text),
        Value::Int32(number) => ValueRef::Int32(*number),
        Value::Int64(number) => ValueRef::Int64(*number),
        Value::Double(number) => ValueRef::Double(*number),
        Value::Boolean(truth) => ValueRef::Boolean(*truth),
        Value::DateTime(time) => ValueRef::DateTime(Timestamp::from_ticks(time.ticks())),
        Value::Guid(guid) => ValueRef::Guid(Guid(*guid.as_bytes())),
        Value::Binary(bytes) => ValueRef::Binary(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "entity = 'Person'\n[volume]\nentities = 1000\n";

    fn derived(path: &Path) -> Description {
        let mut description = Description::from_toml(HEAD).expect("TOML");
        add(&mut description, path).expect("a sample");
        description
    }

    #[test]
    fn a_file_and_its_text_give_the_same_properties() {
        let folder = tempfile::tempdir().expect("a folder");
        let row = |number: usize| {
            format!("P{number:04},{},\"x, {}\",2026-01-{:02}\n", number % 4, number / 3, number / 10 + 1)
        };
        let csv = format!("Id,Team,Chief,Joined\n{}", (0..100).map(row).collect::<String>());
        let line = |number: usize| {
            format!("{{\"Id\":\"P{number}\",\"N@odata.type\":\"Edm.Int64\",\"N\":\"{}\",\"R\":0.5}}\n", number % 7)
        };
        let lines: String = (0..100).map(line).collect();
        for (name, text, sample) in
            [("people.csv", &csv, Sample::from_csv(&csv)), ("people.jsonl", &lines, Sample::from_json(&lines))]
        {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("a file");
            let mut from_text = Description::from_toml(HEAD).expect("TOML");
            sample.and_then(|sample| sample.add_to(&mut from_text)).expect("a sample");
            from_text.properties.sort_by(|one, other| one.name.cmp(&other.name));
            let from_file = derived(&path);
            assert!(from_file.properties.len() >= 3, "{from_file:?}");
            assert_eq!(format!("{from_file:?}"), format!("{from_text:?}"));
            assert!(larimar_design::propose(&from_file).is_ok());
        }
    }

    #[test]
    fn what_the_description_says_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("people.csv");
        std::fs::write(&path, "Chief,Team\n1,2\n").expect("a file");
        let text = format!("{HEAD}[[property]]\nname = 'Chief'\ntype = 'string'\n");
        let mut description = Description::from_toml(&text).expect("TOML");
        add(&mut description, &path).expect("a sample");
        assert_eq!(description.properties[0].kind, larimar_design::EdmType::String);
        assert_eq!(description.properties.len(), 2);
        std::fs::write(&path, "Chief,Team\n").expect("a file");
        let error = add(&mut description, &path).expect_err("no rows").to_string();
        assert!(error.contains("at least one"), "{error}");
        let error = add(&mut description, &folder.path().join("people.txt")).expect_err("no format");
        assert!(error.to_string().contains(".csv"), "{error}");
    }
}
