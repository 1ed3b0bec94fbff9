//! How far an import is, in a file that is replaced as a whole, so that an import that was killed goes on there.

use super::input::Input;
use crate::format::Position;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The state of an import. Rows before the place are done; some after it may be.
#[derive(Debug)]
pub(super) struct State {
    /// None: standard input, which cannot be read again.
    path: Option<PathBuf>,
    saved: Saved,
    /// Whether its file is there, and the import can be resumed.
    is_saved: bool,
    /// Whether an earlier run left it, so that rows after the place may have been written.
    pub(super) is_resumed: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Saved {
    version: u32,
    table: String,
    options: String,
    files: Vec<Fingerprint>,
    file: usize,
    position: Position,
    written: u64,
}

/// What shows that a file is still the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Fingerprint {
    name: String,
    bytes: u64,
    modified: u128,
    start: u64,
}

impl State {
    /// The state of an import that cannot be resumed.
    pub(super) fn none() -> Self {
        Self { path: None, saved: Saved::default(), is_saved: false, is_resumed: false }
    }

    /// Reads the state that an earlier run left, or starts one.
    pub(super) fn open(path: PathBuf, table: &str, options: &str, inputs: &[Input]) -> Result<Self> {
        let files = inputs.iter().filter_map(Input::path).map(fingerprint).collect::<Result<_>>()?;
        let fresh =
            Saved { version: VERSION, table: table.to_owned(), options: options.to_owned(), files, ..Saved::default() };
        let mut state = Self { path: Some(path.clone()), saved: fresh, is_saved: false, is_resumed: false };
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(state),
            Err(error) => return Err(Error::io(path.display(), error)),
            Ok(text) => text,
        };
        let known: Option<Saved> = serde_json::from_slice(&text).ok();
        let is_same = known.as_ref().is_some_and(|known| {
            let start = Saved { file: 0, position: Position::default(), written: 0, ..known.clone() };
            start == state.saved
        });
        match known.filter(|_| is_same) {
            Some(known) => {
                state.saved = known;
                (state.is_saved, state.is_resumed) = (true, true);
                Ok(state)
            }
            None => Err(Error::Usage(format!(
                "{} is of another import (other files, table or flags): remove it to start anew, or name another with --state",
                path.display()
            ))),
        }
    }

    /// The file that is being read.
    pub(super) const fn file(&self) -> usize {
        self.saved.file
    }

    /// The place in it.
    pub(super) const fn position(&self) -> Position {
        self.saved.position
    }

    /// Rows written by this import up to the place.
    pub(super) const fn written(&self) -> u64 {
        self.saved.written
    }

    pub(super) fn advance(&mut self, file: usize, position: Position, written: u64) {
        (self.saved.file, self.saved.position, self.saved.written) = (file, position, written);
    }

    /// Forgets what was done.
    pub(super) fn restart(&mut self) {
        self.advance(0, Position::default(), 0);
        self.is_resumed = false;
    }

    /// Writes the state to its file.
    pub(super) fn save(&mut self) -> Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let failed = |error| Error::io(format!("{} (name another file with --state)", path.display()), error);
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
        let text = serde_json::to_vec(&self.saved).map_err(|error| failed(error.into()))?;
        file.write_all(&text).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
        file.persist(path).map_err(|error| failed(error.error))?;
        self.is_saved = true;
        Ok(())
    }

    /// Removes the file: everything is done.
    pub(super) fn remove(mut self) -> Result<()> {
        self.is_saved = false;
        match &self.path {
            Some(path) => std::fs::remove_file(path).map_err(|error| Error::io(path.display(), error)),
            None => Ok(()),
        }
    }
}

/// After an error, and when the import is interrupted.
impl Drop for State {
    fn drop(&mut self) {
        if let Some(path) = self.path.as_ref().filter(|_| self.is_saved) {
            eprintln!("the same command continues this import; remove {} to start anew", path.display());
        }
    }
}

fn fingerprint(path: &Path) -> Result<Fingerprint> {
    let failed = |error| Error::io(path.display(), error);
    let file = std::fs::File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let mut start = Vec::new();
    file.take(64 * 1024).read_to_end(&mut start).map_err(failed)?;
    // FNV-1a: the same in every version of this program.
    let hash = start
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    Ok(Fingerprint {
        name: path.display().to_string(),
        bytes: metadata.len(),
        modified: modified.map_or(0, |since| since.as_nanos()),
        start: hash,
    })
}

const VERSION: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;

    #[test]
    fn a_state_goes_on_only_with_the_same_import() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, data) = (directory.path().join("state"), directory.path().join("x.csv"));
        std::fs::write(&data, "a,b\n").expect("a file");
        let inputs = [Input::File { path: data.clone(), format: Format::Csv }];
        let mut state = State::open(path.clone(), "t", "o", &inputs).expect("a state");
        assert!(!state.is_resumed && !path.exists());
        let at = Position { offset: 4, line: 1, rows: 0 };
        state.advance(0, at, 7);
        state.save().expect("saved");
        drop(state);
        let state = State::open(path.clone(), "t", "o", &inputs).expect("a state");
        assert_eq!((state.is_resumed, state.position(), state.written()), (true, at, 7));
        for (table, options) in [("u", "o"), ("t", "p")] {
            assert!(matches!(State::open(path.clone(), table, options, &inputs), Err(Error::Usage(_))));
        }
        std::fs::write(&data, "a,b\n1,2\n").expect("a file");
        assert!(matches!(State::open(path.clone(), "t", "o", &inputs), Err(Error::Usage(_))));
        std::fs::write(&path, "junk").expect("a file");
        assert!(matches!(State::open(path.clone(), "t", "o", &inputs), Err(Error::Usage(_))));
        state.remove().expect("removed");
        assert!(!path.exists());
    }
}
