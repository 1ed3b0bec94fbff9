//! The files of an import, opened with the types of their columns.

use super::schema;
use crate::format::{Format, FormatError, Position, Reader, Shape, csv};
use crate::{Error, Result};
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

/// One input.
#[derive(Clone, Debug)]
pub(super) enum Input {
    File { path: PathBuf, format: Format },
    Stdin { format: Format },
}

/// An input that is open.
pub(super) struct Opened {
    pub(super) reader: Reader,
    /// How many rows it has, if that is known.
    pub(super) rows: Option<u64>,
    /// Whether types of columns were inferred.
    pub(super) is_inferred: bool,
}

impl Input {
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::File { path, .. } => Some(path),
            Self::Stdin { .. } => None,
        }
    }

    pub(super) fn name(&self) -> String {
        self.path().map_or("standard input".to_owned(), |path| path.display().to_string())
    }

    /// Opens the input at a place.
    pub(super) fn open(&self, shape: &Shape, from: Position) -> Result<Opened> {
        let refused = |error: FormatError| match error {
            FormatError::Io(source) => Error::io(self.name(), source),
            FormatError::NoParquet => Error::Usage(error.to_string()),
            other => Error::Usage(format!("{}: {other}", self.name())),
        };
        match self {
            Self::File { path, format } => open_file(path, *format, shape, from).map_err(refused),
            Self::Stdin { format } => open_stdin(*format, shape).map_err(refused),
        }
    }
}

fn open_file(path: &Path, format: Format, shape: &Shape, from: Position) -> Result<Opened, FormatError> {
    // A pipe cannot be read twice.
    if !std::fs::metadata(path)?.is_file() {
        return Err(FormatError::File("expected a file; give `-` to read from a pipe".to_owned()));
    }
    let mut shape = shape.clone();
    let (mut rows, mut is_inferred) = (None, false);
    if format == Format::Csv {
        let beside = path.with_extension("schema.csv");
        if shape.types.is_empty() && beside.is_file() {
            shape.types = schema::read(&beside).map_err(|error| FormatError::File(error.to_string()))?;
        }
        let inferred = csv::infer(File::open(path)?, u64::MAX)?;
        is_inferred = !inferred.types.is_empty();
        shape.inferred = inferred.types;
        rows = Some(inferred.rows);
    }
    let reader = Reader::open(format, File::open(path)?, shape, from)?;
    Ok(Opened { rows: rows.or_else(|| reader.rows()), reader, is_inferred })
}

/// Standard input cannot be read twice: types are inferred from its start.
fn open_stdin(format: Format, shape: &Shape) -> Result<Opened, FormatError> {
    let mut shape = shape.clone();
    let mut start = Vec::new();
    if format == Format::Csv {
        std::io::stdin().lock().take(SAMPLE_BYTES).read_to_end(&mut start)?;
        let is_all = (start.len() as u64) < SAMPLE_BYTES;
        let rows = lines_in(&start);
        // The last row may be cut off.
        shape.inferred = csv::infer(Cursor::new(start.clone()), if is_all { u64::MAX } else { rows / 2 })?.types;
    }
    let is_inferred = !shape.inferred.is_empty();
    let reader = Reader::stream(format, Box::new(Cursor::new(start).chain(std::io::stdin())), shape)?;
    Ok(Opened { reader, rows: None, is_inferred })
}

fn lines_in(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// The inputs that these paths stand for.
pub(super) fn find(paths: &[PathBuf], format: Option<Format>) -> Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for path in paths {
        let name = path.to_string_lossy();
        if name == "-" {
            inputs.push(Input::Stdin { format: format.unwrap_or(Format::Csv) });
        } else if name.ends_with(".manifest") {
            inputs.extend(of_manifest(path)?);
        } else {
            let found = format.or_else(|| Format::from_name(&name));
            let unknown = "expected --format, or a name that ends with .csv, .jsonl, .json or .parquet";
            let format = found.ok_or_else(|| Error::Usage(format!("{name}: {unknown}")))?;
            std::fs::metadata(path).map_err(|error| Error::io(path.display(), error))?;
            inputs.push(Input::File { path: path.clone(), format });
        }
    }
    Ok(inputs)
}

/// The data files of AzCopy 7.3 beside their manifest: `NAME_….json` or `NAME_….csv`.
fn of_manifest(manifest: &Path) -> Result<Vec<Input>> {
    let failed = |error| Error::io(manifest.display(), error);
    std::fs::metadata(manifest).map_err(failed)?;
    let directory = manifest.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let stem = manifest.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_data = (name.ends_with(".json") || name.ends_with(".csv")) && !name.ends_with(".schema.csv");
        if is_data && name.strip_prefix(&stem).is_some_and(|rest| rest.starts_with('_')) {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(Error::Usage(format!("expected files named {stem}_….json or .csv beside {}", manifest.display())));
    }
    find(&paths, None)
}

const SAMPLE_BYTES: u64 = 4 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_stands_for_the_files_beside_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let touch = |name: &str| std::fs::write(directory.path().join(name), "").expect("a file");
        ["a.manifest", "a_2.json", "a_1.json", "b_1.json", "a_1.csv", "a_1.schema.csv", "ab_1.json"]
            .iter()
            .for_each(|name| touch(name));
        let found = find(&[directory.path().join("a.manifest")], None).expect("inputs");
        let names: Vec<_> =
            found.iter().map(|input| input.name().rsplit('/').next().unwrap_or("").to_owned()).collect();
        assert_eq!(names, ["a_1.csv", "a_1.json", "a_2.json"]);
        touch("c.manifest");
        assert!(find(&[directory.path().join("c.manifest")], None).is_err());
        assert!(find(&[directory.path().join("none.csv")], None).is_err());
        assert!(matches!(find(&["x.txt".into()], None), Err(Error::Usage(_))));
    }
}
