//! Types of columns from a file: JSON, or the `.schema.csv` beside a CSV file of AzCopy.

use crate::format::edm;
use crate::{Error, Result};
use larimar_model::EdmType;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

/// Types by the names of columns; `None` leaves a column out.
pub(super) type Types = BTreeMap<String, Option<EdmType>>;

/// Reads a file with types.
pub(super) fn read(path: &Path) -> Result<Types> {
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| Error::io(path.display(), error))?;
    file.take(SCHEMA_BYTES_MAX).read_to_string(&mut text).map_err(|error| Error::io(path.display(), error))?;
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let types = if text.starts_with('{') { parse_json(text) } else { parse_csv(text) };
    types.map_err(|reason| Error::Usage(format!("{}: {reason}", path.display())))
}

fn parse_json(text: &str) -> Result<Types, String> {
    let named: BTreeMap<String, Option<String>> = serde_json::from_str(text)
        .map_err(|error| format!("expected an object of names and types such as {{\"age\": \"Int32\"}}: {error}"))?;
    named.into_iter().map(|(name, edm)| Ok((name, edm.as_deref().map(edm_type).transpose()?))).collect()
}

fn edm_type(name: &str) -> Result<EdmType, String> {
    let expected = EdmType::ALL.map(edm::short_name).join(", ");
    edm::named(name).ok_or_else(|| format!("unknown type '{name}': expected one of {expected}"))
}

/// A line of names and a line of types, or lines of a name and a type each.
fn parse_csv(text: &str) -> Result<Types, String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let lines: Vec<csv::StringRecord> =
        reader.records().collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let is_type = |cell: &str| edm::named(cell).is_some();
    if let [names, types] = lines.as_slice()
        && names.len() == types.len()
        && types.iter().all(is_type)
    {
        return Ok(names.iter().map(str::to_owned).zip(types.iter().map(edm::named)).collect());
    }
    let pairs = lines.iter().skip(usize::from(lines.first().is_some_and(|line| !line.get(1).is_some_and(is_type))));
    let types: Option<Types> = pairs
        .map(|line| match (line.get(0), line.get(1).and_then(edm::named)) {
            (Some(name), Some(edm)) => Some((name.to_owned(), Some(edm))),
            _ => None,
        })
        .collect();
    let expected =
        "expected a line of names and a line of types, or lines of a name and a type: give the types with --schema";
    types.filter(|types| !types.is_empty()).ok_or_else(|| expected.to_owned())
}

const SCHEMA_BYTES_MAX: u64 = 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_from_json_and_csv() {
        let expected: Types = [("a".to_owned(), Some(EdmType::Int64)), ("b".to_owned(), Some(EdmType::String))].into();
        assert!(parse_json(r#"{"a":"Int64","b":"edm.string"}"#).is_err(), "the prefix is Edm.");
        assert_eq!(parse_json(r#"{"a":"int64","b":"Edm.String"}"#).as_ref(), Ok(&expected));
        assert_eq!(parse_json(r#"{"a":null}"#), Ok([("a".to_owned(), None)].into()));
        for text in ["a,b\nEdm.Int64,Edm.String\n", "a,Edm.Int64\r\nb,Edm.String\r\n", "name,type\na,Int64\nb,String\n"]
        {
            assert_eq!(parse_csv(text).as_ref(), Ok(&expected), "{text}");
        }
        for text in ["", "a,b\n1,2\n", "x"] {
            assert!(parse_csv(text).is_err(), "{text}");
        }
        assert!(parse_json(r#"{"a":"Int16"}"#).is_err_and(|reason| reason.contains("expected one of String, Int32")));
    }
}
