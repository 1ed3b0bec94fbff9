//! The description as a file: TOML or JSON. Every refusal has the line.

use crate::{Error, Result};
use larimar_design::{Description, DesignError};
use std::io::Read as _;
use std::path::Path;

/// Reads a description of at most a mebibyte.
pub(super) fn read(path: &Path) -> Result<String> {
    let mut text = String::new();
    let refused = |error| Error::io(path.display(), error);
    let file = std::fs::File::open(path).map_err(refused)?;
    let bytes = file.take(BYTES_MAX + 1).read_to_string(&mut text).map_err(refused)?;
    match bytes as u64 > BYTES_MAX {
        true => Err(Error::Usage(format!("{}: expected a description of at most 1 MiB", path.display()))),
        false => Ok(text),
    }
}

/// Parses a description, by the end of the file's name.
pub(super) fn parse(path: &Path, text: &str) -> Result<Description> {
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    if is_json {
        return serde_json::from_str(text).map_err(|error| Error::Usage(format!("{}: {error}", path.display())));
    }
    toml::from_str(text).map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| line_at(text, span.start));
        Error::Usage(format!("{}:{line}: {}", path.display(), error.message().replace('\n', " ")))
    })
}

/// A refusal of what a description says, with the line of the part that it names.
pub(super) fn refused(path: &Path, text: &str, error: &DesignError) -> Error {
    let place = match error {
        DesignError::Unknown { place, .. } | DesignError::Invalid { place, .. } => place.as_str(),
        _ => "",
    };
    let line = match place.split('\'').nth(1) {
        Some(name) => text.lines().position(|line| is_name(line, name)),
        None => text.lines().position(|line| !place.is_empty() && line.trim_start_matches('[').starts_with(place)),
    };
    match line {
        Some(index) => Error::Usage(format!("{}:{}: {error}", path.display(), index + 1)),
        None => Error::Usage(format!("{}: {error}", path.display())),
    }
}

/// Whether a line gives this name to something.
fn is_name(line: &str, name: &str) -> bool {
    let key = line.trim_start().trim_start_matches(['"', '{', ' ']);
    let rest = key.strip_prefix("name").map(|rest| rest.trim_start_matches(['"', ' ', '=', ':', '\'']));
    rest.is_some_and(|rest| rest.strip_prefix(name).is_some_and(|end| end.starts_with(['"', '\''])))
}

fn line_at(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
}

const BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        let path = Path::new("x.toml");
        match parse(path, text) {
            Err(error) => error.to_string(),
            Ok(description) => refused(path, text, &larimar_design::propose(&description).expect_err(text)).to_string(),
        }
    }

    #[test]
    fn a_refusal_has_the_line() {
        let head = "entity = 'E'\n[volume]\nentities = 9\n";
        for (rest, start) in [
            ("[[query]]\nname = 'q'\nequal = ['A']", "x.toml:6: unknown field `equal`"),
            (
                "[[query]]\nname = 'p'\n[[query]]\nname = 'q'\nequals = ['A']",
                "x.toml:7: query 'q': unknown property 'A'",
            ),
            ("[[query]]\nname = 'q'\nrate = 'x'", "x.toml:6: expected a rate"),
            ("[[query", "x.toml:4: "),
        ] {
            let found = refusal(&format!("{head}{rest}"));
            assert!(found.starts_with(start), "{rest}: {found}");
        }
        assert!(
            refusal("entity = 'E'\n\n[volume]\nentities = 0\n").starts_with("x.toml:3: volume"),
            "the line of a table"
        );
        let error = parse(Path::new("x.json"), "{\n \"entity\": 3}").expect_err("a number").to_string();
        assert!(error.starts_with("x.json: ") && error.contains("line 2"), "{error}");
    }
}
