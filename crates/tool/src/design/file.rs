//! The description as a file: TOML or JSON. Every refusal has the file and the line.

use crate::{Error, Result};
use larimar_design::limits::TEXT_BYTES_MAX;
use larimar_design::{Description, DesignError};
use std::io::Read as _;
use std::path::Path;

/// Reads a description of at most a mebibyte.
pub(super) fn read(path: &Path) -> Result<String> {
    let mut text = String::new();
    let refused = |error| Error::io(path.display(), error);
    let file = std::fs::File::open(path).map_err(refused)?;
    let bytes = file.take(TEXT_BYTES_MAX as u64 + 1).read_to_string(&mut text).map_err(refused)?;
    match bytes > TEXT_BYTES_MAX {
        true => Err(Error::Usage(format!("{}: expected a description of at most 1 MiB", path.display()))),
        false => Ok(text),
    }
}

/// Parses a description, by the end of the file's name.
pub(super) fn parse(path: &Path, text: &str) -> Result<Description> {
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let parsed = if is_json { Description::from_json(text) } else { Description::from_toml(text) };
    parsed.map_err(|error| refused(path, text, &error))
}

/// A refusal of what a description says, with the line of the part that it names.
pub(super) fn refused(path: &Path, text: &str, error: &DesignError) -> Error {
    match error.line(text) {
        Some(line) => Error::Usage(format!("{}:{line}: {error}", path.display())),
        None => Error::Usage(format!("{}: {error}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_the_file_and_the_line() {
        for (name, text, expected) in [
            ("x.toml", "entity = 'E'\n[[query", "x.toml:2: "),
            ("x.toml", "entity = 'E'\n[volume]\nentity = 9\n", "x.toml:3: unknown field `entity`"),
            ("x.JSON", "{\n \"entity\": 3}", "x.JSON:2: invalid type"),
        ] {
            let error = parse(Path::new(name), text).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let text = "entity = 'E'\n[volume]\nentities = 9\n[[query]]\nname = 'q'\nequals = ['A']";
        let description = Description::from_toml(text).expect("TOML");
        let error = larimar_design::propose(&description).expect_err("an unknown property");
        let error = refused(Path::new("x.toml"), text, &error).to_string();
        assert!(error.starts_with("x.toml:5: query 'q': unknown property 'A'"), "{error}");
    }
}
