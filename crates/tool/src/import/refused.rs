//! Rows that were not written, in a file of JSON lines: where they stand, why, and what they are.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// The file of refused rows. It is made with the first of them.
pub(super) struct RefusedFile {
    path: PathBuf,
    /// Whether a refused row is an error, and no file is made.
    is_refusing: bool,
    file: Option<BufWriter<File>>,
    rows: u64,
}

#[derive(Serialize, Deserialize)]
struct Line {
    file: String,
    line: u64,
    reason: String,
    row: String,
}

impl RefusedFile {
    /// Starts a file, or goes on with one whose rows up to a place are kept.
    pub(super) fn open(path: PathBuf, keep: Option<(&[String], &str, u64)>) -> Result<Self> {
        let mut refused = Self { path, is_refusing: false, file: None, rows: 0 };
        match keep {
            Some((earlier_files, file, line)) => {
                let is_kept = |row: &Line| earlier_files.contains(&row.file) || row.file == file && row.line <= line;
                refused.keep(is_kept).map_err(|error| refused.failed(error))?;
            }
            None => match std::fs::remove_file(&refused.path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(refused.failed(error)),
                _ => {}
            },
        }
        Ok(refused)
    }

    /// No file: the first refused row is an error.
    pub(super) fn none() -> Self {
        Self { path: PathBuf::new(), is_refusing: true, file: None, rows: 0 }
    }

    /// Replaces the file by one with only some of its rows.
    fn keep(&mut self, is_kept: impl Fn(&Line) -> bool) -> std::io::Result<()> {
        let old = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            old => BufReader::new(old?),
        };
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut new = BufWriter::new(tempfile::NamedTempFile::new_in(directory)?);
        for line in old.lines() {
            let line = line?;
            // The last line may be cut off; its row is refused once more.
            if serde_json::from_str(&line).is_ok_and(|row| is_kept(&row)) {
                writeln!(new, "{line}")?;
                self.rows += 1;
            }
        }
        let new = new.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        self.file = Some(BufWriter::new(new.persist(&self.path).map_err(|error| error.error)?));
        Ok(())
    }

    pub(super) fn push(&mut self, file: &str, line: u64, reason: String, row: String) -> Result<()> {
        if self.is_refusing {
            return Err(Error::Refused(format!("{file}: line {line}: {reason}")));
        }
        self.write(&Line { file: file.to_owned(), line, reason, row })
    }

    fn write(&mut self, row: &Line) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(BufWriter::new(File::create(&self.path).map_err(|error| {
                Error::io(format!("{} (name another file with --refused)", self.path.display()), error)
            })?)),
        };
        self.rows += 1;
        let text = serde_json::to_string(row).map_err(|error| Error::io(self.path.display(), error.into()))?;
        writeln!(file, "{text}").map_err(|error| Error::io(self.path.display(), error))
    }

    /// Writes what is held in memory; before the state says that rows are done.
    pub(super) fn flush(&mut self) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.flush().and_then(|()| file.get_ref().sync_data()).map_err(|error| Error::io(self.path.display(), error))
    }

    pub(super) const fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn path(&self) -> std::path::Display<'_> {
        self.path.display()
    }

    fn failed(&self, error: std::io::Error) -> Error {
        Error::io(self.path.display(), error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_after_the_place_are_dropped_when_the_import_goes_on() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("refused");
        let mut file = RefusedFile::open(path.clone(), None).expect("a file");
        assert!(!path.exists(), "only if there are any");
        for (name, line) in [("a", 9), ("b", 3), ("b", 5)] {
            file.push(name, line, "why".to_owned(), "row".to_owned()).expect("written");
        }
        file.flush().expect("written");
        std::fs::write(&path, format!("{}{{\"file\":\"b\",", std::fs::read_to_string(&path).expect("text")))
            .expect("text");
        let file = RefusedFile::open(path.clone(), Some((&["a".to_owned()], "b", 4))).expect("a file");
        assert_eq!((file.rows(), std::fs::read_to_string(&path).expect("text").lines().count()), (2, 2));
        let file = RefusedFile::open(path.clone(), None).expect("a file");
        assert!(file.rows() == 0 && !path.exists());
    }
}
