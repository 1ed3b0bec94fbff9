//! The file of the access log. It only ever has whole lines, also after the disk was full.

use larimar_engine::LogLimit;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Why the access log could not be started.
#[derive(Debug, thiserror::Error)]
pub enum AccessLogError {
    /// A directory, a pipe or a device. To open a pipe could wait forever.
    #[error("{} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// The file cannot be opened or created.
    #[error("{} cannot be opened: {}", .0.display(), .1)]
    NotOpened(PathBuf, #[source] io::Error),
    /// The thread that writes could not be started.
    #[error("the thread of the access log cannot be started: {0}")]
    Thread(#[source] io::Error),
}

/// A file that lines are appended to.
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    failures: LogLimit,
}

impl LogFile {
    /// Opens a file, or creates it for its owner.
    pub(super) fn open(path: &Path) -> Result<Self, AccessLogError> {
        Ok(Self { path: path.to_owned(), file: open(path)?, failures: LogLimit::new() })
    }

    /// Opens the file of the same name. If that fails, lines go to the old file.
    pub(super) fn reopen(&mut self) {
        match open(&self.path) {
            Ok(file) => self.file = file,
            Err(error) => tracing::warn!(%error, "the access log is not reopened and the old file stays"),
        }
    }

    /// Appends lines; how many of them are lost.
    pub(super) fn append(&mut self, lines: &[u8]) -> u64 {
        match append(&mut self.file, lines) {
            Ok(()) => 0,
            Err((lost, error)) => {
                if let Some(left_out) = self.failures.admit() {
                    let path = self.path.display();
                    tracing::warn!(%path, %error, lost, left_out, "lines of the access log could not be written");
                }
                lost
            }
        }
    }
}

fn open(path: &Path) -> Result<File, AccessLogError> {
    let failed = |error| AccessLogError::NotOpened(path.to_owned(), error);
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => return Err(AccessLogError::NotAFile(path.to_owned())),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        Ok(_) | Err(_) => {}
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(failed)
}

/// Appends lines, or as many whole ones as there is room for; the error has the number of the others.
fn append(file: &mut File, lines: &[u8]) -> Result<(), (u64, io::Error)> {
    let all = |error| (count(lines), error);
    let before = file.metadata().map_err(all)?.len();
    let Err(error) = file.write_all(lines) else { return Ok(()) };
    // A full disk takes a part of the lines, which may end within one.
    let Ok(after) = file.metadata().map(|metadata| metadata.len()) else { return Err(all(error)) };
    let written = usize::try_from(after.saturating_sub(before)).map_or(lines.len(), |bytes| bytes.min(lines.len()));
    let kept = whole_bytes(&lines[..written]);
    if kept < written {
        // If this fails too, the file has a broken line: there is nothing else to do about it.
        let _ = file.set_len(after - (written - kept) as u64);
    }
    Err((count(&lines[kept..]), error))
}

/// The bytes up to the end of the last whole line.
fn whole_bytes(lines: &[u8]) -> usize {
    lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

fn count(lines: &[u8]) -> u64 {
    lines.iter().filter(|byte| **byte == b'\n').count() as u64
}
